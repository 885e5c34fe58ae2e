/* SPDX-License-Identifier: Apache-2.0
 * The threads of another process, as the kernel sees them, and what a system call of theirs waits for.
 */
#ifndef CUWHY_TASK_H
#define CUWHY_TASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct task {
	uint32_t tid;
	uint32_t inner_tid;	/* its number as it knows it itself: in a container, another one */
	char name[32];
	char state;		/* R, S, D, T, t, Z */
	char wchan[64];		/* where in the kernel; "" = not known */
	bool runs;		/* has a processor, or is ready for one: neither asleep nor stopped */
	bool in_call;		/* the three below are known: it sleeps in a system call */
	long call;
	uint64_t arg[6], sp, pc;
	uint64_t cpu_ns;	/* time on a processor so far */
	uint64_t queued_ns;	/* time that it was ready, but had to wait for one */
	uint64_t bytes;		/* read and written so far, but not on sockets */
	pid_t tracer;		/* the debugger that is attached to it; 0 = none */
	uint64_t switches;	/* how often it went to sleep by itself */
};

/* How many threads; `*list` is the caller's. 0: the process is gone. */
size_t tasks_read(pid_t pid, struct task **list);
/* One of them again; false: it is gone. */
bool task_read(pid_t pid, uint32_t tid, struct task *t);
/* The process that a thread belongs to, which `top -H` lists; the number itself if there is no such thread. */
pid_t task_process(pid_t tid);
/* The text of its `syscall` file; for tests. */
void task_parse_call(struct task *t, const char *text);

#endif
