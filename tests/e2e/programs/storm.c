/* SPDX-License-Identifier: Apache-2.0
 * For storm.py: a library that counts the signals of the process that has called storm_receive, by threads that run and threads that sleep again and
 * again, and sends them from another one. What is counted is in a file that both have mapped.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define QUEUED	4	/* SIGRTMIN and the next */

/* One is outstanding at a time, since the kernel keeps one of a kind: the next is sent when this one was counted. */
static const int single[] = {SIGUSR1, SIGTERM, SIGCHLD, SIGURG};
#define SINGLE (sizeof(single) / sizeof(single[0]))

static volatile struct counts {
	uint64_t queued, sum;			/* received, and the sum of their values */
	uint64_t single[SINGLE], alarms;
	uint64_t early;				/* calls that returned EINTR where all signals are blocked */
	uint64_t calls;
	uint32_t over;
} * c;

static void on_queued(int number, siginfo_t *info, void *context)
{
	(void)number, (void)context;
	__atomic_add_fetch(&c->queued, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&c->sum, (uint64_t)(uintptr_t)info->si_value.sival_ptr, __ATOMIC_RELAXED);
}

static void on_single(int number)
{
	for (size_t i = 0; i < SINGLE; i++)
		if (single[i] == number)
			__atomic_add_fetch(&c->single[i], 1, __ATOMIC_RELEASE);
}

/* Each sets the next: if one is lost, none follows. */
static void on_alarm(int number)
{
	const struct itimerval once = {.it_value = {.tv_usec = 1000}};

	(void)number;
	__atomic_add_fetch(&c->alarms, 1, __ATOMIC_RELAXED);
	setitimer(ITIMER_REAL, &once, NULL);
}

int storm_map(const char *path)
{
	int fd = open(path, O_RDWR | O_CLOEXEC);
	void *at = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	close(fd);
	c = at == MAP_FAILED ? NULL : at;
	return c != NULL;
}

void storm_receive(void)
{
	struct sigaction queued = {.sa_sigaction = on_queued, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigaction one = {.sa_handler = on_single, .sa_flags = SA_RESTART},
			 alarms = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};

	for (int i = 0; i < QUEUED; i++)
		sigaction(SIGRTMIN + i, &queued, NULL);
	for (size_t i = 0; i < SINGLE; i++)
		sigaction(single[i], &one, NULL);
	sigaction(SIGALRM, &alarms, NULL);
	on_alarm(SIGALRM);
}

uint64_t storm_count(const char *what)
{
	return !strcmp(what, "queued")	 ? c->queued
	       : !strcmp(what, "sum")	 ? c->sum
	       : !strcmp(what, "alarms") ? c->alarms
	       : !strcmp(what, "early")	 ? c->early
					 : c->calls;
}

void storm_end(void)
{
	c->over = 1;
}

/* A thread that runs, and now and then enters the kernel. */
void storm_spin(void)
{
	volatile double x = 1;

	while (!c->over) {
		for (int i = 0; i < 20000; i++)
			x = x * 1.0000001 + 1e-9;
		syscall(SYS_getppid);
	}
}

static void sleep_somehow(unsigned how, int epoll, int pair, int semaphore)
{
	struct timespec limit = {.tv_nsec = 300000};
	struct sembuf take = {.sem_num = 0, .sem_op = -1};
	struct epoll_event event;
	sigset_t none;
	long rc;
	char byte;

	sigemptyset(&none);
	sigaddset(&none, SIGWINCH);
	errno = 0;
	switch (how % 6) {
	case 0: rc = epoll_wait(epoll, &event, 1, 1); break;
	case 1: rc = semtimedop(semaphore, &take, 1, &limit); break;
	case 2: rc = recv(pair, &byte, 1, 0); break;
	case 3: rc = sigtimedwait(&none, NULL, &limit); break;
	case 4: rc = nanosleep(&limit, NULL); break;
	default: rc = poll(NULL, 0, 1); break;
	}
	if (rc < 0 && errno == EINTR)
		__atomic_add_fetch(&c->early, 1, __ATOMIC_RELAXED);
	__atomic_add_fetch(&c->calls, 1, __ATOMIC_RELAXED);
}

/* A thread that falls asleep again and again, in calls that must not end early: nothing sends it a signal. */
void storm_sleep(void)
{
	struct timeval limit = {.tv_usec = 300};
	volatile double x = 1;
	int pair[2], epoll = epoll_create1(0), semaphore = semget(IPC_PRIVATE, 1, 0600);
	sigset_t all;

	sigfillset(&all);
	pthread_sigmask(SIG_BLOCK, &all, NULL);
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	for (unsigned how = 0; !c->over; how++) {
		for (int i = 0; i < 100000; i++)
			x = x * 1.0000001 + 1e-9;
		sleep_somehow(how, epoll, pair[0], semaphore);
	}
	semctl(semaphore, 0, IPC_RMID);
	close(pair[0]);
	close(pair[1]);
	close(epoll);
}

static bool is_alive(pid_t pid)
{
	return kill(pid, 0) == 0;
}

static void doze(void)
{
	const struct timespec pause = {.tv_nsec = 100000};

	nanosleep(&pause, NULL);
}

static void queue_one(pid_t pid, pid_t tid, int number, uint64_t value)
{
	siginfo_t info = {.si_signo = number, .si_code = SI_QUEUE};

	info.si_pid = getpid();
	info.si_value.sival_ptr = (void *)(uintptr_t)value;
	while (syscall(SYS_rt_tgsigqueueinfo, pid, tid, number, &info) != 0 && errno == EAGAIN)
		doze();		/* so many are not kept */
}

#define UNDER_WAY 1000	/* of those queued: all processes of a user share the room for them */

/* Waits until `*count` is that much; false: nothing came for so many seconds. */
static bool wait_for(volatile uint64_t *count, uint64_t much, pid_t pid, double patience)
{
	time_t since = time(NULL);

	for (uint64_t before = *count; *count < much && is_alive(pid); doze()) {
		if (*count != before)
			since = time(NULL);
		else if ((double)(time(NULL) - since) > patience)
			return false;
		before = *count;
	}
	return *count >= much;
}

/* Sends so many to the threads in turn, and others between them. Returns the sum of the values; `*singles`: how many of those of which one
 * is outstanding at a time, `*lost`: how many of them never came. */
uint64_t storm_send(pid_t pid, const pid_t *tid, unsigned n, uint64_t signals, double patience, uint64_t *lost,
		    uint64_t *singles)
{
	uint64_t sum = 0, sent[SINGLE] = {0};

	*lost = *singles = 0;
	for (uint64_t i = 0; i < signals; i++) {
		size_t k = i / 64 % SINGLE;

		if (i % 64 == 0 && i > UNDER_WAY && !wait_for(&c->queued, i - UNDER_WAY, pid, patience))
			break;
		queue_one(pid, tid[i % n], SIGRTMIN + (int)(i % QUEUED), i);
		sum += i;
		if (i % 64 || c->single[k] < sent[k])
			continue;	/* the one before has not come yet */
		sent[k]++;
		++*singles;
		if (i / 64 / SINGLE % 2 ? syscall(SYS_tgkill, pid, tid[i / 64 % n], single[k]) : kill(pid, single[k]))
			break;
	}
	for (size_t k = 0; k < SINGLE; k++)
		*lost += !wait_for(&c->single[k], sent[k], pid, patience);
	return sum;
}
