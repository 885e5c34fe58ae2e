/* SPDX-License-Identifier: Apache-2.0
 * What one process of a job left behind: who it is, how it ended and why, where it was in its collectives. The shape of a
 * file in a job folder (docs/jobs.md), and of everything else that has data about a rank.
 *
 * All times are nanoseconds of the machine's CLOCK_MONOTONIC, which only processes with the same `boot` share.
 */
#ifndef CUWHY_JOB_RANK_H
#define CUWHY_JOB_RANK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "base/pool.h"

#define JOB_UNKNOWN	UINT32_MAX
#define JOB_FORMAT	1

/* A collective, or number 0, the making of the communicator. If it ended on this rank, there was a moment between the two times at
 * which all ranks were inside. Times are given only where that is true: a broadcast may end at its root before another rank has begun. */
struct job_mark {
	uint64_t seq;
	uint64_t in_ns, out_ns;		/* called; known to have ended; 0 = not known */
	uint64_t digest;		/* of all calls up to this one */
};

struct job_call {
	uint64_t seq;
	const char *op, *type, *line;	/* "all_reduce", "float32", "train.py:60"; NULL = not known */
	uint64_t count;			/* elements */
};

/* A communicator: calls are numbered from 1. */
struct job_comm {
	const char *id;			/* the same on all of its ranks */
	const char *parent;		/* split from it; NULL = none */
	int64_t color, order;		/* of the split; -1 = none */
	uint32_t rank, size;
	uint64_t called, done;		/* the newest call, and the newest that is known to have ended; 0 = none is */
	uint64_t called_ns;		/* when the newest call was made; 0 = not known */
	uint64_t captured;		/* calls that went into graphs */
	bool aborted;
	struct job_mark *mark;		/* ascending */
	size_t n_marks;
	struct job_call *call;		/* the newest, ascending */
	size_t n_calls;
};

enum job_state { JOB_RUNNING, JOB_ENDED, JOB_LEFT };	/* LEFT: it outlived the `cuwhy run` that watched it */
extern const char *const job_states[];

struct job_rank {
	uint32_t format;
	const char *job;
	uint32_t requeue, attempt;
	uint32_t rank, world, local;	/* JOB_UNKNOWN = not set */
	bool launcher;			/* it only starts the ranks of its node */
	const char *node, *boot, *command;
	uint32_t pid, ppid;
	uint64_t started_ns, written_ns, ended_ns;	/* 0 = not known */
	uint64_t alive_ns;		/* the last time it was seen alive: its end lies between this and ended_ns; 0 = not known */
	uint64_t real_ns;		/* CLOCK_REALTIME when CLOCK_MONOTONIC was written_ns: for people, never to order by */
	enum job_state state;
	bool exit_known;
	int exit, signal;
	/* the failure; cause NULL = none */
	const char *cause, *sure, *title, *where, *because;
	bool own;			/* it is this process's own failure, not only an exception about others */
	uint64_t failed_ns;
	const char *exception, *message;	/* that ended it */
	const char *of_peers;		/* the exception says that another process is gone or did not come: our words for it */
	uint32_t victim_of;		/* pid on the same node; 0 = none */
	const char *doing;		/* the last line of Python, the last kernel */
	const char *verdict;		/* file with all of it, beside this one */
	struct job_comm *comm;
	size_t n_comms;
	/* not in the file */
	const char *path;
	bool node_known;
};

/* Does its file say what it was doing at written_ns, not where it is now or how it ended? */
bool job_rank_is_snapshot(const struct job_rank *r);

/* Bounds of what is written, so that a healthy rank stays small. */
#define JOB_COMMS_MAX	6
#define JOB_MARKS_MAX	16
#define JOB_CALLS_MAX	8
#define JOB_TEXT_MAX	400	/* bytes of a text */

void job_rank_init(struct job_rank *r);

/* Without secrets; the caller owns it. */
json_t *job_rank_json(const struct job_rank *r);

/* Whatever fits is taken; false if it is not such a file. Texts and lists are the pool's. Numbers that cannot be are dropped. */
bool job_rank_read(struct job_rank *r, const json_t *o, struct pool *pool);

#endif
