/* SPDX-License-Identifier: Apache-2.0
 * Finds PyTorch's segments among the driver's allocations, lays its blocks into them, and collects what is known of
 * their history (see torchsnap.h).
 */
#include "write/torchsnap_priv.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "input/recording/history.h"
#include "input/recording/trace.h"
#include "base/banned.h"

#define SMALL_SEGMENT	(2u << 20)	/* PyTorch's unit for requests of 1 MiB at most; all others are larger */

uint64_t torchsnap_end_of(uint64_t addr, uint64_t size)
{
	return size > UINT64_MAX - addr ? UINT64_MAX : addr + size;
}

int torchsnap_device(int device)
{
	return device < 0 || device >= CW_MAX_DEVICES ? 0 : device;
}

uint32_t torchsnap_stack(const struct trace *t, uint32_t stack, uint32_t forward)
{
	const struct cw_stack *s = trace_stack(t, stack);

	return s && s->n ? stack : forward;
}

/* --- history ---------------------------------------------------------------------------------- */

void torchsnap_add_event(struct torchsnap *s, const struct torchsnap_event *v)
{
	s->event = xgrow(s->event, s->n_events, &s->event_cap, sizeof(*s->event));
	s->event[s->n_events++] = *v;
	if (v->device >= s->n_devices)
		s->n_devices = v->device + 1;
}

static int by_time(const void *a, const void *b)
{
	const struct torchsnap_event *x = a, *y = b;

	if (x->ticks != y->ticks)
		return x->ticks < y->ticks ? -1 : 1;
	return x->action != y->action ? (int)x->action - (int)y->action : (x->addr > y->addr) - (x->addr < y->addr);
}

/* --- segments and blocks ---------------------------------------------------------------------- */

static struct torchsnap_segment *add_segment(struct torchsnap_builder *b, struct torchsnap_segment new)
{
	struct torchsnap *s = b->out;

	s->segment = xgrow(s->segment, s->n_segments, &s->segment_cap, sizeof(*s->segment));
	s->segment[s->n_segments] = new;
	return &s->segment[s->n_segments++];
}

static void add_block(struct torchsnap_builder *b, struct torchsnap_segment *in, const struct piece *p, uint64_t size,
		      uint64_t ticks)
{
	struct torchsnap *s = b->out;
	uint32_t stack = torchsnap_stack(b->trace, p->stack, p->forward_stack);

	s->block = xgrow(s->block, s->n_blocks, &s->block_cap, sizeof(*s->block));
	s->block[s->n_blocks++] = (struct torchsnap_block){p->addr, size, stack};
	in->n++;
	in->allocated += size;
	torchsnap_note(b, TORCHSNAP_ALLOC, ticks, p->addr, size, p->device, stack);
}

/* The live blocks of a segment in order, each after the one before it. No block is older than the memory it is in. */
static void take_blocks(struct torchsnap_builder *b, struct torchsnap_segment *in, const struct cw_allocation *const *a)
{
	uint64_t from = in->addr, end = in->addr + in->size;

	for (; b->at < b->live.n && b->live.list[b->at].addr < end; b->at++) {
		const struct piece *p = &b->live.list[b->at];
		uint64_t to = torchsnap_end_of(p->addr, p->size);

		if (p->addr < from || !p->size) {
			b->out->overlapping++;
			continue;
		}
		while (p->addr >= torchsnap_end_of(a[0]->addr, a[0]->size))
			a++;
		from = to < end ? to : end;
		add_block(b, in, p, from - p->addr, p->ticks > a[0]->ticks ? p->ticks : a[0]->ticks);
	}
}

/* Those below `end` that are in no segment: each is one of its own. */
static void take_outside(struct torchsnap_builder *b, uint64_t end)
{
	struct torchsnap_segment *last;

	for (; b->at < b->live.n && b->live.list[b->at].addr < end; b->at++) {
		const struct piece *p = &b->live.list[b->at];
		uint64_t to = torchsnap_end_of(p->addr, p->size);

		last = b->out->n_segments ? &b->out->segment[b->out->n_segments - 1] : NULL;
		if (!p->size || (last && p->addr < torchsnap_end_of(last->addr, last->size))) {
			b->out->overlapping++;
			continue;
		}
		b->out->outside++;
		to = to < end ? to : end;	/* what follows begins there */
		last = add_segment(b, (struct torchsnap_segment){
			.addr = p->addr, .size = to - p->addr, .device = torchsnap_device(p->device),
			.first = b->out->n_blocks, .small = p->size < SMALL_SEGMENT});
		add_block(b, last, p, to - p->addr, p->ticks);
	}
}

