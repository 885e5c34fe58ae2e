/* SPDX-License-Identifier: Apache-2.0
 * A snapshot as a recording (see snap_recording.h).
 *
 * A tick is an event. Each part of the recording is put together in a list of its own; in the end they follow each other, behind
 * the heap of strings and stacks, whose offsets are needed first.
 */
#include "find/memory/snap_recording.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "case/source.h"
#include "compat/cuda_errors.h"
#include "cuwhy/format.h"
#include "find/memory/observe_snapshot.h"
#include "find/memory/snap_turns.h"
#include "read/recording/trace.h"

#define HEAP_AT		((sizeof(struct cw_header) + 63) / 64 * 64)
#define FREED_KEPT	(1u << 16)	/* powers of two: the newest that are looked at */
#define NODES_KEPT	(1u << 14)
#define BLOCKS_MAX	(1u << 20)	/* live at once; PyTorch has thousands */
#define SEGMENT_STEPS	(1u << 12)	/* that changed segments since the moment */
#define BYTES_MAX	((size_t)1 << 30)

struct made {
	const struct snapshot *s;
	const struct snap_device *d;
	const struct snap_replay *r;
	struct snap_turns turns;
	uint8_t *saved;			/* per event (snap_turns.h) */
	size_t end;			/* the event with which memory ran out */
	uint32_t c10;
	uint32_t *text, *stack, *site_of;	/* offsets in the recording, by numbers in the snapshot; 0 = not there yet */
	struct buf heap, blocks, segments, sites, freed, nodes, failures, failed_in, loops, turn;
	struct cw_header h;
	uint64_t allocated, reserved;
	bool full;
};

static uint32_t heap_end(const struct made *m)
{
	return (uint32_t)(HEAP_AT + m->heap.len);
}

static void heap_align(struct made *m)
{
	static const char zeros[8];

	buf_add(&m->heap, zeros, (8 - m->heap.len % 8) % 8);
}

static uint32_t heap_text(struct made *m, const char *text)
{
	uint32_t at = heap_end(m), len = (uint32_t)strlen(text);

	buf_add(&m->heap, &len, sizeof(len));
	buf_add(&m->heap, text, len + 1);
	heap_align(m);
	return at;
}

static uint32_t text_off(struct made *m, uint32_t text)
{
	if (!m->text[text])
		m->text[text] = heap_text(m, snap_text(m->s, text));
	return m->text[text];
}

/* Python frames alone, the innermost first. */
static uint32_t stack_off(struct made *m, uint32_t stack)
{
	const struct snap_calls *c = &m->turns.calls[stack];
	struct cw_stack head = {.n = c->n < CW_MAX_FRAMES ? c->n : CW_MAX_FRAMES,
				.flags = c->n > CW_MAX_FRAMES ? CW_STACK_CUT : 0};
	struct cw_frame frame[CW_MAX_FRAMES];

	if (!c->n || m->stack[stack])
		return m->stack[stack];
	for (uint32_t i = 0; i < head.n; i++) {
		const struct snap_frame *f = snap_frame(m->s, m->turns.frames[c->first + c->n - 1 - i]);

		frame[i] = (struct cw_frame){text_off(m, f->file), text_off(m, f->function), f->line, 0};
	}
	m->stack[stack] = heap_end(m);
	buf_add(&m->heap, &head, sizeof(head));
	buf_add(&m->heap, frame, head.n * sizeof(frame[0]));
	heap_align(m);
	return m->stack[stack];
}

/* Blocks of backward's threads have no lines: they are all of one site. */
static uint32_t site_of(struct made *m, uint32_t stack)
{
	uint32_t *known = &m->site_of[m->turns.calls[stack].n ? stack : 0];
	const struct snap_calls *c = &m->turns.calls[stack];
	struct cw_site site = {.kind = CW_MEM_TORCH,
			       .flags = m->turns.stacks && (!c->n || c->backward) ? CW_SITE_BACKWARD : 0};

	if (*known)
		return *known;
	site.stack = stack_off(m, stack);
	*known = (uint32_t)(m->sites.len / sizeof(site));
	buf_add(&m->sites, &site, sizeof(site));
	return *known;
}

