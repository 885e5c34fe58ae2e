/* SPDX-License-Identifier: Apache-2.0
 * What each list and dictionary of a snapshot turns out to be (see snap_build.h): records, stacks, lists of them. A
 * key that is not known is skipped: newer releases add some.
 */
#include "read/snapshot/snap_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/err.h"
#include "base/mem.h"

#define ID_BITS		28
#define ID_MASK		((1u << ID_BITS) - 1)
#define TRACES_MAX	(2 * SNAP_DEVICES)	/* of devices, and of pinned memory */

enum dict_role { D_EMPTY, D_OTHER, D_TOP, D_SEGMENT, D_BLOCK, D_EVENT, D_FRAME, D_HISTORY, D_SETTINGS };
enum list_role { L_EMPTY, L_OTHER, L_STACK, L_SEGMENTS, L_BLOCKS, L_EVENTS, L_HISTORY, L_TRACES };

static const char *const words[] = {
#define WORD(id, text) text,
#include "read/snapshot/snap_words.def"
#undef WORD
};

void build_init(struct snap_build *b, struct snapshot *s, struct err *e)
{
	static const struct snap_frame no_frame;

	*b = (struct snap_build){.s = s, .err = e};
	/* the id of a known word is its position in the list */
	for (uint32_t i = 0; i < W_COUNT; i++)
		if (intern_put(&s->text, words[i], strlen(words[i])) != i)
			BUG("a word is in snap_words.def twice");
	intern_put(&s->stack, "", 0);
	intern_put(&s->frame, &no_frame, sizeof(no_frame));
}

void build_release(struct snap_build *b)
{
	free(b->dict);
	free(b->list);
	free(b->range);
	free(b->past);
	*b = (struct snap_build){0};
}

static int too_many(struct snap_build *b, const char *what)
{
	return err_set(b->err, -EFBIG, "the snapshot is too large: more than %u %s", ID_MASK, what);
}

static int no_snapshot(struct snap_build *b, const char *why)
{
	return err_set(b->err, -EBADMSG, "not a PyTorch memory snapshot: %s", why);
}

/* Names may come from anywhere: nothing in them may reach a terminal as a command. */
static int build_string(void *it, const uint8_t *bytes, size_t len, struct pickle_value *v)
{
	struct snap_build *b = it;
	char clean[1024];
	size_t i;

	for (i = 0; i < len && bytes[i] >= 0x20 && bytes[i] < 0x7f; i++)
		;
	if (i < len && len <= sizeof(clean)) {
		len = str_plain(clean, (const char *)bytes, len);
		bytes = (const uint8_t *)clean;
	}
	v->id = intern_put(&b->s->text, bytes, len);
	return v->id == INTERN_FULL ? too_many(b, "texts") : 0;
}

static int build_dict(void *it, struct pickle_value *v)
{
	struct snap_build *b = it;

	if (b->n_dicts >= ID_MASK)
		return too_many(b, "dictionaries");
	b->dict = xgrow(b->dict, b->n_dicts, &b->cap_dicts, sizeof(*b->dict));
	b->dict[b->n_dicts] = (uint32_t)D_EMPTY << ID_BITS;
	v->id = (uint32_t)b->n_dicts++;
	return 0;
}

static int build_list(void *it, struct pickle_value *v)
{
	struct snap_build *b = it;

	if (b->n_lists >= ID_MASK)
		return too_many(b, "lists");
	b->list = xgrow(b->list, b->n_lists, &b->cap_lists, sizeof(*b->list));
	b->list[b->n_lists] = (uint32_t)L_EMPTY << ID_BITS;
	v->id = (uint32_t)b->n_lists++;
	return 0;
}

