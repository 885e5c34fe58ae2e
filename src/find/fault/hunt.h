/* SPDX-License-Identifier: Apache-2.0
 * The hunt for the culprit in a dump: its state, and its steps in order. Only for hunt_*.c and culprit.c.
 */
#ifndef CUWHY_HUNT_H
#define CUWHY_HUNT_H

#include "find/fault/culprit.h"

struct sass_line;

/* Bounds on what a malicious file can make us look at; real ones stay far below. */
#define ROWS_MAX	((size_t)1 << 22)	/* eight GPUs full of threads have 2.7 million; tables that overlap, more */
#define MODULES_MAX	16384

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
	uint64_t straight_end;		/* a lane up to here still has the registers as they were at the pc */
	struct sass_line *line;		/* recomputes destroyed addresses; NULL = not needed or not possible */
	bool line_tried;
	bool line_differs;		/* from a register: the code is not what ran, or not all of it */
	bool once, once_tried;		/* a thread executes the instruction at most once */
	unsigned steps;			/* that were used to execute threads */
	uint64_t call;			/* of an assertion's function, 0 = not known */
	uint32_t told;			/* only exceptions of this CUDA error count, 0 = all */
};

typedef bool hunt_fn(struct hunt *h, const struct thread *t);

/* Which thread: one with an exception; else an SM with one, whose warp has exited; else a warp that a trap stopped; else whatever ran. */
void hunt_first(struct hunt *h);
/* Whatever runs. */
void hunt_running(struct hunt *h);
/* Does this exception count? */
bool hunt_counts(const struct hunt *h, uint64_t exception);
/* Calls fn for every valid thread of the dump, or of one SM, until it returns true. */
void hunt_walk(struct hunt *h, const struct dump_row *only_sm, hunt_fn *fn);

/* Where: the device, the kernel and the instruction. */
void hunt_where(struct hunt *h);

/* Who: the threads at fault, and where the others are. */
void hunt_lanes(struct hunt *h);

/* What a thread accessed. The last call is for all of them. */
void hunt_address(struct hunt *h, const struct thread *t, struct culprit_lane *l);
void hunt_address_end(struct hunt *h);
/* Has it stopped where it still has the registers of the address? */
bool hunt_in_reach(const struct hunt *h, const struct thread *t);
/* Did it skip the instruction, as its predicate was false? */
bool hunt_skipped(struct hunt *h, const struct thread *t);

#endif
