/* SPDX-License-Identifier: Apache-2.0
 * What a snapshot says about one device (see snap_analyze.h).
 */
#include "find/memory/snap_analyze.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define PARTS_MAX	128	/* pools and streams counted separately; the rest is one entry */

static void use_add(struct snap_use *u, const struct snapshot *s, const struct snap_segment *g)
{
	uint64_t free_here = 0, live = 0;

	u->segments++;
	u->reserved += g->size;
	for (uint32_t k = g->first; k < g->first + g->n; k++) {
		const struct snap_block *b = &s->block[k];

		if (b->state == SNAP_INACTIVE) {
			free_here += b->size;
			if (b->size > u->largest_free)
				u->largest_free = b->size;
			continue;
		}
		live++;
		u->blocks++;
		u->requested += b->requested ? b->requested : b->size;
		*(b->state == SNAP_ALLOCATED ? &u->allocated : &u->pending) += b->size;
	}
	*(live ? &u->split : &u->cached) += free_here;
}

static struct snap_use *part_of(struct snap_device *d, size_t *cap, const struct snap_segment *g)
{
	for (size_t i = 0; i < d->n_parts; i++)
		if (d->part[i].stream == g->stream && !memcmp(d->part[i].pool, g->pool, sizeof(g->pool)))
			return &d->part[i];
	if (d->n_parts >= PARTS_MAX)
		return &d->part[PARTS_MAX - 1];
	d->part = xgrow(d->part, d->n_parts, cap, sizeof(*d->part));
	d->part[d->n_parts] = (struct snap_use){.stream = g->stream, .pool = {g->pool[0], g->pool[1]}};
	return &d->part[d->n_parts++];
}

static int larger_part(const void *a, const void *b)
{
	uint64_t x = ((const struct snap_use *)a)->reserved, y = ((const struct snap_use *)b)->reserved;

	return x == y ? 0 : x > y ? -1 : 1;
}

/* Free memory next to live blocks cannot be returned to the driver; each of these blocks gets a share of the blame. */
static void add_pins(struct snap_pin *pin, const struct snapshot *s, const struct snap_lines *l,
		     const struct snap_segment *g)
{
	uint64_t free_here = 0, live = 0;
	uint32_t k;

	for (k = g->first; k < g->first + g->n; k++) {
		if (s->block[k].state == SNAP_INACTIVE)
			free_here += s->block[k].size;
		else
			live++;
	}
	for (k = g->first; free_here && live && !g->expandable && k < g->first + g->n; k++) {
		struct snap_pin *p = &pin[l->of_stack[s->block[k].stack]];

		if (s->block[k].state == SNAP_INACTIVE)
			continue;
		p->blocks++;
		p->bytes += s->block[k].size;
		p->kept += free_here / live;
	}
}

static int more_kept(const void *a, const void *b)
{
	const struct snap_pin *x = a, *y = b;

	return x->kept != y->kept ? (x->kept > y->kept ? -1 : 1) : x->line < y->line ? -1 : x->line > y->line;
}

static void use_segments(struct snap_device *d, const struct snapshot *s, const struct snap_lines *l)
{
	struct snap_pin *pin = xcalloc(l->table.n + 1, sizeof(*pin));
	size_t cap = 0;

	for (uint32_t i = 0; i < s->segments.n; i++) {
		const struct snap_segment *g = &s->segment[s->segments.first + i];

		if (g->device != d->device)
			continue;
		use_add(&d->all, s, g);
		use_add(part_of(d, &cap, g), s, g);
		add_pins(pin, s, l, g);
	}
	xsort(d->part, d->n_parts, sizeof(*d->part), larger_part);
	for (uint32_t i = 0; i < l->table.n; i++) {
		pin[i].line = i;
		if (pin[i].kept)
			pin[d->n_pins++] = pin[i];
	}
	xsort(pin, d->n_pins, sizeof(*pin), more_kept);
	d->pin = xrealloc(pin, d->n_pins + 1, sizeof(*pin));
}

struct holders {
	const struct snap_lines *l;
	struct snap_holder *h;
};

