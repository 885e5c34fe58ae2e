/* SPDX-License-Identifier: Apache-2.0
 * A PyTorch memory snapshot on a page: memory over time, who held what, and the segments at the end.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "case/source.h"
#include "base/mem.h"
#include "case/line.h"
#include "find/memory/observe_snapshot.h"
#include "find/memory/snap_analyze.h"
#include "verdict/verdict.h"
#include "show/page.h"
#include "show/page_blocks.h"
#include "show/page_flame.h"
#include "show/page_source.h"
#include "show/page_words.h"

#define RUNS_OF_SEGMENT	160

struct snap_page {		/* of one device */
	const struct snapshot *s;
	const struct snap_lines *l;
	const struct snap_device *d;
	struct page_words *lines;
};

/* Its number in the page's list of lines; -1 = not known. */
static int snap_page_line(const struct snap_page *v, uint32_t line)
{
	const struct snap_line *at = snap_line(v->l, line);
	struct place p = {.file = at->file ? snap_text(v->s, at->file) : NULL, .line = at->line};

	p.function = at->file ? snap_text(v->s, at->function) : NULL;
	return page_words_place(v->lines, &p, "");
}

/* Without times, the number of the event takes their place. */
static uint64_t snap_event_us(const struct snap_replay *r, size_t i)
{
	return r->event[i].time_us && r->event[0].time_us && r->event[i].time_us >= r->event[0].time_us ?
		       r->event[i].time_us - r->event[0].time_us : r->event[0].time_us ? 0 : i;
}

static uint64_t at_least_0(int64_t n)
{
	return n > 0 ? (uint64_t)n : 0;
}

/* The peak in each of PAGE_SAMPLES_MAX sections of the events. */
static json_t *snap_timeline_json(const struct snap_replay *r)
{
	json_t *time = json_array(), *allocated = json_array(), *reserved = json_array();
	struct snap_now now = r->start, most = now;
	size_t each = r->n / PAGE_SAMPLES_MAX + 1;

	for (size_t i = 0; i < r->n; i++) {
		replay_step(r, i, &now);
		most.allocated = i % each && most.allocated > now.allocated ? most.allocated : now.allocated;
		most.reserved = i % each && most.reserved > now.reserved ? most.reserved : now.reserved;
		if (i % each != each - 1 && i + 1 < r->n)
			continue;
		json_array_append_new(time, json_bytes(snap_event_us(r, i)));
		json_array_append_new(allocated, json_bytes(at_least_0(most.allocated)));
		json_array_append_new(reserved, json_bytes(at_least_0(most.reserved)));
	}
	return JSON_OF(J_VALUE("us", time), J_VALUE("allocated", allocated), J_VALUE("reserved", reserved),
		       J_BOOL("timed", r->n && r->event[0].time_us));
}

static json_t *snap_failures_json(const struct snap_page *v)
{
	const struct snap_replay *r = &v->d->replay;
	json_t *list = json_array();
	size_t left = 0;

	for (size_t i = 0; i < r->n; i++) {
		if (r->event[i].action != SNAP_OOM)
			continue;
		if (json_array_size(list) == PAGE_FAILURES_MAX) {
			json_array_remove(list, 0);
			left++;
		}
		json_array_append_new(list, JSON_OF(J_BYTES("us", snap_event_us(r, i)),
						    J_TEXT("source", "out of memory in PyTorch's allocator"),
						    J_NULL("code"), J_NULL("name"), J_NULL("api"), J_INT("count", 1),
						    J_INT("line", snap_page_line(v, v->l->of_stack[r->event[i].stack])),
						    J_INT("device", v->d->device)));
	}
	return JSON_OF(J_VALUE("list", list), J_INT("left_out", left));
}

static json_t *snap_holder_json(const struct snap_page *v, const struct snap_holder *h)
{
	const struct snap_line *at = snap_line(v->l, h->line);

	return JSON_OF(J_TEXT("part", "tensors"), J_TEXT("file", at->file ? snap_text(v->s, at->file) : NULL),
		       J_INT_OR_NULL("line", at->file, at->line),
		       J_TEXT("function", at->file ? snap_text(v->s, at->function) : NULL), J_BYTES("bytes", h->bytes),
		       J_BYTES("count", h->blocks));
}

