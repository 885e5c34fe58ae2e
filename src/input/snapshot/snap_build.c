/* SPDX-License-Identifier: Apache-2.0
 * What each list and dictionary of a snapshot turns out to be (see snap_build.h).
 */
#include "input/snapshot/snap_build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "input/snapshot/snap_record.h"
#include "base/banned.h"

#define ID_BITS		28
#define ID_MASK		((1u << ID_BITS) - 1)
#define TRACES_MAX	(2 * SNAP_DEVICES)	/* of devices, and of pinned memory */

enum list_role { L_EMPTY, L_OTHER, L_STACK, L_SEGMENTS, L_BLOCKS, L_EVENTS, L_HISTORY, L_TRACES };

static const char *const words[] = {
#define WORD(id, text) text,
#include "input/snapshot/snap_words.def"
#undef WORD
};

void build_init(struct snap_build *b, struct snapshot *s, struct err *e)
{
	static const struct snap_frame no_frame;

	*b = (struct snap_build){.s = s, .err = e};
	/* the number of a known word is its place in the list */
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
	return err_set(b->err, -EBADMSG, "not a snapshot of PyTorch: %s", why);
}

/* Names may come from anywhere: nothing in them shall reach a terminal as a command. */
int build_string(struct snap_build *b, const uint8_t *bytes, size_t len, struct pickle_value *v)
{
	uint8_t clean[1024];
	size_t i;

	for (i = 0; i < len && bytes[i] >= 0x20 && bytes[i] != 0x7f; i++)
		;
	if (i < len && len <= sizeof(clean)) {
		for (i = 0; i < len; i++)
			clean[i] = bytes[i] < 0x20 || bytes[i] == 0x7f ? '?' : bytes[i];
		bytes = clean;
	}
	v->id = intern_put(&b->s->text, bytes, len);
	return v->id == INTERN_FULL ? too_many(b, "texts") : 0;
}

int build_dict(struct snap_build *b, struct pickle_value *v)
{
	if (b->n_dicts >= ID_MASK)
		return too_many(b, "dictionaries");
	b->dict = xgrow(b->dict, b->n_dicts, &b->cap_dicts, sizeof(*b->dict));
	b->dict[b->n_dicts] = (uint32_t)D_EMPTY << ID_BITS;
	v->id = (uint32_t)b->n_dicts++;
	return 0;
}

int build_list(struct snap_build *b, struct pickle_value *v)
{
	if (b->n_lists >= ID_MASK)
		return too_many(b, "lists");
	b->list = xgrow(b->list, b->n_lists, &b->cap_lists, sizeof(*b->list));
	b->list[b->n_lists] = (uint32_t)L_EMPTY << ID_BITS;
	v->id = (uint32_t)b->n_lists++;
	return 0;
}

int build_pair(struct snap_build *b, const struct pickle_value *two, struct pickle_value *v)
{
	int64_t pair[2];

	for (int i = 0; i < 2; i++)
		pair[i] = two[i].kind == V_INT ? two[i].number : 0;
	v->kind = V_PAIR;
	v->id = intern_put(&b->s->pool, pair, sizeof(pair));
	return v->id == INTERN_FULL ? too_many(b, "pairs") : 0;
}

/* --- what other values are -------------------------------------------------------------------- */

static uint32_t where(uint32_t what)
{
	return what & ID_MASK;
}

static uint32_t dict_role(const struct snap_build *b, const struct pickle_value *v)
{
	return v->kind == V_DICT ? b->dict[v->id] >> ID_BITS : (uint32_t)D_OTHER;
}

static uint32_t list_role(const struct snap_build *b, const struct pickle_value *v)
{
	return v->kind == V_LIST ? b->list[v->id] >> ID_BITS : (uint32_t)L_OTHER;
}

uint32_t build_stack_of(const struct snap_build *b, const struct pickle_value *v)
{
	return list_role(b, v) == L_STACK ? where(b->list[v->id]) : 0;
}

uint32_t build_history_of(const struct snap_build *b, const struct pickle_value *v)
{
	return list_role(b, v) == L_HISTORY ? where(b->list[v->id]) : SNAP_NONE;
}

/* A list has one owner: one that is given to many would make much of little. */
static struct snap_range range_of(struct snap_build *b, const struct pickle_value *v, uint32_t role)
{
	struct snap_range r;

