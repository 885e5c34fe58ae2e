/* SPDX-License-Identifier: Apache-2.0
 * Who failed first in an attempt of a job, and what that did to the others.
 *
 * Ordered by causality: a rank that complains about its peers is a consequence of one that failed by itself; a rank that never
 * called a collective keeps those waiting that did; what a launcher ends, it ends after another one has ended. What causality
 * leaves open is ordered by clocks, as far as shared collectives prove how much they differ (clocks.h). What that leaves open is
 * reported as open.
 */
#ifndef CUWHY_JOB_ORDER_H
#define CUWHY_JOB_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/pool.h"

struct job_attempt;
struct job_call;
struct job_rank;

/* What a rank is in the story. */
enum job_role {
	ROLE_FINE,		/* it ended well */
	ROLE_FIRST,		/* the first, or one of several that cannot be ordered */
	ROLE_FAILED,		/* by itself, but not as the first */
	ROLE_VICTIM,
	ROLE_OPEN,		/* it has not ended, as far as its file says */
	ROLE_COUNT
};
extern const char *const job_roles[];

/* How the first one failed. */
enum job_how {
	HOW_NOT,		/* nothing failed */
	HOW_FAILED,		/* by its own failure */
	HOW_KILLED,		/* by signal 9: sent by the kernel, when memory runs out, or by a user or a program */
	HOW_DIVERGED,		/* it called another collective than the others */
	HOW_ABSENT,		/* it never called the collective that the others wait for */
	HOW_LOST,		/* it left no end: its machine, or all of its processes at once */
	HOW_MISSING,		/* there is no file of it at all */
	HOW_UNKNOWN,		/* others complain about a peer, and nothing tells which */
	HOW_COUNT
};
extern const char *const job_hows[];

struct job_part {
	enum job_role role;
	size_t of;		/* ROLE_VICTIM: the index of the one to blame; SIZE_MAX = one of several */
	const char *did;	/* "lost the connection to its peers", "out of memory": groups ranks */
	bool deed;		/* the words follow the name of the rank; false: they stand for themselves */
	const char *at;		/* where it was: its collective, its line; NULL = not known */
};

struct job_answer {
	struct pool pool;
	const struct job_attempt *attempt;
	struct job_part *part;		/* by rank, as in the attempt */
	enum job_how how;
	size_t *first;			/* indexes; one, unless they cannot be ordered */
	size_t n_first;
	bool ordered;			/* is `first` proven: one rank, or the ranks of one lost machine; false: it is not known to be the first */
	const char *title;		/* the answer in one line */
	const char **because;		/* what proves the order, what could not be proven */
	size_t n_because;
	uint32_t world;			/* ranks of the job; JOB_UNKNOWN = no file says */
	uint32_t *missing;		/* ranks without a file */
	size_t n_missing;
	uint32_t *unread;		/* ranks with files, none of which can be read: they may have been the first */
	size_t n_unread;
	size_t n_nodes;			/* 0 = not known */
	size_t n_role[ROLE_COUNT];
};

struct job_answer *job_judge(const struct job_attempt *a);
void job_answer_free(struct job_answer *a);

/* The cause of the answer: that of the first rank, or of all that may have been the first; "none": nothing failed; "unknown": it failed, and left
 * no cause. NULL: those that may have been the first have different ones. */
const char *job_cause(const struct job_answer *a);

/* "0-7, 9": of ascending numbers; at most `max` ranges, then "and 12 more". */
const char *job_ranges(struct pool *pool, const uint32_t *number, size_t n, size_t max);

/* "all_reduce of 1,024 float32 at train.py:60"; NULL = not known. */
const char *job_call_text(struct pool *pool, const struct job_call *c);

/* "rank 3 on node1", or "process 4711 on node1". */
const char *job_name(struct pool *pool, const struct job_rank *r);

#endif
