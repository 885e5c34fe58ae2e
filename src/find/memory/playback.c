/* SPDX-License-Identifier: Apache-2.0
 * Plays back a memory trace (see playback.h). A trace may have lost events, or be anything at all: what comes to an
 * address that is taken replaces what was there, and what goes without having come is passed over.
 */
#include "find/memory/playback.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fs.h"
#include "base/err.h"
#include "base/buf.h"
#include "base/mem.h"
#include "read/recording/event_log.h"
#include "read/recording/trace_memory.h"

#define TRACE_BYTES_MAX ((size_t)4 << 30)
#define HELD_MAX (1u << 24)		/* live at a time: PyTorch has thousands */

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
	b->list[i] = (struct held){.piece = *p};
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

int memory_events_read(struct buf *b, struct trace *t, const char *part, struct err *e)
{
	int rc = memory_trace_read(b, t, part, e);

	return rc > 0 ? event_log_pack(b, t) : rc;
}

int playback_begin(struct playback *play, struct trace *t, const void *bytes, size_t len, struct err *e)
{
	int rc;

	*play = (struct playback){.n = 0};
	rc = events_begin(&play->events, bytes, len, e);
	if (rc)
		return rc;
	play->n_sites = trace_sites(t, &play->site);
	play->made = xcalloc(play->n_sites + 1, sizeof(*play->made));
	return 0;
}

void playback_release(struct playback *play)
{
	free(play->torch.list);
	map_release(&play->torch.map);
	free(play->driver.list);
	map_release(&play->driver.map);
	free(play->made);
	*play = (struct playback){.n = 0};
}

/* Sites that found no room are 0: then the device alone tells what it can be. */
static struct piece piece_of(const struct playback *play, const struct event *v)
{
	const struct cw_site *s =
		v->site && v->site < play->n_sites && play->site[v->site].kind ? &play->site[v->site] : NULL;
	struct piece p = {.addr = v->addr, .size = v->size, .ticks = v->ticks, .device = v->device};

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

static struct held *came(struct playback *play, const struct event *v)
{
	struct piece p = piece_of(play, v);

	if (p.kind == CW_MEM_RESERVED || !p.size)	/* addresses alone: nothing is there */
		return NULL;
	if (p.kind == CW_MEM_TORCH && p.site)
		play->made[p.site] = p.ticks;
	return held_put(p.kind == CW_MEM_TORCH ? &play->torch : &play->driver, &p);
}

/* What s->event, the newest, changed. */
static void event_apply(struct playback *play, struct playback_step *s)
{
	const struct event *v = &s->event;

	play->n++;
	play->ticks = v->kind == CW_EVENT_LOST ? play->ticks : v->ticks;
	switch (v->kind) {
	case CW_EVENT_MADE:
	case CW_EVENT_GAVE:
		s->came = came(play, v);
		break;
	case CW_EVENT_FREED:
		held_take(&play->torch, v->addr, &s->went);
		break;
	case CW_EVENT_TOOK:
		held_take(&play->driver, v->addr, &s->went);
		break;
	case CW_EVENT_LOST:
		play->lost += v->lost;
		break;
	case CW_EVENT_OOM:
	case CW_EVENT_ASKED:
	case CW_EVENT_MORE:
		break;
	}
}

bool playback_next(struct playback *play, struct playback_step *s)
{
	*s = (struct playback_step){.came = NULL};
	if (!events_next(&play->events, &s->event))
		return false;
	event_apply(play, s);
	return true;
}

bool playback_until(struct playback *play, uint64_t ticks)
{
	struct events before = play->events;
	struct playback_step s;

	while (events_next(&play->events, &s.event)) {
		if (s.event.kind != CW_EVENT_LOST && s.event.ticks > ticks) {
			play->events = before;	/* it is still to come */
			return true;
		}
		event_apply(play, &s);
		before = play->events;
	}
	return false;
}