	if (list_role(b, v) != role)
		return (struct snap_range){0};
	r = b->range[where(b->list[v->id])];
	b->list[v->id] = (uint32_t)L_OTHER << ID_BITS;
	return r;
}

struct snap_range build_blocks_of(struct snap_build *b, const struct pickle_value *v)
{
	return range_of(b, v, L_BLOCKS);
}

/* --- dictionaries ----------------------------------------------------------------------------- */

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
	b->top_seen = true;
	for (size_t i = 0; i < n; i += 2) {
		if (v[i].kind != V_STRING)
			continue;
		if (v[i].id == W_segments)
			b->top_segments = range_of(b, &v[i + 1], L_SEGMENTS);
		if (v[i].id == W_device_traces)
			b->top_traces = range_of(b, &v[i + 1], L_TRACES);
	}
}

int build_set(struct snap_build *b, uint32_t dict, const struct pickle_value *v, size_t n)
{
	enum dict_role role = b->dict[dict] >> ID_BITS;
	uint32_t id = where(b->dict[dict]);
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

/* --- lists ------------------------------------------------------------------------------------ */

/* Frames, the innermost first. Writers append up to 1000 at once; what comes later are outer ones that nobody needs. */
static int append_frames(struct snap_build *b, uint32_t list, const struct pickle_value *v, size_t n)
{
	uint32_t frames[1000], id;
	size_t kept = 0;

	if (b->list[list] >> ID_BITS == L_STACK)
		return 0;
	for (size_t i = 0; i < n && kept < 1000; i++)
		if (dict_role(b, &v[i]) == D_FRAME)
			frames[kept++] = where(b->dict[v[i].id]);
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
		rc = new_range(b, list, role, where(b->dict[v[0].id]));
	if (rc != 0)
		return rc;
	r = &b->range[where(b->list[list])];
	for (size_t i = 0; i < n; i++) {
		if (dict_role(b, &v[i]) != of)
			return no_snapshot(b, "a list has entries of several kinds");
		if (where(b->dict[v[i].id]) != r->first + r->n)
			return no_snapshot(b, "the entries of a list are not in the order of the file");
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
	r = &b->range[where(b->list[list])];
	if (r->first + r->n != s->n_traces)
		return no_snapshot(b, "the lists of events are mixed");
	for (size_t i = 0; i < n; i++, r->n++) {
		s->trace = xgrow(s->trace, s->n_traces, &s->cap_traces, sizeof(*s->trace));
		s->trace[s->n_traces++] = range_of(b, &v[i], L_EVENTS);
	}
	return 0;
}

static int append_history(struct snap_build *b, uint32_t list, const struct pickle_value *v)
{
	/* the newest comes first, and is the one that holds the block */
	if (b->list[list] >> ID_BITS == L_EMPTY)
		b->list[list] = (uint32_t)L_HISTORY << ID_BITS | where(b->dict[v->id]);
	return 0;
}

static enum list_role role_of_items(const struct snap_build *b, const struct pickle_value *v)
{
	if (v->kind == V_LIST)
		return L_TRACES;
	switch (dict_role(b, v)) {
	case D_FRAME: return L_STACK;
	case D_SEGMENT: return L_SEGMENTS;
	case D_BLOCK: return L_BLOCKS;
	case D_EVENT: return L_EVENTS;
	case D_HISTORY: return L_HISTORY;
	default: return L_OTHER;
	}
}

int build_append(struct snap_build *b, uint32_t list, const struct pickle_value *v, size_t n)
{
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

int build_root(struct snap_build *b, const struct pickle_value *root)
{
	struct snapshot *s = b->s;

	if (dict_role(b, root) == D_TOP) {
		s->segments = b->top_segments;
		if (b->top_traces.n)
			memmove(s->trace, s->trace + b->top_traces.first, b->top_traces.n * sizeof(*s->trace));
		s->n_traces = b->top_traces.n;
		return 0;
	}
	if (list_role(b, root) == L_SEGMENTS) {
		s->segments = range_of(b, root, L_SEGMENTS);
		s->n_traces = 0;
		s->legacy = true;
		return 0;
	}
	err_set(b->err, -EBADMSG, "not a snapshot of PyTorch: the pickle holds %s",
		root->kind == V_DICT ? "a dictionary without 'segments'" :
		root->kind == V_LIST ? "a list of something else than segments" : "no dictionary");
	err_hint(b->err, "torch.cuda.memory._dump_snapshot(FILE) writes one");
	return -EBADMSG;
}
