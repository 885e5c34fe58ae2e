/* SPDX-License-Identifier: Apache-2.0
 * The newest allocator events, in the recorder's own memory (struct cw_event_log in format.h): so that every failure can be played
 * back, not only those of `--memory-trace`, which writes all of them to a file as well.
 *
 * Every block that comes or goes writes two words, with the lock of PyTorch's blocks held. What does not change from block to
 * block (the stream, the pool) is a number of a table; what is rare (the driver's memory, refusals) takes that lock for itself.
 */
#include <string.h>

#include "rec_site.h"

#define FIRST_SLOTS  4096u		/* 64 KiB: enough for a short process */
#define MORE_SLOTS   65536u		/* 1 MiB: then, each time that it is full */
#define PARTS_MAX    33u
#define PART_OF_CAP  8u			/* of the recording's memory that events may take */

HOT_DATA struct event_log event_log;
static struct {
	struct cw_event_slot *part[PARTS_MAX];
	uint32_t n, most;
} parts;

static uint32_t part_slots(uint32_t i)
{
	return i ? MORE_SLOTS : FIRST_SLOTS;
}

static bool part_add(void)
{
	uint32_t bytes = part_slots(parts.n) * (uint32_t)sizeof(struct cw_event_slot);
	struct cw_event_slot *p = parts.n < parts.most ? chunk_new(CW_CHUNK_EVENT_SLOTS, bytes, 0) : NULL;

	if (!p) {
		parts.most = parts.n;	/* from here on it is a ring: the reader counts on its size */
		return false;
	}
	/* all at once: a part that is mapped page by page looks like a leak of the program, to those who watch its memory */
	if (parts.n)
		chunk_warm(p, bytes);
	parts.part[parts.n++] = p;
	return true;
}

void event_log_forget(void)
{
	atomic_store(&event_log.h, NULL);
	atomic_store(&event_log.look, false);
	event_log.stream = event_log.pool = event_log.lane = 0;
	memset(&parts, 0, sizeof(parts));
}

void event_log_start(void)
{
	struct cw_event_log *h;
	uint64_t room = rec.h->cap / PART_OF_CAP / (MORE_SLOTS * sizeof(struct cw_event_slot));

	event_log_forget();
	h = chunk_new(CW_CHUNK_EVENT_LOG, sizeof(*h), 0);
	parts.most = room < PARTS_MAX - 1 ? (uint32_t)room + 1 : PARTS_MAX;
	if (!h || !part_add())
		return;
	h->n_lanes = 1;		/* the default stream */
	h->head = 1;
	*parts.part[0] = (struct cw_event_slot){.what = CW_SLOT_TIME, .value = rec_ticks()};
	event_log.at = parts.part[0] + 1;
	atomic_store_explicit(&event_log.h, h, memory_order_release);	/* last: others look at it without a lock */
}

/* Slots: with the lock of PyTorch's blocks held. A signal handler may jump out of here at any instruction. So everything follows from `at`,
 * which one store moves from a slot that is written to the next, and at the start of a page the number of slots is set right again. */

static inline struct cw_event_log *log_head(void)
{
	return atomic_load_explicit(&event_log.h, memory_order_relaxed);
}

static inline uint32_t slots_left(const struct cw_event_slot *s)
{
	return CW_LOG_PAGE - (uint32_t)((uintptr_t)s / sizeof(*s) % CW_LOG_PAGE);
}

/* The page after this slot, which is the last one of its own. */
static struct cw_event_slot *page_after(struct cw_event_slot *s)
{
	uint32_t i = 0;

	while (i + 1 < parts.n && !(s >= parts.part[i] && s < parts.part[i] + part_slots(i)))
		i++;
	if (s + 1 < parts.part[i] + part_slots(i))
		return s + 1;
	return parts.part[i + 1 < parts.n || part_add() ? i + 1 : 0];
}

static __attribute__((noinline)) void page_next(struct cw_event_slot *s)
{
	struct cw_event_slot *next = page_after(s);
	struct cw_event_log *h = log_head();

	*next = (struct cw_event_slot){.what = CW_SLOT_TIME, .value = rec_ticks()};
	event_log.at = next + 1;
	shared_set(&h->head, (h->head + CW_LOG_PAGE) / CW_LOG_PAGE * CW_LOG_PAGE + 1);
}

/* A kill leaves all of them or none. */
static inline void slots_done(struct cw_event_slot *s, uint32_t n)
{
	struct cw_event_log *h = log_head();

	if (unlikely(slots_left(s) == n)) {
		page_next(s + n - 1);
		return;
	}
	event_log.at = s + n;
	shared_set(&h->head, h->head + n);
}

static inline uint64_t slot_what(uint32_t kind, int device)
{
	return kind | ((uint64_t)device & 31) << 3;
}