static bool can_hold_blocks(const struct cw_allocation *a)
{
	return a->size && (a->kind == CW_MEM_DEVICE || a->kind == CW_MEM_VMM || a->kind == CW_MEM_ASYNC ||
			   a->kind == CW_MEM_MANAGED);
}

/* Pieces of an expandable segment are mapped side by side and are one segment, as in PyTorch's own account. */
static size_t count_side_by_side(const struct cw_allocation *const *a, size_t n)
{
	size_t i = 1;

	while (a[0]->kind == CW_MEM_VMM && i < n && a[i]->kind == CW_MEM_VMM && a[i]->device == a[0]->device &&
	       a[i]->addr == torchsnap_end_of(a[i - 1]->addr, a[i - 1]->size))
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
	uint64_t end = torchsnap_end_of(a[n - 1]->addr, a[n - 1]->size);
	bool mapped = a[0]->kind == CW_MEM_VMM;
	struct torchsnap_segment *new;

	take_outside(b, a[0]->addr);
	if (!is_torchs(b, a, n, end))
		return;
	new = add_segment(b, (struct torchsnap_segment){
		.addr = a[0]->addr, .size = end - a[0]->addr, .stack = a[0]->stack, .device = torchsnap_device(a[0]->device),
		.small = a[0]->size <= SMALL_SEGMENT, .expandable = mapped, .first = b->out->n_blocks});
	for (size_t i = 0; i < n; i++)
		torchsnap_note(b, mapped ? TORCHSNAP_SEGMENT_MAP : TORCHSNAP_SEGMENT_ALLOC, a[i]->ticks, a[i]->addr,
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
		if (!can_hold_blocks(all[i]) || all[i]->addr < from)
			continue;	/* what lies on top of another is damage */
		from = torchsnap_end_of(all[i]->addr, all[i]->size);
		a[kept++] = all[i];
	}
	for (size_t i = 0; i < kept; i += m) {
		m = count_side_by_side(a + i, kept - i);
		lay_segment(b, a + i, m);
	}
	take_outside(b, UINT64_MAX);
	free(a);
}

/* PyTorch told how much it had reserved: free segments that nothing else names are missing here. */
static uint64_t cache_left_out(const struct torchsnap *s, const struct cw_header *h)
{
	uint64_t sum[CW_MAX_DEVICES] = {0}, missing = 0;

	for (size_t i = 0; i < s->n_segments; i++)
		sum[s->segment[i].device] += s->segment[i].size;
	for (int d = 0; d < CW_MAX_DEVICES; d++)
		missing += h->memory[d].reserved > sum[d] ? h->memory[d].reserved - sum[d] : 0;
	return missing;
}

/* From the tables alone: what is live, and what was freed last. */
static void add_history(struct torchsnap_builder *b)
{
	struct torchsnap *s = b->out;

	freed_add_segments(b);
	freed_add_blocks(b);
	if (s->n_events)
		freed_add_ooms(b);
	if (s->n_events)
		qsort(s->event, s->n_events, sizeof(*s->event), by_time);
}

void torchsnap_build(struct torchsnap *s, struct trace *t, struct history *h)
{
	const struct cw_header *head = trace_header(t);
	struct torchsnap_builder b = {.out = s, .trace = t, .traced = h != NULL};

	*s = (struct torchsnap){.lost = head->lost_blocks};
	s->n_devices = head->device_count <= CW_MAX_DEVICES ? (int)head->device_count : 0;
	if (h)
		torchsnap_read_history(s, t, h, &b.segments);
	pieces_of_torch(&b.live, t, UINT64_MAX);
	freed_collect(&b);
	lay_segments(&b);
	if (!h)
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
