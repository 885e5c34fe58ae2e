/* SPDX-License-Identifier: Apache-2.0
 * The memory of a recording's devices, on the page: over time, as a map, by who holds it (see page_parts.h).
 */
#include "show/page_parts.h"

#include "base/json.h"
#include "case/process.h"
#include "find/memory/memory_map.h"
#include "find/memory/over_time.h"
#include "read/recording/trace.h"
#include "read/recording/trace_memory.h"
#include "show/page.h"
#include "show/page_flame.h"
#include "show/page_words.h"
#include "show/report_ledger.h"

#define RUNS_MAX	4000	/* per segment map */

static bool has_memory(struct trace *t, int device)
{
	const struct cw_memory_now *m = trace_memory(t, device);

	return (m && (m->peak_allocated || m->driver_peak || m->n_oom)) || ledger_oom(t, device);
}

static json_t *samples_json(struct trace *t, int device, struct pool *pool)
{
	json_t *time = json_array(), *allocated = json_array(), *reserved = json_array(), *driver = json_array();
	size_t n;
	const struct cw_sample *s = over_time_samples(t, device, PAGE_SAMPLES_MAX, &n, pool);

	for (size_t i = 0; i < n; i++) {
		json_array_append_new(time, json_bytes(trace_ns(t, s[i].ticks) / 1000));
		json_array_append_new(allocated, json_bytes(s[i].allocated));
		json_array_append_new(reserved, json_bytes(s[i].reserved));
		json_array_append_new(driver, json_bytes(s[i].driver));
	}
	return JSON_OF(J_VALUE("us", time), J_VALUE("allocated", allocated), J_VALUE("reserved", reserved),
		       J_VALUE("driver", driver));
}

static json_t *device_timeline(struct trace *t, const struct ledger *l, struct pool *pool)
{
	json_t *j = samples_json(t, l->device, pool);
	struct over_time o;

	over_time_build(&o, t, l->device, l, pool);
	JSON_ADD(j, J_VALUE("kinds", over_time_json(&o, t)));
	return j;
}

static json_t *device_ledger(struct ledger *l, const struct trace *t)
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
	JSON_ADD(j, J_IF(n > l->n, J_BYTES("lines_left_out", n - l->n)), J_IF(n > l->n, J_BYTES("bytes_left_out", left)),
		 J_IF(l->ticks != UINT64_MAX, J_BYTES("us", trace_ns(t, l->ticks) / 1000)));
	return j;
}

static json_t *words_of_parts(void)
{
	json_t *parts = json_object(), *kinds = json_object();

	for (int p = 0; p < PART_COUNT; p++)
		JSON_ADD(parts, J_TEXT(ledger_part_id((enum ledger_part)p), ledger_part_text((enum ledger_part)p)));
	for (int k = 0; k < KIND_COUNT; k++)
		JSON_ADD(kinds, J_TEXT(ledger_kind_id((enum ledger_kind)k), ledger_kind_text((enum ledger_kind)k)));
	return JSON_OF(J_VALUE("parts", parts), J_VALUE("kinds", kinds));
}

static json_t *map_runs_json(const struct memory_map *m, const struct map_segment *s, struct page_words *lines,
			     const char *cwd)
{
	json_t *list = json_array();

	for (size_t i = s->first; i < s->first + s->n; i++) {
		const struct map_run *r = &m->run[i];

		json_array_append_new(list, json_pack("[o,o,o,o,i,i]", json_bytes(r->offset), json_bytes(r->span),
						      json_bytes(r->bytes), json_bytes(r->blocks), (int)r->kind,
						      page_words_place(lines, &r->place, cwd)));
	}
	return list;
}

static const struct field map_segment_field[] = {
	F_ALWAYS(HEX, "address", struct map_segment, addr),
	F_ALWAYS(BYTES, "size", struct map_segment, size),
	F_ALWAYS(BYTES, "free", struct map_segment, free),
	F_ALWAYS(BYTES, "largest", struct map_segment, largest_free),
	F_ALWAYS(BYTES, "blocks", struct map_segment, blocks),
	F_ALWAYS(NUMBER, "like", struct map_segment, like),
	F_END,
};
static const struct fields map_segment_fields = {map_segment_field, sizeof(struct map_segment), NULL};

static json_t *map_json(const struct memory_map *m, struct page_words *lines, const char *cwd)
{
	json_t *list = json_array(), *kinds = json_array();

	for (size_t i = 0; i < m->n; i++) {
		json_t *one = fields_write(&map_segment_fields, &m->segment[i]);

		JSON_ADD(one, J_VALUE("runs", map_runs_json(m, &m->segment[i], lines, cwd)));
		json_array_append_new(list, one);
	}
	for (int k = 0; k < KIND_COUNT; k++)
		json_array_append_new(kinds, json_string(ledger_kind_id((enum ledger_kind)k)));
	return JSON_OF(J_VALUE("segments", list), J_VALUE("kinds", kinds), J_BYTES("count", m->segments),
		       J_BYTES("n_left_out", m->n_left_out), J_BYTES("left_out", m->left_out),
		       J_BYTES("left_out_free", m->left_out_free));
}

static json_t *device_map(struct trace *t, const struct ledger *l, struct page_words *lines, struct pool *pool)
{
	static const struct map_limits limits = {PAGE_SEGMENTS_MAX, RUNS_MAX};
	struct memory_map m;
	bool oom = memory_map_of(&m, t, l, &limits, pool);
	json_t *j = map_json(&m, lines, trace_header(t)->cwd);

	JSON_ADD(j, J_TEXT("at", oom ? "oom" : "end"));
	return j;
}

static json_t *device_json(struct trace *t, int device, const struct process_end *end, struct page_words *lines)
{
	const struct cw_header *h = trace_header(t);
	const struct cw_failure *f = ledger_oom(t, device);
	struct ledger_seen seen;
	struct pool pool = {0};
	struct ledger l;
	json_t *timeline, *map, *ledger;

	ledger_seen_from(&seen, f ? end->usage : NULL, &h->device[device], h->pid, &pool);
	ledger_build(&l, t, device, ledger_moment(t, device), f, &seen, &pool);
	timeline = device_timeline(t, &l, &pool);
	map = device_map(t, &l, lines, &pool);
	ledger = device_ledger(&l, t);		/* last, because it trims the ledger */
	pool_release(&pool);
	return JSON_OF(J_INT("device", device), J_TEXT("name", h->device[device].name), J_VALUE("timeline", timeline),
		       J_VALUE("map", map), J_VALUE("ledger", ledger), J_VALUE("words", words_of_parts()),
		       J_VALUE("flame", flame_of_recording(t, device, f)));
}

json_t *page_devices(struct trace *t, const struct process_end *end, struct page_words *lines)
{
	json_t *list = json_array();

	for (int d = 0; d < CW_MAX_DEVICES && json_array_size(list) < PAGE_DEVICES_MAX; d++)
		if (has_memory(t, d))
			json_array_append_new(list, device_json(t, d, end, lines));
	return list;
}
