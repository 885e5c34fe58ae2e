/* SPDX-License-Identifier: Apache-2.0
 * Writes down where a thread is, instruction by instruction, for bench_ops.py: like bench_steps.c, a child traces it.
 */
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS_MAX = 2000000 };

static struct shared {		/* by parent and child */
	volatile int go;	/* 1: begin, -1: not permitted */
	volatile int done;
} * shared;
static pid_t child;

static void trace(pid_t tid, const char *path)
{
	FILE *out = fopen(path, "w");
	struct user_regs_struct regs;
	int status;

	if (!out || ptrace(PTRACE_SEIZE, tid, NULL, NULL) || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) ||
	    waitpid(tid, &status, __WALL) != tid) {
		shared->go = -1;
		return;
	}
	shared->go = 1;
	for (int i = 0; !shared->done && i < STEPS_MAX; i++) {
		if (ptrace(PTRACE_GETREGS, tid, NULL, &regs) || fwrite(&regs.rip, sizeof(regs.rip), 1, out) != 1 ||
		    ptrace(PTRACE_SINGLESTEP, tid, NULL, NULL) || waitpid(tid, &status, __WALL) != tid ||
		    !WIFSTOPPED(status))
			break;
	}
	fclose(out);
	ptrace(PTRACE_DETACH, tid, NULL, NULL);
}

/* False: the system does not permit it. */
int ops_begin(const char *path)
{
	pid_t tid = (pid_t)syscall(SYS_gettid);

	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (shared == MAP_FAILED)
		return 0;
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	child = fork();
	if (child == 0) {
		trace(tid, path);
		_exit(0);
	}
	while (child > 0 && !shared->go)
		;
	return child > 0 && shared->go == 1;
}

/* Between two operations. */
__attribute__((noinline)) void ops_mark(void)
{
	__asm__ volatile("");
}

void ops_end(void)
{
	shared->done = 1;
	waitpid(child, NULL, 0);
}
