/* SPDX-License-Identifier: Apache-2.0
 * A table of live allocations by address: the driver's allocations, or PyTorch's blocks.
 */
#ifndef CUWHY_REC_LIVE_H
#define CUWHY_REC_LIVE_H

#include "rec.h"

struct live_table {
	enum cw_chunk_kind chunk;	/* the kind under which the reader finds it */
	struct spin lock;		/* held for every function below except live_start() and live_expect() */
	struct cw_allocation *table;
	uint32_t n, slots;
	bool cannot_grow;
	struct cw_ring *freed;		/* most recent frees; NULL = out of memory */
};

bool live_start(struct live_table *l, uint32_t freed_slots);	/* false: no memory */

/* Prefetches the slot of an address that will be needed soon. Needs no lock. */
void live_expect(const struct live_table *l, uint64_t addr);

/* The slot for an address; its `addr` is 0 if the address is not in the table. */
struct cw_allocation *live_find(const struct live_table *l, uint64_t addr);

/* Adds it, or replaces the entry with the same address, and updates its site. False: the table is full. */
bool live_put(struct live_table *l, const struct cw_allocation *a);

/* Afterwards another entry may be in the same slot. */
void live_remove(struct live_table *l, struct cw_allocation *a, uint64_t ticks);

/* A block that PyTorch gave to a library. */
static inline bool block_is_workspace(const struct cw_allocation *a)
{
	return a->kind == CW_MEM_TORCH && a->library && !(a->library & CW_BLOCK_DETAIL);
}

/* `stack` and `ticks`: where and when it was freed. */
void live_keep_freed(struct live_table *l, const struct cw_allocation *a, uint32_t stack, uint64_t ticks);

#endif
