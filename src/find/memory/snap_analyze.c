/* SPDX-License-Identifier: Apache-2.0
 * What a snapshot says about one device (see snap_analyze.h).
 */
#include "find/memory/snap_analyze.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define PARTS_MAX	128	/* pools and streams counted separately; the rest is one entry */

/* for a line that holds more and more */
#define GROWTH_PARTS	16	/* of the time before the oom */
#define GROWTH_NEEDED	12	/* parts in which it must have grown */
#define WARM_UP		2	/* parts in which programs build what they need */
#define LINES_LOOKED_AT	32
#define BLOCKS_NEEDED	8
#define FALL_BLOCKS	4	/* a drop must be worth this many of its blocks */
#define FREED_SHARE	10	/* one in this many blocks may be freed */

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

/* The time before the oom is cut into parts. In nearly all of them the line must hold more at the end than at the
 * beginning. That alone is also true of one long forward pass, which keeps what it allocates. So its blocks must stay,
 * other memory must rise and fall by much more than one of its blocks, and this line must be the main reason why the
 * low points of the curve rise: in a forward pass many lines are.
 *
 * Where no line is that clear, the one whose blocks are at least half of all live memory, were allocated all along and
 * stay, is reported as one that may grow. */

struct watched {
	int64_t bytes[GROWTH_PARTS + 1];	/* held at the ends of the parts */
	int64_t low[GROWTH_PARTS + 1];		/* the least held in each, without short-lived blocks */
	size_t made, freed;
};

struct curve {			/* of everything that is allocated, in each part */
	int64_t low[GROWTH_PARTS], fall[GROWTH_PARTS];
	size_t freed;
};

static int64_t sum_signed(int64_t a, uint64_t b)
{
	return (int64_t)((uint64_t)a + b);
}

static void watch_event(const struct snap_replay *r, const struct snap_lines *l, size_t i, const uint8_t *watch,
			struct watched *w, int64_t *held, size_t part)
{
	bool made = r->event[i].action == SNAP_ALLOC;
	uint32_t from = made ? (uint32_t)i : replay_alloc_of(r, i);
	uint8_t k = from == SNAP_NONE ? 0 : watch[l->of_stack[r->event[from].stack]];

	if (!k)
		return;
	held[k - 1] = sum_signed(held[k - 1], made ? replay_bytes(r, i) : -replay_bytes(r, i));
	if (held[k - 1] < w[k - 1].low[part])
		w[k - 1].low[part] = held[k - 1];
	w[k - 1].made += made;
	w[k - 1].freed += !made;
}

/* `watch[line]` is its index in `w` + 1, 0 = not watched. */
static void watch_lines(const struct snap_device *d, const struct snap_lines *l, size_t until, const uint8_t *watch,
			struct watched *w, struct curve *c)
{
	const struct snap_replay *r = &d->replay;
	struct snap_now now = r->start;
	int64_t held[LINES_LOOKED_AT] = {0}, top = now.allocated;
	size_t part = 0;

	c->low[0] = now.allocated;
	for (size_t i = 0; i < until && part < GROWTH_PARTS; i++) {
		replay_step(r, i, &now);
		c->freed += r->event[i].action == SNAP_FREE_REQUESTED;
		watch_event(r, l, i, watch, w, held, part);
		if (now.allocated > top)
			top = now.allocated;
		if (now.allocated < c->low[part])
			c->low[part] = now.allocated;
		if (sum_signed(top, -(uint64_t)now.allocated) > c->fall[part])
			c->fall[part] = sum_signed(top, -(uint64_t)now.allocated);
		if ((i + 1) * GROWTH_PARTS / until <= part)
			continue;
		part++;
		top = now.allocated;
		for (size_t j = 0; j < LINES_LOOKED_AT; j++)
			w[j].bytes[part] = w[j].low[part] = held[j];
		if (part < GROWTH_PARTS)
			c->low[part] = now.allocated;
	}
}

