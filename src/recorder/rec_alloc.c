/* SPDX-License-Identifier: Apache-2.0
 * The table of live allocations: exact at the moment of death.
 *
 * Open addressing with deletion by moving later entries back, under a lock: a driver allocation takes
 * microseconds, the table nanoseconds. An entry is moved by copying it before its old place is
 * cleared, so a kill in between leaves it twice, never not at all; the reader drops the second.
 */
#include <string.h>

#include "rec.h"
#include "rec_mem.h"

#define SLOTS	  65536u	/* at first; few programs need more */
#define MORE	  1048576u	/* grown to once: close to a million live blocks */
#define FULL(n)	  ((n) / 16 * 15)

static struct {
	struct cw_allocation *table;
	uint32_t n, slots;
	bool cannot_grow;
} live;

bool alloc_start(void)
{
	live.table = chunk_new(CW_CHUNK_ALLOCATIONS, SLOTS * sizeof(*live.table), 0);
	live.n = 0;
	live.slots = SLOTS;
	live.cannot_grow = false;
	return live.table != NULL;
}

static uint32_t home(uint64_t addr)
{
	return (uint32_t)((addr * 0x9e3779b97f4a7c15ull) >> 40) & (live.slots - 1);
}

static uint32_t next_to(uint32_t i)
{
	return (i + 1) & (live.slots - 1);
}

/* The place of an address, or the empty one where it would go. */
static struct cw_allocation *place(uint64_t addr)
{
	uint32_t i = home(addr);

	while (live.table[i].addr && live.table[i].addr != addr)
		i = next_to(i);
	return &live.table[i];
}

/* The new table is filled before it is named one, and the old one loses its name last: a reader finds
 * every block in one of them at any moment. */
static bool make_room(void)
{
	struct cw_allocation *old = live.table, *more;

	if (live.n < FULL(live.slots))
		return true;
	if (live.slots == MORE || live.cannot_grow)
		return false;
	more = chunk_new(CW_CHUNK_STACK_INDEX, MORE * sizeof(*more), 0);
	live.cannot_grow = !more;
	if (!more)
		return false;
	live.table = more;
	live.slots = MORE;
	for (uint32_t i = 0; i < SLOTS; i++)
		if (old[i].addr)
			*place(old[i].addr) = old[i];
	chunk_rename(more, CW_CHUNK_ALLOCATIONS);
	chunk_rename(old, CW_CHUNK_STACK_INDEX);
	return true;
}

void alloc_inexact(void)
{
	if (!shared_get(&rec.h->inexact_since_ns))
		shared_set(&rec.h->inexact_since_ns, rec_mono_ns());
}

static void lost(void)
{
	alloc_inexact();
	shared_add(&rec.h->lost_allocations, 1);
}

static bool on_device(const struct cw_allocation *a)
{
	return a->kind == CW_MEM_DEVICE || a->kind == CW_MEM_ASYNC || a->kind == CW_MEM_VMM;
}

void alloc_put(const struct cw_allocation *a)
{
	struct cw_allocation *s;
	uint64_t now;
	bool room;

	if (!spin_try(&alloc_lock)) {
		lost();
		return;
	}
	room = make_room();
	s = place(a->addr);
	if (s->addr || room) {
		live.n += !s->addr;
		s->size = a->size;
		s->ticks = a->ticks;
		s->stack = a->stack;
		s->kind = a->kind;
		s->device = a->device;
		s->extra = a->extra;
		shared_set(&s->addr, a->addr);
		rec.h->n_allocs++;
		if (on_device(a)) {
			now = shared_add(&rec.h->live_device_bytes, a->size) + a->size;
			if (now > rec.h->peak_device_bytes)
				rec.h->peak_device_bytes = now;
		}
	} else {
		lost();
	}
	spin_done(&alloc_lock);
}

void alloc_add(uint64_t addr, uint64_t size, enum cw_memory kind, int device, uint64_t extra)
{
	alloc_put(&(struct cw_allocation){ .addr = addr, .size = size, .ticks = rec_ticks(),
					   .stack = stack_here(), .kind = (uint16_t)kind,
					   .device = (int16_t)device, .extra = extra });
}

/* Fills the hole at `i` with the next entry that may stand there, and goes on with the hole that leaves. */
static void close_gap(uint32_t i)
{
	uint32_t j = i;

	for (;;) {
		j = next_to(j);
		if (!live.table[j].addr)
			break;
		uint32_t h = home(live.table[j].addr);

		if (((j - h) & (live.slots - 1)) < ((j - i) & (live.slots - 1)))
			continue;
		live.table[i] = live.table[j];
		i = j;
	}
	live.table[i].addr = 0;
}

/* Called with the lock held. */
static void remove_at(struct cw_allocation *s)
{
	if (on_device(s))
		shared_add(&rec.h->live_device_bytes, -s->size);
	close_gap((uint32_t)(s - live.table));
	live.n--;
	rec.h->n_frees++;
}

bool alloc_take(uint64_t addr, struct cw_allocation *taken)
{
	struct cw_allocation *s;
	bool found;

	if (!addr || !spin_try(&alloc_lock)) {
		if (addr)
			lost();
		return false;
	}
	s = place(addr);
	found = s->addr != 0;
	if (found) {
		*taken = *s;
		remove_at(s);
	}
	spin_done(&alloc_lock);
	return found;
}

static void take_all(bool (*wanted)(const struct cw_allocation *a, uint64_t x, uint64_t y), uint64_t x, uint64_t y)
{
	if (!spin_try(&alloc_lock)) {
		lost();
		return;
	}
	for (uint32_t i = 0; i < live.slots;)	/* removing may bring another one to the same place */
		if (live.table[i].addr && wanted(&live.table[i], x, y))
			remove_at(&live.table[i]);
		else
			i++;
	spin_done(&alloc_lock);
}

static bool in_range(const struct cw_allocation *a, uint64_t from, uint64_t size)
{
	return a->kind == CW_MEM_VMM && a->addr >= from && a->addr - from < size;
}

static bool of_device(const struct cw_allocation *a, uint64_t device, uint64_t unused)
{
	(void)unused;
	return a->device == (int64_t)device && a->kind != CW_MEM_VMM;
}

void alloc_take_range(uint64_t from, uint64_t size)
{
	struct cw_allocation one;

	/* nearly always exactly one mapping */
	if (!alloc_take(from, &one) || one.size < size)
		take_all(in_range, from, size);
}

void alloc_take_device(int device)
{
	take_all(of_device, (uint64_t)device, 0);
}