static struct cw_site *site_at(struct made *m, uint32_t site)
{
	return (struct cw_site *)(void *)m->sites.data + site;
}

/* Turns lie behind the heap, whose end is not known yet: numbers until then. */
struct lived { uint64_t addr, size; uint32_t stack, born, gone; };	/* events; SNAP_NONE = before the first, not at all */

static uint64_t ticks_of(uint32_t event)
{
	return event == SNAP_NONE ? 0 : (uint64_t)event + 1;
}

static uint32_t turn_of(const struct made *m, uint32_t born)
{
	return born == SNAP_NONE ? 0 : m->turns.of_event[born];
}

static void add_block(struct made *m, const struct lived *b)
{
	struct cw_allocation a = {.addr = b->addr, .size = b->size, .ticks = ticks_of(b->born), .kind = CW_MEM_TORCH,
				  .extra = (uint64_t)turn_of(m, b->born) << 32};

	if (m->blocks.len / sizeof(a) >= BLOCKS_MAX) {
		m->full = true;
		return;
	}
	a.stack = stack_off(m, b->stack);
	a.site = site_of(m, b->stack);
	site_at(m, a.site)->live += a.size;
	site_at(m, a.site)->live_count++;
	m->allocated += a.size;
	buf_add(&m->blocks, &a, sizeof(a));
}

/* Freed, but another stream may still use it: it cannot be allocated again. */
static void add_pending(struct made *m)
{
	const struct snapshot *s = m->s;

	for (uint32_t i = 0; (m->d->oom.exact || !m->d->oom.found) && i < s->segments.n; i++) {
		const struct snap_segment *g = &s->segment[s->segments.first + i];

		for (uint32_t k = g->first; g->device == m->d->device && k < g->first + g->n; k++)
			if (s->block[k].state == SNAP_PENDING)
				add_block(m, &(struct lived){s->block[k].addr, s->block[k].size, s->block[k].stack,
							     SNAP_NONE, SNAP_NONE});
	}
}

/* What was there when memory ran out: some of it stayed to the end, some was freed since. */
static void add_blocks(struct made *m)
{
	const struct snap_replay *r = m->r;

	for (size_t i = 0; i < r->n_live; i++) {
		const struct snap_block *b = &m->s->block[r->live[i].block];
		uint32_t born = r->live[i].born;

		if (born == SNAP_NONE || born < m->end)
			add_block(m, &(struct lived){b->addr, b->size,
						     b->stack || born == SNAP_NONE ? b->stack : r->event[born].stack,
						     born, SNAP_NONE});
	}
	for (size_t i = m->end; i < r->n; i++) {
		uint32_t born = r->event[i].action == r->free_action ? r->match[i] : SNAP_NONE;

		if (r->event[i].action == r->free_action && (born == SNAP_NONE || born < m->end))
			add_block(m, &(struct lived){r->event[i].addr, replay_bytes(r, i),
						     born == SNAP_NONE ? 0 : r->event[born].stack, born, (uint32_t)i});
	}
}

static void add_freed(struct made *m, uint32_t gone)
{
	const struct snap_event *e = &m->r->event[gone];
	uint32_t born = m->r->match[gone];
	struct cw_freed f = {.addr = e->addr,
			     .size = replay_bytes(m->r, gone),
			     .made_ticks = ticks_of(born),
			     .ticks = ticks_of(gone),
			     .kind = CW_MEM_TORCH, .turn = turn_of(m, born), .seq = m->freed.len / sizeof(f) + 1};

	f.stack = born == SNAP_NONE ? 0 : stack_off(m, m->r->event[born].stack);
	f.turn_serial = f.turn;
	buf_add(&m->freed, &f, sizeof(f));
}

