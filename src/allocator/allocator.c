/* SPDX-License-Identifier: Apache-2.0
 * PyTorch's CUDA caching allocator of one GPU.
 *
 * Memory comes from the driver in segments, which are cut into blocks; neighbors know each other (`prev`, `next`), and free
 * ones are merged. A block belongs to one stream and to the small or the large side of one pool for good. Free blocks
 * are in the set of their stream (struct lane), those of expandable segments without memory in another.
 */
#include "allocator/allocator.h"

#include <stdlib.h>
#include <string.h>

#include "allocator/ordered.h"
#include "base/mem.h"

#define MIB	     ((uint64_t)1 << 20)
#define MIN_BLOCK    512
#define SMALL_SIZE   MIB		/* the largest request that is small */
#define SMALL_BUFFER (2 * MIB)		/* the segment for small ones */
#define MIN_LARGE    (10 * MIB)		/* from here on, segments fit the request */
#define ROUND_LARGE  (2 * MIB)
#define CHUNK_BLOCKS 1024

struct side;
struct pool;

/* Of one stream, in one side of one pool. */
struct lane {
	uint64_t stream;
	struct side *side;
	struct ordered free;
	struct ordered unmapped;	/* by address alone */
};

struct side {
	bool small;
	struct pool *pool;
	struct lane **lane;		/* by stream */
	size_t n, cap;
	struct lane *last;		/* asked for last */
	uint64_t searches;		/* counted while garbage is collected: the clock of its blocks' ages */
};

struct pool {
	struct allocator_pool_id id;
	unsigned kind;
	int users;
	int segments;			/* not freed yet, as PyTorch counts them */
	struct side small, large;
};

/* A reserved range of addresses that gets memory page by page. */
struct expandable {
	uint64_t addr, size, page;
};

struct use {
	uint64_t stream;
	bool captured;			/* recorded in a capture: ends with it */
};

struct uses {
	size_t n, cap;
	struct use *list;
};

struct allocator_block {
	uint64_t addr, size, requested;
	struct allocator_block *prev, *next;
	struct lane *lane;
	struct expandable *expandable;	/* NULL: an ordinary segment */
	struct uses *uses;		/* other streams that use it; NULL: none */
	uint64_t rank;			/* address plus this: the order among free blocks of one size; the same in a segment */
	uint64_t born;			/* searches of its side when it became free */
	unsigned events;		/* that it waits for */
	bool allocated, mapped, live;
};

/* Events that were recorded on one stream when blocks were deleted, oldest first. */
struct event {
	struct allocator_block *block;
	uint64_t nth;			/* of this stream's, from 1 */
};

struct queue {
	uint64_t stream, recorded;
	struct event *event;
	size_t first, n, cap;
};

struct allocator {
	const struct allocator_release *release;
	struct allocator_settings settings;
	struct allocator_driver driver;
	uint64_t total, reserved;
	uint64_t allowed;		/* UINT64_MAX: no limit */
	uint64_t numbered;		/* segments so far */
	struct pool normal;
	struct pool **pool;		/* private ones, in order of appearance */
	size_t n_pools, cap_pools;
	struct allocator_pool_id *begun;	/* that are allocated to */
	size_t n_begun, cap_begun;
	bool captured;
	struct queue *queue;
	size_t n_queues, cap_queues;
	size_t waiting;			/* events in all queues */
	struct allocator_block **deferred;	/* deleted in a capture, used by other streams */
	size_t n_deferred, cap_deferred;
	struct allocator_block **chunk, *unused;
	size_t n_chunks, cap_chunks;
	struct allocator_counters counters;
	struct allocator_failure failure;
};

/* A request on its way. */
struct request {
	uint64_t size, segment;
	struct lane *lane;
	bool expandable;		/* may use expandable segments */
	struct allocator_block *block;
};

static bool has_rule(const struct allocator *a, enum allocator_rule rule)
{
	return a->release->rules & rule;
}

/* Nothing may be waited for, and no event recorded. */
static bool capturing(const struct allocator *a)
{
	return has_rule(a, ONLY_CAPTURED) ? a->captured : a->n_begun > 0;
}

static bool collecting(const struct allocator *a)
{
	return a->allowed != UINT64_MAX && a->settings.collect_above > 0;
}

static void amount_add(struct allocator_amount *amount, uint64_t n)
{
	amount->now += n;
	if (amount->now > amount->peak)
		amount->peak = amount->now;
}

static void amount_sub(struct allocator_amount *amount, uint64_t n)
{
	amount->now -= n;
}

static void chunk_add(struct allocator *a)
{
	struct allocator_block *chunk = xcalloc(CHUNK_BLOCKS, sizeof(*chunk));

	a->chunk = xgrow(a->chunk, a->n_chunks, &a->cap_chunks, sizeof(*a->chunk));
	a->chunk[a->n_chunks++] = chunk;
	for (size_t i = CHUNK_BLOCKS; i-- > 0;) {
		chunk[i].next = a->unused;
		a->unused = &chunk[i];
	}
}

static struct allocator_block *block_new(struct allocator *a, struct lane *lane, uint64_t addr, uint64_t size,
					 struct expandable *expandable, uint64_t rank)
{
	struct allocator_block *b;

