/* SPDX-License-Identifier: Apache-2.0
 * Looks at a process that runs, several times within a second or so, and says whether it moved in between.
 *
 * A thread has moved if the frames of its own code (everything but Python's library) are others than before, if a frame that calls another
 * is at another place, or if a variable of any of them has changed. Which instruction the innermost of these frames executes does not
 * matter: that changes in an endless loop, too.
 */
#ifndef CUWHY_LOOK_H
#define CUWHY_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/pool.h"
#include "read/live/native.h"
#include "read/live/pyproc.h"
#include "read/live/target.h"
#include "read/live/task.h"

struct look_options {
	bool no_stop;
	uint64_t window_ns;	/* from the first look to the last */
};
#define LOOKS		6u
#define LOOKS_MOST	(4 * LOOKS)	/* where a thread hardly got a processor between them */
#define LOOK_WINDOW_NS	1000000000u
#define NATIVE_THREADS	4096u	/* 64 MiB; for further ones only what Python and the kernel say is reported */

struct seen_frame {
	struct py_raw raw;
	struct py_frame at;
	bool own;		/* not of Python's library */
	uint64_t contents;
};

/* A thread, over all looks. */
struct seen {
	struct task task;	/* at the last look */
	struct py_thread py;	/* state 0 = no Python thread */
	struct seen_frame *frame;	/* at the first look, innermost first; NULL = none yet */
	struct seen_frame *last;
	size_t n, n_last;
	unsigned looks, asleep;	/* how often it was seen; how often it slept in a system call */
	uint64_t cpu_first, cpu_last;
	struct task first;	/* at the first look */
	unsigned ran;		/* looks before which it had run since the one before */
	bool moved, new;	/* new: it was not there at the first look */
	bool library_moved;	/* a variable of a frame of Python's library has changed */
	bool unread;		/* its stack could not be read */
	uint32_t least_line;	/* of its innermost own frame */
	uint64_t own_code;	/* of that frame; where it was met, in bytes of its code */
	int64_t low, high;
	struct native_stack *native;
	bool gone;
};

struct process_look {
	pid_t pid;
	struct look_options o;
	struct target target;
	struct remote remote;
	struct pyproc py;
	const char *torch_path;	/* where PyTorch was loaded from; "" = it was not */
	struct pool pool;
	struct seen *thread;
	size_t n, cap;
	size_t n_native;	/* threads whose native stacks are kept */
	bool some_left_out;	/* the list of Python's threads could not be read to its end */
	unsigned looks;
	uint64_t first_ns, last_ns, longest_stop_ns;
	unsigned stops;
	bool stop_refused;
	uint64_t watched_ns;	/* spent on watching instructions */
};

/* -errno with `e` filled, in one sentence with what to run. */
int look_open(struct process_look *l, pid_t pid, const struct look_options *o, struct err *e);
/* One look; false: the process is gone. */
bool look_once(struct process_look *l);
void look_close(struct process_look *l);

/* The native stack of a thread that sleeps and is no thread of Python's: those are copied only when asked for. */
void look_native(struct process_look *l, struct seen *s);

struct seen *look_thread(const struct process_look *l, uint32_t tid);
struct seen *look_state(const struct process_look *l, uint64_t state);
struct seen *look_pthread(const struct process_look *l, uint64_t ident);

/* Share of the time between its first and its last look on a processor. */
double seen_cpu(const struct process_look *l, const struct seen *s);
/* The same with the time that it was ready for one, but others had them all. */
double seen_wanted(const struct process_look *l, const struct seen *s);

/* Has it run often enough for "it did not move" to mean something? Looks at a thread that got no processor in between are one look. */
bool seen_enough(const struct seen *s);
/* A thread runs, did not move, and was not seen enough. */
bool look_undecided(const struct process_look *l);

/* Watches a thread that runs: is its innermost frame at one instruction all the time, as it is while a call does not return? False also
 * if it did not run meanwhile. */
bool look_one_instruction(struct process_look *l, struct seen *s);

/* Watches a thread that runs: a function of the program's own that its innermost own frame calls, be it from native code or as a property. NULL: it was
 * met in none. */
const char *look_called(struct process_look *l, const struct seen *s);

/* Why a process cannot be looked at: `rc` is what the kernel said, `command` who wants to: "explain". */
int look_refused(pid_t pid, int rc, const char *command, struct err *e);

#endif
