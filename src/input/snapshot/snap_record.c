/* SPDX-License-Identifier: Apache-2.0
 * Dictionaries that become records of the snapshot. A key that is not known is left out: newer releases add some.
 */
#include "input/snapshot/snap_record.h"

#include <string.h>

#include "base/mem.h"
#include "base/banned.h"

static uint64_t number(const struct pickle_value *v)
{
	return v->kind == V_INT || v->kind == V_BOOL ? (uint64_t)v->number : 0;
}

static uint32_t text(const struct pickle_value *v)
{
	return v->kind == V_STRING ? v->id : (uint32_t)W_none;
}

static bool flag(const struct pickle_value *v)
{
	return (v->kind == V_BOOL || v->kind == V_INT) && v->number != 0;
}

static void set_segment(struct snap_build *b, struct snap_segment *g, uint32_t key, const struct pickle_value *v)
{
	struct snap_range blocks;

	switch (key) {
	case W_device: g->device = number(v) < SNAP_DEVICES ? (int32_t)number(v) : 0; break;
	case W_address: g->addr = number(v); break;
	case W_total_size: g->size = number(v); break;
	case W_stream: g->stream = number(v); break;
	case W_segment_type: g->small = text(v) == W_small; break;
	case W_is_expandable: g->expandable = flag(v); break;
	case W_frames: g->stack = build_stack_of(b, v); break;
	case W_segment_pool_id:
		if (v->kind == V_PAIR)
			memcpy(g->pool, intern_get(&b->s->pool, v->id, NULL), sizeof(g->pool));
		break;
	case W_blocks:
		blocks = build_blocks_of(b, v);
		g->first = blocks.first;
		g->n = blocks.n;
		break;
	default: break;
	}
}

static enum snap_state state_of(uint32_t word)
{
	if (word == W_active_allocated)
		return SNAP_ALLOCATED;
	return word == W_active_pending_free || word == W_active_awaiting_free ? SNAP_PENDING : SNAP_INACTIVE;
}

/* Before 2.1 a block told of its owners in `history`; the first of them is the present one. */
static void set_block(struct snap_build *b, struct snap_block *to, uint32_t key, const struct pickle_value *v)
{
	uint32_t past;

	switch (key) {
	case W_address: to->addr = number(v); break;
	case W_size: to->size = number(v); break;
	case W_requested_size: to->requested = number(v); break;
	case W_state: to->state = state_of(text(v)); break;
	case W_frames: to->stack = build_stack_of(b, v); break;
	case W_history:
		past = build_history_of(b, v);
		if (past != SNAP_NONE) {
			to->requested = b->past[past].size;
			to->stack = b->past[past].stack;
		}
		break;
	default: break;
	}
}

static enum snap_action action_of(uint32_t word)
{
	switch (word) {
	case W_alloc: return SNAP_ALLOC;
	case W_free_requested: return SNAP_FREE_REQUESTED;
	case W_free_completed: return SNAP_FREE_COMPLETED;
	case W_segment_alloc: return SNAP_SEGMENT_ALLOC;
	case W_segment_free: return SNAP_SEGMENT_FREE;
	case W_segment_map: return SNAP_SEGMENT_MAP;
	case W_segment_unmap: return SNAP_SEGMENT_UNMAP;
	case W_snapshot: return SNAP_SNAPSHOT;
	case W_oom: return SNAP_OOM;
	default: return SNAP_OTHER;
	}
}

static void set_event(struct snap_build *b, struct snap_event *to, uint32_t key, const struct pickle_value *v)
{
	uint64_t stream;
	uint32_t id;

	switch (key) {
	case W_action: to->action = action_of(text(v)); break;
	case W_addr:
	case W_device_free: to->addr = number(v); break;
	case W_size: to->size = number(v); break;
	case W_time_us: to->time_us = number(v); break;
	case W_frames: to->stack = build_stack_of(b, v); break;
	case W_pool_id: to->pool = v->kind == V_PAIR && v->id < SNAP_POOLS ? (uint8_t)v->id : SNAP_POOLS; break;
	case W_stream:
		stream = number(v);
		id = intern_put(&b->s->stream, &stream, sizeof(stream));
		to->stream = id < SNAP_STREAMS ? (uint16_t)id : SNAP_STREAMS;
		break;
	default: break;
	}
}

