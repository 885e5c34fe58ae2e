/* SPDX-License-Identifier: Apache-2.0
 * The memory of a process's devices in a page: over time, the ledger at the moment that counts, the map of segments.
 */
#include <string.h>

#include "input/recording/place.h"
#include "input/recording/memory_map.h"
#include "input/recording/over_time.h"
#include "base/json_text.h"
#include "write/page_priv.h"
#include "write/report_ledger.h"
#include "judge/verdict.h"
#include "input/recording/trace_memory.h"

static bool device_used(struct trace *t, int device)
{
	const struct cw_memory_now *m = trace_memory(t, device);

	return (m && (m->peak_allocated || m->driver_peak || m->n_oom)) || ledger_oom(t, device);
}

/* --- over time ---------------------------------------------------------------------------------- */

static void larger(uint64_t *a, uint64_t b)
{
	*a = b > *a ? b : *a;
}

static json_t *json_samples(struct trace *t, int device)
{
	json_t *time = json_array(), *allocated = json_array(), *reserved = json_array(), *driver = json_array();
	const struct cw_sample *s;
	size_t n, each;

	trace_timeline(t, device, &s, &n);
	each = n / PAGE_SAMPLES_MAX + 1;
	for (size_t i = 0; i < n; i += each) {
		struct cw_sample most = s[i];

		for (size_t k = i + 1; k < i + each && k < n; k++) {
			larger(&most.allocated, s[k].allocated);
			larger(&most.reserved, s[k].reserved);
			larger(&most.driver, s[k].driver);
		}
		json_array_append_new(time, page_integer(trace_ns(t, most.ticks) / 1000));
		json_array_append_new(allocated, page_integer(most.allocated));
		json_array_append_new(reserved, page_integer(most.reserved));
		json_array_append_new(driver, page_integer(most.driver));
	}
	return json_pack("{s:o,s:o,s:o,s:o}", "us", time, "allocated", allocated, "reserved", reserved, "driver", driver);
}

static json_t *json_timeline(struct trace *t, const struct ledger *l, struct pool *pool)
{
	json_t *j = json_samples(t, l->device);
	struct over_time o;

	over_time_build(&o, t, l->device, l, pool);
	json_object_set_new(j, "kinds", over_time_json(&o, t));
	return j;
}

/* --- the ledger --------------------------------------------------------------------------------- */

static json_t *json_ledger(struct ledger *l, const struct trace *t)
{
	uint64_t left = 0;
	size_t n = l->n;
	json_t *j;

	for (; l->n > PAGE_LINES_MAX; l->n--)
		left += l->line[l->n - 1].bytes;
	for (size_t i = 0; i < l->n; i++)
		if (l->line[i].place.file)
			l->line[i].place.file = file_shown(l->line[i].place.file, trace_header(t)->cwd);
	for (size_t i = 0; i < l->segments.n_pins; i++)
		if (l->segments.pin[i].place.file)
			l->segments.pin[i].place.file = file_shown(l->segments.pin[i].place.file, trace_header(t)->cwd);
	j = ledger_json(l);
	if (n > l->n) {
		json_object_set_new(j, "lines_left_out", page_integer(n - l->n));
		json_object_set_new(j, "bytes_left_out", page_integer(left));
	}
	if (l->ticks != UINT64_MAX)
		json_object_set_new(j, "us", page_integer(trace_ns(t, l->ticks) / 1000));
	return j;
}

static json_t *words_of_parts(void)
{
	json_t *parts = json_object(), *kinds = json_object();

	for (int p = 0; p < PART_COUNT; p++)
		json_object_set_new(parts, ledger_part_id((enum ledger_part)p), json_string(ledger_part_text((enum ledger_part)p)));
	for (int k = 0; k < KIND_COUNT; k++)
		json_object_set_new(kinds, ledger_kind_id((enum ledger_kind)k), json_string(ledger_kind_text((enum ledger_kind)k)));
	return json_pack("{s:o,s:o}", "parts", parts, "kinds", kinds);
}

/* --- the map ------------------------------------------------------------------------------------ */