static void add_snap_lines(const struct snap_page *v, size_t moment, json_t *ledger)
{
	struct snap_holder *h;
	size_t n = snap_holders(v->d, v->l, moment, &h);
	json_t *list = json_array();
	uint64_t left = 0;
	bool cut = n > PAGE_LINES_MAX;

	for (size_t i = 0; i < n; i++)
		if (i < PAGE_LINES_MAX)
			json_array_append_new(list, snap_holder_json(v, &h[i]));
		else
			left += h[i].bytes;
	JSON_ADD(ledger, J_IF(cut, J_BYTES("lines_left_out", n - PAGE_LINES_MAX)),
		 J_IF(cut, J_BYTES("bytes_left_out", left)), J_VALUE("lines", list));
	free(h);
}

/* A snapshot does not have the GPU's memory size: the parts add up to what PyTorch had reserved plus what was free. */
static json_t *snap_ledger_json(const struct snap_page *v)
{
	const struct snap_device *d = v->d;
	bool oom = d->oom.found;
	size_t moment = oom ? d->oom.event : d->replay.n ? d->replay.peak_moment : 0;
	struct snap_now now = oom ? d->oom.now : replay_at(&d->replay, moment);
	uint64_t allocated = at_least_0(now.allocated),
		 cache = at_least_0(now.reserved > now.allocated ? now.reserved - now.allocated : 0);
	json_t *parts =
		JSON_OF(J_BYTES("tensors", allocated), J_BYTES("cache", cache), J_BYTES("free", oom ? d->oom.free : 0));
	json_t *j = JSON_OF(J_TEXT("at", oom ? "oom" : d->replay.n ? "peak" : "end"), J_INT("device", d->device), J_NULL("total"),
			    J_BYTES("allocated", allocated), J_BYTES("reserved", at_least_0(now.reserved)),
			    J_BYTES("peak_allocated", at_least_0(d->replay.peak.allocated)), J_VALUE("parts", parts));

	add_snap_lines(v, moment, j);
	return j;
}

/* A block, or neighbors that are too small to be drawn one by one. */
struct snap_run {
	uint64_t from, to, bytes, blocks, largest;
	int line;			/* of the largest */
};

static void flush_run(json_t *list, struct snap_run *r)
{
	if (r->blocks)
		json_array_append_new(list, json_pack("[o,o,o,o,i,i]", json_bytes(r->from), json_bytes(r->to - r->from),
						      json_bytes(r->bytes), json_bytes(r->blocks), -1, r->line));
	*r = (struct snap_run){.line = -1};
}

static void grow_run(const struct snap_page *v, struct snap_run *r, const struct snap_block *b, uint64_t at)
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

static json_t *snap_runs_json(const struct snap_page *v, const struct snap_segment *s, struct filling *f)
{
	uint64_t grain = s->size / RUNS_OF_SEGMENT + 1;
	json_t *list = json_array();
	struct snap_run r = {.line = -1};

	for (uint32_t i = s->first; i < s->first + s->n; i++) {
		const struct snap_block *b = &v->s->block[i];
		uint64_t at = b->addr - s->addr;

		if (b->state == SNAP_INACTIVE) {
			f->unused += b->size;
			f->largest = b->size > f->largest ? b->size : f->largest;
			if (b->size >= grain)
				flush_run(list, &r);
			continue;
		}
		f->blocks++;
		if (b->size >= grain || r.largest >= grain || (r.blocks && at + b->size - r.from > 2 * grain))
			flush_run(list, &r);
		if (json_array_size(list) < 2 * RUNS_OF_SEGMENT)
			grow_run(v, &r, b, at);
	}
	flush_run(list, &r);
	return list;
}

static json_t *snap_segment_json(const struct snap_page *v, const struct snap_segment *s)
{
	struct filling f = {0};
	json_t *runs = snap_runs_json(v, s, &f);

	return JSON_OF(J_HEX("address", s->addr), J_BYTES("size", s->size), J_BYTES("free", f.unused),
		       J_BYTES("largest", f.largest), J_BYTES("blocks", f.blocks), J_INT("like", 1),
		       J_BYTES("stream", s->stream), J_VALUE("runs", runs));
}