/* Only pairs are of interest: numbers of pools. */
static int build_tuple(void *it, const struct pickle_value *two, size_t n, struct pickle_value *v)
{
	struct snap_build *b = it;
	int64_t pair[2];

	if (n != 2)
		return 0;
	for (int i = 0; i < 2; i++)
		pair[i] = two[i].kind == V_INT ? two[i].number : 0;
	v->kind = V_TUPLE;
	v->id = intern_put(&b->s->pool, pair, sizeof(pair));
	return v->id == INTERN_FULL ? too_many(b, "pairs") : 0;
}

static uint32_t id_of(uint32_t what)
{
	return what & ID_MASK;
}

static uint32_t dict_role_of(const struct snap_build *b, const struct pickle_value *v)
{
	return v->kind == V_DICT ? b->dict[v->id] >> ID_BITS : (uint32_t)D_OTHER;
}

static uint32_t list_role_of(const struct snap_build *b, const struct pickle_value *v)
{
	return v->kind == V_LIST ? b->list[v->id] >> ID_BITS : (uint32_t)L_OTHER;
}

/* Its number, 0 = none. */
static uint32_t stack_of_value(const struct snap_build *b, const struct pickle_value *v)
{
	return list_role_of(b, v) == L_STACK ? id_of(b->list[v->id]) : 0;
}

/* Its place in `past`; SNAP_NONE = none. */
static uint32_t history_of_value(const struct snap_build *b, const struct pickle_value *v)
{
	return list_role_of(b, v) == L_HISTORY ? id_of(b->list[v->id]) : SNAP_NONE;
}

/* A list has one owner: sharing one list would let a small file expand without bound. */
static struct snap_range take_range(struct snap_build *b, const struct pickle_value *v, uint32_t role)
{
	struct snap_range r;

	if (list_role_of(b, v) != role)
		return (struct snap_range){0};
	r = b->range[id_of(b->list[v->id])];
	b->list[v->id] = (uint32_t)L_OTHER << ID_BITS;
	return r;
}

static uint64_t value_number(const struct pickle_value *v)
{
	return v->kind == V_INT || v->kind == V_BOOL ? (uint64_t)v->number : 0;
}

/* A size or an address, which cannot be negative. 0: not known. */
static uint64_t value_size(struct snap_build *b, const struct pickle_value *v)
{
	bool possible = v->kind == V_INT && v->number >= 0;

	b->s->impossible += !possible;
	return possible ? (uint64_t)v->number : 0;
}

static uint32_t value_text(const struct pickle_value *v)
{
	return v->kind == V_STRING ? v->id : (uint32_t)W_none;
}

static bool value_flag(const struct pickle_value *v)
{
	return (v->kind == V_BOOL || v->kind == V_INT) && v->number != 0;
}

static void set_segment(struct snap_build *b, struct snap_segment *g, uint32_t key, const struct pickle_value *v)
{
	struct snap_range blocks;

	switch (key) {
	case W_device: g->device = value_number(v) < SNAP_DEVICES ? (int32_t)value_number(v) : 0; break;
	case W_address: g->addr = value_number(v); break;
	case W_total_size: g->size = value_size(b, v); break;
	case W_stream: g->stream = value_number(v); break;
	case W_segment_type: g->small = value_text(v) == W_small; break;
	case W_is_expandable: g->expandable = value_flag(v); break;
	case W_frames: g->stack = stack_of_value(b, v); break;
	case W_segment_pool_id:
		if (v->kind == V_TUPLE)
			memcpy(g->pool, intern_get(&b->s->pool, v->id, NULL), sizeof(g->pool));
		break;
	case W_blocks:
		blocks = take_range(b, v, L_BLOCKS);
		g->first = blocks.first;
		g->n = blocks.n;
		break;
	default: break;
	}
}

static enum snap_state block_state(uint32_t word)
{
	if (word == W_active_allocated)
		return SNAP_ALLOCATED;
	return word == W_active_pending_free || word == W_active_awaiting_free ? SNAP_PENDING : SNAP_INACTIVE;
}