/* In nearly every part it holds more than before. */
static bool piles_up(const struct watched *w)
{
	size_t up = 0;

	for (size_t p = 0; p < GROWTH_PARTS; p++)
		up += w->bytes[p + 1] > w->bytes[p];
	return up >= GROWTH_NEEDED;
}

/* The same without the blocks that it allocates and frees: which of them are live at the end of a part is chance. */
static bool low_points_rise(const struct watched *w)
{
	size_t up = 0;

	for (size_t p = 1; p < GROWTH_PARTS; p++)
		up += w->low[p] > w->low[p - 1];
	return up >= GROWTH_NEEDED;
}

/* In nearly every part, at least this much was freed. */
static bool comes_and_goes(const struct curve *c, uint64_t bytes)
{
	size_t cycled = 0;

	for (size_t p = 0; p < GROWTH_PARTS; p++)
		cycled += c->fall[p] > 0 && (uint64_t)c->fall[p] >= bytes;
	return cycled >= GROWTH_NEEDED;
}

static bool is_steady(const struct watched *w, const struct curve *c, uint64_t step)
{
	int64_t rise = sum_signed(c->low[GROWTH_PARTS - 1], -(uint64_t)c->low[WARM_UP]);
	int64_t grown = sum_signed(w->bytes[GROWTH_PARTS - 1], -(uint64_t)w->bytes[WARM_UP]);
	uint64_t fall = step > UINT64_MAX / FALL_BLOCKS ? UINT64_MAX : step * FALL_BLOCKS;

	return piles_up(w) && w->freed * FREED_SHARE <= w->made && comes_and_goes(c, fall) && rise > 0 &&
	       grown >= rise / 2;
}

static void growth_judge(struct snap_device *d, const struct snap_holder *h, const struct watched *w,
			 const struct curve *c, size_t until, uint64_t live)
{
	struct snap_growth g = {.line = h->line, .blocks = h->blocks, .bytes = h->bytes};

	if (!h->line || h->blocks < BLOCKS_NEEDED)
		return;
	g.step = h->bytes / h->blocks;
	g.steady = until >= GROWTH_PARTS * BLOCKS_NEEDED && is_steady(w, c, g.step);
	/* its own, too: kept.append((x * 2).relu()) allocates two in one line, and one stays */
	g.rounds = comes_and_goes(c, 1) && c->freed >= h->blocks / 2;
	g.found = g.steady || ((piles_up(w) || low_points_rise(w)) && w->made >= BLOCKS_NEEDED && h->bytes >= live / 2);
	if (g.found && (!d->growth.found || (g.steady && !d->growth.steady)))
		d->growth = g;
}

static void find_growth(struct snap_device *d, const struct snap_lines *l)
{
	size_t until = d->oom.found ? d->oom.event : d->replay.n, n;
	struct watched *w = xcalloc(LINES_LOOKED_AT, sizeof(*w));
	uint8_t *watch = xcalloc(l->table.n + 1, 1);
	struct curve c = {{0}, {0}, 0};
	struct snap_holder *h;
	uint64_t live = 0;

	n = snap_holders(d, l, until, &h);
	for (size_t i = 0; i < n; i++)
		live += h[i].bytes;
	if (n > LINES_LOOKED_AT)
		n = LINES_LOOKED_AT;
	for (size_t i = 0; i < n; i++)
		watch[h[i].line] = h[i].line ? (uint8_t)(i + 1) : 0;
	if (until >= GROWTH_PARTS)
		watch_lines(d, l, until, watch, w, &c);
	for (size_t i = 0; i < n && until >= GROWTH_PARTS && !d->growth.steady; i++)
		growth_judge(d, &h[i], &w[i], &c, until, live);
	free(h);
	free(watch);
	free(w);
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
	find_growth(d, l);
}

void snap_device_release(struct snap_device *d)
{
	replay_release(&d->replay);
	free(d->part);
	free(d->pin);
	*d = (struct snap_device){0};
}
