/* SPDX-License-Identifier: Apache-2.0
 * PYTORCH_CUDA_ALLOC_CONF, as a release of PyTorch understands it, and how the releases differ.
 */
#ifndef CUWHY_ALLOCATOR_SETTINGS_H
#define CUWHY_ALLOCATOR_SETTINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

enum allocator_rule {
	POOLS_EXPAND = 1 << 0,		/* private pools have expandable segments, too */
	OWN_POOLS_DO_NOT = 1 << 1,	/* but not those with an allocator of their own */
	KNOWS_LARGE_SEGMENT = 1 << 2,	/* large_segment_size_mb */
	EMPTIES_IN_POOL = 1 << 3,	/* empty_cache while a pool is in use does nothing; before, it raised an error */
	LENDS_LAST = 1 << 4,		/* pools with use_on_oom are asked when all else has failed ... */
	LENDS_FIRST = 1 << 5,		/* ... or before the cache is released */
	REST_IS_AFTER = 1 << 6,		/* `>` of roundup_power2_divisions begins after the last interval, not with it */
	ALL_IS_NO_LIMIT = 1 << 7,	/* a memory fraction of 1 is no limit; before, it switched garbage collection on */
	OLDEST_SEGMENT = 1 << 8,	/* of free blocks of one size, that in the oldest segment; before, the lowest address */
	ONLY_CAPTURED = 1 << 9,	/* events are left for later only by captured streams; before, wherever a pool is in use */
};

struct allocator_release {
	unsigned major, minor;
	bool compared;			/* false: from its source alone */
	unsigned rules;			/* of enum allocator_rule */
};

#define ALLOCATOR_INTERVALS 16

/* Sizes in bytes. */
struct allocator_settings {
	uint64_t max_split;		/* UINT64_MAX: all blocks may be split */
	uint64_t non_split_rounding;
	uint64_t large_segment;
	uint64_t divisions[ALLOCATOR_INTERVALS];	/* from 1 MiB, 2 MiB, 4 MiB ... on; 0 and 1: none */
	double collect_above;		/* garbage_collection_threshold; 0: none */
	double fraction;		/* of the card's memory; negative: none */
	bool expandable;
	char unmodeled[48];		/* an option that has an effect this model does not have; "" = none */
};

/* The rules of this release: its own row, or the one before, and `compared` is true of the row's own release only. NULL below 2.4. */
const struct allocator_release *allocator_release_find(unsigned major, unsigned minor);

void allocator_settings_init(struct allocator_settings *s);
bool allocator_settings_same(const struct allocator_settings *a, const struct allocator_settings *b);

/* As PyTorch takes over such a text: some of what an earlier text said stays. -EINVAL with `e` filled when this release would
 * refuse it. */
int allocator_settings_parse(struct allocator_settings *s, const struct allocator_release *release, const char *text,
			     struct err *e);

#endif
