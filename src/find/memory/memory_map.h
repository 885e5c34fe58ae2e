/* SPDX-License-Identifier: Apache-2.0
 * PyTorch's segments at one moment, and what is where in them, coarse enough to draw.
 */
#ifndef CUWHY_MEMORY_MAP_H
#define CUWHY_MEMORY_MAP_H

#include "case/ledger.h"

/* A block, or neighbors that are too small to draw one by one. */
struct map_run {
	uint64_t offset, span;		/* from the start of its segment; gaps between neighbors included */
	uint64_t bytes;			/* of the blocks alone */
	uint64_t blocks, largest;	/* how many, and the bytes of the largest: kind and line are its own */
	enum ledger_kind kind;
	struct place place;		/* `file` NULL = not known */
};

struct map_segment {
	uint64_t addr, size, free, largest_free, blocks;
	size_t first, n;		/* its runs */
	size_t like;			/* segments that look the same; only the first of them is here */
};

struct memory_map {
	struct map_segment *segment;	/* largest first */
	size_t n;
	struct map_run *run;
	size_t n_runs;
	size_t segments;		/* total, including omitted ones */
	size_t n_left_out;
	uint64_t left_out, left_out_free;	/* bytes of these */
};

/* Limits of a map: it is for people. */
struct map_limits {
	size_t segments, runs;
};

/* At `ticks` (UINT64_MAX = the end); `in_backward` and `reserved` as in the ledger of that moment. Everything
 * lives in the pool. */
void memory_map_build(struct memory_map *m, struct trace *t, int device, uint64_t ticks, bool in_backward,
		      uint64_t reserved, const struct map_limits *limits, struct pool *pool);

/* At the time of the ledger. The blocks at a peak are not recorded: then, and where memory never ran out, it is the end, and false. */
bool memory_map_of(struct memory_map *m, struct trace *t, const struct ledger *l, const struct map_limits *limits,
		   struct pool *pool);

#endif
