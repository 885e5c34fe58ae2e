/* SPDX-License-Identifier: Apache-2.0
 * What programs do that is hard on a library in their process: awkward HABIT [NUMBER]. Linked with small_driver.c. */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define TOO_MUCH ((size_t)1 << 40)

int cuInit(unsigned flags);
int cuMemAlloc_v2(unsigned long long *address, size_t bytes);
int cuMemGetInfo_v2(size_t *free, size_t *total);
int cuLaunchKernel(void *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
		   unsigned shared, void *stream, void **params, void **extra);

static atomic_bool stop;
static atomic_int ready;

/* Changes the environment without end: any getenv on another thread may read freed memory. */
static void *set_variables(void *unused)
{
	char name[64];

	(void)unused;
	for (int i = 0; !stop; i = (i + 1) % 3000) {
		if (i == 0)
			for (int k = 0; k < 3000; k++) {
				snprintf(name, sizeof(name), "VARIABLE_%d", k);
				unsetenv(name);
			}
		snprintf(name, sizeof(name), "VARIABLE_%d", i);
		setenv(name, "1", 1);
	}
	return NULL;
}

static int fail_while_variables_change(int failures)
{
	unsigned long long address;
	pthread_t setter;

	pthread_create(&setter, NULL, set_variables, NULL);
	for (int i = 0; i < failures; i++)
		cuMemAlloc_v2(&address, TOO_MUCH);
	stop = true;
	pthread_join(setter, NULL);
	return 0;
}

/* Allocates once, so that the thread is known, and fails when all the others are known, too. */
static void *fail_in_a_crowd(void *unused)
{
	unsigned long long address;

	(void)unused;
	cuMemAlloc_v2(&address, 16);
	ready++;
	while (!stop)
		usleep(50000);
	for (int i = 0; i < 3; i++)
		cuMemAlloc_v2(&address, TOO_MUCH);
	return NULL;
}

static int crowd(int n)
{
	pthread_t *id = calloc((size_t)n, sizeof(*id));
	pthread_attr_t small;

	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 128 << 10);
	for (int i = 0; i < n; i++)
		if (pthread_create(&id[i], &small, fail_in_a_crowd, NULL))
			return 77;
	while (ready < n)
		usleep(10000);
	stop = true;
	for (int i = 0; i < n; i++)
		pthread_join(id[i], NULL);
	free(id);
	return 0;
}

/* Waits in the driver until a signal comes, whose handler jumps out of the call. */
static sigjmp_buf back;

static void jump(int signal)
{
	(void)signal;
	siglongjmp(back, 1);
}

static int call_deeper(int depth)
{
	volatile char room[512];

	memset((char *)room, depth, sizeof(room));
	return depth ? call_deeper(depth - 1) + (room[0] != depth)
		     : cuLaunchKernel(NULL, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

/* A lock of libc that a jump left behind is locked forever here. */
static int call_in_child(void)
{
	unsigned long long address;
	int status = 1;
	pid_t child = fork();

	if (child == 0)
		_exit(cuMemAlloc_v2(&address, 16));
	waitpid(child, &status, 0);
	return status;
}

static int open_files(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* Each jump leaves from another place in the call, or in whoever stands in front of it. What follows is called from
 * deeper on the stack than what was left. */
static int jump_out_of_calls(int jumps)
{
	unsigned long long address;
	struct itimerval soon = {{0, 0}, {0, 50}};
	int files = open_files();

	signal(SIGALRM, jump);
	for (volatile int i = 0; i < jumps; i++) {
		if (sigsetjmp(back, 1))
			continue;
		soon.it_value.tv_usec = 20 + i % 100;
		setitimer(ITIMER_REAL, &soon, NULL);
		for (;;)
			cuMemAlloc_v2(&address, i % 2 ? 16 : TOO_MUCH);
	}
	for (int i = 0; i < 100; i++)
		if (call_deeper(i % 20))
			return 2;
	if (open_files() != files)
		return 3;
	return call_in_child();
}

/* The thread's first call is only a question: the driver crashes in it, and a handler jumps out. The second one fails. */
static void *ask_first(void *launches)
{
	if (sigsetjmp(back, 1) == 0)
		cuMemGetInfo_v2((size_t *)8, (size_t *)8);
	if (cuMemGetInfo_v2(NULL, NULL) != 1)
		return launches;
	for (int i = 0; i < *(int *)launches; i++)
		if (call_deeper(i % 20))
			return launches;
	return NULL;
}

static int jump_out_of_a_question(int launches)
{
	pthread_t id;
	void *failed = &id;

	signal(SIGSEGV, jump);
	pthread_create(&id, NULL, ask_first, &launches);
	pthread_join(id, &failed);
	return failed ? 2 : 0;
}

/* From now on the process ends at a system call that a program of this kind never makes. */
static int lock_in(void)
{
	static const int refused[] = {SYS_memfd_create,	    SYS_socket, SYS_connect,  SYS_sendmsg,
				      SYS_process_vm_readv, SYS_tgkill, SYS_fallocate};
	enum { N = sizeof(refused) / sizeof(refused[0]) };
	struct sock_filter filter[2 * N + 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
	struct sock_fprog program = {2 * N + 2, filter};

	for (int i = 0; i < N; i++) {
		filter[2 * i + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)refused[i], 0, 1);
		filter[2 * i + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
	}
	filter[2 * N + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) ? 77 : 0;
}

static int fail_in_a_sandbox(int threads)
{
	unsigned long long address;
	int status = lock_in();
	pid_t child;

	cuMemAlloc_v2(&address, TOO_MUCH);
	child = status ? 0 : fork();
	if (child == 0 && !status)
		_exit(cuMemAlloc_v2(&address, TOO_MUCH) != 2);
	if (child > 0 && (waitpid(child, &status, 0) != child || status))
		return 2;
	return status ? status : crowd(threads);
}

int main(int argc, char **argv)
{
	const char *habit = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0, status = 2;

	if (cuInit(0))
		return 2;
	if (strcmp(habit, "setenv") == 0)
		status = fail_while_variables_change(n);
	else if (strcmp(habit, "crowd") == 0)
		status = crowd(n);
	else if (strcmp(habit, "jump") == 0)
		status = jump_out_of_calls(n);
	else if (strcmp(habit, "ask") == 0)
		status = jump_out_of_a_question(n);
	else if (strcmp(habit, "sandbox") == 0)
		status = fail_in_a_sandbox(n);
	if (!status)
		puts("unharmed");
	return status;
}
