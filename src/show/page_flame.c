/* SPDX-License-Identifier: Apache-2.0
 * PyTorch's memory by call stack (see page_flame.h).
 */
#include "show/page_flame.h"

#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "case/line.h"
#include "find/memory/pieces.h"
#include "read/recording/trace_memory.h"
#include "find/memory/snap_analyze.h"

#define NODES_MAX	(1u << 17)
#define FRAMES_MAX	256
#define LEAST_PART	1000	/* of the whole */

static bool node_same(const void *list, uint32_t i, const void *key)
{
	const struct flame_node *a = &((const struct flame_node *)list)[i], *b = key;

	return a->parent == b->parent && a->name == b->name;
}

void flame_init(struct flame *f)
{
	*f = (struct flame){.n = 1};
	page_words_init(&f->names);
	f->node = xgrow(NULL, 0, &f->cap, sizeof(*f->node));
	f->node[0] = (struct flame_node){.name = page_words_add(&f->names, "all tensors")};
}

void flame_release(struct flame *f)
{
	page_words_release(&f->names);
	map_release(&f->map);
	free(f->node);
}

/* The node itself when there is no room for its child. */
static uint32_t child_of(struct flame *f, uint32_t node, int name)
{
	struct flame_node key = {.parent = node, .name = name};
	uint32_t next = f->n < NODES_MAX ? (uint32_t)f->n : MAP_NONE;
	uint32_t i = map_put(&f->map, map_hash((uint64_t)node << 32 | (uint32_t)name), node_same, f->node, &key, next);

	if (i == MAP_NONE)
		return node;
	if (i == next) {
		f->node = xgrow(f->node, f->n, &f->cap, sizeof(*f->node));
		f->node[f->n++] = key;
	}
	return i;
}

void flame_add(struct flame *f, const int *name, size_t n, enum flame_moment at, uint64_t bytes)
{
	uint32_t node = 0;

	f->node[0].bytes[at] += bytes;
	for (size_t i = 0; i < n; i++) {
		uint32_t child = child_of(f, node, name[i]);

		if (child == node)
			return;
		node = child;
		f->node[node].bytes[at] += bytes;
	}
}

static bool is_notable(const struct flame *f, size_t i)
{
	for (int at = 0; at < FLAME_MOMENTS; at++)
		if (f->node[i].bytes[at] && f->node[i].bytes[at] >= f->node[0].bytes[at] / LEAST_PART)
			return true;
	return false;
}

json_t *flame_json(const struct flame *f, const char *at)
{
	json_t *parent = json_array(), *name = json_array(), *now = json_array(), *peak = json_array();
	uint32_t *number = xcalloc(f->n, sizeof(*number)), next = 0;
	size_t left_out = 0;

	for (size_t i = 0; i < f->n; i++) {	/* a parent is at least as large as its children */
		if (i && !is_notable(f, i)) {
			left_out++;
			continue;
		}
		number[i] = next++;
		json_array_append_new(parent, json_integer(number[f->node[i].parent]));
		json_array_append_new(name, json_integer(f->node[i].name));
		json_array_append_new(now, json_bytes(f->node[i].bytes[FLAME_NOW]));
		json_array_append_new(peak, json_bytes(f->node[i].bytes[FLAME_PEAK]));
	}
	free(number);
	if (next < 2) {
		json_decref(parent);
		json_decref(name);
		json_decref(now);
		json_decref(peak);
		return json_null();
	}
	return JSON_OF(J_TEXT("at", at), J_SHARED("names", f->names.list), J_VALUE("parent", parent),
		       J_VALUE("name", name), J_VALUE("now", now), J_VALUE("peak", peak), J_BYTES("left_out", left_out));
}

static size_t names_of_stack(struct flame *f, const struct trace *t, uint32_t stack, int *name)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;
	size_t n = 0;

	if (!s || !s->n) {
		name[n++] = page_words_add(&f->names, "no Python line known");
		return n;
	}
	if (s->flags & CW_STACK_CUT)
		name[n++] = page_words_add(&f->names, "outer frames, not recorded");
	for (uint32_t i = s->n; i > 0 && n < FRAMES_MAX; i--) {
		const struct cw_frame *at = &s->frame[i - 1];
		struct place p = {
			.file = trace_string(t, at->file), .function = trace_string(t, at->function), .line = at->line};

		name[n++] = page_words_place(&f->names, &p, trace_header(t)->cwd);
	}
	return n;
}