	if (!a->unused)
		chunk_add(a);
	b = a->unused;
	a->unused = b->next;
	*b = (struct allocator_block){.addr = addr,
				      .size = size,
				      .lane = lane,
				      .expandable = expandable,
				      .rank = rank,
				      .mapped = true,
				      .live = true};
	return b;
}

static void block_drop(struct allocator *a, struct allocator_block *b)
{
	b->live = false;
	b->next = a->unused;
	a->unused = b;
}

static bool block_is_split(const struct allocator_block *b)
{
	return b->prev || b->next;
}

/* Deleted, but another stream may still use it. */
static bool block_is_pending(const struct allocator_block *b)
{
	return b->events > 0 || b->uses;
}

static void block_link(struct allocator_block *b, struct allocator_block *before, struct allocator_block *after)
{
	b->prev = before;
	b->next = after;
	if (before)
		before->next = b;
	if (after)
		after->prev = b;
}

static struct ordered_key free_key(const struct allocator_block *b)
{
	return (struct ordered_key){b->size, b->addr + b->rank};
}

static struct ordered_key unmapped_key(const struct allocator_block *b)
{
	return (struct ordered_key){0, b->addr};
}

static void free_set_add(struct allocator_block *b)
{
	b->born = b->lane->side->searches;
	ordered_add(&b->lane->free, free_key(b), b);
}

static void free_set_remove(struct allocator_block *b)
{
	ordered_remove(&b->lane->free, free_key(b));
}

static void unmapped_add(struct allocator_block *b)
{
	ordered_add(&b->lane->unmapped, unmapped_key(b), b);
}

static void unmapped_remove(struct allocator_block *b)
{
	ordered_remove(&b->lane->unmapped, unmapped_key(b));
}

/* A neighbor becomes part of the block if both are free and both have memory or none. Its bytes, or 0. */
static uint64_t block_merge(struct allocator *a, struct allocator_block *b, struct allocator_block *other)
{
	uint64_t size;

	if (!other || other->allocated || block_is_pending(other) || other->mapped != b->mapped)
		return 0;
	if (other->mapped)
		free_set_remove(other);
	else
		unmapped_remove(other);
	if (b->prev == other) {
		b->addr = other->addr;
		b->prev = other->prev;
		if (b->prev)
			b->prev->next = b;
	} else {
		b->next = other->next;
		if (b->next)
			b->next->prev = b;
	}
	size = other->size;
	b->size += size;
	block_drop(a, other);
	return size;
}

static struct lane *side_lane(struct side *side, uint64_t stream)
{
	size_t i = 0;
	struct lane *lane;

	if (side->last && side->last->stream == stream)
		return side->last;
	while (i < side->n && side->lane[i]->stream < stream)
		i++;
	if (i == side->n || side->lane[i]->stream != stream) {
		lane = xcalloc(1, sizeof(*lane));
		lane->stream = stream;
		lane->side = side;
		side->lane = xgrow(side->lane, side->n, &side->cap, sizeof(struct lane *));
		memmove(side->lane + i + 1, side->lane + i, (side->n - i) * sizeof(struct lane *));
		side->lane[i] = lane;
		side->n++;
	}
	side->last = side->lane[i];
	return side->last;
}

static void pool_init(struct pool *pool, struct allocator_pool_id id, unsigned kind)
{
	*pool = (struct pool){.id = id, .kind = kind, .users = 1};
	pool->small = (struct side){.small = true, .pool = pool};
	pool->large = (struct side){.pool = pool};
}

static void side_release(struct side *side)
{
	for (size_t i = 0; i < side->n; i++) {
		ordered_release(&side->lane[i]->free);
		ordered_release(&side->lane[i]->unmapped);
		free(side->lane[i]);
	}
	free(side->lane);
}

static void pool_release(struct pool *pool)
{
	side_release(&pool->small);
	side_release(&pool->large);
}

static bool pool_is(struct allocator_pool_id a, struct allocator_pool_id b)
{
	return a.first == b.first && a.second == b.second;
}

static bool pool_is_private(const struct pool *pool)
{
	return pool->id.first || pool->id.second;
}

static struct pool *pool_find(const struct allocator *a, struct allocator_pool_id id)
{
	for (size_t i = 0; i < a->n_pools; i++)
		if (pool_is(a->pool[i]->id, id))
			return a->pool[i];
	return NULL;
}

static struct pool *pool_make(struct allocator *a, struct allocator_pool_id id, unsigned kind)
{
	struct pool *pool = xmalloc(sizeof(*pool));

	pool_init(pool, id, kind);
	a->pool = xgrow(a->pool, a->n_pools, &a->cap_pools, sizeof(struct pool *));
	a->pool[a->n_pools++] = pool;
	return pool;
}

static struct pool *pool_get(struct allocator *a, struct allocator_pool_id id)
{
	struct pool *pool;

	if (!id.first && !id.second)
		return &a->normal;
	pool = pool_find(a, id);
	return pool ? pool : pool_make(a, id, 0);
}

static void pool_count(struct pool *pool, int change)
{
	if (pool_is_private(pool))
		pool->segments += change;
}

void allocator_pool_use(struct allocator *a, struct allocator_pool_id id, unsigned kind)
{
	struct pool *pool = pool_find(a, id);

	if (pool)
		pool->users++;
	else
		pool_make(a, id, kind);
}