/* The newest of them, oldest first. */
static void add_all_freed(struct made *m)
{
	size_t n = 0, from = m->end;

	while (from > 0 && n < FREED_KEPT)
		n += m->r->event[--from].action == m->r->free_action;
	for (size_t i = from; i < m->end; i++) {
		m->h.n_blocks_freed += m->r->event[i].action == m->r->free_action;
		if (m->r->event[i].action == m->r->free_action)
			add_freed(m, (uint32_t)i);
	}
	for (size_t i = 0; i < from; i++)
		m->h.n_blocks_freed += m->r->event[i].action == m->r->free_action;
}

static void count_made(struct made *m)
{
	struct snap_now now = m->r->start;
	int64_t peak = 0;

	for (size_t i = 0; i < m->end; i++) {
		struct cw_site *site;

		replay_step(m->r, i, &now);
		if (now.allocated > peak) {
			peak = now.allocated;
			m->h.memory[0].peak_ticks = i + 1;
		}
		if (m->r->event[i].action != SNAP_ALLOC)
			continue;
		site = site_at(m, site_of(m, m->r->event[i].stack));
		site->total += replay_bytes(m->r, i);
		site->total_count++;
		site->first_ticks = site->first_ticks ? site->first_ticks : i + 1;
		site->last_ticks = i + 1;
	}
	m->h.memory[0].peak_allocated = m->h.memory[0].peak_reserved = (uint64_t)peak;
}

/* Mapped memory of the card: a segment, or a piece of an expandable one. */
struct range { uint64_t from, to; bool expandable; };
struct ranges { struct range *list; size_t n, cap; };

static void ranges_add(struct ranges *x, uint64_t addr, uint64_t size, bool expandable)
{
	x->list = xgrow(x->list, x->n, &x->cap, sizeof(*x->list));
	x->list[x->n++] = (struct range){addr, size > UINT64_MAX - addr ? UINT64_MAX : addr + size, expandable};
}

static void ranges_remove(struct ranges *x, uint64_t from, uint64_t to)
{
	for (size_t i = x->n; i > 0; i--) {
		struct range was = x->list[i - 1];

		if (was.to <= from || was.from >= to)
			continue;
		x->list[i - 1] = x->list[--x->n];
		if (was.from < from)
			ranges_add(x, was.from, from - was.from, was.expandable);
		if (was.to > to)
			ranges_add(x, to, was.to - to, was.expandable);
	}
}

/* From the end back to the moment. False: too much has happened since. */
static bool ranges_then(struct ranges *x, const struct made *m)
{
	size_t steps = 0;

	for (size_t i = m->r->n; i > m->end && i > 0; i--) {
		const struct snap_event *e = &m->r->event[i - 1];
		bool map = e->action == SNAP_SEGMENT_MAP, unmap = e->action == SNAP_SEGMENT_UNMAP;

		if (e->action == SNAP_SEGMENT_FREE || unmap)
			ranges_add(x, e->addr, e->size, unmap);
		else if (e->action == SNAP_SEGMENT_ALLOC || map)
			ranges_remove(x, e->addr, e->size > UINT64_MAX - e->addr ? UINT64_MAX : e->addr + e->size);
		else
			continue;
		if (++steps > SEGMENT_STEPS)
			return false;
	}
	return true;
}

static bool add_segments(struct made *m)
{
	const struct snapshot *s = m->s;
	struct ranges x = {0};
	bool known;

	for (uint32_t i = 0; i < s->segments.n; i++) {
		const struct snap_segment *g = &s->segment[s->segments.first + i];

		if (g->device == m->d->device)
			ranges_add(&x, g->addr, g->size, g->expandable);
	}
	known = ranges_then(&x, m);
	for (size_t i = 0; i < x.n; i++) {
		const struct range *g = &x.list[i];
		struct cw_allocation a = {.addr = g->from,
					  .size = g->to - g->from,
					  .kind = g->expandable ? CW_MEM_VMM : CW_MEM_DEVICE,
					  .library = m->c10};

		buf_add(&m->segments, &a, sizeof(a));
		m->reserved += a.size;
	}
	free(x.list);
	return known;
}

