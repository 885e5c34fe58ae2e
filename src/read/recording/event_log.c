/* SPDX-License-Identifier: Apache-2.0
 * Reads the newest allocator events (see event_log.h). Anybody may have written them: pages without a time are passed over, and
 * numbers are only copied.
 */
#include "read/recording/event_log.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "read/recording/trace.h"

#define NO_LANE	 UINT32_MAX
#define SEEN_MAX (1u << 24)

struct logged {
	uint32_t kind;			/* enum cw_event */
	int device;
	uint64_t ticks, addr, size;
	uint32_t site, lane, slack, more;
	bool later;
};

struct log {
	struct trace *trace;
	const struct cw_event_log *head;
	uint64_t total, from, to;	/* slots */
	uint64_t lost;
	/* where reading is */
	uint64_t next;
	uint64_t ticks;
	size_t part;
	uint64_t part_from, part_to;	/* of the ring */
	const struct cw_event_slot *slots;
};

static bool log_open(struct log *l, struct trace *t)
{
	size_t len;

	*l = (struct log){.trace = t, .head = trace_nth_chunk(t, CW_CHUNK_EVENT_LOG, 0, &len)};
	if (!l->head || len < sizeof(*l->head))
		return false;
	for (size_t i = 0; trace_nth_chunk(t, CW_CHUNK_EVENT_SLOTS, i, &len); i++)
		l->total += len / sizeof(struct cw_event_slot) / CW_LOG_PAGE * CW_LOG_PAGE;
	l->to = l->head->head;
	l->lost = l->head->lost;
	if (l->to > l->total)	/* the page that is being overwritten is neither old nor new */
		l->from = l->to / CW_LOG_PAGE * CW_LOG_PAGE + CW_LOG_PAGE - l->total;
	l->next = l->from;
	return l->total && l->from < l->to && l->to < UINT64_MAX / 2;
}

/* The slot with this number; all slots of a page are side by side. */
static const struct cw_event_slot *log_slot(struct log *l, uint64_t number)
{
	uint64_t at = number % l->total;
	size_t len;

	if (!l->slots || at < l->part_from) {
		l->part = 0;
		l->part_from = l->part_to = 0;
		l->slots = NULL;
	}
	while (!l->slots || at >= l->part_to) {
		l->part_from = l->part_to;
		l->slots = trace_nth_chunk(l->trace, CW_CHUNK_EVENT_SLOTS, l->part++, &len);
		l->part_to += len / sizeof(*l->slots) / CW_LOG_PAGE * CW_LOG_PAGE;
	}
	return &l->slots[at - l->part_from];
}

static void block_read(struct logged *v, const struct cw_event_slot *s)
{
	v->later = v->kind == CW_SLOT_LATER;
	v->kind = v->later ? CW_EVENT_FREED : v->kind;
	v->addr = s->what & ~(uint64_t)(CW_EVENT_UNIT - 1);
	v->size = (s->value & CW_SLOT_SIZE_MAX) * CW_EVENT_UNIT;
	v->site = s->value >> CW_SLOT_SITE_SHIFT & CW_SLOT_SITE_MAX;
	v->slack = s->value >> CW_SLOT_SLACK_SHIFT & CW_SLOT_SLACK_MAX;
	v->lane = (uint32_t)(s->value >> CW_SLOT_LANE_SHIFT);
}

static void note_read(struct logged *v, const struct cw_event_slot *s)
{
	uint32_t lane = s->what >> CW_SLOT_NOTE_LANE_SHIFT & (2 * CW_LANES - 1);

	v->ticks = s[0].value;
	v->addr = s[1].what;
	v->size = s[1].value;
	v->lane = lane && v->kind != CW_EVENT_MORE ? lane - 1 : NO_LANE;
	v->more = lane;
	v->site = (uint32_t)(s->what >> CW_SLOT_NOTE_SITE_SHIFT);
}