void allocator_pool_begin(struct allocator *a, struct allocator_pool_id id)
{
	allocator_pool_use(a, id, 0);
	a->begun = xgrow(a->begun, a->n_begun, &a->cap_begun, sizeof(*a->begun));
	a->begun[a->n_begun++] = id;
}

void allocator_pool_end(struct allocator *a, struct allocator_pool_id id)
{
	for (size_t i = 0; i < a->n_begun; i++)
		if (pool_is(a->begun[i], id)) {
			a->n_begun--;
			memmove(a->begun + i, a->begun + i + 1, (a->n_begun - i) * sizeof(*a->begun));
			return;
		}
}

void allocator_pool_drop(struct allocator *a, struct allocator_pool_id id)
{
	struct pool *pool = pool_find(a, id);

	if (pool && pool->users > 0) {
		pool->users--;
		if (!pool->users)
			pool->kind &= ~(unsigned)ALLOCATOR_POOL_USE_ON_OOM;
	}
}

void allocator_set_captured(struct allocator *a, bool captured)
{
	a->captured = captured;
}

static unsigned log2_floor(uint64_t n)
{
	return 63 - (unsigned)__builtin_clzll(n);
}

static uint64_t round_up(uint64_t n, uint64_t unit)
{
	return (n + unit - 1) / unit * unit;
}

/* Up to the next of so many equal steps between two powers of two. */
static uint64_t round_to_division(uint64_t size, uint64_t divisions)
{
	unsigned power = log2_floor(size);
	uint64_t step = ((uint64_t)1 << power) >> log2_floor(divisions);

	if (!(size & (size - 1)))
		return size;
	return step ? round_up(size, step) : (uint64_t)2 << power;
}

static uint64_t round_size(const struct allocator_settings *s, uint64_t size)
{
	uint64_t divisions;
	unsigned interval;

	if (size < MIN_BLOCK)
		return MIN_BLOCK;
	interval = log2_floor(size);
	interval = interval > 20 ? interval - 20 : 0;
	divisions = s->divisions[interval < ALLOCATOR_INTERVALS ? interval : ALLOCATOR_INTERVALS - 1];
	if (divisions > 1 && size > MIN_BLOCK * divisions)
		return round_to_division(size, divisions);
	return round_up(size, MIN_BLOCK);
}

static uint64_t segment_size(const struct allocator_settings *s, uint64_t size)
{
	if (size <= SMALL_SIZE)
		return SMALL_BUFFER;
	return size < MIN_LARGE ? s->large_segment : round_up(size, ROUND_LARGE);
}

static void block_free(struct allocator *a, struct allocator_block *b)
{
	struct allocator_counters *c = &a->counters;
	uint64_t size = b->size, merged;

	if (a->driver.freed)
		a->driver.freed(a->driver.of, b->addr, b->requested);
	merged = block_merge(a, b, b->prev);
	merged += block_merge(a, b, b->next);
	free_set_add(b);
	if (!b->expandable) {
		uint64_t now = c->inactive_split.now - merged + (block_is_split(b) ? b->size : 0);

		c->inactive_split.now = now;
		if (now > c->inactive_split.peak)
			c->inactive_split.peak = now;
	}
	amount_sub(&c->active, size);
	amount_sub(&c->requested, b->requested);
}

static void uses_drop(struct allocator_block *b)
{
	if (b->uses)
		free(b->uses->list);
	free(b->uses);
	b->uses = NULL;
}

static struct queue *queue_of(struct allocator *a, uint64_t stream)
{
	for (size_t i = 0; i < a->n_queues; i++)
		if (a->queue[i].stream == stream)
			return &a->queue[i];
	a->queue = xgrow(a->queue, a->n_queues, &a->cap_queues, sizeof(*a->queue));
	a->queue[a->n_queues] = (struct queue){.stream = stream};
	return &a->queue[a->n_queues++];
}

static void event_record(struct allocator *a, struct allocator_block *b, uint64_t stream)
{
	struct queue *q = queue_of(a, stream);

	if (q->first && q->first + q->n == q->cap) {
		memmove(q->event, q->event + q->first, q->n * sizeof(*q->event));
		q->first = 0;
	}
	q->event = xgrow(q->event, q->first + q->n, &q->cap, sizeof(*q->event));
	q->event[q->first + q->n++] = (struct event){b, ++q->recorded};
	b->events++;
	a->waiting++;
	if (a->driver.record)
		a->driver.record(a->driver.of, stream, q->recorded, b->addr);
}

static void events_record(struct allocator *a, struct allocator_block *b)
{
	struct uses *uses = b->uses;

	b->uses = NULL;
	for (size_t i = 0; uses && i < uses->n; i++)
		event_record(a, b, uses->list[i].stream);
	if (uses)
		free(uses->list);
	free(uses);
}

/* What streams did in a capture has ended with it; events are recorded only for uses from before. */
static void uses_drop_captured(struct allocator_block *b)
{
	size_t n = 0;

	for (size_t i = 0; i < b->uses->n; i++)
		if (!b->uses->list[i].captured)
			b->uses->list[n++] = b->uses->list[i];
	b->uses->n = n;
	if (!n)
		uses_drop(b);
}

