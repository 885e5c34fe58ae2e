/* SPDX-License-Identifier: Apache-2.0
 * Finds the line that holds more and more from one round of the program to the next.
 *
 * The time before the oom is cut into parts. In nearly all of them the line must hold more at the end than at the
 * beginning. That alone is also true of one long forward pass, which keeps what it makes. So what it makes must stay,
 * other memory must come and go by much more than one of its blocks, and it must be this line for the most part that
 * makes the low points of the curve rise: in a forward pass many lines do.
 *
 * Where no line is as clear as that, the one whose blocks are half or more of all that is live, came all the time and
 * stay, is told as one that may grow.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "input/snapshot/snap_analyse.h"
#include "base/banned.h"

#define PARTS		16
#define PARTS_NEEDED	12
#define WARM_UP		2	/* parts in which programs build what they need */
#define LINES_LOOKED_AT	32
#define BLOCKS_NEEDED	8
#define FALL_BLOCKS	4	/* how many of its blocks a fall must be worth */
#define FREED_SHARE	10	/* of so many blocks one may be freed */

struct watched {
	int64_t bytes[PARTS + 1];	/* held at the ends of the parts */
	int64_t low[PARTS + 1];		/* least that was held in each, without what comes and goes */
	size_t made, freed;
};

struct curve {			/* of everything that is allocated, in each part */
	int64_t low[PARTS], fall[PARTS];
	size_t freed;
};

static int64_t add(int64_t a, uint64_t b)
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
	held[k - 1] = add(held[k - 1], made ? replay_bytes(r, i) : -replay_bytes(r, i));
	if (held[k - 1] < w[k - 1].low[part])
		w[k - 1].low[part] = held[k - 1];
	w[k - 1].made += made;
	w[k - 1].freed += !made;
}

/* `watch[line]` is its place in `w` + 1, 0 = not looked at. */
static void run(const struct snap_device *d, const struct snap_lines *l, size_t until, const uint8_t *watch,
		struct watched *w, struct curve *c)
{
	const struct snap_replay *r = &d->replay;
	struct snap_now now = r->start;
	int64_t held[LINES_LOOKED_AT] = {0}, top = now.allocated;
	size_t part = 0;

	c->low[0] = now.allocated;
	for (size_t i = 0; i < until && part < PARTS; i++) {
		replay_step(r, i, &now);
		c->freed += r->event[i].action == SNAP_FREE_REQUESTED;
		watch_event(r, l, i, watch, w, held, part);
		if (now.allocated > top)
			top = now.allocated;
		if (now.allocated < c->low[part])
			c->low[part] = now.allocated;
		if (add(top, -(uint64_t)now.allocated) > c->fall[part])
			c->fall[part] = add(top, -(uint64_t)now.allocated);
		if ((i + 1) * PARTS / until <= part)
			continue;
		part++;
		top = now.allocated;
		for (size_t j = 0; j < LINES_LOOKED_AT; j++)
			w[j].bytes[part] = w[j].low[part] = held[j];
		if (part < PARTS)
			c->low[part] = now.allocated;
	}
}

/* In nearly every part it holds more than before. */
static bool piles_up(const struct watched *w)
{
	size_t up = 0;

	for (size_t p = 0; p < PARTS; p++)
		up += w->bytes[p + 1] > w->bytes[p];
	return up >= PARTS_NEEDED;
}

/* The same without the blocks that it makes and frees: which of them are alive at the end of a part is chance. */
static bool low_points_rise(const struct watched *w)
{
	size_t up = 0;

	for (size_t p = 1; p < PARTS; p++)
		up += w->low[p] > w->low[p - 1];
	return up >= PARTS_NEEDED;
}

/* In nearly every part so much was given back, at least. */
static bool comes_and_goes(const struct curve *c, uint64_t bytes)
{
	size_t cycled = 0;

	for (size_t p = 0; p < PARTS; p++)
		cycled += c->fall[p] > 0 && (uint64_t)c->fall[p] >= bytes;
	return cycled >= PARTS_NEEDED;
}

static bool is_steady(const struct watched *w, const struct curve *c, uint64_t step)
{
	int64_t rise = add(c->low[PARTS - 1], -(uint64_t)c->low[WARM_UP]);
	int64_t grown = add(w->bytes[PARTS - 1], -(uint64_t)w->bytes[WARM_UP]);
	uint64_t fall = step > UINT64_MAX / FALL_BLOCKS ? UINT64_MAX : step * FALL_BLOCKS;

	return piles_up(w) && w->freed * FREED_SHARE <= w->made && comes_and_goes(c, fall) && rise > 0 && grown >= rise / 2;
}

static void judge(struct snap_device *d, const struct snap_holder *h, const struct watched *w, const struct curve *c,
		  size_t until, uint64_t live)
{
	struct snap_growth g = {.line = h->line, .blocks = h->blocks, .bytes = h->bytes};

	if (!h->line || h->blocks < BLOCKS_NEEDED)
		return;
	g.step = h->bytes / h->blocks;
	g.steady = until >= PARTS * BLOCKS_NEEDED && is_steady(w, c, g.step);
	/* its own, too: kept.append((x * 2).relu()) makes two in one line, and one stays */
	g.rounds = comes_and_goes(c, 1) && c->freed >= h->blocks / 2;
	g.found = g.steady || ((piles_up(w) || low_points_rise(w)) && w->made >= BLOCKS_NEEDED && h->bytes >= live / 2);
	if (g.found && (!d->growth.found || (g.steady && !d->growth.steady)))
		d->growth = g;
}

void snap_growth_find(struct snap_device *d, const struct snap_lines *l)
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
	if (until >= PARTS)
		run(d, l, until, watch, w, &c);
	for (size_t i = 0; i < n && until >= PARTS && !d->growth.steady; i++)
		judge(d, &h[i], &w[i], &c, until, live);
	free(h);
	free(watch);
	free(w);
}