/* The next event; false at the end. */
static bool log_next(struct log *l, struct logged *v)
{
	while (l->next < l->to) {
		uint64_t left = CW_LOG_PAGE - l->next % CW_LOG_PAGE,
			 known = l->to - l->next < left ? l->to - l->next : left;
		const struct cw_event_slot *s = log_slot(l, l->next);
		uint32_t device = s->what >> 3 & 31;

		*v = (struct logged){.kind = s->what & 7, .device = device == 31 ? -1 : (int)device, .ticks = l->ticks};
		if (v->kind == CW_SLOT_TIME) {
			l->ticks = s->value ? s->value : l->ticks;
			l->next++;
		} else if (left == CW_LOG_PAGE) {	/* a page must begin with the time */
			l->lost += known;
			l->next += known;
		} else if (v->kind == CW_EVENT_MADE || v->kind == CW_EVENT_FREED || v->kind == CW_SLOT_LATER) {
			block_read(v, s);
			l->next++;
			return true;
		} else if (known < 2) {
			l->lost++;
			l->next++;
		} else {
			note_read(v, s);
			l->ticks = v->ticks;
			l->next += 2;
			return true;
		}
	}
	return false;
}

static struct cw_lane lane_at(const struct log *l, uint32_t lane)
{
	return lane < CW_LANES && lane < l->head->n_lanes ? l->head->lane[lane] : (struct cw_lane){.stream = 0};
}

/* Addresses that the log has an event of; those of blocks and of the driver's memory apart. */
struct seen {
	uint64_t *addr;
	size_t n, cap;
	struct map map;
};

struct start {
	struct seen blocks, driver;
	struct logged *list;
	size_t n, cap;
	bool free_seen[CW_MAX_DEVICES];
};

static bool seen_same(const void *list, uint32_t i, const void *addr)
{
	return ((const uint64_t *)list)[i] == *(const uint64_t *)addr;
}

/* False: it was there already. */
static bool seen_add(struct seen *s, uint64_t addr)
{
	uint32_t n = s->n < SEEN_MAX ? (uint32_t)s->n : MAP_NONE;

	if (map_put(&s->map, map_hash(addr), seen_same, s->addr, &addr, n) != n || n == MAP_NONE)
		return false;
	s->addr = xgrow(s->addr, s->n, &s->cap, sizeof(*s->addr));
	s->addr[s->n++] = addr;
	return true;
}

static void start_add(struct start *s, const struct logged *v)
{
	s->list = xgrow(s->list, s->n, &s->cap, sizeof(*s->list));
	s->list[s->n++] = *v;
}

/* The first event of an address tells whether it was in use before. */
static void start_from_event(struct start *s, const struct logged *v)
{
	bool block = v->kind == CW_EVENT_MADE || v->kind == CW_EVENT_FREED;
	bool gone = v->kind == CW_EVENT_FREED || v->kind == CW_EVENT_TOOK;
	struct logged there = *v;

	if (v->kind == CW_EVENT_MORE && v->more == CW_MORE_FREE && v->device >= 0)
		s->free_seen[v->device] = true;
	if (!block && v->kind != CW_EVENT_GAVE && v->kind != CW_EVENT_TOOK)
		return;
	if (!seen_add(block ? &s->blocks : &s->driver, v->addr) || !gone)
		return;
	there.kind = block ? CW_EVENT_MADE : CW_EVENT_GAVE;
	there.ticks = 0;	/* not known */
	there.later = false;
	start_add(s, &there);
}

static void start_from_block(struct start *s, const struct cw_allocation *a)
{
	bool detail = a->library & CW_BLOCK_DETAIL;

	if (a->addr % CW_EVENT_UNIT == 0 && seen_add(&s->blocks, a->addr))
		start_add(s, &(struct logged){
				     .kind = CW_EVENT_MADE,
				     .device = a->device,
				     .ticks = a->ticks,
				     .addr = a->addr,
				     .size = a->size,
				     .site = a->site,
				     .slack = detail ? a->library >> 1 & CW_SLOT_SLACK_MAX : 0,
				     .lane = detail ? a->library >> (1 + CW_SLOT_LANE_SHIFT - CW_SLOT_SLACK_SHIFT) &
							      (CW_LANES - 1)
						    : NO_LANE,
			     });
}