static void deferred_record(struct allocator *a)
{
	for (size_t i = 0; i < a->n_deferred; i++) {
		struct allocator_block *b = a->deferred[i];

		uses_drop_captured(b);
		events_record(a, b);
		if (!b->events)
			block_free(a, b);
	}
	a->n_deferred = 0;
}

static void event_done(struct allocator *a, struct allocator_block *b)
{
	a->waiting--;
	b->events--;
	if (!b->events)
		block_free(a, b);
}

/* Of each stream, up to the first event that has not been passed. */
static void events_poll(struct allocator *a)
{
	if (a->n_deferred)
		deferred_record(a);
	if (!a->waiting)
		return;
	for (size_t i = 0; i < a->n_queues; i++) {
		struct queue *q = &a->queue[i];

		while (q->n) {
			struct event *event = &q->event[q->first];

			if (a->driver.passed && !a->driver.passed(a->driver.of, q->stream, event->nth))
				break;
			q->first++;
			q->n--;
			event_done(a, event->block);
		}
		if (!q->n)
			q->first = 0;
	}
}

/* All events, or those of one pool's blocks, are waited for. */
static void events_wait(struct allocator *a, const struct pool *only)
{
	a->counters.syncs++;
	deferred_record(a);
	for (size_t i = 0; i < a->n_queues; i++) {
		struct queue *q = &a->queue[i];
		size_t kept = 0, n = q->n;

		for (size_t k = 0; k < n; k++) {
			struct event event = q->event[q->first + k];

			if (only && event.block->lane->side->pool != only)
				q->event[q->first + kept++] = event;
			else
				event_done(a, event.block);
		}
		q->n = kept;
	}
}

void allocator_record_stream(struct allocator *a, struct allocator_block *b, uint64_t stream)
{
	size_t i = 0;

	if (stream == b->lane->stream)
		return;
	if (!b->uses)
		b->uses = xcalloc(1, sizeof(*b->uses));
	while (i < b->uses->n && b->uses->list[i].stream != stream)
		i++;
	if (i == b->uses->n) {
		b->uses->list = xgrow(b->uses->list, i, &b->uses->cap, sizeof(*b->uses->list));
		b->uses->list[b->uses->n++] = (struct use){.stream = stream};
	}
	if (capturing(a))
		b->uses->list[i].captured = true;
}

void allocator_delete(struct allocator *a, struct allocator_block *b)
{
	b->allocated = false;
	amount_sub(&a->counters.allocated, b->size);
	if (!b->uses) {
		block_free(a, b);
	} else if (capturing(a)) {
		a->deferred = xgrow(a->deferred, a->n_deferred, &a->cap_deferred, sizeof(struct allocator_block *));
		a->deferred[a->n_deferred++] = b;
	} else {
		events_record(a, b);
	}
}

static void segment_gone(struct allocator *a, struct pool *pool, uint64_t size)
{
	a->reserved -= size;
	amount_sub(&a->counters.reserved, size);
	a->counters.driver_frees++;
	pool_count(pool, -1);
}

static void segment_free(struct allocator *a, struct allocator_block *b)
{
	a->driver.free(a->driver.of, b->addr, b->size);
	segment_gone(a, b->lane->side->pool, b->size);
	amount_sub(&a->counters.segments, 1);
	free_set_remove(b);
	block_drop(a, b);
}

/* A part of a free block of an expandable segment that keeps its memory, because it does not fill a page. */
static void page_rest(struct allocator *a, struct allocator_block *b, uint64_t addr, uint64_t size, bool before)
{
	struct allocator_block *rest = block_new(a, b->lane, addr, size, b->expandable, b->rank);

	if (before)
		block_link(rest, b->prev, b);
	else
		block_link(rest, b, b->next);
	free_set_add(rest);
}

static void block_unmap(struct allocator *a, struct allocator_block *b)
{
	const struct expandable *es = b->expandable;
	uint64_t start = es->addr + round_up(b->addr - es->addr, es->page);
	uint64_t end = es->addr + (b->addr + b->size - es->addr) / es->page * es->page;

	if (start >= end)
		return;
	a->driver.unmap(a->driver.of, start, end - start);
	free_set_remove(b);
	if (start > b->addr)
		page_rest(a, b, b->addr, start - b->addr, true);
	if (b->addr + b->size > end)
		page_rest(a, b, end, b->addr + b->size - end, false);
	b->addr = start;
	b->size = end - start;
	b->mapped = false;
	block_merge(a, b, b->prev);
	block_merge(a, b, b->next);
	unmapped_add(b);
	segment_gone(a, b->lane->side->pool, end - start);
}

static void expandable_drop(struct allocator *a, struct allocator_block *b)
{
	struct expandable *es = b->expandable;

	unmapped_remove(b);
	block_drop(a, b);
	a->driver.unreserve(a->driver.of, es->addr, es->size);
	free(es);
}

struct block_list {
	struct allocator_block **list;
	size_t n, cap;
};

static void block_list_add(struct block_list *l, struct allocator_block *b)
{
	l->list = xgrow(l->list, l->n, &l->cap, sizeof(struct allocator_block *));
	l->list[l->n++] = b;
}

static void side_list(const struct side *side, struct block_list *l)
{
	struct ordered_at at;

	for (size_t i = 0; i < side->n; i++)
		for (bool more = ordered_first(&side->lane[i]->free, &at); more;
		     more = ordered_next(&side->lane[i]->free, &at))
			block_list_add(l, ordered_item(&side->lane[i]->free, at)->of);
}

