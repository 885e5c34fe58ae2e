/* SPDX-License-Identifier: Apache-2.0
 * Summarizes what is where in PyTorch's segments (see memory_map.h).
 */
#include "find/memory/memory_map.h"

#include <stdlib.h>
#include <string.h>

#include "find/memory/kinds.h"
#include "find/memory/segments.h"
#include "read/recording/trace.h"
#include "read/recording/trace_memory.h"

#define RUNS_AT_LEAST 24	/* of a segment: fewer would not show what is in it */

static int by_size(const void *a, const void *b)
{
	const struct ledger_segment *x = a, *y = b;

	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* The part of a block inside the segment: in mapped memory a block may span several segments. */
static bool clip(const struct piece *p, const struct ledger_segment *s, uint64_t *from, uint64_t *to)
{
	uint64_t end = p->addr + p->size < p->addr ? UINT64_MAX : p->addr + p->size;

	*from = p->addr > s->addr ? p->addr - s->addr : 0;
	*to = end > s->addr ? end - s->addr : 0;
	*to = *to < s->size ? *to : s->size;
	return *to > *from;
}

struct drawing {
	struct memory_map *map;
	struct kinds *kinds;
	uint64_t grain;		/* smaller blocks are merged */
	size_t most;		/* runs of this segment */
};

static void run_put(struct drawing *d, struct map_segment *s, const struct piece *p, uint64_t from, uint64_t to)
{
	struct map_run *last = s->n ? &d->map->run[s->first + s->n - 1] : NULL;
	uint64_t size = to - from;
	bool small = size < d->grain;

	if (last && ((small && last->largest < d->grain && to - last->offset <= 2 * d->grain) || s->n == d->most)) {
		last->span = to > last->offset + last->span ? to - last->offset : last->span;
		last->bytes += size;
		last->blocks++;
		if (size <= last->largest)
			return;
	} else {
		last = &d->map->run[s->first + s->n++];
		*last = (struct map_run){.offset = from, .span = size, .bytes = size, .blocks = 1};
		d->map->n_runs++;
	}
	last->largest = size;
	last->kind = kinds_of(d->kinds, p);
	last->place = kinds_about(d->kinds, p)->place;
}

static void map_draw(struct drawing *d, const struct ledger_segment *from, const struct pieces *torch)
{
	struct memory_map *m = d->map;
	struct map_segment *s = &m->segment[m->n++];
	uint64_t start, end;

	*s = (struct map_segment){ .addr = from->addr, .size = from->size, .free = from->free,
				  .largest_free = from->largest,
				  .first = m->n_runs,
				  .like = 1};
	d->grain = from->size / d->most * 2 + 1;
	for (size_t i = from->first; i < from->first + from->n && i < torch->n; i++) {
		if (!clip(&torch->list[i], from, &start, &end))
			continue;
		s->blocks++;
		run_put(d, s, &torch->list[i], start, end);
	}
}

/* Hundreds of segments may hold one tensor each, from the same line: they are drawn once. */
static bool segment_same(const struct memory_map *m, const struct map_segment *a, const struct map_segment *b)
{
	const struct map_run *x = &m->run[a->first], *y = &m->run[b->first];

	if (a->size != b->size || a->n > 1 || a->n != b->n || a->free != b->free)
		return false;
	if (!a->n)
		return true;
	return x->offset == y->offset && x->span == y->span && x->blocks == y->blocks && x->kind == y->kind &&
	       !x->place.file == !y->place.file && (!x->place.file || place_same(&x->place, &y->place));
}

static bool join_same(struct memory_map *m)
{
	struct map_segment *last = &m->segment[m->n - 1];

	for (size_t i = m->n - 1; i > 0 && m->segment[i - 1].size == last->size; i--)
		if (segment_same(m, &m->segment[i - 1], last)) {
			m->segment[i - 1].like++;
			m->n_runs -= last->n;
			m->n--;
			return true;
		}
	return false;
}

static void leave_out(struct memory_map *m)
{
	const struct map_segment *s = &m->segment[--m->n];

	m->n_runs -= s->n;
	m->n_left_out++;
	m->left_out += s->size;
	m->left_out_free += s->free;
}

static void draw_all(struct memory_map *m, struct ledger_segments *s, const struct pieces *torch, struct kinds *k,
		     const struct map_limits *limits, struct pool *pool)
{
	struct drawing d = {.map = m, .kinds = k};
	size_t shown = s->n < limits->segments ? s->n : limits->segments;

	d.most = shown ? limits->runs / shown : 0;
	d.most = d.most < RUNS_AT_LEAST ? RUNS_AT_LEAST : d.most;
	m->segments = s->n;
	m->segment = pool_alloc(pool, (shown + 1) * sizeof(*m->segment));
	m->run = pool_alloc(pool, ((shown + 1) * d.most + 1) * sizeof(*m->run));
	xsort(s->list, s->n, sizeof(*s->list), by_size);
	for (size_t i = 0; i < s->n; i++) {
		map_draw(&d, &s->list[i], torch);
		if (!join_same(m) && m->n > shown)
			leave_out(m);
	}
}

void memory_map_build(struct memory_map *m, struct trace *t, int device, uint64_t ticks, bool in_backward,
		      uint64_t reserved, const struct map_limits *limits, struct pool *pool)
{
	struct ledger_segments s;
	struct moment at;
	struct kinds k;

	*m = (struct memory_map){0};
	moment_init(&at, t, ticks, device);
	kinds_init(&k, t, &at, in_backward, pool);
	segments_find(&s, &at, &k, reserved, pool);
	draw_all(m, &s, &at.torch, &k, limits, pool);
	moment_free(&at);
}

bool memory_map_of(struct memory_map *m, struct trace *t, const struct ledger *l, const struct map_limits *limits,
		   struct pool *pool)
{
	const struct cw_failure *f = l->at == LEDGER_OOM ? ledger_oom(t, l->device) : NULL;
	const struct cw_memory_now *now = trace_memory(t, l->device);
	uint64_t reserved = f ? l->reserved : now ? now->reserved : 0;

	memory_map_build(m, t, l->device, f ? f->ticks : UINT64_MAX, ledger_in_backward(t, f), reserved, limits, pool);
	return f;
}
