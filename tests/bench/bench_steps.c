/* SPDX-License-Identifier: Apache-2.0
 * Counts the instructions of one call by stepping through it.
 *
 * A child traces its parent's thread: machines without hardware counters (most virtual ones) give
 * the same exact number as others, and no permission for performance counters is needed.
 */
#include "bench_calls.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { STEPS_MAX = 2000000 };

struct shared {			/* by parent and child */
	volatile int go;	/* 1: begin, -1: not permitted */
	volatile int done;
	volatile int64_t steps;
};

/* In the child: the parent spins on `go`, which is set once it is being stepped. */
static void trace(pid_t tid, struct shared *s)
{
	int64_t steps = 0;
	int status;

	if (ptrace(PTRACE_SEIZE, tid, NULL, NULL) || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL) ||
	    waitpid(tid, &status, __WALL) != tid) {
		s->go = -1;
		return;
	}
	s->go = 1;
	while (!s->done && steps < STEPS_MAX) {
		if (ptrace(PTRACE_SINGLESTEP, tid, NULL, NULL) ||
		    waitpid(tid, &status, __WALL) != tid || !WIFSTOPPED(status))
			break;
		steps++;
	}
	s->steps = s->done ? steps : -1;
	ptrace(PTRACE_DETACH, tid, NULL, NULL);
}

typedef int call_fn(struct bench *b);

static int nothing(struct bench *b)
{
	(void)b;
	return 0;
}

static int launch(struct bench *b)
{
	return b->launch(b->function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static int pair(struct bench *b)
{
	unsigned long long address = 0;

	return b->alloc(&address, 4096) | b->free(address);
}

static int block(struct bench *b)
{
	static uint64_t next;		/* continues where bench_blocks() began: what is freed was allocated */

	bench_block(b->report, next++);
	return 0;
}

static int64_t count(struct bench *b, call_fn *call)
{
	pid_t tid = (pid_t)syscall(SYS_gettid), child;
	struct shared *s = mmap(NULL, sizeof(*s), PROT_READ | PROT_WRITE,
				MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int64_t steps;

	if (s == MAP_FAILED)
		return -1;
	prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);
	child = fork();
	if (child == 0) {
		trace(tid, s);
		_exit(0);
	}
	while (child > 0 && !s->go)
		;
	if (child > 0 && s->go == 1)
		call(b);
	s->done = 1;
	if (child > 0)
		waitpid(child, NULL, 0);
	steps = child > 0 && s->go == 1 ? s->steps : -1;
	munmap(s, sizeof(*s));
	return steps;
}

/* The minimum of several, minus the cost of counting: page faults and timers do not count. */
static int64_t least(struct bench *b, call_fn *call)
{
	int64_t best = -1, empty = -1;

	for (int i = 0; i < 4; i++) {
		int64_t full = count(b, call), none = count(b, nothing);

		if (full < 0 || none < 0)
			return -1;
		best = best < 0 || full < best ? full : best;
		empty = empty < 0 || none < empty ? none : empty;
	}
	return best - empty;
}

int64_t bench_steps_launch(struct bench *b)
{
	return least(b, launch);
}

int64_t bench_steps_pair(struct bench *b)
{
	return least(b, pair);
}

int64_t bench_steps_block(struct bench *b)
{
	bench_blocks(b, 0);		/* finds what is called */
	return least(b, block);
}