/* Whole segments that are free, and whole pages of expandable ones. */
static void side_empty(struct allocator *a, struct side *side)
{
	struct block_list l = {0};

	side_list(side, &l);
	for (size_t i = 0; i < l.n; i++)
		if (!l.list[i]->expandable && !block_is_split(l.list[i])) {
			segment_free(a, l.list[i]);
			l.list[i] = NULL;
		}
	for (size_t i = 0; i < l.n; i++) {
		struct allocator_block *b = l.list[i];

		if (!b || !b->expandable)
			continue;
		block_unmap(a, b);
		if (!block_is_split(b))
			expandable_drop(a, b);
	}
	free(l.list);
}

/* A pool that is not in use: its free segments, and the pool itself with the last of them. */
static bool pool_empty(struct allocator *a, struct pool *pool)
{
	side_empty(a, &pool->small);
	side_empty(a, &pool->large);
	return pool->segments <= 0;
}

static bool cache_release(struct allocator *a, struct allocator_pool_id only)
{
	bool all = !only.first && !only.second;

	if (all && a->n_begun && !has_rule(a, EMPTIES_IN_POOL))
		return false;
	if (all && !capturing(a)) {
		events_wait(a, NULL);
		side_empty(a, &a->normal.large);
		side_empty(a, &a->normal.small);
	}
	for (size_t i = 0; i < a->n_pools;) {
		struct pool *pool = a->pool[i];

		if (pool->users || (!all && !pool_is(pool->id, only))) {
			i++;
			continue;
		}
		if (!all)
			events_wait(a, pool);
		if (!pool_empty(a, pool)) {
			i++;
			continue;
		}
		pool_release(pool);
		free(pool);
		a->n_pools--;
		memmove(a->pool + i, a->pool + i + 1, (a->n_pools - i) * sizeof(struct pool *));
	}
	return true;
}

bool allocator_empty_cache(struct allocator *a, struct allocator_pool_id pool)
{
	return cache_release(a, pool);
}

static uint64_t block_age(const struct allocator_block *b)
{
	return b->lane->side->searches - b->born;
}

/* Free segments of the default pool's large side that have not been used for longer than the average, until as much is released
 * as is above the threshold. */
static void garbage_collect(struct allocator *a)
{
	uint64_t threshold = (uint64_t)(a->settings.collect_above * (double)a->allowed), target, released = 0, age = 0;
	struct block_list l = {0};
	int n = 0;
	bool freed = true;

	if (a->reserved <= threshold)
		return;
	target = a->reserved - threshold;
	side_list(&a->normal.large, &l);
	for (size_t i = 0; i < l.n; i++)
		if (!block_is_split(l.list[i])) {
			age += block_age(l.list[i]);
			n++;
		}
	while (released < target && freed && n > 0) {
		double old = (double)age / n;

		freed = false;
		for (size_t i = 0; i < l.n; i++) {
			struct allocator_block *b = l.list[i];

			if (!b || block_is_split(b) || b->expandable || (double)block_age(b) < old)
				continue;
			freed = true;
			released += b->size;
			age -= block_age(b);
			n--;
			segment_free(a, b);
			l.list[i] = NULL;
		}
	}
	free(l.list);
}

/* With max_split_size_mb: one free oversize block that is large enough, else as many of the largest as are. True: try again. */
static bool oversize_release(struct allocator *a, const struct request *r)
{
	struct ordered *set = &r->lane->free;
	uint64_t size = r->size, released = 0;
	struct ordered_at at;
	bool found;

	if (a->settings.max_split == UINT64_MAX)
		return false;
	if (size < a->settings.max_split)
		size = a->settings.max_split;
	found = ordered_find(set, (struct ordered_key){size, 0}, &at);
	if (found) {
		struct allocator_block *b = ordered_item(set, at)->of;

		if (!b->expandable) {
			segment_free(a, b);
			return true;
		}
	}
	while (released < size && ordered_previous(set, &at)) {
		struct allocator_block *b = ordered_item(set, at)->of;

		if (b->size < a->settings.max_split)
			break;
		if (b->expandable)
			continue;
		released += b->size;
		segment_free(a, b);	/* `at` is the next item's place now, or the end of its leaf */
	}
	return released >= size;
}

/* Where the oldest segment comes first, the rank is its number and the place in it, which is below 2^40. */
static uint64_t segment_rank(struct allocator *a, uint64_t addr)
{
	if (!has_rule(a, OLDEST_SEGMENT))
		return 0;
	if (a->numbered < UINT64_MAX >> 40)
		a->numbered++;
	return (a->numbered << 40) - addr;
}

static bool allocatable(const struct allocator_block *b)
{
	return b && !b->allocated && !block_is_pending(b);
}

static bool has_room(const struct allocator_block *b, uint64_t size)
{
	uint64_t bytes = 0;

	for (; bytes < size && allocatable(b); b = b->next)
		bytes += b->size;
	return bytes >= size;
}

/* The lowest address where free and unmapped blocks are large enough together; else a new reservation. */
static struct allocator_block *expandable_find(struct allocator *a, const struct request *r)
{
	struct lane *lane = r->lane;
	struct allocator_block *b;
	struct expandable *es;
	struct ordered_at at;