static void holder_add(void *arg, uint32_t stack, uint64_t size)
{
	struct holders *all = arg;
	struct snap_holder *h = &all->h[all->l->of_stack[stack]];

	h->bytes += size;
	h->blocks++;
}

static int more_held(const void *a, const void *b)
{
	const struct snap_holder *x = a, *y = b;

	return x->bytes != y->bytes ? (x->bytes > y->bytes ? -1 : 1) : x->line < y->line ? -1 : x->line > y->line;
}

size_t snap_holders(const struct snap_device *d, const struct snap_lines *l, size_t moment, struct snap_holder **list)
{
	struct holders all = {l, xcalloc(l->table.n + 1, sizeof(*all.h))};
	size_t n = 0;

	replay_live(&d->replay, moment, holder_add, &all);
	for (uint32_t i = 0; i < l->table.n; i++) {
		all.h[i].line = i;
		if (all.h[i].blocks)
			all.h[n++] = all.h[i];
	}
	xsort(all.h, n, sizeof(*all.h), more_held);
	*list = all.h;
	return n;
}

static bool changes_memory(const struct snap_replay *r, uint8_t action)
{
	return action == SNAP_ALLOC || action == r->free_action || action == SNAP_FREE_COMPLETED ||
	       (action >= SNAP_SEGMENT_ALLOC && action <= SNAP_SEGMENT_UNMAP);
}

static void find_oom(struct snap_device *d, const struct snap_lines *l)
{
	const struct snap_replay *r = &d->replay;
	struct snap_now now = r->start;
	struct snap_oom *o = &d->oom;

	for (size_t i = 0; i < r->n; i++) {
		const struct snap_event *e = &r->event[i];

		replay_step(r, i, &now);
		if (e->action == SNAP_OOM) {
			uint64_t had = (uint64_t)now.reserved + e->addr;

			*o = (struct snap_oom){.found = true, .exact = true, .event = (uint32_t)i,
					       .count = o->count + 1,
					       .request = e->size,
					       .free = e->addr,
					       .now = now,
					       .seen = had > o->seen ? had : o->seen,
					       .line = l->of_stack[e->stack]};
		} else if (o->found) {
			o->exact &= !changes_memory(r, e->action);
			o->later += e->action == SNAP_ALLOC;
		}
	}
	if (r->most_reserved > 0 && (uint64_t)r->most_reserved > o->seen)
		o->seen = (uint64_t)r->most_reserved;
}

static void lift_to(uint64_t *most, int64_t to)
{
	if (to > 0 && (uint64_t)to > *most)
		*most = (uint64_t)to;
}

/* Which of the `n` parts event `i` is in: by its time, or by its index where there are no times. */
static size_t part_of_time(const struct snap_replay *r, size_t i, size_t n)
{
	uint64_t from = r->event[0].time_us, to = r->event[r->n - 1].time_us, t = r->event[i].time_us;
	double part;

	if (!from || to <= from)
		return (size_t)((double)i / (double)r->n * (double)n);
	t = t < from ? from : t > to ? to : t;
	part = (double)(t - from) / (double)(to - from) * (double)n;
	return part < (double)n ? (size_t)part : n - 1;
}

void snap_timeline(const struct snap_device *d, uint64_t *most, size_t n)
{
	const struct snap_replay *r = &d->replay;
	struct snap_now now = r->start;
	size_t at, filled = 0;

	memset(most, 0, n * sizeof(*most));
	for (size_t i = 0; i < r->n; i++) {
		at = part_of_time(r, i, n);
		/* nothing happened in between: what was live stays live */
		for (; filled < at; filled++)
			lift_to(&most[filled], now.allocated);
		replay_step(r, i, &now);
		lift_to(&most[at], now.allocated);
	}
	for (; filled < n; filled++)
		lift_to(&most[filled], now.allocated);
}

void snap_analyze(struct snap_device *d, const struct snapshot *s, const struct snap_lines *l, int device)
{
	*d = (struct snap_device){.device = device};
	replay_make(&d->replay, s, device);
	use_segments(d, s, l);
	find_oom(d, l);
}

void snap_device_release(struct snap_device *d)
{
	replay_release(&d->replay);
	free(d->part);
	free(d->pin);
	*d = (struct snap_device){0};
}