static void add_stack(struct flame *f, const struct trace *t, uint32_t stack, enum flame_moment at, uint64_t bytes)
{
	int name[FRAMES_MAX];
	size_t n = bytes ? names_of_stack(f, t, stack, name) : 0;

	if (bytes)
		flame_add(f, name, n, at, bytes);
}

static uint32_t stack_of_piece(const struct piece *p)
{
	return p->stack ? p->stack : p->forward_stack;
}

static int by_stack(const void *a, const void *b)
{
	uint32_t x = stack_of_piece(a), y = stack_of_piece(b);

	return x < y ? -1 : x > y;
}

static void add_now(struct flame *f, struct trace *t, int device, uint64_t when)
{
	struct pieces p;
	uint64_t sum = 0;

	pieces_of_torch(&p, t, when);
	xsort(p.list, p.n, sizeof(*p.list), by_stack);
	for (size_t i = 0; i < p.n; i++) {
		uint32_t stack = stack_of_piece(&p.list[i]);

		sum += p.list[i].device == device ? p.list[i].size : 0;
		if (i + 1 == p.n || stack_of_piece(&p.list[i + 1]) != stack) {
			add_stack(f, t, stack, FLAME_NOW, sum);
			sum = 0;
		}
	}
	pieces_free(&p);
}

json_t *flame_of_recording(struct trace *t, int device, const struct cw_failure *oom)
{
	struct flame f;
	json_t *j;
	const struct cw_site *site;
	size_t n;

	flame_init(&f);
	add_now(&f, t, device, oom ? oom->ticks : UINT64_MAX);
	n = trace_sites(t, &site);
	for (size_t i = 0; i < n; i++)
		if (site[i].kind == CW_MEM_TORCH && site[i].device == device)
			add_stack(&f, t, site[i].stack ? site[i].stack : site[i].forward_stack, FLAME_PEAK,
				  trace_site_at_peak(t, &site[i]));
	j = flame_json(&f, oom ? "oom" : "end");
	flame_release(&f);
	return j;
}

struct by_stack {
	uint64_t *bytes;	/* of each stack */
	size_t n;
};

static void count_block(void *arg, uint32_t stack, uint64_t size)
{
	struct by_stack *b = arg;

	if (stack < b->n)
		b->bytes[stack] += size;
}

static bool is_python(const char *file)
{
	return str_ends(file, ".py") || file[0] == '<';
}

/* Frames of C++ are of no use between those of Python. */
static size_t names_of_snap_stack(struct flame *f, const struct snapshot *s, uint32_t stack, int *name)
{
	size_t n = 0, frames = 0;
	const uint32_t *frame = stack ? snap_stack(s, stack, &frames) : NULL;
	bool python = false;

	for (size_t i = 0; i < frames; i++)
		python = python || is_python(snap_text(s, snap_frame(s, frame[i])->file));
	for (size_t i = frames; i > 0 && n < FRAMES_MAX; i--) {
		const struct snap_frame *at = snap_frame(s, frame[i - 1]);
		struct place p = {
			.file = snap_text(s, at->file), .function = snap_text(s, at->function), .line = at->line};

		if (!python || is_python(p.file))
			name[n++] = page_words_place(&f->names, &p, "");
	}
	if (!n)
		name[n++] = page_words_add(&f->names, "no stack recorded");
	return n;
}

static void add_moment(struct flame *f, const struct snapshot *s, const struct snap_device *d, enum flame_moment at,
		       size_t moment)
{
	struct by_stack b = {.n = s->stack.n + 1};
	int name[FRAMES_MAX];

	b.bytes = xcalloc(b.n, sizeof(*b.bytes));
	replay_live(&d->replay, moment, count_block, &b);
	for (uint32_t i = 0; i < b.n; i++)
		if (b.bytes[i])
			flame_add(f, name, names_of_snap_stack(f, s, i, name), at, b.bytes[i]);
	free(b.bytes);
}

json_t *flame_of_snapshot(const struct snapshot *s, const struct snap_device *d)
{
	struct flame f;
	json_t *j;

	flame_init(&f);
	add_moment(&f, s, d, FLAME_NOW, d->oom.found ? d->oom.event : d->replay.n);
	add_moment(&f, s, d, FLAME_PEAK, d->replay.n ? d->replay.peak_moment : 0);
	j = flame_json(&f, d->oom.found ? "oom" : "end");
	flame_release(&f);
	return j;
}