	for (bool more = ordered_first(&lane->unmapped, &at); more; more = ordered_next(&lane->unmapped, &at)) {
		b = ordered_item(&lane->unmapped, at)->of;
		if (allocatable(b->prev))
			b = b->prev;
		if (has_room(b, r->size))
			return b;
	}
	es = xmalloc(sizeof(*es));
	es->page = lane->side->small ? SMALL_BUFFER : a->settings.large_segment;
	es->size = round_up(a->total + a->total / 8, es->page);
	es->addr = a->driver.reserve(a->driver.of, es->size, es->page, lane->stream);
	b = block_new(a, lane, es->addr, es->size, es, segment_rank(a, es->addr));
	b->mapped = false;
	unmapped_add(b);
	return b;
}

static bool block_map(struct allocator *a, struct allocator_block *b, uint64_t size)
{
	uint64_t bytes = round_up(size, b->expandable->page);

	if (!a->driver.map(a->driver.of, b->addr, bytes))
		return false;
	unmapped_remove(b);
	b->mapped = true;
	if (bytes < b->size) {
		struct allocator_block *rest = block_new(a, b->lane, b->addr + bytes, b->size - bytes, b->expandable,
							 b->rank);

		rest->mapped = false;
		block_link(rest, b, b->next);
		unmapped_add(rest);
		b->size = bytes;
	}
	block_merge(a, b, b->prev);
	block_merge(a, b, b->next);
	free_set_add(b);
	a->reserved += bytes;
	amount_add(&a->counters.reserved, bytes);
	a->counters.driver_allocs++;
	return true;
}

static bool expandable_alloc(struct allocator *a, struct request *r)
{
	struct allocator_block *b = expandable_find(a, r);

	if (!b->mapped && !block_map(a, b, b->size < r->size ? b->size : r->size))
		return false;
	while (b->size < r->size) {
		struct allocator_block *next = b->next;
		uint64_t missing = r->size - b->size;

		if (!block_map(a, next, next->size < missing ? next->size : missing))
			return false;
		b = next;
	}
	free_set_remove(b);
	r->block = b;
	pool_count(r->lane->side->pool, 1);
	return true;
}

static bool segment_alloc(struct allocator *a, struct request *r, bool retry)
{
	struct pool *pool = r->lane->side->pool;
	uint64_t addr;

	if (retry)
		a->counters.retries++;
	a->failure.at_limit = a->allowed != UINT64_MAX && a->reserved + r->segment > a->allowed;
	if (a->failure.at_limit)
		return false;
	if (r->expandable && (has_rule(a, POOLS_EXPAND) || !pool_is_private(pool)))
		return expandable_alloc(a, r);
	addr = a->driver.alloc(a->driver.of, r->segment, r->lane->stream);
	if (!addr)
		return false;
	pool_count(pool, 1);
	a->reserved += r->segment;
	amount_add(&a->counters.reserved, r->segment);
	amount_add(&a->counters.segments, 1);
	a->counters.driver_allocs++;
	r->block = block_new(a, r->lane, addr, r->segment, NULL, segment_rank(a, addr));
	return true;
}

struct adopting {
	struct allocator *a;
	struct lane *lane;
	struct expandable *expandable;
	struct allocator_block *last;	/* of the segment, so far */
	uint64_t rank;
};

static struct allocator_block *adopt_block(struct adopting *g, uint64_t addr, uint64_t size)
{
	struct allocator_block *b = block_new(g->a, g->lane, addr, size, g->expandable, g->rank);

	block_link(b, g->last, NULL);
	g->last = b;
	return b;
}

static void adopt_free(struct adopting *g, uint64_t from, uint64_t to, bool whole)
{
	if (from >= to)
		return;
	free_set_add(adopt_block(g, from, to - from));
	if (!g->expandable && !whole)
		amount_add(&g->a->counters.inactive_split, to - from);
}

static void adopt_held(struct adopting *g, struct allocator_held *h)
{
	struct allocator_counters *c = &g->a->counters;

	h->block = adopt_block(g, h->addr, h->size);
	h->block->allocated = true;
	h->block->requested = h->requested;
	amount_add(&c->allocated, h->size);
	amount_add(&c->active, h->size);
	amount_add(&c->requested, h->requested);
}

static void adopt_unmapped(struct adopting *g, uint64_t from, uint64_t to)
{
	struct allocator_block *b;

	if (from >= to)
		return;
	b = adopt_block(g, from, to - from);
	b->mapped = false;
	unmapped_add(b);
}

/* A range with memory: the blocks in it, and what is free between them. How many blocks. */
static size_t adopt_range(struct adopting *g, const struct allocator_range *r, struct allocator_held *held, size_t n)
{
	uint64_t end = r->addr;
	size_t i;

	for (i = 0; i < n && held[i].addr - r->addr < r->size; i++) {
		adopt_free(g, end, held[i].addr, false);
		adopt_held(g, &held[i]);
		end = held[i].addr + held[i].size;
	}
	adopt_free(g, end, r->addr + r->size, i == 0);
	g->a->reserved += r->size;
	amount_add(&g->a->counters.reserved, r->size);
	pool_count(g->lane->side->pool, 1);
	return i;
}

