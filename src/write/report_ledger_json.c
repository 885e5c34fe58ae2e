/* SPDX-License-Identifier: Apache-2.0
 * The ledger as JSON: the parts, which add up to the total, the kinds of tensors, the lines, PyTorch's segments.
 */
#include "input/recording/over_time.h"
#include "base/json.h"
#include "write/report_ledger.h"
#include "input/recording/trace.h"

#define SEGMENTS_SHOWN 16

static json_t *json_line(const struct ledger_line *l)
{
	json_t *j = json_object();

	json_object_set_new(j, "part", json_string(ledger_part_id(l->part)));
	if (l->part == PART_TENSORS)
		json_object_set_new(j, "kind", json_string(ledger_kind_id(l->kind)));
	json_object_set_new(j, "file", json_text(l->place.file));
	json_object_set_new(j, "line", l->place.file ? json_integer(l->place.line) : json_null());
	json_object_set_new(j, "function", json_text(l->place.function));
	json_object_set_new(j, "bytes", json_bytes(l->bytes));
	json_object_set_new(j, "count", json_bytes(l->count));
	if (l->made)
		json_object_set_new(j, "made", json_bytes(l->made));
	if (l->part == PART_LIBRARIES)
		json_object_set_new(j, "library", json_text(l->library));
	if (l->part == PART_PROCESSES) {
		json_object_set_new(j, "pid", l->pid ? json_integer(l->pid) : json_null());
		json_object_set_new(j, "command", json_text(l->command));
	}
	return j;
}

static json_t *json_lines(const struct ledger_line *l, size_t n)
{
	json_t *j = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(j, json_line(&l[i]));
	return j;
}

static json_t *json_segments(const struct ledger_segments *s)
{
	json_t *j = json_object(), *list = json_array();

	for (size_t i = 0; i < s->n && i < SEGMENTS_SHOWN; i++)
		json_array_append_new(list, json_pack("{s:o,s:o,s:o,s:o,s:s}", "size", json_bytes(s->list[i].size), "free",
						      json_bytes(s->list[i].free), "largest", json_bytes(s->list[i].largest),
						      "tensors", json_bytes(s->list[i].n), "map", s->list[i].map));
	json_object_set_new(j, "count", json_bytes(s->n));
	json_object_set_new(j, "in_use", json_bytes(s->used));
	json_object_set_new(j, "free_in_used", json_bytes(s->free_used));
	json_object_set_new(j, "free_whole", json_bytes(s->free_whole));
	json_object_set_new(j, "largest_free_block", json_bytes(s->largest));
	json_object_set_new(j, "kept_by", json_lines(s->pin, s->n_pins));
	json_object_set_new(j, "list", list);
	return j;
}

json_t *ledger_json(const struct ledger *l)
{
	static const char *const moments[] = { "end", "peak", "oom", "time" };
	json_t *j = json_object(), *parts = json_object(), *kinds = json_object();

	for (int p = 0; p < PART_COUNT; p++)
		json_object_set_new(parts, ledger_part_id((enum ledger_part)p), json_bytes(l->part[p]));
	for (int k = 0; k < KIND_COUNT; k++)
		json_object_set_new(kinds, ledger_kind_id((enum ledger_kind)k), json_bytes(l->kind[k]));
	json_object_set_new(j, "at", json_string(moments[l->at]));
	if (l->at == LEDGER_TIME)
		json_object_set_new(j, "exact", json_boolean(!l->sampled && !l->missing));
	json_object_set_new(j, "device", json_integer(l->device));
	json_object_set_new(j, "name", json_text(l->device_name));
	json_object_set_new(j, "total", l->total_known ? json_bytes(l->total) : json_null());
	json_object_set_new(j, "allocated", json_bytes(l->allocated));
	json_object_set_new(j, "reserved", json_bytes(l->reserved));
	json_object_set_new(j, "peak_allocated", json_bytes(l->peak_allocated));
	json_object_set_new(j, "peak_reserved", json_bytes(l->peak_reserved));
	json_object_set_new(j, "parts", parts);
	json_object_set_new(j, "kinds", kinds);
	json_object_set_new(j, "lines", json_lines(l->line, l->n));
	json_object_set_new(j, "lines_complete", json_boolean(l->lines_complete));
	json_object_set_new(j, "segments", json_segments(&l->segments));
	json_object_set_new(j, "pinned", json_pack("{s:o,s:o}", "bytes", json_bytes(l->pinned), "peak",
						   json_bytes(l->pinned_peak)));
	return j;
}

/* --- over time ---------------------------------------------------------------------------------- */

/* One figure of every column; the place of the figure in it. */
static json_t *json_row(const struct over_time *o, size_t offset)
{
	json_t *j = json_array();

	for (size_t i = 0; i < o->n; i++)
		json_array_append_new(j, json_bytes(*(const uint64_t *)((const char *)&o->column[i] + offset)));
	return j;
}

static json_t *json_times(const struct over_time *o, const struct trace *t, bool moments)
{
	json_t *j = json_array();

	for (size_t i = 0; i < o->n; i++)
		json_array_append_new(j, json_bytes(trace_ns(t, moments ? o->column[i].at : o->column[i].begin) / 1000));
	return j;
}

static json_t *json_kinds(const struct over_time *o)
{
	json_t *j = json_object();

	for (int k = 0; k < KIND_COUNT; k++)
		for (size_t i = 0; i < o->n; i++)
			if (o->column[i].kind[k]) {
				json_object_set_new(j, ledger_kind_id((enum ledger_kind)k),
						    json_row(o, offsetof(struct over_column, kind) + (size_t)k * sizeof(uint64_t)));
				break;
			}
	return j;
}

json_t *over_time_json(const struct over_time *o, const struct trace *t)
{
	size_t ledger = 0;

	if (!o->n)
		return json_null();
	while (ledger + 1 < o->n && !o->column[ledger].ledger)
		ledger++;
	return json_pack("{s:o,s:o,s:o,s:o,s:o,s:o,s:I,s:o}", "us", json_times(o, t, false), "at_us", json_times(o, t, true),
			 "tensors", json_kinds(o), "untold", json_row(o, offsetof(struct over_column, untold)), "cache",
			 json_row(o, offsetof(struct over_column, cache)), "other_libraries",
			 json_row(o, offsetof(struct over_column, libraries)), "ledger", (json_int_t)ledger, "lost",
			 json_bytes(o->lost));
}
