/* SPDX-License-Identifier: Apache-2.0
 * The history of PyTorch's allocator out of a memory trace: every event, in the order in which it happened.
 *
 * Whose an allocation of the driver's is may show later, when PyTorch cuts a block out of it: events are noted first and
 * left out at the end. A viewer looks for the segment of every block; blocks that are in no memory that the trace knows
 * are left out when they are gone by the end.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "input/recording/history.h"
#include "write/torchsnap_priv.h"
#include "input/recording/trace_memory.h"
#include "base/banned.h"

#define LEFT_OUT	UINT16_MAX	/* as an action */
#define PLACED		1u		/* in the tag of a block: it is in a segment; above it the number of its event */

struct reading {
	struct torchsnap *out;
	struct trace *trace;
	struct live_segments *live;
};

static uint64_t end_of(uint64_t addr, uint64_t size)
{
	return size > UINT64_MAX - addr ? UINT64_MAX : addr + size;
}

/* --- the driver's allocations ----------------------------------------------------------------- */

size_t live_segments_from(const struct live_segments *l, uint64_t addr)
{
	size_t low = 0, high = l->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (end_of(l->list[middle].addr, l->list[middle].size) <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void forget(struct live_segments *l, size_t i)
{
	memmove(&l->list[i], &l->list[i + 1], (--l->n - i) * sizeof(*l->list));
}

/* What lies where the new one comes is gone, though nobody said so. */
static void enter(struct live_segments *l, const struct live_segment *one)
{
	size_t i = live_segments_from(l, one->addr);

	while (i < l->n && l->list[i].addr < end_of(one->addr, one->size))
		forget(l, i);
	l->list = xgrow(l->list, l->n, &l->cap, sizeof(*l->list));
	memmove(&l->list[i + 1], &l->list[i], (l->n++ - i) * sizeof(*l->list));
	l->list[i] = *one;
}

static bool can_hold_blocks(const struct piece *p)
{
	return p->kind == CW_MEM_DEVICE || p->kind == CW_MEM_VMM || p->kind == CW_MEM_ASYNC || p->kind == CW_MEM_MANAGED;
}

static void gave(struct reading *r, const struct piece *p)
{
	struct live_segment one = {p->addr, p->size, r->out->n_events, p->kind == CW_MEM_VMM, false};

	if (!can_hold_blocks(p))
		return;
	one.torch = strstr(trace_string(r->trace, p->library), TORCH_LIBRARY);
	enter(r->live, &one);
	torchsnap_add_event(r->out, &(struct torchsnap_event){
		p->ticks, p->addr, p->size, torchsnap_stack(r->trace, p->stack, p->forward_stack),
		(int16_t)torchsnap_device(p->device),
		!one.torch ? LEFT_OUT : one.mapped ? TORCHSNAP_SEGMENT_MAP : TORCHSNAP_SEGMENT_ALLOC});
}

static void took(struct reading *r, const struct piece *p, uint64_t ticks)
{
	size_t i = live_segments_from(r->live, p->addr);

	if (!can_hold_blocks(p) || i == r->live->n || r->live->list[i].addr != p->addr)
		return;
	if (r->live->list[i].torch)
		torchsnap_add_event(r->out, &(struct torchsnap_event){
			ticks, p->addr, p->size, 0, (int16_t)torchsnap_device(p->device),
			p->kind == CW_MEM_VMM ? TORCHSNAP_SEGMENT_UNMAP : TORCHSNAP_SEGMENT_FREE});
	forget(r->live, i);
}

/* --- PyTorch's blocks ------------------------------------------------------------------------- */

static bool place(struct reading *r, const struct piece *p)
{
	size_t i = live_segments_from(r->live, p->addr);
	bool found = i < r->live->n && r->live->list[i].addr <= p->addr;

	for (; i < r->live->n && r->live->list[i].addr < end_of(p->addr, p->size); i++) {
		struct live_segment *s = &r->live->list[i];
		struct torchsnap_event *v = &r->out->event[s->event];

		v->action = s->mapped ? TORCHSNAP_SEGMENT_MAP : TORCHSNAP_SEGMENT_ALLOC;
		s->torch = true;
	}
	return found;
}

static void made(struct reading *r, struct held *h)
{
	const struct piece *p = &h->piece;

	h->tag = r->out->n_events << 1 | (place(r, p) ? PLACED : 0);
	torchsnap_add_event(r->out, &(struct torchsnap_event){
		p->ticks, p->addr, p->size, torchsnap_stack(r->trace, p->stack, p->forward_stack),
		(int16_t)torchsnap_device(p->device), TORCHSNAP_ALLOC});
}

static void freed(struct reading *r, const struct held *h, uint64_t ticks)
{
	struct torchsnap_event v = {ticks, h->piece.addr, h->piece.size, 0, (int16_t)torchsnap_device(h->piece.device),
				    TORCHSNAP_FREE_REQUESTED};

	if (!h->piece.size)
		return;
	if (!(h->tag & PLACED)) {
		r->out->event[h->tag >> 1].action = LEFT_OUT;
		return;
	}
	torchsnap_add_event(r->out, &v);
	v.action = TORCHSNAP_FREE_COMPLETED;
	torchsnap_add_event(r->out, &v);
}

/* --- giving up -------------------------------------------------------------------------------- */

/* The recording knows what was free, and the line: of the same failures it keeps the first and the newest time. */
static const struct cw_failure *failure_of(const struct trace *t, const struct event *v)
{
	const struct cw_failure *const *f, *best = NULL;
	size_t n = trace_failures(t, &f);

	for (size_t i = 0; i < n; i++)
		if (f[i]->source == CW_SRC_TORCH_OOM && f[i]->device == v->device && f[i]->request_bytes == v->size &&
		    (!best || f[i]->ticks / CW_EVENT_TICKS <= v->ticks / CW_EVENT_TICKS))
			best = f[i];
	return best;
}

static void gave_up(struct reading *r, const struct event *v)
{
	const struct cw_failure *f = failure_of(r->trace, v);

	torchsnap_add_event(r->out, &(struct torchsnap_event){
		v->ticks, f ? f->free_bytes : 0, v->size,
		f ? torchsnap_stack(r->trace, f->stack, f->forward_stack) : 0, (int16_t)torchsnap_device(v->device),
		TORCHSNAP_OOM});
}

/* --- all of it -------------------------------------------------------------------------------- */

static void leave_out(struct torchsnap *s)
{
	size_t n = 0;

	for (size_t i = 0; i < s->n_events; i++)
		if (s->event[i].action != LEFT_OUT)
			s->event[n++] = s->event[i];
	s->n_events = n;
}

void torchsnap_read_history(struct torchsnap *s, struct trace *t, struct history *h, struct live_segments *live)
{
	struct reading r = {s, t, live};
	struct history_step step;

	while (history_next(h, &step)) {
		switch (step.event.kind) {
		case CW_EVENT_MADE:
			if (step.came)
				made(&r, step.came);
			break;
		case CW_EVENT_GAVE:
			if (step.came)
				gave(&r, &step.came->piece);
			break;
		case CW_EVENT_FREED:
			freed(&r, &step.went, step.event.ticks);
			break;
		case CW_EVENT_TOOK:
			took(&r, &step.went.piece, step.event.ticks);
			break;
		case CW_EVENT_OOM:
			gave_up(&r, &step.event);
			break;
		case CW_EVENT_LOST:
			break;
		}
	}
	leave_out(s);
	s->missing = h->lost;
}