void allocator_adopt(struct allocator *a, const struct allocator_segment *s, struct allocator_held *held, size_t n)
{
	const struct allocator_range all = {s->addr, s->size}, *range = s->mapped ? s->mapped : &all;
	size_t n_ranges = s->mapped ? s->n_mapped : 1;
	struct pool *pool = pool_get(a, s->pool);
	struct adopting g = {.a = a, .lane = side_lane(s->small ? &pool->small : &pool->large, s->stream)};
	uint64_t end = s->addr;

	g.rank = segment_rank(a, s->addr);
	if (s->mapped) {
		g.expandable = xmalloc(sizeof(*g.expandable));
		*g.expandable = (struct expandable){
			.addr = s->addr, .size = s->size, .page = s->small ? SMALL_BUFFER : a->settings.large_segment};
	} else {
		amount_add(&a->counters.segments, 1);
	}
	for (size_t i = 0, k = 0; i < n_ranges; i++) {
		adopt_unmapped(&g, end, range[i].addr);
		k += adopt_range(&g, &range[i], held + k, n - k);
		end = range[i].addr + range[i].size;
	}
	if (s->mapped)
		adopt_unmapped(&g, end, s->addr + s->size);
}

static uint64_t expanded_size(const struct allocator_block *b)
{
	return b->size + (b->next && !b->next->mapped ? b->next->size : 0);
}

/* The first block that fits, except that one which can expand counts as large as it can get. */
static bool best_fit(const struct request *r, struct ordered_at *at)
{
	const struct ordered *set = &r->lane->free;
	struct allocator_block *b;
	struct ordered_at next;

	if (!ordered_find(set, (struct ordered_key){r->size, 0}, at))
		return false;
	b = ordered_item(set, *at)->of;
	if (!b->expandable)
		return true;
	if (!r->expandable) {
		/* expandable segments were switched off: theirs are passed over */
		while (ordered_next(set, at)) {
			b = ordered_item(set, *at)->of;
			if (!b->expandable)
				return true;
		}
		return false;
	}
	for (next = *at; b->expandable && ordered_next(set, &next); *at = next) {
		struct allocator_block *other = ordered_item(set, next)->of;

		if (expanded_size(other) >= expanded_size(b))
			break;
		b = other;
	}
	return true;
}

static bool cache_take(struct allocator *a, struct request *r)
{
	const struct allocator_settings *s = &a->settings;
	struct allocator_block *b;
	struct ordered_at at;

	if (collecting(a))
		r->lane->side->searches++;
	if (!best_fit(r, &at))
		return false;
	b = ordered_item(&r->lane->free, at)->of;
	if (r->size < s->max_split ? b->size >= s->max_split : b->size >= r->size + s->non_split_rounding)
		return false;
	ordered_remove_at(&r->lane->free, at);
	r->block = b;
	return true;
}

/* From a pool that was made with use_on_oom. */
static bool pools_take(struct allocator *a, struct request *r)
{
	if (pool_is_private(r->lane->side->pool))
		return false;
	for (size_t i = 0; i < a->n_pools; i++) {
		struct pool *pool = a->pool[i];
		struct request other = *r;

		if (!(pool->kind & ALLOCATOR_POOL_USE_ON_OOM))
			continue;
		other.lane = side_lane(r->lane->side->small ? &pool->small : &pool->large, r->lane->stream);
		if (has_rule(a, OWN_POOLS_DO_NOT))
			other.expandable = false;
		if (cache_take(a, &other)) {
			*r = other;
			return true;
		}
	}
	return false;
}

static bool driver_take(struct allocator *a, struct request *r)
{
	static const struct allocator_pool_id all;

	if (collecting(a))
		garbage_collect(a);
	if (segment_alloc(a, r, false))
		return true;
	if (has_rule(a, LENDS_FIRST) && pools_take(a, r))
		return true;
	if (oversize_release(a, r) && segment_alloc(a, r, false))
		return true;
	if (!capturing(a) && cache_release(a, all) && segment_alloc(a, r, true))
		return true;
	return has_rule(a, LENDS_LAST) && pools_take(a, r);
}

static bool should_split(const struct allocator *a, const struct request *r)
{
	const struct side *side = r->lane->side;
	uint64_t rest = r->block->size - r->size;

	if (side->pool->kind & ALLOCATOR_POOL_NO_SPLIT)
		return false;
	if (side->small || r->expandable)
		return rest >= MIN_BLOCK;
	return r->size < a->settings.max_split && rest > SMALL_SIZE;
}

/* The left part is used, the right part stays free. */
static struct allocator_block *block_split(struct allocator *a, struct allocator_block *rest, uint64_t size)
{
	bool was_split = block_is_split(rest);
	struct allocator_block *b = block_new(a, rest->lane, rest->addr, size, rest->expandable, rest->rank);

	block_link(b, rest->prev, rest);
	rest->addr += size;
	rest->size -= size;
	free_set_add(rest);
	if (!b->expandable && was_split)
		amount_sub(&a->counters.inactive_split, size);
	else if (!b->expandable)
		amount_add(&a->counters.inactive_split, rest->size);
	return b;
}

struct allocator_block *allocator_alloc(struct allocator *a, uint64_t size, uint64_t stream, struct allocator_pool_id id)
{
	struct allocator_counters *c = &a->counters;
	struct request r = {0};
	struct allocator_block *b;
	struct pool *pool;

