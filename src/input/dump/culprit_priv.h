/* SPDX-License-Identifier: Apache-2.0
 * The search for the culprit, between the files that share it.
 */
#ifndef CUWHY_CULPRIT_PRIV_H
#define CUWHY_CULPRIT_PRIV_H

#include "input/dump/culprit.h"
#include "input/dump/dump.h"

/* A thread with everything above it. */
struct thread {
	struct dump_row sm, cta, warp, lane;
};

struct hunt {
	struct dump *d;
	struct culprit *c;
	struct thread first;		/* rows may be absent: an SM alone, without threads */
	struct dump_row device, grid;
	struct dump_row last_warp, last_cta;	/* of the lane taken before */
	struct bytes image;	/* of the grid's module, or of the one that holds the pc */
	struct bytes original;	/* the same before relocation; empty in light dumps */
	uint64_t straight_end;		/* a lane up to here still has the registers of the pc */
	struct sass_eval *eval;		/* computes destroyed addresses again; NULL = not needed or not possible */
	bool eval_tried;
};

/* Calls fn for every valid thread of the dump, or of one SM, until it returns true. */
typedef bool thread_fn(struct hunt *h, const struct thread *t);
bool threads_walk(struct hunt *h, const struct dump_row *only_sm, thread_fn *fn);

/* culprit_where.c: kernel, pc and instruction. */
void culprit_place(struct hunt *h);
/* culprit_lanes.c: then lanes and addresses. */
void culprit_lanes(struct hunt *h);
void culprit_judge(struct hunt *h);
/* culprit_address.c: has a lane executed the instruction, and what did it access? */
bool lane_in_reach(struct hunt *h, const struct thread *t);
bool lane_skipped(struct hunt *h, const struct thread *t);
void lane_address(struct hunt *h, const struct thread *t, struct culprit_lane *l);
void lane_address_finish(struct hunt *h);
/* culprit_assert.c: what was asserted */
void culprit_assert(struct hunt *h);

/* culprit_running.c: where the threads of a kernel stand that has not failed. */
void places_count(struct hunt *h, const struct thread *t);
void places_finish(struct hunt *h);

#endif