static uint32_t set_frame(struct snap_build *b, uint32_t id, const struct pickle_value *v, size_t n)
{
	struct snap_frame f = {0};

	if (id != SNAP_NONE)	/* it is shared by then */
		return id;
	for (size_t i = 0; i < n; i += 2) {
		switch (text(&v[i])) {
		case W_filename: f.file = text(&v[i + 1]); break;
		case W_name: f.function = text(&v[i + 1]); break;
		case W_line: f.line = (uint32_t)number(&v[i + 1]); break;
		default: break;
		}
	}
	return intern_put(&b->s->frame, &f, sizeof(f));
}

static uint32_t set_history(struct snap_build *b, uint32_t id, const struct pickle_value *v, size_t n)
{
	struct snap_past p = {0};

	if (id != SNAP_NONE || b->n_past >= INTERN_MAX)
		return id;
	for (size_t i = 0; i < n; i += 2) {
		if (text(&v[i]) == W_real_size)
			p.size = number(&v[i + 1]);
		else if (text(&v[i]) == W_frames)
			p.stack = build_stack_of(b, &v[i + 1]);
	}
	b->past = xgrow(b->past, b->n_past, &b->cap_past, sizeof(*b->past));
	b->past[b->n_past] = p;
	return (uint32_t)b->n_past++;
}

static uint32_t set_settings(struct snapshot *s, const struct pickle_value *v, size_t n)
{
	s->settings_known = true;
	for (size_t i = 0; i < n; i += 2) {
		switch (text(&v[i])) {
		case W_conf: s->conf = text(&v[i + 1]); break;
		case W_max_split_size: s->max_split = (int64_t)number(&v[i + 1]); break;
		case W_expandable_segments: s->expandable = flag(&v[i + 1]); break;
		default: break;
		}
	}
	return 0;
}

static uint32_t set_in_segment(struct snap_build *b, uint32_t id, const struct pickle_value *v, size_t n)
{
	struct snapshot *s = b->s;

	if (id == SNAP_NONE) {
		s->segment = xgrow(s->segment, s->n_segments, &s->cap_segments, sizeof(*s->segment));
		s->segment[s->n_segments] = (struct snap_segment){0};
		id = (uint32_t)s->n_segments++;
	}
	for (size_t i = 0; i < n; i += 2)
		set_segment(b, &s->segment[id], text(&v[i]), &v[i + 1]);
	return id;
}

static uint32_t set_in_block(struct snap_build *b, uint32_t id, const struct pickle_value *v, size_t n)
{
	struct snapshot *s = b->s;

	if (id == SNAP_NONE) {
		s->block = xgrow(s->block, s->n_blocks, &s->cap_blocks, sizeof(*s->block));
		s->block[s->n_blocks] = (struct snap_block){0};
		id = (uint32_t)s->n_blocks++;
	}
	for (size_t i = 0; i < n; i += 2)
		set_block(b, &s->block[id], text(&v[i]), &v[i + 1]);
	return id;
}

static uint32_t set_in_event(struct snap_build *b, uint32_t id, const struct pickle_value *v, size_t n)
{
	struct snapshot *s = b->s;

	if (id == SNAP_NONE) {
		s->event = xgrow(s->event, s->n_events, &s->cap_events, sizeof(*s->event));
		s->event[s->n_events] = (struct snap_event){.pool = SNAP_POOLS};
		id = (uint32_t)s->n_events++;
	}
	for (size_t i = 0; i < n; i += 2)
		set_event(b, &s->event[id], text(&v[i]), &v[i + 1]);
	return id;
}

uint32_t record_set(struct snap_build *b, enum dict_role role, uint32_t id, const struct pickle_value *v, size_t n)
{
	switch (role) {
	case D_SEGMENT: return set_in_segment(b, id, v, n);
	case D_BLOCK: return set_in_block(b, id, v, n);
	case D_EVENT: return set_in_event(b, id, v, n);
	case D_FRAME: return set_frame(b, id, v, n);
	case D_HISTORY: return set_history(b, id, v, n);
	case D_SETTINGS: return set_settings(b->s, v, n);
	default: return 0;
	}
}
