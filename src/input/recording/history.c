/* SPDX-License-Identifier: Apache-2.0
 * Plays back a memory trace (see history.h). A trace may have lost events, or be anything at all: what comes to an
 * address that is taken replaces what was there, and what goes without having come is passed over.
 */
#include "input/recording/history.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "input/recording/trace_memory.h"

/* --- what is live: open addressing, removal moves the followers up ----------------------------------------------- */

#define SLOTS_FIRST 1024u	/* power of two */
#define HELD_MAX (UINT32_MAX / 2)
#define TRACE_BYTES_MAX ((size_t)16 << 30)

static size_t home(const struct held_book *b, uint64_t key)
{
	key = (key ^ key >> 33) * 0xff51afd7ed558ccdu;
	return (size_t)(key ^ key >> 29) & (b->slots - 1);
}

static size_t find(const struct held_book *b, uint64_t addr)
{
	size_t k = home(b, addr);

	while (b->slot[k] && b->list[b->slot[k] - 1].piece.addr != addr)
		k = (k + 1) & (b->slots - 1);
	return k;
}

static void rehash(struct held_book *b, size_t slots)
{
	free(b->slot);
	b->slot = xcalloc(slots, sizeof(*b->slot));
	b->slots = slots;
	for (size_t i = 0; i < b->n; i++)
		b->slot[find(b, b->list[i].piece.addr)] = (uint32_t)i + 1;
}

static struct held *put(struct held_book *b, const struct piece *p)
{
	struct held *h;
	size_t k;

	if (b->n * 4 >= b->slots * 3)
		rehash(b, b->slots ? b->slots * 2 : SLOTS_FIRST);
	k = find(b, p->addr);
	if (!b->slot[k]) {
		if (b->n >= HELD_MAX)
			return NULL;
		b->list = xgrow(b->list, b->n, &b->cap, sizeof(*b->list));
		b->slot[k] = (uint32_t)++b->n;
	}
	h = &b->list[b->slot[k] - 1];
	*h = (struct held){ .piece = *p };
	return h;
}

static void close_gap(struct held_book *b, size_t k)
{
	size_t mask = b->slots - 1;

	for (size_t next = (k + 1) & mask; b->slot[next]; next = (next + 1) & mask) {
		size_t want = home(b, b->list[b->slot[next] - 1].piece.addr);

		if (((next - want) & mask) < ((next - k) & mask))
			continue;
		b->slot[k] = b->slot[next];
		k = next;
	}
	b->slot[k] = 0;
}

static struct held take(struct held_book *b, uint64_t addr)
{
	struct held gone = { .tag = 0 };
	size_t k = b->slots ? find(b, addr) : 0, i;

	if (!b->slots || !b->slot[k])
		return gone;
	i = b->slot[k] - 1;
	gone = b->list[i];
	close_gap(b, k);
	if (i != --b->n) {
		b->slot[find(b, b->list[b->n].piece.addr)] = (uint32_t)i + 1;
		b->list[i] = b->list[b->n];
	}
	return gone;
}

/* --- events ------------------------------------------------------------------------------------------------------ */

int memory_trace_read(struct buf *b, const struct trace *t, const char *part, struct err *e)
{
	const char *name = trace_header(t)->memory_trace_path, *slash = strrchr(part, '/');
	char *dir, *path;
	int rc;

	buf_init(b, TRACE_BYTES_MAX);
	if (!name[0])
		return 1;
	if (strchr(name, '/') || name[0] == '.')	/* anybody may have written it: it stays inside the folder */
		return err_set(e, -EINVAL, "the memory trace is not beside the recording");
	dir = slash ? xasprintf("%.*s", (int)(slash - part), part) : xstrdup(".");
	path = fs_join(*dir ? dir : "/", name);
	rc = fs_read(path, b, e);
	free(path);
	free(dir);
	return rc;
}

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
	free(h->torch.slot);
	free(h->driver.list);
	free(h->driver.slot);
	free(h->made);
	*h = (struct history){ .n = 0 };
}

/* Sites that found no room are 0: then the device alone tells what it can be. */
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
	return put(p.kind == CW_MEM_TORCH ? &h->torch : &h->driver, &p);
}

bool history_next(struct history *h, struct history_step *s)
{
	struct event *v = &s->event;

	*s = (struct history_step){ .came = NULL };
	if (!events_next(&h->events, v))
		return false;
	h->n++;
	h->ticks = v->kind == CW_EVENT_LOST ? h->ticks : v->ticks;
	switch (v->kind) {
	case CW_EVENT_MADE:
	case CW_EVENT_GAVE:
		s->came = came(h, v);
		break;
	case CW_EVENT_FREED:
		s->went = take(&h->torch, v->addr);
		break;
	case CW_EVENT_TOOK:
		s->went = take(&h->driver, v->addr);
		break;
	case CW_EVENT_LOST:
		h->lost += v->lost;
		break;
	case CW_EVENT_OOM:
		break;
	}
	return true;
}

bool history_until(struct history *h, uint64_t ticks)
{
	struct events before = h->events;
	struct history_step s;
	struct event next;

	while (events_next(&before, &next)) {
		if (next.kind != CW_EVENT_LOST && next.ticks > ticks)
			return true;
		history_next(h, &s);
		before = h->events;
	}
	return false;
}
