/* SPDX-License-Identifier: Apache-2.0
 * Replays the events of a device (see snap_replay.h).
 *
 * `match` has a number for every event. For an allocation: its free, or, with the highest bit set, a block that is
 * still there. For a free: its allocation. Sizes in a file may be anything, so sums are
 * unsigned.
 */
#include "find/memory/snap_replay.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"

#define STILL_THERE	0x80000000u
#define ROUND_TO	512u	/* the allocator's smallest block */

static bool address_same(const void *replay, uint32_t number, const void *addr)
{
	const struct snap_replay *r = replay;
	uint64_t mine =
		number & STILL_THERE ? r->s->block[r->live[number & ~STILL_THERE].block].addr : r->event[number].addr;

	return mine == *(const uint64_t *)addr;
}

/* Removes it and returns its number; SNAP_NONE when there is none. */
static void address_put(const struct snap_replay *r, struct map *m, uint64_t addr, uint32_t number)
{
	uint32_t old = map_put(m, map_hash(addr), address_same, r, &addr, number);

	if (old != number)
		map_moved(m, map_hash(addr), old, number);
}

static uint64_t rounded(uint64_t size)
{
	if (size > UINT64_MAX / 2)
		return 0;
	return size < ROUND_TO ? ROUND_TO : (size + ROUND_TO - 1) & ~(uint64_t)(ROUND_TO - 1);
}

/* An event list may lack free_requested events (recording them is optional); then it has their completions. */
static uint8_t free_action_of(const struct snap_replay *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->event[i].action == SNAP_FREE_REQUESTED)
			return SNAP_FREE_REQUESTED;
	return SNAP_FREE_COMPLETED;
}

static void find_live(struct snap_replay *r, int device, struct map *next)
{
	const struct snapshot *s = r->s;
	size_t cap = 0;

	for (uint32_t i = 0; i < s->segments.n; i++) {
		const struct snap_segment *g = &s->segment[s->segments.first + i];

		if (g->device != device)
			continue;
		r->end.reserved = (int64_t)((uint64_t)r->end.reserved + g->size);
		for (uint32_t k = g->first; k < g->first + g->n; k++) {
			if (s->block[k].state != SNAP_ALLOCATED)
				continue;
			r->end.allocated = (int64_t)((uint64_t)r->end.allocated + s->block[k].size);
			r->live = xgrow(r->live, r->n_live, &cap, sizeof(*r->live));
			r->live[r->n_live] = (struct snap_live){k, SNAP_NONE};
			address_put(r, next, s->block[k].addr, STILL_THERE | (uint32_t)r->n_live++);
		}
	}
}

/* Backward, so that an allocation is seen after its free. */
static void find_matches(struct snap_replay *r, struct map *next)
{
	uint32_t other;

	for (size_t i = r->n; i-- > 0;) {
		const struct snap_event *e = &r->event[i];

		r->match[i] = SNAP_NONE;
		if (e->action == r->free_action) {
			address_put(r, next, e->addr, (uint32_t)i);
		} else if (e->action == SNAP_ALLOC) {
			other = r->match[i] = map_take(next, map_hash(e->addr), address_same, r, &e->addr);
			if (other == SNAP_NONE)
				continue;
			if (other & STILL_THERE)
				r->live[other & ~STILL_THERE].born = (uint32_t)i;
			else
				r->match[other] = (uint32_t)i;
		}
	}
}

uint64_t replay_bytes(const struct snap_replay *r, size_t i)
{
	const struct snap_event *e = &r->event[i];
	uint32_t m = r->match[i];

	if (e->action == SNAP_ALLOC && m != SNAP_NONE && m & STILL_THERE)
		return r->s->block[r->live[m & ~STILL_THERE].block].size;
	return e->action == SNAP_ALLOC || e->action == r->free_action ? rounded(e->size) : e->size;
}

uint32_t replay_alloc_of(const struct snap_replay *r, size_t i)
{
	return r->event[i].action == r->free_action ? r->match[i] : SNAP_NONE;
}

static void move(const struct snap_replay *r, size_t i, struct snap_now *now, bool back)
{
	uint8_t action = r->event[i].action;
	uint64_t by = replay_bytes(r, i);

	if (action == r->free_action || action == SNAP_SEGMENT_FREE || action == SNAP_SEGMENT_UNMAP)
		back = !back;
	if (back)
		by = -by;
	if (action == SNAP_ALLOC || action == r->free_action)
		now->allocated = (int64_t)((uint64_t)now->allocated + by);
	else if (action >= SNAP_SEGMENT_ALLOC && action <= SNAP_SEGMENT_UNMAP)
		now->reserved = (int64_t)((uint64_t)now->reserved + by);
}

void replay_step(const struct snap_replay *r, size_t i, struct snap_now *now)
{
	move(r, i, now, false);
}

struct snap_now replay_at(const struct snap_replay *r, size_t moment)
{
	struct snap_now now = r->end;

	for (size_t i = r->n; i > moment; i--)
		move(r, i - 1, &now, true);
	return now;
}

static void find_peak(struct snap_replay *r)
{
	struct snap_now now = r->start = replay_at(r, 0);

	r->peak = now;
	r->most_reserved = now.reserved;
	for (size_t i = 0; i < r->n; i++) {
		replay_step(r, i, &now);
		if (now.reserved > r->most_reserved)
			r->most_reserved = now.reserved;
		if (now.allocated > r->peak.allocated) {
			r->peak = now;
			r->peak_moment = i + 1;
		}
	}
}

void replay_make(struct snap_replay *r, const struct snapshot *s, int device)
{
	struct snap_range t = snap_trace(s, device);
	struct map next = {0};

	*r = (struct snap_replay){.s = s, .n = t.n, .event = t.n ? &s->event[t.first] : NULL};
	r->match = xrealloc(NULL, t.n + 1, sizeof(*r->match));
	r->free_action = free_action_of(r);
	find_live(r, device, &next);
	find_matches(r, &next);
	map_release(&next);
	find_peak(r);
}

void replay_release(struct snap_replay *r)
{
	free(r->match);
	free(r->live);
	*r = (struct snap_replay){0};
}

/* Blocks that are there at the end and were there at that moment. */
static void live_still(const struct snap_replay *r, size_t moment, replay_each_fn *each, void *arg)
{
	for (size_t i = 0; i < r->n_live; i++) {
		const struct snap_block *b = &r->s->block[r->live[i].block];
		const struct snap_event *made = r->live[i].born == SNAP_NONE ? NULL : &r->event[r->live[i].born];

		if (!made || r->live[i].born < moment)
			each(arg, b->stack || !made ? b->stack : made->stack, b->size);
	}
}

void replay_live(const struct snap_replay *r, size_t moment, replay_each_fn *each, void *arg)
{
	uint32_t made;

	live_still(r, moment, each, arg);
	for (size_t i = moment; i < r->n; i++) {
		if (r->event[i].action != r->free_action)
			continue;
		made = r->match[i];
		if (made == SNAP_NONE || made < moment)
			each(arg, made == SNAP_NONE ? r->event[i].stack : r->event[made].stack, replay_bytes(r, i));
	}
}