HOT void event_log_block(const struct cw_allocation *a, uint32_t kind)
{
	struct cw_event_slot *s = event_log.at;
	uint64_t detail = (a->library >> 1) & (0 - (a->library & CW_BLOCK_DETAIL));

	s->what = a->addr | slot_what(kind, a->device);
	s->value = (a->size / CW_EVENT_UNIT & CW_SLOT_SIZE_MAX) | (uint64_t)a->site << CW_SLOT_SITE_SHIFT |
		   detail << CW_SLOT_SLACK_SHIFT;
	__builtin_prefetch(s + 5, 1);	/* the next line, while the program does something else */
	slots_done(s, 1);
}

/* Captures come and go: of the lanes in use, the first and the newest are asked for most. */
static uint32_t lane_find(uint64_t stream, uint32_t pool)
{
	struct cw_event_log *h = atomic_load(&event_log.h);
	uint32_t i = h->n_lanes;

	if (!stream && !pool)
		return 0;
	while (--i > 0)
		if (h->lane[i].stream == stream && h->lane[i].pool == pool)
			return i;
	if (h->n_lanes == CW_LANES) {
		h->full = 1;
		return CW_LANES - 1;
	}
	i = h->n_lanes;
	h->lane[i] = (struct cw_lane){.stream = stream, .pool = pool};
	shared_set(&h->n_lanes, i + 1);
	return i;
}

static inline uint32_t lane_of(uint64_t stream, uint32_t pool)
{
	if (unlikely(event_log.stream != stream || event_log.pool != pool)) {
		event_log.lane = lane_find(stream, pool);
		event_log.stream = stream;
		event_log.pool = pool;
	}
	return event_log.lane;
}

HOT uint32_t event_log_detail(const struct events_block *b, uint64_t size)
{
	uint64_t slack = b->asked && b->asked < size ? (size - b->asked) / CW_EVENT_UNIT : 0;

	slack = slack < CW_SLOT_SLACK_MAX ? slack : CW_SLOT_SLACK_MAX;
	return CW_BLOCK_DETAIL | (uint32_t)slack << 1 |
	       lane_of(b->stream, b->pool) << (1 + CW_SLOT_LANE_SHIFT - CW_SLOT_SLACK_SHIFT);
}

static void note_put(uint64_t what, uint64_t ticks, uint64_t first, uint64_t second)
{
	struct cw_event_log *h = atomic_load(&event_log.h);
	struct cw_event_slot *s;

	if (!h)
		return;
	if (!torch_block_lock()) {
		shared_add(&h->lost, 1);
		return;
	}
	if (slots_left(event_log.at) == 1) {
		*event_log.at = (struct cw_event_slot){.what = CW_SLOT_TIME};
		slots_done(event_log.at, 1);
	}
	s = event_log.at;
	s[0] = (struct cw_event_slot){.what = what, .value = ticks};
	s[1] = (struct cw_event_slot){.what = first, .value = second};
	slots_done(s, 2);
	torch_block_unlock();
}

/* The other kinds take none of a GPU's memory, and say nothing about PyTorch's allocator. */
void event_log_driver(const struct cw_allocation *a, bool came, uint64_t ticks)
{
	uint64_t lane = a->kind == CW_MEM_VMM || a->kind == CW_MEM_ASYNC ? 0 : a->extra;

	if (a->kind != CW_MEM_DEVICE && a->kind != CW_MEM_VMM && a->kind != CW_MEM_ASYNC && a->kind != CW_MEM_RESERVED)
		return;
	note_put(slot_what(came ? CW_EVENT_GAVE : CW_EVENT_TOOK, a->device) | lane << CW_SLOT_NOTE_LANE_SHIFT |
			 (uint64_t)a->site << CW_SLOT_NOTE_SITE_SHIFT,
		 ticks, a->addr, a->size);
	if (a->kind != CW_MEM_RESERVED)
		atomic_store_explicit(&event_log.look, true, memory_order_relaxed);
}

void event_log_oom(int device, uint64_t request)
{
	note_put(slot_what(CW_EVENT_OOM, device), rec_ticks(), 0, request);
}

void event_log_more(enum cw_event_more what, int device, uint64_t value)
{
	struct cw_event_log *h = atomic_load(&event_log.h);

	if (h && what == CW_MORE_FREE && device >= 0 && device < CW_MAX_DEVICES)
		shared_set(&h->free[device], value);
	note_put(slot_what(CW_EVENT_MORE, device) | (uint64_t)what << CW_SLOT_NOTE_LANE_SHIFT, rec_ticks(), 0, value);
}

uint32_t event_log_lane(int device)
{
	uint64_t stream = torch_stream(device);
	uint32_t pool = capture_newest(), lane;

	if (!event_log_on() || !torch_block_lock())
		return 0;
	lane = lane_of(stream, pool) + 1;
	torch_block_unlock();
	return lane;
}
