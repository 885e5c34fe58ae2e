/* SPDX-License-Identifier: Apache-2.0
 * A table of live allocations by address, still exact when the process is killed (see rec_live.h).
 *
 * Open addressing, under a lock; deletion moves later entries back. An entry is copied before its old place
 * is cleared, so a kill in between leaves it twice, never not at all; the reader drops the second.
 */
#include "rec_live.h"
#include "rec_site.h"

#define SMALL	  4096u		/* at first: a small table takes few pages */
#define LARGE	  65536u	/* then: promised, since most programs do not need it, and few need more */
#define MOST	  1048576u	/* then: close to a million live blocks, or as many as fit */

/* Atomic, because live_expect() holds no lock. */
static void set_table(struct live_table *l, struct cw_allocation *table, uint32_t slots)
{
	__atomic_store_n(&l->table, table, __ATOMIC_RELAXED);
	__atomic_store_n(&l->slots, slots, __ATOMIC_RELAXED);
}

bool live_start(struct live_table *l, uint32_t freed_slots)
{
	l->n = 0;
	l->cannot_grow = false;
	set_table(l, chunk_new(l->chunk, SMALL * sizeof(*l->table), 0), SMALL);
	if (l->table)
		chunk_promise(LARGE * sizeof(*l->table));
	l->freed = l->table ? ring_new_with(CW_CHUNK_FREED, sizeof(struct cw_freed), freed_slots,
					    freed_slots * sizeof(uint32_t)) : NULL;
	return l->table != NULL;
}

static uint32_t address_spread(uint64_t addr)
{
	return (uint32_t)((addr * 0x9e3779b97f4a7c15ull) >> 40);
}

static uint32_t home(const struct live_table *l, uint64_t addr)
{
	return address_spread(addr) & (l->slots - 1);
}

static uint32_t next_to(const struct live_table *l, uint32_t i)
{
	return (i + 1) & (l->slots - 1);
}

HOT void live_expect(const struct live_table *l, uint64_t addr)
{
	const struct cw_allocation *table = __atomic_load_n(&l->table, __ATOMIC_RELAXED);

	if (likely(table))
		__builtin_prefetch(&table[address_spread(addr) & (__atomic_load_n(&l->slots, __ATOMIC_RELAXED) - 1)], 1);
}

HOT struct cw_allocation *live_find(const struct live_table *l, uint64_t addr)
{
	uint32_t i = home(l, addr);

	while (l->table[i].addr && l->table[i].addr != addr)
		i = next_to(l, i);
	return &l->table[i];
}

/* The new table is filled before its chunk gets the right kind, and the old one loses its kind last: at any
 * moment a reader finds every block in one of them. */
static bool live_grow(struct live_table *l)
{
	struct cw_allocation *old = l->table, *more = NULL;
	uint32_t slots = LARGE, had = l->slots;

	if (likely(l->n < (had == SMALL ? had / 4 * 3 : had / 16 * 15)))
		return true;
	if (had > LARGE || l->cannot_grow)
		return false;
	if (had == SMALL)
		more = chunk_promised(CW_CHUNK_STACK_INDEX, LARGE * sizeof(*more));
	else
		for (slots = MOST; slots > had && !more; slots = more ? slots : slots / 2)
			more = chunk_new(CW_CHUNK_STACK_INDEX, slots * sizeof(*more), 0);
	l->cannot_grow = !more;
	if (!more)
		return false;
	set_table(l, more, slots);
	for (uint32_t i = 0; i < had; i++)
		if (old[i].addr)
			*live_find(l, old[i].addr) = old[i];
	chunk_rename(more, l->chunk);
	chunk_rename(old, CW_CHUNK_STACK_INDEX);
	return true;
}

HOT bool live_put(struct live_table *l, const struct cw_allocation *a)
{
	bool room = live_grow(l);
	struct cw_allocation *s = live_find(l, a->addr);

	if (!s->addr && !room)
		return false;
	if (unlikely(s->addr)) {	/* we did not see its free */
		site_gone(s, a->ticks);
		turn_drop(s->kind == CW_MEM_TORCH ? (uint32_t)(s->extra >> 32) : 0);
	}
	l->n += !s->addr;
	s->size = a->size;
	s->ticks = a->ticks;
	s->stack = a->stack;
	s->kind = a->kind;
	s->device = a->device;
	s->extra = a->extra;
	s->site = a->site;
	s->library = a->library;
	shared_set(&s->addr, a->addr);
	site_came(a);
	return true;
}

/* Fills the hole with the next entry that may go there, then continues with the hole that this leaves. */
HOT void live_remove(struct live_table *l, struct cw_allocation *a, uint64_t ticks)
{
	uint32_t i = (uint32_t)(a - l->table), j = i;

	site_gone(a, ticks);
	for (;;) {
		j = next_to(l, j);
		if (!l->table[j].addr)
			break;
		uint32_t h = home(l, l->table[j].addr);

		if (((j - h) & (l->slots - 1)) < ((j - i) & (l->slots - 1)))
			continue;
		l->table[i] = l->table[j];
		i = j;
	}
	l->table[i].addr = 0;
	l->n--;
}

HOT void live_keep_freed(struct live_table *l, const struct cw_allocation *a, uint32_t stack, uint64_t ticks)
{
	struct cw_ring *r = l->freed;
	struct cw_freed *s;

	if (!r)
		return;
	s = (struct cw_freed *)(r + 1) + (r->head & (r->n_slots - 1));
	__atomic_store_n(&s->seq, 0, __ATOMIC_RELAXED);
	atomic_signal_fence(memory_order_release);
	ring_ahead(r, s, sizeof(*s));
	r->head++;
	s->addr = a->addr;
	s->size = a->size;
	s->made_ticks = a->ticks;
	s->ticks = ticks;
	s->stack = a->stack;
	s->forward_stack = a->kind == CW_MEM_TORCH ? (uint32_t)a->extra : 0;
	s->free_stack = stack;
	s->device = a->device;
	s->kind = block_is_workspace(a) ? CW_MEM_WORKSPACE : a->kind;
	s->turn = a->kind == CW_MEM_TORCH ? (uint32_t)(a->extra >> 32) : 0;
	s->turn_serial = turn_serial(s->turn);
	((uint32_t *)((struct cw_freed *)(r + 1) + r->n_slots))[(r->head - 1) & (r->n_slots - 1)] = a->site;
	shared_set(&s->seq, r->head);
	/* the next one will be written here: prefetch while the program does something else */
	__builtin_prefetch((struct cw_freed *)(r + 1) + (r->head & (r->n_slots - 1)), 1);
}
