/* SPDX-License-Identifier: Apache-2.0
 * Finds PyTorch's segments among the driver's allocations, places its blocks in them, and collects what is known about
 * their history (see torchsnap.h).
 */
#include "show/torchsnap.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "find/memory/playback.h"
#include "find/memory/pieces.h"
#include "read/recording/trace.h"
#include "read/recording/trace_memory.h"

#define TORCH_LIBRARY	"libc10_cuda"
#define SMALL_SEGMENT	(2u << 20)	/* PyTorch's segment size for requests of at most 1 MiB; all others are larger */
#define LEFT_OUT	UINT16_MAX	/* as an action */
#define PLACED		1u		/* in a block's tag: it is in a segment; the higher bits are the number of its event */

/* The driver's live allocations, by address, as far as a memory trace shows. */
struct live_segment {
	uint64_t addr, size;
	size_t event;			/* that made it */
	bool mapped;			/* a piece of an expandable segment */
	bool torch;			/* PyTorch allocated it, or has a block in it */
};

struct live_segments {
	struct live_segment *list;
	size_t n, cap;
};

/* A snapshot under construction. */
struct torchsnap_builder {
	struct torchsnap *out;
	struct trace *trace;
	struct pieces live;			/* blocks, by address */
	const struct cw_freed **freed;		/* likewise, freed ones */
	bool *placed;				/* of each: its segment is known */
	size_t n_freed, at;			/* the first live block that has no segment yet */
	bool traced;				/* the history comes from a memory trace */
	struct live_segments segments;		/* those live at the end */
};

/* Saturates instead of overflowing. */
static uint64_t range_end(uint64_t addr, uint64_t size)
{
	return size > UINT64_MAX - addr ? UINT64_MAX : addr + size;
}

static int snap_device_of(int device)
{
	return device < 0 || device >= CW_MAX_DEVICES ? 0 : device;
}

/* An autograd thread has no Python frames: use the place where the node was created. */
static uint32_t snap_stack_of(const struct trace *t, uint32_t stack, uint32_t forward)
{
	const struct cw_stack *s = trace_stack(t, stack);

	return s && s->n ? stack : forward;
}

static bool kind_holds_blocks(uint16_t kind)
{
	return kind == CW_MEM_DEVICE || kind == CW_MEM_VMM || kind == CW_MEM_ASYNC || kind == CW_MEM_MANAGED;
}

static void add_snap_event(struct torchsnap *s, const struct torchsnap_event *v)
{
	s->event = xgrow(s->event, s->n_events, &s->event_cap, sizeof(*s->event));
	s->event[s->n_events++] = *v;
	if (v->device >= s->n_devices)
		s->n_devices = v->device + 1;
}

/* The history of a memory trace. Whether a driver allocation is PyTorch's may become clear only later, when PyTorch places a block in it: so events are
 * collected first, and those of others are dropped at the end. A viewer looks for the segment of every block; blocks in
 * memory that the trace does not know are dropped if they were freed by the end.
 */