/* The function that runs, as if it were a loop. */
static uint32_t first_loop(struct made *m, uint32_t stack)
{
	const struct snap_calls *c = &m->turns.calls[stack];
	uint32_t loop = (uint32_t)(m->loops.len / sizeof(struct cw_loop));
	const struct snap_frame *f;

	if (!c->own)
		return 0;
	f = snap_frame(m->s, m->turns.frames[c->first]);
	buf_add(&m->loops, &(struct cw_loop){.frame = {text_off(m, f->file), text_off(m, f->function), f->line, 0}},
		sizeof(struct cw_loop));
	return loop;
}

static void add_failure(struct made *m, size_t event, uint32_t last)
{
	const struct snap_event *e = event < m->r->n ? &m->r->event[event] : NULL;	/* NULL: the end, as if memory ran out there */
	struct cw_failure f = {.seq = m->failures.len / sizeof(f) + 1, .ticks = event + 1, .last_ticks = event + 1, .count = 1,
			       .source = CW_SRC_TORCH_OOM, .code = CODE_OUT_OF_MEMORY, .memory_known = 1};
	struct cw_failure_turns in = {.seq = f.seq};
	uint32_t at = 0, stack = e ? e->stack : last;

	if (e)
		at = m->turns.of_event[event];
	else if (event)
		at = m->turns.of_event[event - 1];
	f.request_bytes = e ? e->size : 0;
	f.free_bytes = e ? e->addr : 0;
	f.stack = stack_off(m, stack);
	if (e && snap_in_backward(&m->turns, m->r, event)) {	/* the thread that waits for it was last seen here */
		f.node_name = m->c10;
		f.forward_stack = stack_off(m, last);
	}
	for (; at && in.n < CW_LOOP_TURNS; at = m->turns.turn[at].up)
		in.at[in.n++] = (struct cw_loop_turn){m->turns.turn[at].loop, m->turns.turn[at].turn, 0};
	if (!in.n)		/* no line came twice: for all that is known, the program is in its first turn */
		in.at[in.n++] = (struct cw_loop_turn){first_loop(m, stack ? stack : last), 1, 0};
	if (event == m->end) {
		f.torch_allocated = m->allocated;
		f.torch_reserved = m->reserved;
	}
	f.total_bytes = f.torch_reserved + f.free_bytes;	/* at least */
	buf_add(&m->failures, &f, sizeof(f));
	buf_add(&m->failed_in, &in, sizeof(in));
}

/* The first ones, and the one that counts. */
static void add_failures(struct made *m)
{
	uint32_t last = 0;

	for (size_t i = 0; i < m->end; i++) {
		const struct snap_event *e = &m->r->event[i];

		if (e->action == SNAP_ALLOC && m->turns.calls[e->stack].n)
			last = e->stack;
		if (e->action == SNAP_OOM && m->failures.len / sizeof(struct cw_failure) + 1 < CW_MAX_FAILURES)
			add_failure(m, i, last);
	}
	add_failure(m, m->end, last);
}

static void add_nodes(struct made *m)
{
	size_t from = m->end, n = 0;
	bool backward = false;

	for (size_t i = 0; i < m->end; i++) {
		m->h.n_nodes += m->saved[i] > 0;
		m->h.n_nodes_run += m->saved[i] == SAVED_AND_RUN;
		backward |= m->r->event[i].action == SNAP_ALLOC && snap_in_backward(&m->turns, m->r, i);
	}
	m->h.n_nodes_run += backward && !m->h.n_nodes_run;	/* it kept everything that it had run */
	while (from > 0 && n < NODES_KEPT)
		n += m->saved[--from] > 0;
	for (size_t i = from; i < m->end; i++) {
		struct cw_node node = {.seq_low = (uint32_t)(m->nodes.len / sizeof(node))};

		if (!m->saved[i])
			continue;
		node.stack = stack_off(m, m->r->event[i].stack);
		node.stack |= m->saved[i] == SAVED_AND_RUN ? CW_NODE_HAS_RUN | CW_NODE_RELEASED : 0;
		buf_add(&m->nodes, &node, sizeof(node));
	}
}

