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

#define SLOTS	65536u
#define LIMIT	(SLOTS / 8 * 7)

static struct {
	struct cw_allocation *table;
	uint32_t n;
} live;

bool alloc_start(void)
{
	live.table = chunk_new(CW_CHUNK_ALLOCATIONS, SLOTS * sizeof(*live.table), 0);
	live.n = 0;
	return live.table != NULL;
}

static uint32_t home(uint64_t addr)
{
	return (uint32_t)((addr * 0x9e3779b97f4a7c15ull) >> 40) & (SLOTS - 1);
}

static void inexact(void)
{
	if (!rec.h->inexact_since_ns)
		rec.h->inexact_since_ns = rec_mono_ns();
	atomic_fetch_add((_Atomic uint64_t *)&rec.h->lost_allocations, 1);
}

static bool on_device(const struct cw_allocation *a)
{
	return a->kind == CW_MEM_DEVICE || a->kind == CW_MEM_ASYNC || a->kind == CW_MEM_VMM;
}

void alloc_put(const struct cw_allocation *a)
{
	struct cw_allocation *s;
	uint32_t i = home(a->addr);

	if (!spin_try(&alloc_lock)) {
		inexact();
		return;
	}
	while (live.table[i].addr && live.table[i].addr != a->addr)
		i = (i + 1) & (SLOTS - 1);
	s = &live.table[i];
	if (s->addr || live.n < LIMIT) {
		live.n += !s->addr;
		s->size = a->size;
		s->ticks = a->ticks;
		s->stack = a->stack;
		s->kind = a->kind;
		s->device = a->device;
		s->extra = a->extra;
		atomic_store_explicit((_Atomic uint64_t *)&s->addr, a->addr, memory_order_release);
		rec.h->n_allocs++;
		if (on_device(a) && (rec.h->live_device_bytes += a->size) > rec.h->peak_device_bytes)
			rec.h->peak_device_bytes = rec.h->live_device_bytes;
	} else {
		inexact();
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
		j = (j + 1) & (SLOTS - 1);
		if (!live.table[j].addr)
			break;
		uint32_t h = home(live.table[j].addr);

		if (((j - h) & (SLOTS - 1)) < ((j - i) & (SLOTS - 1)))
			continue;
		live.table[i] = live.table[j];
		i = j;
	}
	live.table[i].addr = 0;
}

bool alloc_take(uint64_t addr, struct cw_allocation *taken)
{
	uint32_t i = home(addr);
	bool found = false;

	if (!addr || !spin_try(&alloc_lock)) {
		if (addr)
			inexact();
		return false;
	}
	while (live.table[i].addr && live.table[i].addr != addr)
		i = (i + 1) & (SLOTS - 1);
	if (live.table[i].addr) {
		*taken = live.table[i];
		if (on_device(taken))
			rec.h->live_device_bytes -= taken->size;
		close_gap(i);
		live.n--;
		rec.h->n_frees++;
		found = true;
	}
	spin_done(&alloc_lock);
	return found;
}
