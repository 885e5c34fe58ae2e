/* SPDX-License-Identifier: Apache-2.0
 * A memory snapshot of PyTorch in a page: memory over time, and who held what.
 */
#include <stdlib.h>
#include <string.h>

#include "input/snapshot/observe.h"
#include "base/json_text.h"
#include "write/page_snap.h"
#include "judge/verdict.h"

int snap_page_line(const struct snap_page *v, uint32_t line)
{
	const struct snap_line *at = snap_line(v->l, line);
	struct place p = { .file = at->file ? snap_text(v->s, at->file) : NULL, .line = at->line };

	p.function = at->file ? snap_text(v->s, at->function) : NULL;
	return words_place(v->lines, &p, "");
}

/* --- over time ---------------------------------------------------------------------------------- */

/* Without times the number of the event stands for it. */
static uint64_t time_of(const struct snap_replay *r, size_t i)
{
	return r->event[i].time_us && r->event[0].time_us && r->event[i].time_us >= r->event[0].time_us ?
		       r->event[i].time_us - r->event[0].time_us : r->event[0].time_us ? 0 : i;
}

static json_t *bytes(int64_t n)
{
	return page_integer(n > 0 ? (uint64_t)n : 0);
}

/* The most in each of PAGE_SAMPLES_MAX parts of the events. */
static json_t *json_timeline(const struct snap_replay *r)
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
		json_array_append_new(time, page_integer(time_of(r, i)));
		json_array_append_new(allocated, bytes(most.allocated));
		json_array_append_new(reserved, bytes(most.reserved));
	}
	return json_pack("{s:o,s:o,s:o,s:b}", "us", time, "allocated", allocated, "reserved", reserved, "timed",
			 r->n && r->event[0].time_us);
}

static json_t *json_failures(const struct snap_page *v)
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
		json_array_append_new(list, json_pack("{s:o,s:s,s:n,s:n,s:n,s:i,s:i,s:i}", "us", page_integer(time_of(r, i)),
						      "source", "PyTorch's allocator gave up", "code", "name", "api", "count",
						      1, "line", snap_page_line(v, v->l->of_stack[r->event[i].stack]), "device",
						      v->d->device));
	}
	return json_pack("{s:o,s:I}", "list", list, "left_out", (json_int_t)left);
}

/* --- who held what ------------------------------------------------------------------------------ */

static json_t *json_holder(const struct snap_page *v, const struct snap_holder *h)
{
	const struct snap_line *at = snap_line(v->l, h->line);
	json_t *j = json_object();

	json_object_set_new(j, "part", json_string("tensors"));
	json_object_set_new(j, "file", at->file ? json_text(snap_text(v->s, at->file)) : json_null());
	json_object_set_new(j, "line", at->file ? json_integer(at->line) : json_null());
	json_object_set_new(j, "function", at->file ? json_text(snap_text(v->s, at->function)) : json_null());
	json_object_set_new(j, "bytes", page_integer(h->bytes));
	json_object_set_new(j, "count", page_integer(h->blocks));
	return j;
}

static json_t *json_lines(const struct snap_page *v, size_t moment, json_t *ledger)
{
	struct snap_holder *h;
	size_t n = snap_holders(v->d, v->l, moment, &h);
	json_t *list = json_array();
	uint64_t left = 0;

	for (size_t i = 0; i < n; i++)
		if (i < PAGE_LINES_MAX)
			json_array_append_new(list, json_holder(v, &h[i]));
		else
			left += h[i].bytes;
	if (n > PAGE_LINES_MAX) {
		json_object_set_new(ledger, "lines_left_out", page_integer(n - PAGE_LINES_MAX));
		json_object_set_new(ledger, "bytes_left_out", page_integer(left));
	}
	free(h);
	return list;
}

/* The card's size is not in a snapshot: the parts add up to what PyTorch had reserved, and what was free then. */
static json_t *json_ledger(const struct snap_page *v)
{
	const struct snap_device *d = v->d;
	bool oom = d->oom.found;
	size_t moment = oom ? d->oom.event : d->replay.n ? d->replay.peak_moment : 0;
	struct snap_now now = oom ? d->oom.now : replay_at(&d->replay, moment);
	int64_t cache = now.reserved > now.allocated ? now.reserved - now.allocated : 0;
	json_t *j = json_object();

	json_object_set_new(j, "at", json_string(oom ? "oom" : d->replay.n ? "peak" : "end"));
	json_object_set_new(j, "device", json_integer(d->device));
	json_object_set_new(j, "total", json_null());
	json_object_set_new(j, "allocated", bytes(now.allocated));
	json_object_set_new(j, "reserved", bytes(now.reserved));
	json_object_set_new(j, "peak_allocated", bytes(d->replay.peak.allocated));
	json_object_set_new(j, "parts", json_pack("{s:o,s:o,s:o}", "tensors", bytes(now.allocated), "cache", bytes(cache),
						  "free", page_integer(oom ? d->oom.free : 0)));
	json_object_set_new(j, "lines", json_lines(v, moment, j));
	return j;
}

/* --- devices ------------------------------------------------------------------------------------ */

static json_t *json_device(const struct snap_page *v)
{
	json_t *j = json_object();

	json_object_set_new(j, "device", json_integer(v->d->device));
	json_object_set_new(j, "name", json_null());
	json_object_set_new(j, "timeline", json_timeline(&v->d->replay));
	json_object_set_new(j, "ledger", json_ledger(v));
	json_object_set_new(j, "map", snap_page_map(v));
	json_object_set_new(j, "words", json_pack("{s:{s:s,s:s,s:s},s:{}}", "parts", "tensors", "tensors", "cache",
						  "PyTorch's cache", "free", "free on the device", "kinds"));
	json_object_set_new(j, "failures", json_failures(v));
	return j;
}

static json_t *json_environment(const struct snapshot *s)
{
	const char *conf = snap_text(s, s->conf);
	json_t *list = json_array();

	if (!s->settings_known)
		return list;
	json_array_append_new(list, json_pack("[s,o]", "PYTORCH_CUDA_ALLOC_CONF", json_text(conf[0] ? conf : "not set")));
	json_array_append_new(list, json_pack("[s,s]", "expandable segments", s->expandable ? "yes" : "no"));
	return list;
}

void page_add_snapshot(struct page *p, const struct snapshot *s, const struct snap_lines *l, const struct snap_device *d,
		       size_t n, const struct verdict *v)
{
	json_t *devices = json_array(), *detail = json_object(), *gaps = json_array();
	struct page_words lines;

	words_init(&lines);
	for (size_t i = 0; i < n && json_array_size(devices) < PAGE_DEVICES_MAX; i++) {
		struct snap_page one = { .s = s, .l = l, .d = &d[i], .lines = &lines };

		if (d[i].all.segments || d[i].replay.n)
			json_array_append_new(devices, json_device(&one));
	}
	if (!s->n_events)
		page_say(gaps, "no history was recorded; torch.cuda.memory._record_memory_history() switches it on");
	json_object_set_new(detail, "devices", devices);
	json_object_set_new(detail, "sources", page_sources(v, ".", 0));
	json_object_set_new(detail, "quotes", page_quotes(v, "."));
	json_object_set_new(detail, "environment", json_environment(s));
	json_object_set_new(detail, "gaps", gaps);
	json_object_set(detail, "lines", lines.list);
	words_release(&lines);
	json_array_append_new(p->processes, json_pack("{s:n,s:n,s:s,s:o}", "pid", "rank", "cause", v->cause->id, "detail",
						      detail));
	p->n_processes++;
	p->n_details++;
}