static void add_loops(struct made *m)
{
	for (size_t i = 0; i < m->turns.n_loops; i++) {
		const struct snap_loop *l = &m->turns.loop[i];
		struct cw_loop loop = {.flags = CW_LOOP_FOR};

		if (i)
			loop.frame = (struct cw_frame){text_off(m, l->file), text_off(m, l->function), l->line, 0};
		buf_add(&m->loops, &loop, sizeof(loop));
	}
}

/* Their places, from where they begin. */
static uint32_t turn_at(uint32_t turn, uint32_t first)
{
	return turn ? first + turn * (uint32_t)sizeof(struct cw_turn) : 0;
}

static void add_turns(struct made *m, uint32_t first)
{
	for (uint32_t i = 0; i < m->turns.n_turns; i++) {
		const struct snap_turn *t = &m->turns.turn[i];
		struct cw_turn turn = {.up = turn_at(t->up, first), .at = {t->loop, t->turn, 0}, .refs = 1, .serial = i};

		buf_add(&m->turn, &turn, sizeof(turn));
	}
}

static void place_turns(struct made *m, uint32_t first)
{
	struct cw_allocation *a = (void *)m->blocks.data;
	struct cw_freed *f = (void *)m->freed.data;

	for (size_t i = 0; i < m->blocks.len / sizeof(*a); i++)
		a[i].extra = (uint64_t)turn_at((uint32_t)(a[i].extra >> 32), first) << 32;
	for (size_t i = 0; i < m->freed.len / sizeof(*f); i++)
		f[i].turn = turn_at(f[i].turn, first);
}

static void put(struct made *m, struct buf *all, enum cw_chunk_kind kind, const struct buf *bytes)
{
	static const char zeros[64];

	buf_add(all, zeros, (64 - all->len % 64) % 64);
	if (bytes->len)
		m->h.chunk[m->h.n_chunks++] =
			(struct cw_chunk){.kind = kind, .off = (uint32_t)all->len, .len = (uint32_t)bytes->len};
	buf_add(all, bytes->data, bytes->len);
}

/* A ring that is full, or has room for what was not there. */
static void put_ring(struct made *m, struct buf *all, enum cw_chunk_kind kind, struct buf *slots, uint32_t size,
		     uint32_t most)
{
	struct cw_ring head = {.tid = 1, .slot_size = size, .n_slots = most, .head = slots->len / size};
	struct buf ring;

	while (head.n_slots / 2 >= head.head && head.n_slots > 1)
		head.n_slots /= 2;
	buf_init(&ring, BYTES_MAX);
	buf_add(&ring, &head, sizeof(head));
	buf_add(&ring, slots->data, slots->len);
	for (size_t i = head.head; i < head.n_slots; i++)
		buf_add(&ring, (char[sizeof(struct cw_freed)]){0}, size);
	put(m, all, kind, &ring);
	m->full |= ring.full;
	buf_release(&ring);
}

static void set_header(struct made *m)
{
	memcpy(m->h.magic, CW_MAGIC, sizeof(m->h.magic));
	m->h.major = CW_MAJOR;
	m->h.minor = CW_MINOR;
	m->h.header_size = sizeof(m->h);
	m->h.clock1 = (struct cw_clock){m->r->n + 1, m->r->n + 1};
	m->h.rank = m->h.local_rank = m->h.world_size = m->h.init_result = CW_UNKNOWN;
	m->h.device_count = 1;
	m->h.n_blocks = m->h.n_blocks_freed + m->blocks.len / sizeof(struct cw_allocation);
	m->h.lost_blocks = 1;		/* what was there before the first event may be wrong */
	memcpy(m->h.torch_path, m->s->torch_path, sizeof(m->s->torch_path));
	memcpy(m->h.visible_devices_at_init, CW_NOT_SET, sizeof(CW_NOT_SET));
	memcpy(m->h.visible_devices_now, CW_NOT_SET, sizeof(CW_NOT_SET));
}

