/* SPDX-License-Identifier: Apache-2.0
 * How much memory was allocated on each device over time: a fixed number of samples that always covers the whole run.
 *
 * Most events come soon after a sample and raise no maximum; for them nothing is written and no lock is taken.
 */
#include "rec_site.h"

#define SAMPLES		2047u		/* fills whole pages, with the head */
#define START_NS	1000000u	/* between samples, at first */

HOT_DATA static _Atomic(struct cw_timeline *) lines[CW_MAX_DEVICES];
static _Atomic uint32_t without;	/* bit n: no memory for device n's timeline */
static struct spin line_lock;
LOCK_LISTED(line_lock, line_lock);

void timeline_start(void)
{
	without = 0;
	for (int i = 0; i < CW_MAX_DEVICES; i++)
		lines[i] = NULL;
}

/* Called with the lock held. */
static struct cw_timeline *line_new(int device)
{
	struct cw_timeline *l = chunk_new(CW_CHUNK_TIMELINE, sizeof(*l) + SAMPLES * sizeof(struct cw_sample), 0);

	if (!l) {
		without |= 1u << device;
		return NULL;
	}
	l->device = device;
	l->n_max = SAMPLES & ~1u;
	l->every = rec_ticks_in(START_NS);
	atomic_store_explicit(&lines[device], l, memory_order_release);
	return l;
}

#define relaxed_get(p)	  __atomic_load_n((p), __ATOMIC_RELAXED)
#define relaxed_set(p, v) __atomic_store_n((p), (v), __ATOMIC_RELAXED)

static void raise_to(uint64_t *most, uint64_t value)
{
	if (value > *most)
		relaxed_set(most, value);
}

static void add_values(struct cw_sample *s, const struct cw_sample *more)
{
	raise_to(&s->allocated, more->allocated);
	raise_to(&s->reserved, more->reserved);
	raise_to(&s->driver, more->driver);
}

/* A kill in between leaves old samples behind the merged ones, with times that go back: the reader drops them. */
static void merge_neighbors(struct cw_timeline *l, struct cw_sample *s)
{
	for (uint32_t i = 0; i < l->n / 2; i++) {
		struct cw_sample both = s[2 * i];

		add_values(&both, &s[2 * i + 1]);
		relaxed_set(&s[i].ticks, both.ticks);
		relaxed_set(&s[i].allocated, both.allocated);
		relaxed_set(&s[i].reserved, both.reserved);
		relaxed_set(&s[i].driver, both.driver);
	}
	relaxed_set(&l->every, l->every * 2);
	shared_set(&l->n, l->n / 2);
}

static inline bool says_nothing_new(const struct cw_timeline *l, const struct cw_memory_now *m, uint64_t ticks)
{
	uint32_t n = shared_get(&l->n);
	const struct cw_sample *s = (const struct cw_sample *)(l + 1) + n - 1;

	return n && (int64_t)(ticks - relaxed_get(&s->ticks)) < (int64_t)relaxed_get(&l->every) &&
	       relaxed_get(&m->allocated) <= relaxed_get(&s->allocated) &&
	       relaxed_get(&m->reserved) <= relaxed_get(&s->reserved) &&
	       relaxed_get(&m->driver) <= relaxed_get(&s->driver);
}

/* Called with the lock held. True if a new sample was started. A sample from before a merge is never added to, so the
 * newest sample is within a single epoch. */
static bool line_add(struct cw_timeline *l, const struct cw_sample *now)
{
	struct cw_sample *s = (struct cw_sample *)(l + 1), *last = &s[l->n ? l->n - 1 : 0];

	if (l->n && (int64_t)(now->ticks - last->ticks) < (int64_t)l->every) {
		add_values(last, now);
		return false;
	}
	if (l->n == l->n_max)
		merge_neighbors(l, s);
	rec_clock_mark();	/* a killed program marks no end: this keeps its times right */
	last = &s[l->n];
	relaxed_set(&last->ticks, now->ticks);
	relaxed_set(&last->allocated, now->allocated);
	relaxed_set(&last->reserved, now->reserved);
	relaxed_set(&last->driver, now->driver);
	shared_set(&l->n, l->n + 1);
	return true;
}

static __attribute__((noinline)) void line_note(int device, const struct cw_memory_now *m, uint64_t ticks)
{
	const struct cw_sample now = { .ticks = ticks, .allocated = relaxed_get(&m->allocated),
				      .reserved = relaxed_get(&m->reserved),
				      .driver = relaxed_get(&m->driver)};
	struct cw_timeline *l = lines[device];
	bool begun;

	if ((!l && (without & 1u << device)) || !spin_try(&line_lock))
		return;
	l = lines[device];
	if (!l)
		l = line_new(device);
	if (l) {
		begun = line_add(l, &now);
		epochs_moment(device, &now, l->every, begun);
	}
	spin_done(&line_lock);
}

HOT void timeline_note(int device, uint64_t ticks)
{
	const struct cw_timeline *l = atomic_load_explicit(&lines[device], memory_order_acquire);
	const struct cw_memory_now *m = &rec.h->memory[device];

	if (unlikely(!l || !says_nothing_new(l, m, ticks)))
		line_note(device, m, ticks);
}
