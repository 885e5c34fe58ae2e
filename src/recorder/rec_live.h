/* SPDX-License-Identifier: Apache-2.0
 * A table of what is live by address: the driver's allocations, and PyTorch's blocks.
 */
#ifndef CUWHY_REC_LIVE_H
#define CUWHY_REC_LIVE_H

#include "rec.h"

struct live_table {
	enum cw_chunk_kind chunk;	/* under which name the reader finds it */
	struct spin lock;		/* held around every function below but live_start() */
	struct cw_allocation *table;
	struct cw_allocation *large;	/* the next one; NULL when there was no memory */
	uint32_t n, slots;
	bool cannot_grow;
	struct cw_ring *freed;		/* what has left it last; NULL when there was no memory */
};

bool live_start(struct live_table *l, uint32_t freed_slots);	/* false: no memory */

/* That it will be asked for: fetches its slot meanwhile. Needs no lock. */
void live_expect(const struct live_table *l, uint64_t addr);

/* The slot of an address, its `addr` 0 when it is not in the table. */
struct cw_allocation *live_find(const struct live_table *l, uint64_t addr);

/* Enters it, or replaces what stood there; its site knows. False: the table is full. */
bool live_put(struct live_table *l, const struct cw_allocation *a);

/* Another entry may stand at the same place afterwards. */
void live_remove(struct live_table *l, struct cw_allocation *a, uint64_t ticks);

/* `stack`: who gave it back, and when. */
void live_keep_freed(struct live_table *l, const struct cw_allocation *a, uint32_t stack, uint64_t ticks);

#endif
