/* SPDX-License-Identifier: Apache-2.0
 * The driver's allocations: the live ones, how much device memory they take, and the most recent frees.
 */
#include "rec_live.h"
#include "rec_segment.h"
#include "rec_site.h"

static struct live_table live = {.chunk = CW_CHUNK_ALLOCATIONS};
LOCK_LISTED(allocations, live.lock);

bool driver_alloc_start(void)
{
	return live_start(&live, CW_RING_FREED_DRIVER);
}

void driver_alloc_inexact(void)
{
	if (!shared_get(&rec.h->inexact_since_ns))
		shared_set(&rec.h->inexact_since_ns, rec_mono_ns());
}

static void driver_alloc_lost(void)
{
	driver_alloc_inexact();
	shared_add(&rec.h->lost_allocations, 1);
}

void driver_alloc_put(const struct cw_allocation *a)
{
	const struct cw_allocation *old;

	if (!spin_try(&live.lock)) {
		driver_alloc_lost();
		return;
	}
	old = live_find(&live, a->addr);
	if (unlikely(old->addr))	/* we did not see its free */
		totals_driver(old, false, a->ticks);
	if (live_put(&live, a)) {
		rec.h->n_allocs++;
		totals_driver(a, true, a->ticks);
	} else {
		driver_alloc_lost();
	}
	spin_done(&live.lock);
}

void driver_alloc_add(uint64_t addr, uint64_t size, enum cw_memory kind, int device, uint64_t extra)
{
	struct rec_thread *t = rec_self;
	struct cw_allocation a = { .addr = addr, .size = size, .ticks = rec_ticks(), .stack = stack_here(),
				  .kind = (uint16_t)kind,
				  .device = (int16_t)device,
				  .extra = extra,
				  .library = library_asking(t)};
	uint32_t forward = 0, name;

	if (unlikely(t->node_depth))
		torch_backward(t, &forward, &name);
	a.site = site_number(t, &a, forward);
	if ((kind == CW_MEM_DEVICE || kind == CW_MEM_RESERVED) && event_log_on() && library_is_torch(a.library))
		a.extra = event_log_lane(device);
	driver_alloc_put(&a);
}

/* Called with the lock held. */
static void remove_at(struct cw_allocation *s, uint64_t ticks)
{
	totals_driver(s, false, ticks);
	live_remove(&live, s, ticks);
	rec.h->n_frees++;
}

bool driver_alloc_take(uint64_t addr, struct cw_allocation *taken)
{
	struct cw_allocation *s;
	bool found;

	if (!addr || !spin_try(&live.lock)) {
		if (addr)
			driver_alloc_lost();
		return false;
	}
	s = live_find(&live, addr);
	found = s->addr != 0;
	if (found) {
		*taken = *s;
		remove_at(s, rec_ticks());
	}
	spin_done(&live.lock);
	return found;
}

/* The driver freed it. An address range without memory never held anything. */
void driver_alloc_freed(const struct cw_allocation *a)
{
	uint32_t stack = stack_here();

	if (a->kind == CW_MEM_RESERVED || !a->size || !spin_try(&live.lock))
		return;
	live_keep_freed(&live, a, stack, rec_ticks());
	spin_done(&live.lock);
}

static void take_all(bool (*wanted)(const struct cw_allocation *a, uint64_t x, uint64_t y), uint64_t x, uint64_t y)
{
	uint32_t stack = stack_here();
	uint64_t ticks = rec_ticks();

	if (!spin_try(&live.lock)) {
		driver_alloc_lost();
		return;
	}
	for (uint32_t i = 0; i < live.slots;) {	/* removing may move another entry to this place */
		if (live.table[i].addr && wanted(&live.table[i], x, y)) {
			live_keep_freed(&live, &live.table[i], stack, ticks);
			remove_at(&live.table[i], ticks);
		} else {
			i++;
		}
	}
	spin_done(&live.lock);
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

void driver_alloc_take_range(uint64_t from, uint64_t size)
{
	struct cw_allocation one;
	bool found = driver_alloc_take(from, &one);

	if (found)
		driver_alloc_freed(&one);
	if (!found || one.size < size)	/* nearly always exactly one mapping */
		take_all(in_range, from, size);
}

void driver_alloc_take_device(int device)
{
	take_all(of_device, (uint64_t)device, 0);
}
