/* SPDX-License-Identifier: Apache-2.0
 * Sites: memory by what allocated it, kept for the whole run (struct cw_site in format.h).
 *
 * Keeping what each site held at its device's peak and in each epoch (rec_epochs.c) costs one comparison per event: a
 * new peak or moment only raises the device's generation. A site saves its total before its first change since the
 * newest such moment; a site that has not changed since then still holds what it held.
 */
#include "rec_segment.h"
#include "rec_site.h"

#define FIRST	8192u		/* initial number of sites; index 0 is not used */
#define MORE	(SITES_MAX - FIRST)	/* in the second chunk */
#define SLOTS	32768u
#define APART	6144u		/* sites; with more of them, those of modules are not told apart */

HOT_DATA static struct {
	struct cw_site *first;
	uint32_t *marks;		/* for every possible site */
	uint16_t *modules;		/* likewise; NULL = no site has one yet */
	_Atomic(struct cw_site *) more;
	struct slot *index;
	uint32_t n;			/* under the lock */
	bool cannot_grow;
} sites;
HOT_DATA uint32_t site_generation[CW_MAX_DEVICES];
static struct spin site_lock;
LOCK_LISTED(site_lock, site_lock);

bool site_start(void)
{
	sites.n = 1;
	sites.more = NULL;
	sites.modules = NULL;
	sites.cannot_grow = false;
	sites.first = chunk_new(CW_CHUNK_SITES, FIRST * sizeof(*sites.first), 0);
	sites.marks = chunk_new(CW_CHUNK_SITE_MARKS, SITES_MAX * sizeof(*sites.marks), 0);
	sites.index = side_new(SLOTS * sizeof(*sites.index));
	for (int i = 0; i < CW_MAX_DEVICES; i++)
		site_generation[i] = 0;
	timeline_start();
	epochs_start();
	events_start();
	event_log_forget();
	return sites.first && sites.marks && sites.index;
}

static struct cw_site *site_at(uint32_t i)
{
	if (likely(i < FIRST))
		return &sites.first[i];
	return atomic_load_explicit(&sites.more, memory_order_acquire) + (i - FIRST);
}

static uint64_t site_key(const struct cw_site *s, uint32_t module)
{
	uint64_t a = (uint64_t)s->stack << 32 | s->forward_stack;
	uint64_t b = (uint64_t)s->library << 32 | (uint32_t)(uint16_t)s->device << 16 | (uint32_t)s->kind << 8 | s->flags;

	a = (a ^ a >> 29) * 0xbf58476d1ce4e5b9ull;
	a += module * 0xff51afd7ed558ccdull;
	b = (b ^ b >> 31) * 0x94d049bb133111ebull;
	a = (a ^ b ^ a >> 32) * 0x9e3779b97f4a7c15ull;
	return (a ^ a >> 31) | 1;
}

/* The reader finds the second chunk after the first one, and continues counting. */
static bool sites_grow(void)
{
	struct cw_site *more;

	if (sites.n < FIRST || (sites.more && sites.n < FIRST + MORE))
		return true;
	if (sites.more || sites.cannot_grow)
		return false;
	more = chunk_new(CW_CHUNK_SITES, MORE * sizeof(*more), 0);
	atomic_store_explicit(&sites.more, more, memory_order_release);
	sites.cannot_grow = !more;
	return more;
}

static bool set_module(uint32_t site, uint32_t module)
{
	if (!module)
		return true;
	if (!sites.modules)
		sites.modules = chunk_new(CW_CHUNK_SITE_MODULES, SITES_MAX * sizeof(*sites.modules), 0);
	if (sites.modules)
		sites.modules[site] = (uint16_t)module;
	return sites.modules;
}

/* Called with the lock held. */
static uint32_t site_add(const struct cw_site *like, uint64_t key, uint32_t module)
{
	uint32_t i = table_get(sites.index, SLOTS, key);
	struct cw_site *s;

	if (i || !sites_grow() || (module && sites.n >= APART) || !set_module(sites.n, module))
		return i;
	s = site_at(sites.n);
	s->stack = like->stack;
	s->forward_stack = like->forward_stack;
	s->library = like->library;
	s->device = like->device;
	s->flags = like->flags;
	shared_set(&s->kind, like->kind);	/* last: a site without a kind is not one yet */
	if (!table_put(sites.index, SLOTS, key, sites.n)) {
		s->kind = 0;
		return 0;
	}
	return sites.n++;
}

HOT uint32_t site_number_in(struct rec_thread *t, const struct cw_allocation *a, uint32_t forward_stack, uint32_t module)
{
	struct cw_site like = { .stack = a->stack, .forward_stack = forward_stack, .library = a->library,
			       .kind = a->kind,
			       .device = a->device};
	uint64_t key;
	uint32_t i;

	if (unlikely(t->node_depth))
		like.flags = CW_SITE_BACKWARD | (t->node[t->node_depth - 1].accumulates ? CW_SITE_GRADIENT : 0);
	if (unlikely(atomic_load_explicit(&rec.captures, memory_order_relaxed)))
		like.flags |= CW_SITE_CAPTURED;
	key = site_key(&like, module);
	i = table_get(sites.index, SLOTS, key);
	if (likely(i))
		return i;
	if (spin_try(&site_lock)) {
		i = site_add(&like, key, module);
		spin_done(&site_lock);
	}
	if (!i && module)
		return site_number_in(t, a, forward_stack, 0);
	if (!i)
		shared_add(&rec.h->lost_sites, 1);
	return i;
}

uint32_t site_number(struct rec_thread *t, const struct cw_allocation *a, uint32_t forward_stack)
{
	return site_number_in(t, a, forward_stack, 0);
}

/* An invalid device is the host. */
static __attribute__((noinline)) void note_moments(struct cw_site *s, uint32_t number, uint32_t now)
{
	uint32_t peak;

	if (s->device < 0 || s->device >= CW_MAX_DEVICES)
		return;
	peak = __atomic_load_n(&rec.h->memory[s->device].peak_generation, __ATOMIC_RELAXED);
	if (s->peak_generation != peak) {
		s->at_peak = s->live;
		s->peak_generation = peak;
	}
	epochs_keep(s, number, sites.marks[number]);
	shared_set(&sites.marks[number], now);
}

static inline void before_change(struct cw_site *s, uint32_t number)
{
	uint32_t now = __atomic_load_n(&site_generation[(uint16_t)s->device % CW_MAX_DEVICES], __ATOMIC_RELAXED);

	if (unlikely(sites.marks[number] != now))
		note_moments(s, number, now);
}

HOT void site_came(const struct cw_allocation *a)
{
	struct cw_site *s = site_at(a->site);

	events_note(a, true, a->ticks);
	if (unlikely(!a->site))
		return;
	before_change(s, a->site);
	__atomic_store_n(&s->live, s->live + a->size, __ATOMIC_RELAXED);
	s->live_count++;
	s->total += a->size;
	s->total_count++;
	if (s->live > s->peak)
		s->peak = s->live;
	if (unlikely(!s->first_ticks))
		s->first_ticks = a->ticks;
	s->last_ticks = a->ticks;
}

HOT void site_gone(const struct cw_allocation *a, uint64_t ticks)
{
	struct cw_site *s = site_at(a->site);

	events_note(a, false, ticks);
	if (unlikely(!a->site))
		return;
	before_change(s, a->site);
	__atomic_store_n(&s->live, s->live - a->size, __ATOMIC_RELAXED);	/* plain stores would merge into a slow pair */
	s->live_count--;
}