/* The first that ends after the address. */
static size_t live_segments_from(const struct live_segments *l, uint64_t addr)
{
	size_t low = 0, high = l->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (range_end(l->list[middle].addr, l->list[middle].size) <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void live_segment_drop(struct live_segments *l, size_t i)
{
	memmove(&l->list[i], &l->list[i + 1], (--l->n - i) * sizeof(*l->list));
}

/* Anything in the new one's range must have been freed, even if no event says so. */
static void live_segment_add(struct live_segments *l, const struct live_segment *one)
{
	size_t i = live_segments_from(l, one->addr);

	while (i < l->n && l->list[i].addr < range_end(one->addr, one->size))
		live_segment_drop(l, i);
	l->list = xgrow(l->list, l->n, &l->cap, sizeof(*l->list));
	memmove(&l->list[i + 1], &l->list[i], (l->n++ - i) * sizeof(*l->list));
	l->list[i] = *one;
}

static void torch_gave(struct torchsnap_builder *b, const struct piece *p)
{
	struct live_segment one = {p->addr, p->size, b->out->n_events, p->kind == CW_MEM_VMM, false};

	if (!kind_holds_blocks(p->kind))
		return;
	one.torch = strstr(trace_string(b->trace, p->library), TORCH_LIBRARY);
	live_segment_add(&b->segments, &one);
	add_snap_event(b->out, &(struct torchsnap_event){p->ticks, p->addr, p->size,
							 snap_stack_of(b->trace, p->stack, p->forward_stack),
							 (int16_t)snap_device_of(p->device),
							 !one.torch   ? LEFT_OUT
							 : one.mapped ? TORCHSNAP_SEGMENT_MAP
								      : TORCHSNAP_SEGMENT_ALLOC});
}

static void torch_took(struct torchsnap_builder *b, const struct piece *p, uint64_t ticks)
{
	size_t i = live_segments_from(&b->segments, p->addr);

	if (!kind_holds_blocks(p->kind) || i == b->segments.n || b->segments.list[i].addr != p->addr)
		return;
	if (b->segments.list[i].torch)
		add_snap_event(b->out, &(struct torchsnap_event){
					       ticks, p->addr, p->size, 0, (int16_t)snap_device_of(p->device),
					       p->kind == CW_MEM_VMM ? TORCHSNAP_SEGMENT_UNMAP : TORCHSNAP_SEGMENT_FREE});
	live_segment_drop(&b->segments, i);
}

static bool torch_place(struct torchsnap_builder *b, const struct piece *p)
{
	size_t i = live_segments_from(&b->segments, p->addr);
	bool found = i < b->segments.n && b->segments.list[i].addr <= p->addr;

	for (; i < b->segments.n && b->segments.list[i].addr < range_end(p->addr, p->size); i++) {
		struct live_segment *s = &b->segments.list[i];
		struct torchsnap_event *v = &b->out->event[s->event];

		v->action = s->mapped ? TORCHSNAP_SEGMENT_MAP : TORCHSNAP_SEGMENT_ALLOC;
		s->torch = true;
	}
	return found;
}

static void torch_made(struct torchsnap_builder *b, struct held *h)
{
	const struct piece *p = &h->piece;

	h->tag = b->out->n_events << 1 | (torch_place(b, p) ? PLACED : 0);
	add_snap_event(b->out, &(struct torchsnap_event){p->ticks, p->addr, p->size,
							 snap_stack_of(b->trace, p->stack, p->forward_stack),
							 (int16_t)snap_device_of(p->device), TORCHSNAP_ALLOC});
}

static void torch_freed(struct torchsnap_builder *b, const struct held *h, uint64_t ticks)
{
	struct torchsnap_event v = {ticks, h->piece.addr, h->piece.size, 0, (int16_t)snap_device_of(h->piece.device),
				    TORCHSNAP_FREE_REQUESTED};

	if (!h->piece.size)
		return;
	if (!(h->tag & PLACED)) {
		b->out->event[h->tag >> 1].action = LEFT_OUT;
		return;
	}
	add_snap_event(b->out, &v);
	v.action = TORCHSNAP_FREE_COMPLETED;
	add_snap_event(b->out, &v);
}

/* The recording has the free memory and the line: of identical failures it keeps the first and the newest time. */
static const struct cw_failure *oom_failure(const struct trace *t, const struct event *v)
{
	const struct cw_failure *const *f, *best = NULL;
	size_t n = trace_failures(t, &f);

	for (size_t i = 0; i < n; i++)
		if (f[i]->source == CW_SRC_TORCH_OOM && f[i]->device == v->device && f[i]->request_bytes == v->size &&
		    (!best || f[i]->ticks / CW_EVENT_TICKS <= v->ticks / CW_EVENT_TICKS))
			best = f[i];
	return best;
}

static void torch_oom(struct torchsnap_builder *b, const struct event *v)
{
	const struct cw_failure *f = oom_failure(b->trace, v);

	add_snap_event(b->out, &(struct torchsnap_event){v->ticks, f ? f->free_bytes : 0, v->size,
							 f ? snap_stack_of(b->trace, f->stack, f->forward_stack) : 0,
							 (int16_t)snap_device_of(v->device), TORCHSNAP_OOM});
}

static void drop_left_out(struct torchsnap *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_events; i++)
		if (s->event[i].action != LEFT_OUT)
			s->event[n++] = s->event[i];
	s->n_events = n;
}

/* Every event, in order; `segments` are then those at the end. */
static void read_memory_trace(struct torchsnap_builder *b, struct playback *play)
{
	struct playback_step step;

	while (playback_next(play, &step)) {
		switch (step.event.kind) {
		case CW_EVENT_MADE:
			if (step.came)
				torch_made(b, step.came);
			break;
		case CW_EVENT_GAVE:
			if (step.came)
				torch_gave(b, &step.came->piece);
			break;
		case CW_EVENT_FREED:
			torch_freed(b, &step.went, step.event.ticks);
			break;
		case CW_EVENT_TOOK:
			torch_took(b, &step.went.piece, step.event.ticks);
			break;
		case CW_EVENT_OOM:
			torch_oom(b, &step.event);
			break;
		case CW_EVENT_LOST:
		case CW_EVENT_ASKED:
		case CW_EVENT_MORE:
			break;
		}
	}
	drop_left_out(b->out);
	b->out->missing = play->lost;
}

/* Adds an event, unless a memory trace has them all. */
static void note_event(struct torchsnap_builder *b, enum torchsnap_action action, uint64_t ticks, uint64_t addr,
		       uint64_t size, int device, uint32_t stack)
{
	if (!b->traced)
		add_snap_event(b->out, &(struct torchsnap_event){ticks, addr, size, stack,
								 (int16_t)snap_device_of(device), (uint16_t)action});
}

static int freed_by_address(const void *a, const void *b)
{
	const struct cw_freed *x = *(const struct cw_freed *const *)a, *y = *(const struct cw_freed *const *)b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* PyTorch's freed blocks, by address. */
static void freed_collect(struct torchsnap_builder *b)
{
	const struct cw_freed *const *f;
	size_t n = trace_freed(b->trace, &f);

	b->freed = xcalloc(n + 1, sizeof(*b->freed));
	b->placed = xcalloc(n + 1, sizeof(*b->placed));
	for (size_t i = 0; i < n; i++)
		if (f[i]->kind == CW_MEM_TORCH || f[i]->kind == CW_MEM_WORKSPACE)
			b->freed[b->n_freed++] = f[i];
	xsort(b->freed, b->n_freed, sizeof(*b->freed), freed_by_address);
}

/* Marks freed blocks that were in this memory while it was allocated; false = none. */
static bool freed_place(struct torchsnap_builder *b, uint64_t addr, uint64_t size, uint64_t from, uint64_t until)
{
	size_t low = 0, high = b->n_freed;
	bool any = false;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (b->freed[middle]->addr < addr)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < b->n_freed && b->freed[low]->addr < range_end(addr, size); low++)
		if (b->freed[low]->made_ticks >= from && b->freed[low]->ticks <= until)
			any = b->placed[low] = true;
	return any;
}

/* A viewer goes back in time and looks for the segment of every block: blocks whose segment is no longer known are not
 * part of the history. */
static void freed_add_blocks(struct torchsnap_builder *b)
{
	for (size_t i = 0; i < b->n_freed; i++) {
		const struct cw_freed *f = b->freed[i];

		if (!b->placed[i])
			continue;
		note_event(b, TORCHSNAP_ALLOC, f->made_ticks, f->addr, f->size, f->device,
			   snap_stack_of(b->trace, f->stack, f->forward_stack));
		note_event(b, TORCHSNAP_FREE_REQUESTED, f->ticks, f->addr, f->size, f->device, freed_stack(f));
		note_event(b, TORCHSNAP_FREE_COMPLETED, f->ticks, f->addr, f->size, f->device, freed_stack(f));
	}
}

static void freed_add_segments(struct torchsnap_builder *b)
{
	const struct cw_freed *const *f;
	size_t n = trace_freed(b->trace, &f);

	for (size_t i = 0; i < n; i++) {
		bool mapped = f[i]->kind == CW_MEM_VMM;

		if (f[i]->kind == CW_MEM_TORCH || f[i]->kind == CW_MEM_WORKSPACE ||
		    !freed_place(b, f[i]->addr, f[i]->size, f[i]->made_ticks, f[i]->ticks))
			continue;
		note_event(b, mapped ? TORCHSNAP_SEGMENT_MAP : TORCHSNAP_SEGMENT_ALLOC, f[i]->made_ticks, f[i]->addr,
			   f[i]->size, f[i]->device, f[i]->stack);
		note_event(b, mapped ? TORCHSNAP_SEGMENT_UNMAP : TORCHSNAP_SEGMENT_FREE, f[i]->ticks, f[i]->addr,
			   f[i]->size, f[i]->device, f[i]->free_stack);
	}
}

static void freed_add_ooms(struct torchsnap_builder *b)
{
	const struct cw_failure *const *f;
	size_t n = trace_failures(b->trace, &f);

	for (size_t i = 0; i < n; i++)
		if (f[i]->source == CW_SRC_TORCH_OOM)
			note_event(b, TORCHSNAP_OOM, f[i]->ticks, f[i]->free_bytes, f[i]->request_bytes, f[i]->device,
				   snap_stack_of(b->trace, f[i]->stack, f[i]->forward_stack));
}

static struct torchsnap_segment *new_segment(struct torchsnap_builder *b, struct torchsnap_segment new)
{
	struct torchsnap *s = b->out;

	s->segment = xgrow(s->segment, s->n_segments, &s->segment_cap, sizeof(*s->segment));
	s->segment[s->n_segments] = new;
	return &s->segment[s->n_segments++];
}

static void new_block(struct torchsnap_builder *b, struct torchsnap_segment *in, const struct piece *p, uint64_t size,
		      uint64_t ticks)
{
	struct torchsnap *s = b->out;
	uint32_t stack = snap_stack_of(b->trace, p->stack, p->forward_stack);

	s->block = xgrow(s->block, s->n_blocks, &s->block_cap, sizeof(*s->block));
	s->block[s->n_blocks++] = (struct torchsnap_block){p->addr, size, stack};
	in->n++;
	in->allocated += size;
	note_event(b, TORCHSNAP_ALLOC, ticks, p->addr, size, p->device, stack);
}

/* The live blocks of a segment, in order, without overlap. A block cannot be older than its segment. */
static void take_blocks(struct torchsnap_builder *b, struct torchsnap_segment *in, const struct cw_allocation *const *a)
{
	uint64_t from = in->addr, end = in->addr + in->size;

	for (; b->at < b->live.n && b->live.list[b->at].addr < end; b->at++) {
		const struct piece *p = &b->live.list[b->at];
		uint64_t to = range_end(p->addr, p->size);

		if (p->addr < from || !p->size) {
			b->out->overlapping++;
			continue;
		}
		while (p->addr >= range_end(a[0]->addr, a[0]->size))
			a++;
		from = to < end ? to : end;
		new_block(b, in, p, from - p->addr, p->ticks > a[0]->ticks ? p->ticks : a[0]->ticks);
	}
}

/* Blocks below `end` that are not in a segment: each becomes its own segment. */
static void take_outside(struct torchsnap_builder *b, uint64_t end)
{
	struct torchsnap_segment *last;

	for (; b->at < b->live.n && b->live.list[b->at].addr < end; b->at++) {
		const struct piece *p = &b->live.list[b->at];
		uint64_t to = range_end(p->addr, p->size);

		last = b->out->n_segments ? &b->out->segment[b->out->n_segments - 1] : NULL;
		if (!p->size || (last && p->addr < range_end(last->addr, last->size))) {
			b->out->overlapping++;
			continue;
		}
		b->out->outside++;
		to = to < end ? to : end;	/* the next one begins there */
		last = new_segment(b, (struct torchsnap_segment){
			.addr = p->addr, .size = to - p->addr, .device = snap_device_of(p->device),
			.first = b->out->n_blocks, .small = p->size < SMALL_SEGMENT});
		new_block(b, last, p, to - p->addr, p->ticks);
	}
}

/* Adjacent pieces of an expandable segment are one segment, as in PyTorch's own snapshots. */
static size_t count_side_by_side(const struct cw_allocation *const *a, size_t n)
{
	size_t i = 1;

	while (a[0]->kind == CW_MEM_VMM && i < n && a[i]->kind == CW_MEM_VMM && a[i]->device == a[0]->device &&
	       a[i]->addr == range_end(a[i - 1]->addr, a[i - 1]->size))
		i++;
	return i;
}

static bool is_torchs(struct torchsnap_builder *b, const struct cw_allocation *const *a, size_t n, uint64_t end)
{
	bool yes = b->at < b->live.n && b->live.list[b->at].addr < end;
	size_t k = live_segments_from(&b->segments, a[0]->addr);

	for (; k < b->segments.n && b->segments.list[k].addr < end; k++)
		yes = yes || b->segments.list[k].torch;

	for (size_t i = 0; i < n; i++)
		if (freed_place(b, a[i]->addr, a[i]->size, a[i]->ticks, UINT64_MAX) ||
		    strstr(trace_string(b->trace, a[i]->library), TORCH_LIBRARY))
			yes = true;
	return yes;
}

static void lay_segment(struct torchsnap_builder *b, const struct cw_allocation *const *a, size_t n)
{
	uint64_t end = range_end(a[n - 1]->addr, a[n - 1]->size);
	bool mapped = a[0]->kind == CW_MEM_VMM;
	struct torchsnap_segment *new;

	take_outside(b, a[0]->addr);
	if (!is_torchs(b, a, n, end))
		return;
	new = new_segment(b, (struct torchsnap_segment){.addr = a[0]->addr,
							.size = end - a[0]->addr,
							.stack = a[0]->stack,
							.device = snap_device_of(a[0]->device),
							.small = a[0]->size <= SMALL_SEGMENT,
							.expandable = mapped,
							.first = b->out->n_blocks});
	for (size_t i = 0; i < n; i++)
		note_event(b, mapped ? TORCHSNAP_SEGMENT_MAP : TORCHSNAP_SEGMENT_ALLOC, a[i]->ticks, a[i]->addr,
			   a[i]->size, a[i]->device, a[i]->stack);
	take_blocks(b, new, a);
}

static void lay_segments(struct torchsnap_builder *b)
{
	const struct cw_allocation *const *all, **a;
	size_t n = trace_allocations(b->trace, &all), kept = 0, m;
	uint64_t from = 0;

	a = xcalloc(n + 1, sizeof(*a));
	for (size_t i = 0; i < n; i++) {
		if (!all[i]->size || !kind_holds_blocks(all[i]->kind) || all[i]->addr < from)
			continue;	/* overlap means damage */
		from = range_end(all[i]->addr, all[i]->size);
		a[kept++] = all[i];
	}
	for (size_t i = 0; i < kept; i += m) {
		m = count_side_by_side(a + i, kept - i);
		lay_segment(b, a + i, m);
	}
	take_outside(b, UINT64_MAX);
	free(a);
}

/* PyTorch reported how much it had reserved: free segments that nothing else shows are missing here. */
static uint64_t cache_left_out(const struct torchsnap *s, const struct cw_header *h)
{
	uint64_t sum[CW_MAX_DEVICES] = {0}, missing = 0;

	for (size_t i = 0; i < s->n_segments; i++)
		sum[s->segment[i].device] += s->segment[i].size;
	for (int d = 0; d < CW_MAX_DEVICES; d++)
		missing += h->memory[d].reserved > sum[d] ? h->memory[d].reserved - sum[d] : 0;
	return missing;
}

static int event_by_time(const void *a, const void *b)
{
	const struct torchsnap_event *x = a, *y = b;

	if (x->ticks != y->ticks)
		return x->ticks < y->ticks ? -1 : 1;
	return x->action != y->action ? (int)x->action - (int)y->action : (x->addr > y->addr) - (x->addr < y->addr);
}

/* From the tables alone: live blocks, and those freed last. */
static void add_history(struct torchsnap_builder *b)
{
	struct torchsnap *s = b->out;

	freed_add_segments(b);
	freed_add_blocks(b);
	if (s->n_events)
		freed_add_ooms(b);
	xsort(s->event, s->n_events, sizeof(*s->event), event_by_time);
}

void torchsnap_build(struct torchsnap *s, struct trace *t, struct playback *play)
{
	const struct cw_header *head = trace_header(t);
	struct torchsnap_builder b = {.out = s, .trace = t, .traced = play != NULL};

	*s = (struct torchsnap){.lost = head->lost_blocks};
	s->n_devices = head->device_count <= CW_MAX_DEVICES ? (int)head->device_count : 0;
	if (play)
		read_memory_trace(&b, play);
	pieces_of_torch(&b.live, t, UINT64_MAX);
	freed_collect(&b);
	lay_segments(&b);
	if (!play)
		add_history(&b);
	s->cache_left_out = cache_left_out(s, head);
	pieces_free(&b.live);
	free(b.segments.list);
	free(b.freed);
	free(b.placed);
}

void torchsnap_release(struct torchsnap *s)
{
	free(s->segment);
	free(s->block);
	free(s->event);
	*s = (struct torchsnap){0};
}
