/* SPDX-License-Identifier: Apache-2.0
 * worst_moment FILE ACTION: runs until the first byte of FILE is set, then does what ACTION says. An action that sleeps is ended from outside: by
 * writing to what it waits for (standard input), or by its own time limit. Says what came of it: "ACTION RESULT ERROR".
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LIMIT_S 3

static volatile sig_atomic_t got[65], value[65];

static void count(int number, siginfo_t *info, void *context)
{
	(void)context;
	got[number]++;
	value[number] = info->si_code == SI_QUEUE ? info->si_value.sival_int : -1;
}

static void handle(int number)
{
	struct sigaction act = {.sa_sigaction = count, .sa_flags = SA_SIGINFO};

	sigaction(number, &act, NULL);
}

static long do_epoll(const sigset_t *mask)
{
	struct epoll_event event = {.events = EPOLLIN};
	int epoll = epoll_create1(0);

	epoll_ctl(epoll, EPOLL_CTL_ADD, 0, &event);
	return epoll_pwait(epoll, &event, 1, -1, mask);
}

static long do_semop(void)
{
	struct sembuf take = {.sem_num = 0, .sem_op = -1};
	struct timespec limit = {.tv_sec = LIMIT_S};
	int id = semget(IPC_PRIVATE, 1, 0600);
	long rc = semtimedop(id, &take, 1, &limit);
	int saved = errno;

	semctl(id, 0, IPC_RMID);
	errno = saved;
	return rc;
}

static long do_msgrcv(void)
{
	struct { long type; char text[8]; } message;
	int id = msgget(IPC_PRIVATE, 0600);
	pid_t child = fork();
	long rc;

	if (child == 0) {
		sleep(LIMIT_S);
		message.type = 1;
		msgsnd(id, &message, sizeof(message.text), 0);
		_exit(0);
	}
	rc = msgrcv(id, &message, sizeof(message.text), 0, 0);
	msgctl(id, IPC_RMID, NULL);
	return rc;
}

static long do_socket(void)
{
	struct timeval limit = {.tv_sec = LIMIT_S};
	char byte;
	int pair[2];

	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return recv(pair[0], &byte, 1, 0);
}

static long do_sigtimedwait(void)
{
	struct timespec limit = {.tv_sec = LIMIT_S};
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	return sigtimedwait(&set, NULL, &limit);
}

static long do_vfork(void)
{
	pid_t child = vfork();

	if (child == 0) {
		struct timespec t = {.tv_sec = LIMIT_S};

		syscall(SYS_nanosleep, &t, NULL);
		_exit(7);
	}
	return child > 0;
}

static long act(const char *action, char **argv)
{
	struct timespec limit = {.tv_sec = LIMIT_S};
	struct pollfd input = {.fd = 0, .events = POLLIN};
	fd_set set;
	int word = 0;
	char byte;

	FD_ZERO(&set);
	FD_SET(0, &set);
	if (!strcmp(action, "epoll_wait"))
		return do_epoll(NULL);
	if (!strcmp(action, "semop"))
		return do_semop();
	if (!strcmp(action, "msgrcv"))
		return do_msgrcv();
	if (!strcmp(action, "recv"))
		return do_socket();
	if (!strcmp(action, "sigtimedwait"))
		return do_sigtimedwait();
	if (!strcmp(action, "vfork"))
		return do_vfork();
	if (!strcmp(action, "nanosleep"))
		return nanosleep(&limit, NULL);
	if (!strcmp(action, "poll"))
		return poll(&input, 1, -1);
	if (!strcmp(action, "select"))
		return select(1, &set, NULL, NULL, NULL);
	if (!strcmp(action, "read"))
		return read(0, &byte, 1);
	if (!strcmp(action, "futex"))
		return syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, 0, &limit, NULL, 0);
	if (!strcmp(action, "exec"))
		execv(argv[0], (char *[]){argv[0], "-", "read", NULL});
	if (!strcmp(action, "leave"))
		pthread_exit(NULL);
	return -1;
}

static void *other_thread(void *arg)
{
	char byte;

	(void)arg;
	printf("other %ld\n", (long)read(0, &byte, 1));
	exit(0);
}

int main(int argc, char **argv)
{
	volatile char *go = NULL;
	pthread_t other;
	long rc;

	if (argc < 3)
		return 2;
	for (int number = 1; number <= 64; number++)
		if (number == SIGUSR1 || number == SIGTERM || number == SIGALRM || number == SIGCHLD || number >= SIGRTMIN)
			handle(number);
	if (strcmp(argv[1], "-") != 0)
		go = mmap(NULL, 1, PROT_READ, MAP_SHARED, open(argv[1], O_RDONLY), 0);
	if (!strcmp(argv[2], "leave"))
		pthread_create(&other, NULL, other_thread, NULL);
	setvbuf(stdout, NULL, _IOLBF, 0);
	if (go)
		printf("ready\n");
	while (go && (!*go || (!strcmp(argv[2], "count") && !got[SIGTERM])))
		;
	if (!strcmp(argv[2], "count")) {
		for (int number = 1; number <= 64; number++)
			if (got[number])
				printf("%d:%d:%d ", number, (int)got[number], (int)value[number]);
		printf("\n");
		return 0;
	}
	errno = 0;
	rc = act(argv[2], argv);
	printf("%s %ld %d\n", argv[2], rc, rc < 0 ? errno : 0);
	return 0;
}