static void start_from_driver(struct start *s, const struct cw_allocation *a)
{
	bool lane = (a->kind == CW_MEM_DEVICE || a->kind == CW_MEM_RESERVED) && a->extra && a->extra <= CW_LANES;

	if (a->kind != CW_MEM_DEVICE && a->kind != CW_MEM_VMM && a->kind != CW_MEM_ASYNC && a->kind != CW_MEM_RESERVED)
		return;
	if (seen_add(&s->driver, a->addr))
		start_add(s, &(struct logged){
				     .kind = CW_EVENT_GAVE,
				     .device = a->device,
				     .ticks = a->ticks,
				     .addr = a->addr,
				     .size = a->size,
				     .site = a->site,
				     .lane = lane ? (uint32_t)a->extra - 1 : NO_LANE,
			     });
}

static int by_address(const void *a, const void *b)
{
	const struct logged *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	return x->kind == CW_EVENT_GAVE ? -1 : 1;	/* a segment before its first block */
}

/* The driver's memory, oldest first: PyTorch may prefer old segments. Then blocks, by pool and address. */
static int by_order(const void *a, const void *b)
{
	const struct logged *x = a, *y = b;

	if (x->kind != y->kind)
		return x->kind == CW_EVENT_GAVE ? -1 : 1;
	if (x->kind == CW_EVENT_GAVE && x->ticks != y->ticks)
		return x->ticks < y->ticks ? -1 : 1;
	if (x->kind == CW_EVENT_MADE && x->more != y->more)
		return x->more < y->more ? -1 : 1;
	return by_address(a, b);
}

/* A block has the lane of its segment, and a segment that of its blocks, where only one of them is known. */
static void lanes_fill(const struct log *l, struct start *s)
{
	struct logged *in = NULL;

	xsort(s->list, s->n, sizeof(*s->list), by_address);
	for (size_t i = 0; i < s->n; i++) {
		struct logged *v = &s->list[i];

		if (v->kind == CW_EVENT_GAVE) {
			in = v;
			continue;
		}
		if (in && v->addr - in->addr < in->size) {
			v->lane = v->lane == NO_LANE ? in->lane : v->lane;
			in->lane = in->lane == NO_LANE ? v->lane : in->lane;
		}
		v->more = lane_at(l, v->lane).pool;
	}
	xsort(s->list, s->n, sizeof(*s->list), by_order);
}

static void start_find(struct start *s, struct log *l)
{
	const struct cw_allocation *const *list;
	struct log events = *l;
	struct logged v;
	size_t n;

	*s = (struct start){.n = 0};
	while (log_next(&events, &v))
		start_from_event(s, &v);
	l->lost = events.lost;
	n = trace_blocks(l->trace, &list);
	for (size_t i = 0; i < n; i++)
		start_from_block(s, list[i]);
	n = trace_allocations(l->trace, &list);
	for (size_t i = 0; i < n; i++)
		start_from_driver(s, list[i]);
	if (s->n)
		lanes_fill(l, s);
}

static void start_release(struct start *s)
{
	free(s->blocks.addr);
	map_release(&s->blocks.map);
	free(s->driver.addr);
	map_release(&s->driver.map);
	free(s->list);
}

#define LONGEST 128u

struct packer {
	struct buf *out;
	const struct log *log;
	uint64_t time, addr;		/* of the previous event */
	uint64_t stream, pool;
	uint8_t bytes[LONGEST];
	size_t n;
};

static void put_number(struct packer *p, uint64_t v)
{
	for (; v >= 128; v >>= 7)
		p->bytes[p->n++] = (uint8_t)(v | 128);
	p->bytes[p->n++] = (uint8_t)v;
}

static uint64_t folded(uint64_t d)
{
	return d << 1 ^ (0 - (d >> 63));
}

static void put_bytes(struct packer *p, uint64_t n)
{
	int64_t d = (int64_t)n;

	if (d % (int64_t)CW_EVENT_UNIT == 0)
		put_number(p, folded((uint64_t)(d / (int64_t)CW_EVENT_UNIT)) << 1);
	else
		put_number(p, folded(n) << 1 | 1);
}

static void put_tag(struct packer *p, uint32_t kind, int device)
{
	p->bytes[p->n++] = (uint8_t)(kind | (unsigned)(device >= 0 && device < 31 ? device : 31) << 3);
}