	if (!size)
		return NULL;
	if (!capturing(a))
		events_poll(a);
	pool = pool_get(a, id);
	r.size = round_size(&a->settings, size);
	r.segment = segment_size(&a->settings, r.size);
	r.lane = side_lane(r.size <= SMALL_SIZE ? &pool->small : &pool->large, stream);
	r.expandable = a->settings.expandable &&
		       !(has_rule(a, OWN_POOLS_DO_NOT) && pool->kind & ALLOCATOR_POOL_OWN_ALLOCATOR);
	if (!cache_take(a, &r) && !driver_take(a, &r)) {
		a->failure.size = r.size;
		a->failure.segment = r.segment;
		c->ooms++;
		return NULL;
	}
	b = r.block;
	if (should_split(a, &r))
		b = block_split(a, b, r.size);
	else if (block_is_split(b) && !b->expandable)
		amount_sub(&c->inactive_split, b->size);
	b->allocated = true;
	b->requested = size;
	amount_add(&c->allocated, b->size);
	amount_add(&c->active, b->size);
	amount_add(&c->requested, size);
	return b;
}

uint64_t allocator_block_addr(const struct allocator_block *b)
{
	return b->addr;
}

uint64_t allocator_block_size(const struct allocator_block *b)
{
	return b->size;
}

const struct allocator_counters *allocator_counters(const struct allocator *a)
{
	return &a->counters;
}

const struct allocator_failure *allocator_failure(const struct allocator *a)
{
	return &a->failure;
}

void allocator_set(struct allocator *a, const struct allocator_settings *settings)
{
	a->settings = *settings;
}

void allocator_set_fraction(struct allocator *a, double fraction)
{
	a->allowed = UINT64_MAX;
	if (fraction < 1 || !has_rule(a, ALL_IS_NO_LIMIT))
		a->allowed = (uint64_t)(fraction * (double)a->total);
}

static int piece_order(const void *x, const void *y)
{
	const struct allocator_piece *a = x, *b = y;

	return a->addr < b->addr ? -1 : a->addr > b->addr;
}

static void piece_fill(struct allocator_piece *p, const struct allocator_block *b, const struct allocator_block *head,
		       uint64_t size)
{
	const struct side *side = b->lane->side;

	*p = (struct allocator_piece){
		.segment = head->addr,
		.segment_size = size,
		.addr = b->addr,
		.size = b->size,
		.requested = b->requested,
		.stream = b->lane->stream,
		.pool = side->pool->id,
		.state = b->allocated	      ? ALLOCATOR_ALLOCATED
			 : block_is_pending(b) ? ALLOCATOR_PENDING
					       : ALLOCATOR_FREE,
		.small = side->small,
		.expandable = b->expandable,
	};
}

size_t allocator_snapshot(const struct allocator *a, struct allocator_piece **list)
{
	struct allocator_piece *pieces = NULL;
	size_t n = 0, cap = 0;

	for (size_t i = 0; i < a->n_chunks * CHUNK_BLOCKS; i++) {
		const struct allocator_block *head = &a->chunk[i / CHUNK_BLOCKS][i % CHUNK_BLOCKS], *b;
		uint64_t size = 0;

		if (!head->live || !head->mapped || (head->prev && head->prev->mapped))
			continue;
		for (b = head; b && b->mapped; b = b->next)
			size += b->size;
		for (b = head; b && b->mapped; b = b->next) {
			pieces = xgrow(pieces, n, &cap, sizeof(*pieces));
			piece_fill(&pieces[n++], b, head, size);
		}
	}
	xsort(pieces, n, sizeof(*pieces), piece_order);
	*list = pieces;
	return n;
}

struct allocator *allocator_new(const struct allocator_release *release, const struct allocator_settings *settings,
				const struct allocator_driver *driver, uint64_t total)
{
	struct allocator *a = xcalloc(1, sizeof(*a));

	a->release = release;
	a->settings = *settings;
	a->driver = *driver;
	a->total = total;
	a->allowed = UINT64_MAX;
	pool_init(&a->normal, (struct allocator_pool_id){0, 0}, 0);
	if (settings->fraction >= 0)
		allocator_set_fraction(a, settings->fraction);
	return a;
}

static void expandables_free(struct allocator *a)
{
	for (size_t i = 0; i < a->n_chunks * CHUNK_BLOCKS; i++) {
		struct allocator_block *b = &a->chunk[i / CHUNK_BLOCKS][i % CHUNK_BLOCKS];

		if (!b->live)
			continue;
		uses_drop(b);
		if (b->expandable && !b->prev)
			free(b->expandable);
	}
}

void allocator_free(struct allocator *a)
{
	if (!a)
		return;
	expandables_free(a);
	pool_release(&a->normal);
	for (size_t i = 0; i < a->n_pools; i++) {
		pool_release(a->pool[i]);
		free(a->pool[i]);
	}
	for (size_t i = 0; i < a->n_queues; i++)
		free(a->queue[i].event);
	for (size_t i = 0; i < a->n_chunks; i++)
		free(a->chunk[i]);
	free(a->pool);
	free(a->begun);
	free(a->queue);
	free(a->deferred);
	free(a->chunk);
	free(a);
}
