/* SPDX-License-Identifier: Apache-2.0
 * Every allocator event, for `cuwhy run --memory-trace`: packed into a ring that `cuwhy run` moves to a file
 * (struct cw_events in format.h). Nothing here waits for `cuwhy run`.
 */
#include <string.h>

#include "rec_site.h"

#define RING	(4u << 20)
#define LONGEST	96u		/* bytes of one event with what precedes it */

HOT_DATA _Atomic(struct cw_events *) events_ring;
static struct {
	uint64_t time, addr;		/* of the previous event */
	uint64_t lost;			/* since then */
	uint64_t stream;		/* of the previous block */
	uint32_t pool;
} last;
static struct events_block next;
static struct spin events_lock;
LOCK_LISTED(events_lock, events_lock);

void events_start(void)
{
	struct cw_events *r = NULL;

	memset(&last, 0, sizeof(last));
	memset(&next, 0, sizeof(next));
	if (rec_getenv("CUWHY_MEMORY_TRACE"))
		r = chunk_new(CW_CHUNK_EVENTS, sizeof(*r) + RING, 0);
	if (r)
		r->size = RING;
	events_ring = r;
}

static unsigned char *put_varint(unsigned char *p, uint64_t v)
{
	for (; v >= 128; v >>= 7)
		*p++ = (unsigned char)(v | 128);
	*p++ = (unsigned char)v;
	return p;
}

static uint64_t folded(int64_t d)
{
	return (uint64_t)d << 1 ^ (uint64_t)(d >> 63);
}

/* Addresses use at most 57 bits, so nothing is shifted out. */
static unsigned char *put_bytes(unsigned char *p, int64_t n)
{
	if (n % (int64_t)CW_EVENT_UNIT == 0)
		return put_varint(p, folded(n / (int64_t)CW_EVENT_UNIT) << 1);
	return put_varint(p, folded(n) << 1 | 1);
}

static unsigned char tag(enum cw_event kind, int device)
{
	return (unsigned char)(kind | (unsigned)(device >= 0 && device < 31 ? device : 31) << 3);
}

static void copy_in(struct cw_events *r, const unsigned char *from, uint32_t len)
{
	unsigned char *ring = (unsigned char *)(r + 1);
	uint32_t at = (uint32_t)r->head & (r->size - 1), end = r->size - at < len ? r->size - at : len;

	memcpy(ring + at, from, end);
	memcpy(ring, from + end, len - end);
	shared_set(&r->head, r->head + len);
}

static unsigned char *put_lost(unsigned char *p)
{
	if (last.lost)
		p = put_varint(put_varint(p, CW_EVENT_LOST), last.lost);
	last.lost = 0;
	return p;
}

static unsigned char *put_head(unsigned char *p, enum cw_event kind, int device, uint64_t ticks)
{
	uint64_t time = ticks / CW_EVENT_TICKS;

	*p++ = tag(kind, device);
	p = put_varint(p, folded((int64_t)(time - last.time)));
	last.time = time;
	return p;
}

static unsigned char *put_more(unsigned char *p, enum cw_event_more what, int device, uint64_t value)
{
	*p++ = tag(CW_EVENT_MORE, device);
	return put_varint(put_varint(p, what), value);
}

/* What is known of the next block beyond its size, where it is not the same again. */
static unsigned char *put_next(unsigned char *p, const struct cw_allocation *a)
{
	if (next.stream != last.stream)
		p = put_more(p, CW_MORE_STREAM, a->device, next.stream);
	if (next.pool != last.pool)
		p = put_more(p, CW_MORE_POOL, a->device, next.pool);
	if (next.asked && next.asked != a->size) {
		*p++ = tag(CW_EVENT_ASKED, a->device);
		p = put_bytes(p, (int64_t)next.asked);
	}
	last.stream = next.stream;
	last.pool = next.pool;
	return p;
}

static bool ring_open(struct cw_events *r)
{
	if (!spin_try(&events_lock)) {
		shared_add(&r->lost, 1);	/* at an unknown place */
		return false;
	}
	if (r->head - shared_get(&r->tail) <= r->size - LONGEST)
		return true;
	shared_add(&r->lost, 1);
	last.lost++;
	spin_done(&events_lock);
	return false;
}

static void ring_close(struct cw_events *r, const unsigned char *event, const unsigned char *end)
{
	copy_in(r, event, (uint32_t)(end - event));
	r->n++;
	spin_done(&events_lock);
}

void events_write(const struct cw_allocation *a, bool came, uint64_t ticks)
{
	struct cw_events *r = events_ring;
	bool torch = a->kind == CW_MEM_TORCH;
	unsigned char event[2 * LONGEST], *p;

	if (!ring_open(r))
		return;
	p = put_lost(event);
	if (torch && came)
		p = put_next(p, a);
	else if (torch && next.later)
		p = put_more(p, CW_MORE_LATER, a->device, next.later);
	p = put_head(p, came ? (torch ? CW_EVENT_MADE : CW_EVENT_GAVE) : (torch ? CW_EVENT_FREED : CW_EVENT_TOOK),
		     a->device, ticks);
	p = put_bytes(p, (int64_t)(a->addr - last.addr));
	last.addr = a->addr;
	if (came)
		p = put_varint(put_bytes(p, (int64_t)a->size), a->site);
	ring_close(r, event, p);
}

void events_oom(int device, uint64_t request)
{
	struct cw_events *r = events_ring;
	unsigned char event[2 * LONGEST];

	event_log_oom(device, request);
	if (!r || !ring_open(r))
		return;
	ring_close(r, event, put_bytes(put_head(put_lost(event), CW_EVENT_OOM, device, rec_ticks()), (int64_t)request));
}

void events_block(const struct events_block *b)
{
	next = *b;
}

void events_more(enum cw_event_more what, int device, uint64_t value)
{
	struct cw_events *r = events_ring;
	unsigned char event[2 * LONGEST];

	event_log_more(what, device, value);
	if (!r || !ring_open(r))
		return;
	ring_close(r, event, put_more(put_lost(event), what, device, value));
}