/* Before 2.1 a block listed its owners in `history`; the first is the current one. */
static void set_block(struct snap_build *b, struct snap_block *to, uint32_t key, const struct pickle_value *v)
{
	uint32_t past;

	switch (key) {
	case W_address: to->addr = value_number(v); break;
	case W_size: to->size = value_size(b, v); break;
	case W_requested_size: to->requested = value_size(b, v); break;
	case W_state: to->state = block_state(value_text(v)); break;
	case W_frames: to->stack = stack_of_value(b, v); break;
	case W_history:
		past = history_of_value(b, v);
		if (past != SNAP_NONE) {
			to->requested = b->past[past].size;
			to->stack = b->past[past].stack;
		}
		break;
	default: break;
	}
}

static enum snap_action event_action(uint32_t word)
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
	switch (key) {
	case W_action: to->action = event_action(value_text(v)); break;
	case W_addr:
	case W_device_free: to->addr = value_number(v); break;
	case W_size: to->size = value_size(b, v); break;
	case W_time_us: to->time_us = value_number(v); break;
	case W_frames: to->stack = stack_of_value(b, v); break;
	default: break;
	}
}

static uint32_t set_frame(struct snap_build *b, uint32_t id, const struct pickle_value *v, size_t n)
{
	struct snap_frame f = {0};

	if (id != SNAP_NONE)	/* it is already shared */
		return id;
	for (size_t i = 0; i < n; i += 2) {
		switch (value_text(&v[i])) {
		case W_filename: f.file = value_text(&v[i + 1]); break;
		case W_name: f.function = value_text(&v[i + 1]); break;
		case W_line: f.line = (uint32_t)value_number(&v[i + 1]); break;
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
		if (value_text(&v[i]) == W_real_size)
			p.size = value_number(&v[i + 1]);
		else if (value_text(&v[i]) == W_frames)
			p.stack = stack_of_value(b, &v[i + 1]);
	}
	b->past = xgrow(b->past, b->n_past, &b->cap_past, sizeof(*b->past));
	b->past[b->n_past] = p;
	return (uint32_t)b->n_past++;
}

static uint32_t set_settings(struct snapshot *s, const struct pickle_value *v, size_t n)
{
	s->settings_known = true;
	for (size_t i = 0; i < n; i += 2) {
		switch (value_text(&v[i])) {
		case W_conf: s->conf = value_text(&v[i + 1]); break;
		case W_expandable_segments: s->expandable = value_flag(&v[i + 1]); break;
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
		set_segment(b, &s->segment[id], value_text(&v[i]), &v[i + 1]);
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
		set_block(b, &s->block[id], value_text(&v[i]), &v[i + 1]);
	return id;
}

static uint32_t set_in_event(struct snap_build *b, uint32_t id, const struct pickle_value *v, size_t n)
{
	struct snapshot *s = b->s;

	if (id == SNAP_NONE) {
		s->event = xgrow(s->event, s->n_events, &s->cap_events, sizeof(*s->event));
		s->event[s->n_events] = (struct snap_event){0};
		id = (uint32_t)s->n_events++;
	}
	for (size_t i = 0; i < n; i += 2)
		set_event(b, &s->event[id], value_text(&v[i]), &v[i + 1]);
	return id;
}

/* Fills record `id`, or a new one when it is SNAP_NONE, from `n` keys and values. Its number; SNAP_NONE when there
 * are too many. */
static uint32_t record_set(struct snap_build *b, enum dict_role role, uint32_t id, const struct pickle_value *v, size_t n)
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

/* A key that only one kind of dictionary has. */
static enum dict_role role_of_key(uint32_t key)
{
	switch (key) {
	case W_segments: case W_device_traces: return D_TOP;
	case W_total_size: case W_blocks: return D_SEGMENT;
	case W_state: return D_BLOCK;
	case W_action: return D_EVENT;
	case W_filename: return D_FRAME;
	case W_real_size: return D_HISTORY;
	case W_conf: case W_max_split_size: case W_expandable_segments: return D_SETTINGS;
	default: return D_OTHER;
	}
}

static enum dict_role role_of_keys(const struct pickle_value *v, size_t n)
{
	enum dict_role role = D_OTHER;

	for (size_t i = 0; i < n && role == D_OTHER; i += 2)
		if (v[i].kind == V_STRING)
			role = role_of_key(v[i].id);
	return role;
}

static void set_top(struct snap_build *b, const struct pickle_value *v, size_t n)
{
	for (size_t i = 0; i < n; i += 2) {
		if (v[i].kind != V_STRING)
			continue;
		b->s->impossible += (v[i].id == W_segments || v[i].id == W_device_traces) && v[i + 1].kind != V_LIST;
		if (v[i].id == W_segments)
			b->top_segments = take_range(b, &v[i + 1], L_SEGMENTS);
		if (v[i].id == W_device_traces)
			b->top_traces = take_range(b, &v[i + 1], L_TRACES);
	}
}

static int build_set(void *it, uint32_t dict, const struct pickle_value *v, size_t n)
{
	struct snap_build *b = it;
	enum dict_role role = b->dict[dict] >> ID_BITS;
	uint32_t id = id_of(b->dict[dict]);
	bool fresh = role == D_EMPTY;

	if (!n)
		return 0;
	if (fresh)
		role = role_of_keys(v, n);
	if (role == D_TOP)
		set_top(b, v, n);
	else if (role != D_OTHER)
		id = record_set(b, role, fresh ? SNAP_NONE : id, v, n);
	if (id == SNAP_NONE)
		return too_many(b, "records");
	b->dict[dict] = (uint32_t)role << ID_BITS | id;
	return 0;
}

/* Frames, the innermost first. Writers append up to 1000 at once; what comes later are outer ones that are not needed. */
static int append_frames(struct snap_build *b, uint32_t list, const struct pickle_value *v, size_t n)
{
	uint32_t frames[1000], id;
	size_t kept = 0;

	if (b->list[list] >> ID_BITS == L_STACK)
		return 0;
	for (size_t i = 0; i < n && kept < 1000; i++)
		if (dict_role_of(b, &v[i]) == D_FRAME)
			frames[kept++] = id_of(b->dict[v[i].id]);
	id = intern_put(&b->s->stack, frames, kept * sizeof(frames[0]));
	if (id == INTERN_FULL)
		return too_many(b, "stacks");
	b->list[list] = (uint32_t)L_STACK << ID_BITS | id;
	return 0;
}

static int new_range(struct snap_build *b, uint32_t list, enum list_role role, uint32_t first)
{
	if (b->n_ranges >= ID_MASK)
		return too_many(b, "lists");
	b->range = xgrow(b->range, b->n_ranges, &b->cap_ranges, sizeof(*b->range));
	b->range[b->n_ranges] = (struct snap_range){first, 0};
	b->list[list] = (uint32_t)role << ID_BITS | (uint32_t)b->n_ranges++;
	return 0;
}

/* Records were numbered as they came, so those of one list follow one another. */
static int append_records(struct snap_build *b, uint32_t list, enum list_role role, enum dict_role of,
			  const struct pickle_value *v, size_t n)
{
	struct snap_range *r;
	int rc = 0;

	if (b->list[list] >> ID_BITS == L_EMPTY)
		rc = new_range(b, list, role, id_of(b->dict[v[0].id]));
	if (rc != 0)
		return rc;
	r = &b->range[id_of(b->list[list])];
	for (size_t i = 0; i < n; i++) {
		if (dict_role_of(b, &v[i]) != of)
			return no_snapshot(b, "a list has entries of several kinds");
		if (id_of(b->dict[v[i].id]) != r->first + r->n)
			return no_snapshot(b, "a list's entries are not in file order");
		r->n++;
	}
	return 0;
}

static int append_traces(struct snap_build *b, uint32_t list, const struct pickle_value *v, size_t n)
{
	struct snapshot *s = b->s;
	struct snap_range *r;
	int rc = 0;

	if (s->n_traces + n > TRACES_MAX)
		return no_snapshot(b, "too many lists of events");
	if (b->list[list] >> ID_BITS == L_EMPTY)
		rc = new_range(b, list, L_TRACES, (uint32_t)s->n_traces);
	if (rc != 0)
		return rc;
	r = &b->range[id_of(b->list[list])];
	if (r->first + r->n != s->n_traces)
		return no_snapshot(b, "the lists of events are mixed");
	for (size_t i = 0; i < n; i++, r->n++) {
		s->trace = xgrow(s->trace, s->n_traces, &s->cap_traces, sizeof(*s->trace));
		s->trace[s->n_traces++] = take_range(b, &v[i], L_EVENTS);
	}
	return 0;
}

static int append_history(struct snap_build *b, uint32_t list, const struct pickle_value *v)
{
	/* the newest comes first, and is the one that holds the block */
	if (b->list[list] >> ID_BITS == L_EMPTY)
		b->list[list] = (uint32_t)L_HISTORY << ID_BITS | id_of(b->dict[v->id]);
	return 0;
}

static enum list_role role_of_items(const struct snap_build *b, const struct pickle_value *v)
{
	if (v->kind == V_LIST)
		return L_TRACES;
	switch (dict_role_of(b, v)) {
	case D_FRAME: return L_STACK;
	case D_SEGMENT: return L_SEGMENTS;
	case D_BLOCK: return L_BLOCKS;
	case D_EVENT: return L_EVENTS;
	case D_HISTORY: return L_HISTORY;
	default: return L_OTHER;
	}
}

static int build_append(void *it, uint32_t list, const struct pickle_value *v, size_t n)
{
	struct snap_build *b = it;
	enum list_role role = b->list[list] >> ID_BITS;

	if (!n)
		return 0;
	if (role == L_EMPTY)
		role = role_of_items(b, v);
	switch (role) {
	case L_STACK: return append_frames(b, list, v, n);
	case L_SEGMENTS: return append_records(b, list, role, D_SEGMENT, v, n);
	case L_BLOCKS: return append_records(b, list, role, D_BLOCK, v, n);
	case L_EVENTS: return append_records(b, list, role, D_EVENT, v, n);
	case L_HISTORY: return append_history(b, list, v);
	case L_TRACES: return append_traces(b, list, v, n);
	default: break;
	}
	b->list[list] = (uint32_t)L_OTHER << ID_BITS;
	return 0;
}

static int build_root(void *it, const struct pickle_value *root)
{
	struct snap_build *b = it;
	struct snapshot *s = b->s;

	if (dict_role_of(b, root) == D_TOP) {
		s->segments = b->top_segments;
		if (b->top_traces.n)
			memmove(s->trace, s->trace + b->top_traces.first, b->top_traces.n * sizeof(*s->trace));
		s->n_traces = b->top_traces.n;
		return 0;
	}
	if (list_role_of(b, root) == L_SEGMENTS) {
		s->segments = take_range(b, root, L_SEGMENTS);
		s->n_traces = 0;
		return 0;
	}
	err_set(b->err, -EBADMSG, "not a PyTorch memory snapshot: the pickle contains %s",
		root->kind == V_DICT ? "a dictionary without 'segments'" :
		root->kind == V_LIST ? "a list of something other than segments" : "something other than a dictionary");
	err_hint(b->err, "torch.cuda.memory._dump_snapshot(FILE) writes one");
	return -EBADMSG;
}

const struct pickle_sink build_sink = {
	.what = "a PyTorch memory snapshot",
	.hint = "; torch.cuda.memory._dump_snapshot writes such files",
	.string_kept = 1024,	/* longer ones are the source of a traced graph */
	.string = build_string,
	.dict = build_dict,
	.list = build_list,
	.tuple = build_tuple,
	.set = build_set,
	.append = build_append,
	.root = build_root,
};
