/* SPDX-License-Identifier: Apache-2.0
 * PyTorch's CUDA caching allocator (the native back end) of one GPU: given the same requests, it answers with the same blocks,
 * asks the driver for the same segments, and runs out of memory at the same request.
 *
 * It allocates nothing on a GPU. Whoever makes one answers its calls to the driver: from a recording (the same again), or from
 * the free bytes of another card (what if). Not modeled: CUDA IPC, pools of checkpointed graphs, several threads at once.
 */
#ifndef CUWHY_ALLOCATOR_H
#define CUWHY_ALLOCATOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "allocator/settings.h"

struct allocator;
struct allocator_block;

/* What the allocator asks the driver for. `of` is the caller's; an address is never 0, `stream` is the handle: it decides the
 * order in which streams' memory is released. */
struct allocator_driver {
	void *of;
	uint64_t (*alloc)(void *of, uint64_t size, uint64_t stream);	/* cudaMalloc; 0: out of memory */
	void (*free)(void *of, uint64_t addr, uint64_t size);		/* cudaFree */
	/* Expandable segments. The address space is always there; mapping takes memory for all of it, or fails. */
	uint64_t (*reserve)(void *of, uint64_t size, uint64_t page, uint64_t stream);
	void (*unreserve)(void *of, uint64_t addr, uint64_t size);
	bool (*map)(void *of, uint64_t addr, uint64_t size);
	void (*unmap)(void *of, uint64_t addr, uint64_t size);
	/* The `nth` event (from 1) is recorded on a stream, for the block at `addr`. NULL: nobody asks. Has the stream passed it?
	 * NULL: always. */
	void (*record)(void *of, uint64_t stream, uint64_t nth, uint64_t addr);
	bool (*passed)(void *of, uint64_t stream, uint64_t nth);
	/* A block that was deleted is free for others now, which is later when other streams used it. NULL: nobody asks. */
	void (*freed)(void *of, uint64_t addr, uint64_t requested);
};

/* {0, 0}: the default pool. CUDA graphs and torch.cuda.MemPool have pools of their own. */
struct allocator_pool_id {
	uint64_t first, second;
};

struct allocator_amount {
	uint64_t now, peak;
};

/* Of torch.cuda.memory_stats(). */
struct allocator_counters {
	struct allocator_amount allocated, active, requested, reserved, inactive_split;	/* bytes */
	struct allocator_amount segments;	/* without expandable ones */
	uint64_t retries, ooms, syncs, driver_allocs, driver_frees;
};

/* The request that failed last. */
struct allocator_failure {
	uint64_t size;			/* rounded */
	uint64_t segment;		/* what was asked from the driver, which is what the message says */
	bool at_limit;			/* the program's own limit, not the card's */
};

enum allocator_state { ALLOCATOR_FREE, ALLOCATOR_PENDING, ALLOCATOR_ALLOCATED };

/* A block, and the segment that it is in; of expandable segments the mapped range. */
struct allocator_piece {
	uint64_t segment, segment_size;
	uint64_t addr, size, requested;
	uint64_t stream;
	struct allocator_pool_id pool;
	enum allocator_state state;
	bool small, expandable;
};

/* `release` stays the caller's; `total` is the card's memory, of which fractions are taken. */
struct allocator *allocator_new(const struct allocator_release *release, const struct allocator_settings *settings,
				const struct allocator_driver *driver, uint64_t total);
void allocator_free(struct allocator *a);

/* Memory that PyTorch had before the first request: an ordinary segment, or the addresses of an expandable one and which of them have
 * memory. Blocks and ranges are by address, inside of it, and do not overlap; the driver is not asked. */
struct allocator_range {
	uint64_t addr, size;
};
struct allocator_held {
	uint64_t addr, size, requested;
	struct allocator_block *block;	/* out */
};
struct allocator_segment {
	uint64_t addr, size;
	uint64_t stream;
	struct allocator_pool_id pool;
	bool small;
	const struct allocator_range *mapped;	/* NULL: an ordinary segment, all of it */
	size_t n_mapped;
};
void allocator_adopt(struct allocator *a, const struct allocator_segment *s, struct allocator_held *held, size_t n);

/* NULL: out of memory (allocator_failure), or nothing was asked for. */
struct allocator_block *allocator_alloc(struct allocator *a, uint64_t size, uint64_t stream,
					struct allocator_pool_id pool);
void allocator_delete(struct allocator *a, struct allocator_block *block);
void allocator_record_stream(struct allocator *a, struct allocator_block *block, uint64_t stream);

uint64_t allocator_block_addr(const struct allocator_block *block);
uint64_t allocator_block_size(const struct allocator_block *block);

/* Of one pool, or with {0, 0} all that is not in use. False: PyTorch raises an internal error here, and nothing is released. */
bool allocator_empty_cache(struct allocator *a, struct allocator_pool_id pool);
void allocator_set(struct allocator *a, const struct allocator_settings *settings);	/* not its `fraction` */
void allocator_set_fraction(struct allocator *a, double fraction);

/* Private pools count their users: whoever made a pool, and each graph or region that allocates to it. A pool without users is
 * released by the next empty_cache or out of memory. */
enum allocator_pool_kind {
	ALLOCATOR_POOL_OWN_ALLOCATOR = 1,
	ALLOCATOR_POOL_USE_ON_OOM = 2,
	ALLOCATOR_POOL_NO_SPLIT = 4,
};
void allocator_pool_use(struct allocator *a, struct allocator_pool_id pool, unsigned kind);	/* MemPool() */
void allocator_pool_begin(struct allocator *a, struct allocator_pool_id pool);	/* one more user, which allocates */
void allocator_pool_end(struct allocator *a, struct allocator_pool_id pool);	/* it still uses the pool */
void allocator_pool_drop(struct allocator *a, struct allocator_pool_id pool);	/* one user less */

/* Whether the current stream of the thread that calls is being captured. Matters only from 2.15 on: older releases wait for
 * nothing while any pool is allocated to. */
void allocator_set_captured(struct allocator *a, bool captured);

const struct allocator_counters *allocator_counters(const struct allocator *a);
const struct allocator_failure *allocator_failure(const struct allocator *a);

/* All blocks by address; the list is the caller's (free). */
size_t allocator_snapshot(const struct allocator *a, struct allocator_piece **list);

#endif