static int larger_segment_first(const void *a, const void *b)
{
	const struct snap_segment *x = *(struct snap_segment *const *)a, *y = *(struct snap_segment *const *)b;

	if (x->size != y->size)
		return x->size > y->size ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* Segments that differ only in their address are drawn once. */
static bool join_segment(json_t *rows, const json_t *one)
{
	static const char *const keys[] = {"size", "free", "stream", "runs"};

	if (json_array_size(json_object_get(one, "runs")) > 1)
		return false;
	for (size_t i = json_array_size(rows); i > 0; i--) {
		json_t *row = json_array_get(rows, i - 1);
		size_t k = 0;

		while (k < 4 && json_equal(json_object_get(row, keys[k]), json_object_get(one, keys[k])))
			k++;
		if (k == 4) {
			json_integer_set(json_object_get(row, "like"),
					 json_integer_value(json_object_get(row, "like")) + 1);
			return true;
		}
		if (!k)
			return false;	/* they are sorted by size */
	}
	return false;
}

static json_t *snap_map_json(const struct snap_page *v)
{
	const struct snapshot *s = v->s;
	const struct snap_segment **mine = xcalloc(s->segments.n + 1, sizeof(const struct snap_segment *));
	json_t *list = json_array();
	uint64_t left = 0;
	size_t n = 0, n_left = 0;

	for (uint32_t i = s->segments.first; i < s->segments.first + s->segments.n; i++)
		if (s->segment[i].device == v->d->device)
			mine[n++] = &s->segment[i];
	xsort(mine, n, sizeof(*mine), larger_segment_first);
	for (size_t i = 0; i < n; i++) {
		json_t *one = snap_segment_json(v, mine[i]);

		if (join_segment(list, one)) {
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
	return JSON_OF(J_VALUE("segments", list), J_VALUE("kinds", json_array()), J_INT("count", n),
		       J_INT("n_left_out", n_left), J_BYTES("left_out", left),
		       J_TEXT("at", v->d->oom.found && v->d->oom.exact ? "oom" : "end"));
}

static json_t *snap_device_json(const struct snap_page *v)
{
	json_t *map = snap_map_json(v), *failures = snap_failures_json(v);	/* in this order: both add lines */
	json_t *parts = JSON_OF(J_TEXT("tensors", "tensors"), J_TEXT("cache", "PyTorch's cache"),
				J_TEXT("free", "free on the device"));

	return JSON_OF(J_INT("device", v->d->device), J_NULL("name"),
		       J_VALUE("timeline", snap_timeline_json(&v->d->replay)), J_VALUE("ledger", snap_ledger_json(v)),
		       J_VALUE("map", map), J_VALUE("flame", flame_of_snapshot(v->s, v->d)),
		       J_VALUE("words", JSON_OF(J_VALUE("parts", parts), J_VALUE("kinds", json_object()))),
		       J_VALUE("failures", failures));
}

static void put_snap_lives(struct page *p, const struct snap_page *v, json_t *device)
{
	struct lives l;

	lives_init(&l, PAGE_BLOCKS_MAX);
	lives_of_snapshot(&l, v->s, v->l, v->d);
	page_put_lives(p, device, &l);
	lives_release(&l);
}

static json_t *snap_environment(const struct snapshot *s)
{
	const char *conf = snap_text(s, s->conf);
	json_t *list = json_array();

	if (!s->settings_known)
		return list;
	json_array_append_new(list, json_pack("[s,o]", "PYTORCH_CUDA_ALLOC_CONF", json_text(conf[0] ? conf : "not set")));
	json_array_append_new(list, json_pack("[s,s]", "expandable segments", s->expandable ? "yes" : "no"));
	return list;
}

void page_add_snapshot(struct page *p, const struct snapshot *s, const struct snap_lines *l,
		       const struct snap_device *d, size_t n, const struct verdict *v)
{
	json_t *devices = json_array(), *gaps = json_array(), *detail;
	struct source_book book = {.cwd = ".", .foreign = true};
	struct page_words lines;

	page_words_init(&lines);
	for (size_t i = 0; i < n && json_array_size(devices) < PAGE_DEVICES_MAX; i++) {
		struct snap_page one = {.s = s, .l = l, .d = &d[i], .lines = &lines};

		if (!d[i].all.segments && !d[i].replay.n)
			continue;
		json_array_append_new(devices, snap_device_json(&one));
		if (d[i].replay.n)
			put_snap_lives(p, &one, json_array_get(devices, json_array_size(devices) - 1));
	}
	if (!s->n_events)
		json_append_text(gaps,
				 "no history was recorded; torch.cuda.memory._record_memory_history() switches it on");
	detail = JSON_OF(J_VALUE("devices", devices), J_VALUE("sources", page_sources(v, &book, 0)),
			 J_VALUE("quotes", page_quotes(v, &book)), J_VALUE("environment", snap_environment(s)),
			 J_VALUE("gaps", gaps), J_SHARED("lines", lines.list));
	page_words_release(&lines);
	page_add_row(p, JSON_OF(J_NULL("pid"), J_NULL("rank"), J_TEXT("cause", AT(v->cause->id)),
				J_VALUE("detail", detail)));
}
