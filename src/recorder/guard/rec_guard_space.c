/* SPDX-License-Identifier: Apache-2.0
 * Guard mode: addresses. A range is used once, until the budget of address space is spent; then the oldest part of it that holds
 * nothing is used again.
 */
#include <string.h>
#include <unistd.h>

#include "recorder/guard/rec_guard_own.h"
#include "recorder/rec_segment.h"

#define SLAB		((uint64_t)64 << 30)	/* reserved at once */
#define SLAB_LEAST	((uint64_t)64 << 20)
#define BUDGET		((uint64_t)16 << 40)
#define SLABS_MAX	2048u
#define BLOCK		4096u			/* records allocated at once */
#define BLOCKS_MAX	1024u

struct slab {
	uint64_t base;
	uint32_t *unit;			/* record of each page, 0 = none */
	uint32_t n, used, live;		/* pages; pages handed out; allocations in them that are not unmapped */
	uint64_t turn;			/* when it was last begun */
};

static struct {
	struct slab slab[SLABS_MAX];	/* by address */
	uint32_t n_slabs;
	uint64_t reserved, budget, slab_size, turns;
	struct guarded *block[BLOCKS_MAX];
	uint32_t n_records, unused;	/* records ever used; chain of those that can be used again */
} space;

/* What a forked child's parent had. The child's copies of the tensors go, too, one by one; their memory is the parent's. */
static struct {
	struct { uint64_t from, to; } range[2 * SLABS_MAX];
	uint32_t n;
	int pid;			/* whose the slabs are */
} parents;

static void parents_take(void)
{
	for (uint32_t i = 0; i < space.n_slabs && parents.n < 2 * SLABS_MAX; i++, parents.n++) {
		parents.range[parents.n].from = space.slab[i].base;
		parents.range[parents.n].to = space.slab[i].base + space.slab[i].n * GUARD_UNIT;
	}
}

bool guard_of_parent(uint64_t address)
{
	for (uint32_t i = 0; i < parents.n; i++)
		if (address >= parents.range[i].from && address < parents.range[i].to)
			return true;
	return false;
}

void space_start(uint64_t budget)
{
	int pid = getpid();

	if (parents.pid && parents.pid != pid)
		parents_take();
	parents.pid = pid;
	memset(&space, 0, sizeof(space));
	space.n_records = 1;
	space.budget = budget ? budget : BUDGET;
	space.slab_size = space.budget / 4 < SLAB ? space.budget / 4 : SLAB;
	space.slab_size = space.slab_size < SLAB_LEAST ? SLAB_LEAST : space.slab_size & ~(GUARD_UNIT - 1);
}

struct guarded *record(uint32_t i)
{
	return &space.block[i / BLOCK][i % BLOCK];
}

uint32_t records_end(void)
{
	return space.n_records;
}

/* The slab that contains the address; called with the lock held. */
static struct slab *slab_at(uint64_t address)
{
	uint32_t low = 0, high = space.n_slabs;

	while (low < high) {
		uint32_t middle = (low + high) / 2;
		struct slab *s = &space.slab[middle];

		if (address < s->base)
			high = middle;
		else if (address - s->base >= s->n * GUARD_UNIT)
			low = middle + 1;
		else
			return s;
	}
	return NULL;
}

uint32_t record_at(uint64_t address)
{
	struct slab *s = slab_at(address);

	return s ? s->unit[(address - s->base) / GUARD_UNIT] : 0;
}

bool address_is_dead(uint64_t address)
{
	struct slab *s = slab_at(address);
	uint64_t page = s ? (address - s->base) / GUARD_UNIT : 0;

	return s && page < s->used && !s->unit[page];
}

/* Reserves another slab. The driver may be slow, but this happens once in thousands of allocations. */
static struct slab *slab_new(uint64_t size)
{
	CUresult (*reserve)(uint64_t *, size_t, size_t, uint64_t, uint64_t) = door(ENTRY_cuMemAddressReserve);
	struct slab s = {.n = (uint32_t)(size / GUARD_UNIT), .turn = ++space.turns};
	uint32_t at = space.n_slabs;

	if (!reserve || space.n_slabs == SLABS_MAX)
		return NULL;
	s.unit = large_new(s.n * sizeof(*s.unit));
	if (!s.unit || reserve(&s.base, size, 0, 0, 0) != 0) {
		if (s.unit)
			large_free(s.unit, s.n * sizeof(*s.unit));
		return NULL;
	}
	while (at > 0 && space.slab[at - 1].base > s.base) {
		space.slab[at] = space.slab[at - 1];
		at--;
	}
	space.slab[at] = s;
	space.n_slabs++;
	space.reserved += size;
	return &space.slab[at];
}

/* A range has a hole behind it, and a slab begins with one. */
static bool slab_has_room(const struct slab *s, uint32_t used, uint32_t units)
{
	return s->n - used >= units + 1 + !used;
}

/* The newest slab, if there is room; else another one; when the budget is spent, the oldest that holds nothing. */
static struct slab *slab_with(uint32_t units)
{
	struct slab *newest = NULL, *idle = NULL;
	uint64_t need = (units + 2) * GUARD_UNIT, size = need > space.slab_size ? need : space.slab_size;

	for (uint32_t i = 0; i < space.n_slabs; i++) {
		struct slab *s = &space.slab[i];

		if (!newest || s->turn > newest->turn)
			newest = s;
		if (!s->live && s->used && slab_has_room(s, 0, units) && (!idle || s->turn < idle->turn))
			idle = s;
	}
	if (newest && slab_has_room(newest, newest->used, units))
		return newest;
	if (space.reserved + size <= space.budget || !idle)
		return slab_new(size);
	idle->used = 0;
	idle->turn = ++space.turns;
	shared_add(&guard.told->reused, 1);
	return idle;
}

static uint32_t record_new(void)
{
	uint32_t i = space.unused;

	if (i) {
		space.unused = record(i)->next;
		return i;
	}
	if (space.n_records == BLOCK * BLOCKS_MAX)
		return 0;
	i = space.n_records;
	if (!space.block[i / BLOCK])
		space.block[i / BLOCK] = large_new(BLOCK * sizeof(struct guarded));
	if (!space.block[i / BLOCK])
		return 0;
	space.n_records++;
	return i;
}

uint32_t range_take(uint64_t len)
{
	uint32_t units = (uint32_t)(len / GUARD_UNIT), i;
	struct slab *s = slab_with(units);

	i = s ? record_new() : 0;
	if (!i)
		return 0;
	if (!s->used)
		s->used = 1;
	*record(i) = (struct guarded){.map = s->base + s->used * GUARD_UNIT, .len = len, .state = GUARD_MAKING};
	for (uint32_t k = 0; k < units; k++)
		s->unit[s->used + k] = i;
	s->used += units + 1;
	s->live++;
	return i;
}

void range_drop(uint32_t i)
{
	struct guarded *r = record(i);
	struct slab *s = slab_at(r->map);

	for (uint32_t k = 0; s && k < r->len / GUARD_UNIT; k++)
		s->unit[(r->map - s->base) / GUARD_UNIT + k] = 0;
	if (s)
		s->live--;
	r->state = GUARD_UNUSED;
	r->next = space.unused;
	space.unused = i;
}