static void put_more(struct packer *p, enum cw_event_more what, int device, uint64_t value)
{
	put_tag(p, CW_EVENT_MORE, device);
	put_number(p, what);
	put_number(p, value);
}

static void put_lane(struct packer *p, const struct logged *v)
{
	struct cw_lane lane = lane_at(p->log, v->lane);

	if (lane.stream != p->stream)
		put_more(p, CW_MORE_STREAM, v->device, lane.stream);
	if (lane.pool != p->pool)
		put_more(p, CW_MORE_POOL, v->device, lane.pool);
	p->stream = lane.stream;
	p->pool = lane.pool;
}

static void put_asked(struct packer *p, const struct logged *v)
{
	uint64_t slack = (uint64_t)v->slack * CW_EVENT_UNIT;

	if (!slack || slack >= v->size)
		return;
	put_tag(p, CW_EVENT_ASKED, v->device);
	put_bytes(p, v->size - slack);
}

static void put_timed(struct packer *p, const struct logged *v)
{
	uint64_t time = v->ticks / CW_EVENT_TICKS;

	put_tag(p, v->kind, v->device);
	put_number(p, folded(time - p->time));
	p->time = time;
}

static void pack(struct packer *p, const struct logged *v)
{
	bool block = v->kind == CW_EVENT_MADE || v->kind == CW_EVENT_FREED,
	     came = v->kind == CW_EVENT_MADE || v->kind == CW_EVENT_GAVE;

	p->n = 0;
	if (v->kind == CW_EVENT_MORE) {
		p->pool = v->more == CW_MORE_POOL ? v->size : p->pool;
		put_more(p, v->more, v->device, v->size);
	} else {
		if (came && v->lane != NO_LANE)
			put_lane(p, v);
		if (v->kind == CW_EVENT_MADE)
			put_asked(p, v);
		if (block && v->later)
			put_more(p, CW_MORE_LATER, v->device, 1);
		put_timed(p, v);
		if (v->kind != CW_EVENT_OOM) {
			put_bytes(p, v->addr - p->addr);
			p->addr = v->addr;
		}
		if (came || v->kind == CW_EVENT_OOM)
			put_bytes(p, v->size);
		if (came)
			put_number(p, v->site);
	}
	buf_add(p->out, p->bytes, p->n);
}

static void pack_start(struct packer *p, const struct start *s)
{
	for (size_t i = 0; i < s->n; i++)
		pack(p, &s->list[i]);
	if (p->pool)
		pack(p, &(struct logged){.kind = CW_EVENT_MORE, .more = CW_MORE_POOL, .device = -1});
	pack(p, &(struct logged){.kind = CW_EVENT_MORE, .more = CW_MORE_START, .device = -1, .size = p->log->from});
	/* What the card had free is noted after the driver's memory changes: where the log has no such note, it has not changed since. */
	for (int d = 0; d < CW_MAX_DEVICES; d++)
		if (p->log->head->free[d] && !s->free_seen[d])
			pack(p, &(struct logged){.kind = CW_EVENT_MORE,
						 .more = CW_MORE_FREE,
						 .device = d,
						 .size = p->log->head->free[d]});
	if (p->log->lost) {
		p->n = 0;
		put_tag(p, CW_EVENT_LOST, -1);
		put_number(p, p->log->lost);
		buf_add(p->out, p->bytes, p->n);
	}
}

int event_log_pack(struct buf *b, struct trace *t)
{
	const struct cw_header *h = trace_header(t);
	struct cw_events_file file = {.major = CW_MAJOR, .minor = CW_MINOR, .pid = h->pid};
	struct packer p = {.out = b};
	struct start s;
	struct log l;
	struct logged v;

	if (!log_open(&l, t))
		return 1;
	memcpy(file.magic, CW_EVENTS_MAGIC, sizeof(file.magic));
	buf_add(b, &file, sizeof(file));
	p.log = &l;
	start_find(&s, &l);
	l.lost += h->lost_blocks + h->lost_allocations;
	pack_start(&p, &s);
	while (log_next(&l, &v))
		pack(&p, &v);
	start_release(&s);
	return 0;
}
