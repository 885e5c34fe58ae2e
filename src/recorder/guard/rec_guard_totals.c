/* SPDX-License-Identifier: Apache-2.0
 * Guard mode: what it takes for itself, and what PyTorch would have taken for the same tensors.
 *
 * A tensor of four floats takes a page of 2 MiB here and 512 bytes there. Programs ask for their memory, and some decide by the answer,
 * so the answers are PyTorch's. What pages take beyond that is bounded: memory that small tensors hold cannot be given back when a
 * large one comes.
 */
#include <string.h>

#include "recorder/guard/rec_guard_own.h"

#define MIB		((uint64_t)1 << 20)
#define UNIT		512u		/* PyTorch's blocks, and the driver's */
#define SMALL		MIB		/* up to this size: out of segments of 2 MiB, with others */
#define SMALL_SEGMENT	(2 * MIB)
#define LARGE		(10 * MIB)	/* from this size on: a segment of its own, in steps of 2 MiB */
#define SEGMENT		(20 * MIB)	/* those between share segments of this size */
#define WASTE_PART	10u		/* of the card may be lost to pages; then only what loses little gets some */
#define LITTLE		16u		/* a part of its own size */

static struct totals {
	uint64_t requested, allocated, count;	/* PyTorch's tensors */
	uint64_t small, middle, large;		/* of those, by the kind of segment */
	uint64_t most_reserved;			/* since its cache was emptied */
	uint64_t others;			/* what is not PyTorch's */
	uint64_t pages, taken;			/* what live allocations have; what we have from the driver */
} totals[CW_MAX_DEVICES];

static struct { uint64_t pool, used, most; } pools[CW_MAX_DEVICES * 4];	/* memory pools of the driver */

void totals_start(void)
{
	memset(&totals, 0, sizeof(totals));
	memset(&pools, 0, sizeof(pools));
}

static struct totals *of(int device)
{
	return &totals[(unsigned)device % CW_MAX_DEVICES];
}

static uint64_t up(uint64_t bytes, uint64_t unit)
{
	return (bytes + unit - 1) / unit * unit;
}

static uint64_t get(const uint64_t *counter)
{
	return __atomic_load_n(counter, __ATOMIC_RELAXED);
}

static void add(uint64_t *counter, uint64_t bytes, bool in)
{
	__atomic_fetch_add(counter, in ? bytes : -bytes, __ATOMIC_RELAXED);
}

/* The rest of a segment of its own is a block of its own, unless it is small. */
static uint64_t block_of(uint64_t size)
{
	uint64_t block = up(size, UNIT), segment = up(size, SMALL_SEGMENT);

	return block < LARGE || segment - block > SMALL ? block : segment;
}

static uint64_t driver_of(uint64_t size)
{
	return up(size, size > MIB ? 2 * MIB : UNIT);
}

static uint64_t need_of(const struct guarded *r)
{
	return r->torch ? block_of(r->size) : driver_of(r->size);
}

static void count_torch(struct totals *t, uint64_t size, bool in)
{
	uint64_t block = block_of(size);

	add(&t->requested, size, in);
	add(&t->allocated, block, in);
	add(&t->count, 1, in);
	if (block <= SMALL)
		add(&t->small, block, in);
	else if (block < LARGE)
		add(&t->middle, block, in);
	else
		add(&t->large, up(size, SMALL_SEGMENT), in);
}

static uint64_t reserved_with(const struct totals *t, uint64_t size)
{
	uint64_t block = block_of(size), small = get(&t->small), middle = get(&t->middle), large = get(&t->large);

	if (block <= SMALL)
		small += block;
	else if (block < LARGE)
		middle += block;
	else
		large += up(size, SMALL_SEGMENT);
	return up(small, SMALL_SEGMENT) + up(middle, SEGMENT) + large;
}

static uint64_t reserved_now(const struct totals *t)
{
	return reserved_with(t, 0);
}

static void count_pool(uint64_t pool, uint64_t size, bool in)
{
	uint32_t i = 0, n = sizeof(pools) / sizeof(pools[0]);

	while (i < n && pools[i].pool && pools[i].pool != pool)
		i++;
	if (!pool || i == n)
		return;
	pools[i].pool = pool;
	add(&pools[i].used, up(size, UNIT), in);
	if (get(&pools[i].used) > pools[i].most)
		pools[i].most = get(&pools[i].used);
}

static void count(const struct guarded *r, bool in)
{
	struct totals *t = of(r->device);

	add(&t->pages, r->len, in);
	if (r->torch)
		count_torch(t, r->size, in);
	else
		add(&t->others, driver_of(r->size), in);
	count_pool(r->memory_pool, r->size, in);
	if (reserved_now(t) > t->most_reserved)
		t->most_reserved = reserved_now(t);
}

void totals_in(const struct guarded *r)
{
	count(r, true);
}

void totals_out(const struct guarded *r)
{
	count(r, false);
}

void totals_taken(int device, uint64_t bytes, bool in)
{
	add(&of(device)->taken, bytes, in);
}

bool totals_allow(const struct guarded *r, uint64_t card)
{
	const struct totals *t = of(r->device);
	uint64_t need = need_of(r), loss = r->len > need ? r->len - need : 0;
	uint64_t pages = get(&t->pages), needed = get(&t->allocated) + get(&t->others);

	return loss <= r->size / LITTLE || (pages > needed ? pages - needed : 0) + loss <= card / WASTE_PART;
}

uint64_t guard_extra(int device)
{
	const struct totals *t = of(device);
	uint64_t taken = get(&t->taken), needed = reserved_now(t) + get(&t->others);

	return taken > needed ? taken - needed : 0;
}

void guard_totals(int device, struct guard_totals *out)
{
	const struct totals *t = of(device);

	*out = (struct guard_totals){.requested = get(&t->requested), .allocated = get(&t->allocated), .count = get(&t->count),
				     .reserved = get(&t->most_reserved), .in_use = reserved_now(t)};
}

uint64_t guard_block(uint64_t size)
{
	return block_of(size);
}

uint64_t guard_in_use(int device, uint64_t more)
{
	return reserved_with(of(device), more);
}

uint64_t guard_card(int device)
{
	const struct guard_device *d = device_known(device);

	return d ? d->total : 0;
}

void guard_cache_emptied(void)
{
	for (int i = 0; i < CW_MAX_DEVICES; i++)
		totals[i].most_reserved = reserved_now(&totals[i]);
}

/* What a program asks about the driver's pools. */
uint64_t guard_pool_bytes(uint64_t pool, bool most, bool anew)
{
	for (uint32_t i = 0; pool && i < sizeof(pools) / sizeof(pools[0]); i++)
		if (pools[i].pool == pool) {
			if (anew)
				pools[i].most = get(&pools[i].used);
			return most ? pools[i].most : get(&pools[i].used);
		}
	return 0;
}
