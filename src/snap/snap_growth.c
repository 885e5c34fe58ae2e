/* SPDX-License-Identifier: Apache-2.0
 * Finds the line that holds more and more from one round of the program to the next.
 *
 * The time before the oom is cut into parts. In nearly all of them the line must hold more at the end than at the
 * beginning. That alone is also true of one long forward pass, which keeps what it makes. So what it makes must stay,
 * other memory must come and go by much more than one of its blocks, and it must be this line for the most part that
 * makes the low points of the curve rise: in a forward pass many lines do.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "snap/snap_analyse.h"
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
	size_t made, freed;
};

struct curve {			/* of everything that is allocated, in each part */
	int64_t low[PARTS], fall[PARTS];
};

static int64_t add(int64_t a, uint64_t b)
{
	return (int64_t)((uint64_t)a + b);
}

static void watch_event(const struct snap_replay *r, const struct snap_lines *l, size_t i, const uint8_t *watch,
			struct watched *w, int64_t *held)
{
	bool made = r->event[i].action == SNAP_ALLOC;
	uint32_t from = made ? (uint32_t)i : replay_alloc_of(r, i);
	uint8_t k = from == SNAP_NONE ? 0 : watch[l->of_stack[r->event[from].stack]];

	if (!k)
		return;
	held[k - 1] = add(held[k - 1], made ? replay_bytes(r, i) : -replay_bytes(r, i));
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
		watch_event(r, l, i, watch, w, held);
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
			w[j].bytes[part] = held[j];
		if (part < PARTS)
			c->low[part] = now.allocated;
	}
}

static bool is_steady(const struct watched *w, const struct curve *c, uint64_t step)
{
	int64_t rise = add(c->low[PARTS - 1], -(uint64_t)c->low[WARM_UP]);
	int64_t grown = add(w->bytes[PARTS - 1], -(uint64_t)w->bytes[WARM_UP]);
	size_t up = 0, cycled = 0;

	for (size_t p = 0; p < PARTS; p++) {
		up += w->bytes[p + 1] > w->bytes[p];
		cycled += c->fall[p] > 0 && (uint64_t)c->fall[p] / FALL_BLOCKS >= step;
	}
	return up >= PARTS_NEEDED && cycled >= PARTS_NEEDED && w->freed * FREED_SHARE <= w->made && rise > 0 &&
	       grown >= rise / 2;
}

void snap_growth_find(struct snap_device *d, const struct snap_lines *l)
{
	size_t until = d->oom.found ? d->oom.event : d->replay.n, n;
	struct watched *w = xcalloc(LINES_LOOKED_AT, sizeof(*w));
	uint8_t *watch = xcalloc(l->table.n + 1, 1);
	struct curve c = {{0}, {0}};
	struct snap_holder *h;

	n = snap_holders(d, l, until, &h);
	if (n > LINES_LOOKED_AT)
		n = LINES_LOOKED_AT;
	for (size_t i = 0; i < n; i++)
		watch[h[i].line] = h[i].line ? (uint8_t)(i + 1) : 0;
	if (until >= PARTS * BLOCKS_NEEDED)
		run(d, l, until, watch, w, &c);
	for (size_t i = 0; i < n && !d->growth.found; i++)
		if (h[i].line && h[i].blocks >= BLOCKS_NEEDED && is_steady(&w[i], &c, h[i].bytes / h[i].blocks))
			d->growth = (struct snap_growth){.found = true, .line = h[i].line, .blocks = h[i].blocks,
				.bytes = h[i].bytes, .step = h[i].bytes / h[i].blocks};
	free(h);
	free(watch);
	free(w);
}