static struct trace *assemble(struct made *m)
{
	struct buf all;
	struct trace *t = NULL;
	uint32_t turns;

	buf_init(&all, BYTES_MAX);
	buf_add(&all, &m->h, sizeof(m->h));
	put(m, &all, CW_CHUNK_HEAP, &m->heap);
	turns = (uint32_t)(all.len + 63) / 64 * 64;
	add_turns(m, turns);
	if (m->turns.stacks) {		/* without them, no turns are known */
		put(m, &all, CW_CHUNK_TURNS, &m->turn);
		put(m, &all, CW_CHUNK_LOOPS, &m->loops);
		put(m, &all, CW_CHUNK_FAILURE_TURNS, &m->failed_in);
	}
	place_turns(m, turns);
	put(m, &all, CW_CHUNK_BLOCKS, &m->blocks);
	put(m, &all, CW_CHUNK_ALLOCATIONS, &m->segments);
	put(m, &all, CW_CHUNK_SITES, &m->sites);
	put(m, &all, CW_CHUNK_FAILURES, &m->failures);
	put_ring(m, &all, CW_CHUNK_FREED, &m->freed, sizeof(struct cw_freed), FREED_KEPT);
	put_ring(m, &all, CW_CHUNK_NODES, &m->nodes, sizeof(struct cw_node), NODES_KEPT);
	m->full |= all.full | m->heap.full | m->turn.full;
	if (!m->full) {
		m->h.used = m->h.cap = all.len;
		memcpy(all.data, &m->h, sizeof(m->h));
		t = trace_from_bytes(all.data, all.len, NULL);	/* which has the bytes now */
	} else {
		buf_release(&all);
	}
	return t;
}

static struct buf *parts_of(struct made *m, size_t i)
{
	struct buf *const part[] = {&m->heap,  &m->blocks,   &m->segments,  &m->sites, &m->freed,
				    &m->nodes, &m->failures, &m->failed_in, &m->loops, &m->turn};

	return i < sizeof(part) / sizeof(part[0]) ? part[i] : NULL;
}

static struct trace *fill(struct made *m)
{
	m->c10 = heap_text(m, "libc10_cuda.so");
	buf_add(&m->sites, &(struct cw_site){0}, sizeof(struct cw_site));	/* no site is number 0 */
	add_blocks(m);
	add_pending(m);
	if (m->full || !add_segments(m))
		return NULL;
	add_all_freed(m);
	count_made(m);
	add_loops(m);
	add_failures(m);
	add_nodes(m);
	set_header(m);
	return assemble(m);
}

struct trace *snap_recording(const struct snapshot *s, const struct snap_device *d, struct snap_made *made)
{
	struct made m = {.s = s, .d = d, .r = &d->replay, .end = d->oom.found ? d->oom.event : d->replay.n};
	struct trace *t = NULL;

	for (size_t i = 0; parts_of(&m, i); i++)
		buf_init(parts_of(&m, i), BYTES_MAX);
	snap_turns_find(&m.turns, m.r, m.end);
	m.saved = snap_saved(&m.turns, m.r, m.end);
	m.text = xcalloc(s->text.n + 1, sizeof(*m.text));
	m.stack = xcalloc(s->stack.n + 1, sizeof(*m.stack));
	m.site_of = xcalloc(s->stack.n + 1, sizeof(*m.site_of));
	t = fill(&m);
	for (size_t i = 0; parts_of(&m, i); i++)
		buf_release(parts_of(&m, i));
	snap_turns_release(&m.turns);
	free(m.saved);
	free(m.text);
	free(m.site_of);
	if (made)
		*made = (struct snap_made){m.stack, m.end};
	else
		free(m.stack);
	if (t)
		trace_sources(t)->foreign = true;
	return t;
}

void snap_made_release(struct snap_made *made)
{
	free(made->stack);
	*made = (struct snap_made){.stack = NULL};
}
