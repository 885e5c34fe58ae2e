/* SPDX-License-Identifier: Apache-2.0
 * The segments of a memory snapshot in a page, as they are at the end.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "write/page_snap.h"

#define RUNS_OF_SEGMENT	160

/* A block, or neighbours that are too small to be drawn one by one. */
struct run {
	uint64_t from, to, bytes, blocks, largest;
	int line;			/* of the largest */
};

static void flush(json_t *list, struct run *r)
{
	if (r->blocks)
		json_array_append_new(list, json_pack("[o,o,o,o,i,i]", page_integer(r->from), page_integer(r->to - r->from),
						      page_integer(r->bytes), page_integer(r->blocks), -1, r->line));
	*r = (struct run){ .line = -1 };
}

static void put(const struct snap_page *v, struct run *r, const struct snap_block *b, uint64_t at)
{
	if (!r->blocks)
		r->from = at;
	r->to = at + b->size;
	r->bytes += b->size;
	r->blocks++;
	if (b->size > r->largest) {
		r->largest = b->size;
		r->line = snap_page_line(v, v->l->of_stack[b->stack]);
	}
}

struct filling { uint64_t unused, largest, blocks; };

static json_t *json_runs(const struct snap_page *v, const struct snap_segment *s, struct filling *f)
{
	uint64_t grain = s->size / RUNS_OF_SEGMENT + 1;
	json_t *list = json_array();
	struct run r = { .line = -1 };

	for (uint32_t i = s->first; i < s->first + s->n; i++) {
		const struct snap_block *b = &v->s->block[i];
		uint64_t at = b->addr - s->addr;

		if (b->state == SNAP_INACTIVE) {
			f->unused += b->size;
			f->largest = b->size > f->largest ? b->size : f->largest;
			if (b->size >= grain)
				flush(list, &r);
			continue;
		}
		f->blocks++;
		if (b->size >= grain || r.largest >= grain || (r.blocks && at + b->size - r.from > 2 * grain))
			flush(list, &r);
		if (json_array_size(list) < 2 * RUNS_OF_SEGMENT)
			put(v, &r, b, at);
	}
	flush(list, &r);
	return list;
}

static json_t *json_segment(const struct snap_page *v, const struct snap_segment *s)
{
	struct filling f = { 0 };
	json_t *runs = json_runs(v, s, &f);

	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:i,s:o,s:o}", "address", page_address(s->addr), "size", page_integer(s->size),
			 "free", page_integer(f.unused), "largest", page_integer(f.largest), "blocks", page_integer(f.blocks),
			 "like", 1, "stream", page_integer(s->stream), "runs", runs);
}

static int by_size(const void *a, const void *b)
{
	const struct snap_segment *x = *(struct snap_segment *const *)a, *y = *(struct snap_segment *const *)b;

	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Segments that look the same, but for their address, are drawn once. */
static bool joined(json_t *rows, const json_t *one)
{
	static const char *const keys[] = { "size", "free", "stream", "runs" };

	if (json_array_size(json_object_get(one, "runs")) > 1)
		return false;
	for (size_t i = json_array_size(rows); i > 0; i--) {
		json_t *row = json_array_get(rows, i - 1);
		size_t k = 0;

		while (k < 4 && json_equal(json_object_get(row, keys[k]), json_object_get(one, keys[k])))
			k++;
		if (k == 4) {
			json_integer_set(json_object_get(row, "like"), json_integer_value(json_object_get(row, "like")) + 1);
			return true;
		}
		if (!k)
			return false;	/* they are in the order of their sizes */
	}
	return false;
}

json_t *snap_page_map(const struct snap_page *v)
{
	const struct snapshot *s = v->s;
	const struct snap_segment **mine = xcalloc(s->segments.n + 1, sizeof(const struct snap_segment *));
	json_t *list = json_array();
	uint64_t left = 0;
	size_t n = 0, n_left = 0;

	for (uint32_t i = s->segments.first; i < s->segments.first + s->segments.n; i++)
		if (s->segment[i].device == v->d->device)
			mine[n++] = &s->segment[i];
	qsort(mine, n, sizeof(*mine), by_size);
	for (size_t i = 0; i < n; i++) {
		json_t *one = json_segment(v, mine[i]);

		if (joined(list, one)) {
			json_decref(one);
		} else if (json_array_size(list) < PAGE_SEGMENTS_MAX) {
			json_array_append_new(list, one);
		} else {
			json_decref(one);
			left += mine[i]->size;
			n_left++;
		}
	}
	free(mine);
	return json_pack("{s:o,s:[],s:I,s:I,s:o,s:s}", "segments", list, "kinds", "count", (json_int_t)n,
			 "n_left_out", (json_int_t)n_left, "left_out",
			 page_integer(left), "at", v->d->oom.found && v->d->oom.exact ? "oom" : "end");
}