static json_t *json_runs(const struct memory_map *m, const struct map_segment *s, struct page_words *lines, const char *cwd)
{
	json_t *list = json_array();

	for (size_t i = s->first; i < s->first + s->n; i++) {
		const struct map_run *r = &m->run[i];

		json_array_append_new(list, json_pack("[o,o,o,o,i,i]", page_integer(r->offset), page_integer(r->span),
						      page_integer(r->bytes), page_integer(r->blocks), (int)r->kind,
						      words_place(lines, &r->place, cwd)));
	}
	return list;
}

static json_t *json_map(const struct memory_map *m, struct page_words *lines, const char *cwd)
{
	json_t *list = json_array(), *kinds = json_array();

	for (size_t i = 0; i < m->n; i++) {
		const struct map_segment *s = &m->segment[i];

		json_array_append_new(list, json_pack("{s:o,s:o,s:o,s:o,s:o,s:I,s:o}", "address", page_address(s->addr), "size",
						      page_integer(s->size), "free", page_integer(s->free), "largest",
						      page_integer(s->largest_free), "blocks", page_integer(s->blocks), "like", (json_int_t)s->like, "runs",
						      json_runs(m, s, lines, cwd)));
	}
	for (int k = 0; k < KIND_COUNT; k++)
		json_array_append_new(kinds, json_string(ledger_kind_id((enum ledger_kind)k)));
	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o}", "segments", list, "kinds", kinds, "count", page_integer(m->segments),
			 "n_left_out", page_integer(m->n_left_out), "left_out", page_integer(m->left_out),
			 "left_out_free", page_integer(m->left_out_free));
}

/* At the moment of the ledger; a peak leaves no blocks behind, so there the end is drawn. */
static json_t *device_map(struct trace *t, const struct ledger *l, const struct cw_failure *f, struct page_words *lines,
			  struct pool *pool)
{
	static const struct map_limits limits = { PAGE_SEGMENTS_MAX, PAGE_RUNS_MAX };
	bool oom = l->at == LEDGER_OOM && f;
	const struct cw_memory_now *now = trace_memory(t, l->device);
	struct memory_map m;
	json_t *j;

	memory_map_build(&m, t, l->device, oom ? f->ticks : UINT64_MAX,
			 oom ? failure_in_backward(t, f) : !trace_header(t)->exit_known,
			 oom ? l->reserved : now ? now->reserved : 0, &limits, pool);
	j = json_map(&m, lines, trace_header(t)->cwd);
	json_object_set_new(j, "at", json_string(oom ? "oom" : "end"));
	return j;
}

/* --- devices ------------------------------------------------------------------------------------ */

static json_t *json_device(struct trace *t, int device, const struct process_end *end, struct page_words *lines)
{
	const struct cw_header *h = trace_header(t);
	const struct cw_failure *f = ledger_oom(t, device);
	enum ledger_at at = f ? LEDGER_OOM : trace_memory(t, device)->peak_allocated ? LEDGER_PEAK : LEDGER_END;
	json_t *j = json_object();
	struct ledger_seen seen;
	struct pool pool = { 0 };
	struct ledger l;

	ledger_seen_from(&seen, f ? end->usage : NULL, &h->device[device], h->pid, &pool);
	ledger_build(&l, t, device, at, f, &seen, &pool);
	json_object_set_new(j, "device", json_integer(device));
	json_object_set_new(j, "name", json_text(h->device[device].name));
	json_object_set_new(j, "timeline", json_timeline(t, &l, &pool));
	json_object_set_new(j, "map", device_map(t, &l, f, lines, &pool));
	json_object_set_new(j, "ledger", json_ledger(&l, t));
	json_object_set_new(j, "words", words_of_parts());
	pool_release(&pool);
	return j;
}

json_t *page_devices(struct trace *t, const struct process_end *end, struct page_words *lines)
{
	json_t *list = json_array();

	for (int d = 0; d < CW_MAX_DEVICES && json_array_size(list) < PAGE_DEVICES_MAX; d++)
		if (device_used(t, d))
			json_array_append_new(list, json_device(t, d, end, lines));
	return list;
}
