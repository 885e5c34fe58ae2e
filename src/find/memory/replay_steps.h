/* SPDX-License-Identifier: Apache-2.0
 * The events of a memory trace as steps, in which blocks have numbers instead of addresses: what the program did, and what
 * PyTorch's allocator asked from the driver meanwhile. Of a trace that begins in the middle: what was there before.
 */
#ifndef CUWHY_REPLAY_STEPS_H
#define CUWHY_REPLAY_STEPS_H

#include "allocator/allocator.h"
#include "case/ledger.h"
#include "cuwhy/format.h"
#include "find/memory/replay.h"

#define STEP_UNIT  CW_EVENT_UNIT
#define NAMES_MAX  255			/* streams, pools */

/* What the program does, and what is in use besides PyTorch's memory. */
enum step_kind { STEP_ALLOC, STEP_FREE, STEP_FREE_LATER, STEP_EMPTY, STEP_OOM, STEP_POOL, STEP_OUTSIDE };

struct step {
	uint64_t addr;
	uint32_t units;			/* its size; OUTSIDE: what is in use there */
	uint32_t block;			/* its number */
	uint32_t stack;			/* of the code that asked */
	uint32_t acts;			/* of the driver's, until it was done */
	uint16_t slack;			/* ALLOC: units by which the block was larger than the request */
	uint8_t kind;			/* enum step_kind */
	uint8_t stream, pool;		/* their numbers */
	uint8_t purpose;		/* ALLOC: enum ledger_kind, by the code that asked */
};

/* What PyTorch's allocator asked from the driver in the recording, and got. */
enum act_kind { ACT_SEGMENT, ACT_GONE, ACT_RESERVED, ACT_REFUSED };

struct act {
	uint64_t addr, size;
	enum act_kind kind;
};

struct names {
	uint64_t name[NAMES_MAX + 1];
	size_t n;
};

/* What PyTorch had when the events begin: segments with their blocks, all by address; of expandable ones, where memory is. */
struct start_segment {
	uint64_t addr, size;
	uint8_t stream, pool;
	bool expandable;
	uint64_t page;			/* of an expandable one */
	size_t block, n_blocks;		/* into the lists below */
	size_t range, n_ranges;
	size_t age;			/* the oldest is adopted first */
};

struct start {
	struct start_segment *segment;
	size_t n, cap;
	struct allocator_held *held;
	uint32_t *number;		/* of the blocks */
	size_t n_held;
	struct allocator_range *range;
	size_t n_ranges, cap_ranges;
	uint64_t reserved;
	size_t steps, acts;		/* those that stand for it, if it is allocated anew */
};

struct replay {
	struct replay_facts facts;
	struct trace *trace;
	int device;
	struct step *step;
	size_t n, cap;
	struct act *act;
	size_t n_acts, cap_acts;
	uint32_t blocks;		/* numbers in use at most */
	struct names streams, pools;
	uint64_t began[REPLAY_INTERVALS];	/* ticks */
	size_t n_intervals, stride;	/* steps in an interval */
	bool sizes_known;
	struct start start;
};

/* Rounded up. */
uint32_t step_units(uint64_t bytes);

static inline uint64_t step_size(const struct step *s)
{
	return (uint64_t)s->units * STEP_UNIT;
}

/* What was asked for, as far as it is known. */
static inline uint64_t step_asked(const struct step *s)
{
	return step_size(s) - (uint64_t)s->slack * STEP_UNIT;
}

/* It is as large with any batch. */
static inline bool step_stays(const struct step *s)
{
	return s->purpose == KIND_PARAMETERS || s->purpose == KIND_LOADED || s->purpose == KIND_OPTIMIZER ||
	       s->purpose == KIND_GRADIENTS || s->purpose == KIND_WORKSPACES;
}

/* Freed before anything else of size was asked for, and of whole MiB: workspaces, and partial sums, of which there are as many as the GPU has room for. */
bool step_like_workspace(const struct replay *r, size_t step);

/* Sizes of all that does, ascending: a gradient is as large as its parameter. Free the list. */
struct step_sizes {
	uint32_t *list;			/* units */
	size_t n;
};
struct step_sizes steps_that_stay(const struct replay *r);
void step_sizes_sort(struct step_sizes *s);
bool step_sizes_have(const struct step_sizes *s, uint32_t units);

/* Fills in the steps, the acts and the start. Anybody may have written the events: nothing in them is trusted. */
int steps_read(struct replay *r, const void *bytes, size_t len, int device, struct err *e);
void steps_release(struct replay *r);

/* Other steps, which are its own from now on, of the same program. */
struct replay *replay_of_steps(const struct replay *r, struct step *step, size_t n, uint32_t blocks);

#endif
