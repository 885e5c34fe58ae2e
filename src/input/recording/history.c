/* SPDX-License-Identifier: Apache-2.0
 * Replays a memory trace (see history.h). A trace may have lost events, or be anything at all: an allocation at an
 * address that is taken replaces what was there, and a free of something unknown is ignored.
 */
#include "input/recording/history.h"

#include <stdlib.h>

#include "base/mem.h"
#include "input/recording/trace_memory.h"

/* --- what is live ------------------------------------------------------------------------------------------------ */

#define HELD_MAX (UINT32_MAX / 2)

static bool held_same(const void *list, uint32_t i, const void *addr)
{
	return ((const struct held *)list)[i].piece.addr == *(const uint64_t *)addr;
}

static struct held *held_put(struct held_book *b, const struct piece *p)
{
	uint32_t n = b->n < HELD_MAX ? (uint32_t)b->n : MAP_NONE;
	uint32_t i = map_put(&b->map, map_hash(p->addr), held_same, b->list, &p->addr, n);

	if (i == MAP_NONE)
		return NULL;
	if (i == n) {
		b->list = xgrow(b->list, b->n, &b->cap, sizeof(*b->list));
		b->n++;
	}
	b->list[i] = (struct held){ .piece = *p };
	return &b->list[i];
}

/* `gone` stays as it was when nothing was there. */
static void held_take(struct held_book *b, uint64_t addr, struct held *gone)
{
	uint32_t i = map_take(&b->map, map_hash(addr), held_same, b->list, &addr);

	if (i == MAP_NONE)
		return;
	*gone = b->list[i];
	if (i != --b->n) {	/* the last one fills the gap */
		b->list[i] = b->list[b->n];
		map_moved(&b->map, map_hash(b->list[i].piece.addr), (uint32_t)b->n, i);
	}
}

/* --- events ------------------------------------------------------------------------------------------------------ */

int history_begin(struct history *h, struct trace *t, const void *bytes, size_t len, struct err *e)
{
	int rc;

	*h = (struct history){ .n = 0 };
	rc = events_begin(&h->events, bytes, len, e);
	if (rc)
		return rc;
	h->n_sites = trace_sites(t, &h->site);
	h->made = xcalloc(h->n_sites + 1, sizeof(*h->made));
	return 0;
}

void history_release(struct history *h)
{
	free(h->torch.list);
	map_release(&h->torch.map);
	free(h->driver.list);
	map_release(&h->driver.map);
	free(h->made);
	*h = (struct history){ .n = 0 };
}

/* Sites that did not fit the table are 0: then only the device says what it can be. */
static struct piece piece_of(const struct history *h, const struct event *v)
{
	const struct cw_site *s = v->site && v->site < h->n_sites && h->site[v->site].kind ? &h->site[v->site] : NULL;
	struct piece p = { .addr = v->addr, .size = v->size, .ticks = v->ticks, .device = v->device };

	p.kind = v->kind == CW_EVENT_MADE ? CW_MEM_TORCH : v->device >= 0 ? CW_MEM_DEVICE : CW_MEM_RESERVED;
	if (s) {
		p.kind = v->kind == CW_EVENT_MADE ? CW_MEM_TORCH : s->kind;
		p.stack = s->stack;
		p.forward_stack = s->forward_stack;
		p.library = v->kind == CW_EVENT_MADE ? 0 : s->library;
		p.site = v->site;
	}
	return p;
}

static struct held *came(struct history *h, const struct event *v)
{
	struct piece p = piece_of(h, v);

	if (p.kind == CW_MEM_RESERVED || !p.size)	/* addresses alone: nothing is there */
		return NULL;
	if (p.kind == CW_MEM_TORCH && p.site)
		h->made[p.site] = p.ticks;
	return held_put(p.kind == CW_MEM_TORCH ? &h->torch : &h->driver, &p);
}

/* What s->event, the newest, changed. */
static void event_apply(struct history *h, struct history_step *s)
{
	const struct event *v = &s->event;

	h->n++;
	h->ticks = v->kind == CW_EVENT_LOST ? h->ticks : v->ticks;
	switch (v->kind) {
	case CW_EVENT_MADE:
	case CW_EVENT_GAVE:
		s->came = came(h, v);
		break;
	case CW_EVENT_FREED:
		held_take(&h->torch, v->addr, &s->went);
		break;
	case CW_EVENT_TOOK:
		held_take(&h->driver, v->addr, &s->went);
		break;
	case CW_EVENT_LOST:
		h->lost += v->lost;
		break;
	case CW_EVENT_OOM:
		break;
	}
}

bool history_next(struct history *h, struct history_step *s)
{
	*s = (struct history_step){ .came = NULL };
	if (!events_next(&h->events, &s->event))
		return false;
	event_apply(h, s);
	return true;
}

bool history_until(struct history *h, uint64_t ticks)
{
	struct events before = h->events;
	struct history_step s;

	while (events_next(&h->events, &s.event)) {
		if (s.event.kind != CW_EVENT_LOST && s.event.ticks > ticks) {
			h->events = before;	/* it is still to come */
			return true;
		}
		event_apply(h, &s);
		before = h->events;
	}
	return false;
}
