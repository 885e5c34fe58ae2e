/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy memory SNAPSHOT`: the answer as text and as JSON.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <jansson.h>

#include "base/json.h"
#include "cmd/memory_snapshot.h"
#include "rules/template.h"
#include "base/banned.h"

#define ROWS_SHOWN	12
#define CHART_ROWS	8
#define PINS_SHOWN	3

static uint64_t positive(int64_t n)
{
	return n > 0 ? (uint64_t)n : 0;
}

static void print_bytes(const char *what, uint64_t bytes, const char *more)
{
	char size[32];

	printf("  %-22s %12s%s%s\n", what, format_bytes(size, sizeof(size), (double)bytes), more[0] ? "  " : "", more);
}

static void print_totals(const struct memory_view *v)
{
	const struct snap_use *u = &v->d->all;
	char more[64], size[32];

	printf("device %d\n", v->d->device);
	snprintf(more, sizeof(more), "%zu segment%s, at the end", u->segments, u->segments == 1 ? "" : "s");
	print_bytes("reserved", u->reserved, more);
	print_bytes("  in tensors", u->allocated, "");
	if (u->pending)
		print_bytes("  freed, not yet done", u->pending, "another stream may still use it");
	snprintf(more, sizeof(more), "beside live blocks; largest piece %s",
		 format_bytes(size, sizeof(size), (double)u->largest_free));
	print_bytes("  free in pieces", u->split, u->split ? more : "");
	print_bytes("  free segments", u->cached, "");
	if (v->d->replay.n) {
		snprintf(more, sizeof(more), "after event %zu of %zu", v->d->replay.peak_moment, v->d->replay.n);
		print_bytes("peak in tensors", positive(v->d->replay.peak.allocated), more);
	}
	if (v->d->oom.found) {
		snprintf(more, sizeof(more), "asked for, %s were free: event %u",
			 format_bytes(size, sizeof(size), (double)v->d->oom.free), v->d->oom.event + 1);
		print_bytes("out of memory", v->d->oom.request, more);
	}
}

static void print_rows(const struct memory_view *v, int width)
{
	int room = width > 60 ? width - 30 : 40;
	bool part = !strcmp(v->by, "stream") || !strcmp(v->by, "pool");
	uint64_t rest = 0;
	char size[32];

	printf("\n%s by %s, at the %s: %s\n", part ? "reserved" : "tensors", v->by, v->at,
	       format_bytes(size, sizeof(size), (double)(part ? v->d->all.reserved : positive(v->now.allocated))));
	for (size_t i = 0; i < v->n; i++) {
		const char *name = v->row[i].name;
		bool cut = strlen(name) > (size_t)room;

		if (i >= ROWS_SHOWN) {
			rest += v->row[i].bytes;
			continue;
		}
		printf("  %12s  %8" PRIu64 "  %s%s\n", format_bytes(size, sizeof(size), (double)v->row[i].bytes),
		       v->row[i].blocks, cut ? "..." : "", cut ? name + strlen(name) - room + 3 : name);
	}
	if (v->n > ROWS_SHOWN)
		printf("  %12s            and %zu more\n", format_bytes(size, sizeof(size), (double)rest),
		       v->n - ROWS_SHOWN);
}

static void print_pins(const struct memory_view *v)
{
	char kept[32], own[32];

	if (v->d->all.split < v->d->all.reserved / 10)
		return;
	printf("\nfree memory that cannot go back to the driver, by the line whose blocks lie beside it\n");
	for (size_t i = 0; i < v->d->n_pins && i < PINS_SHOWN; i++) {
		const struct snap_line *at = snap_line(v->l, v->d->pin[i].line);

		printf("  %12s  %s:%u  (its blocks: %s)\n", format_bytes(kept, sizeof(kept), (double)v->d->pin[i].kept),
		       at->file ? snap_text(v->s, at->file) : "(not known)", at->line,
		       format_bytes(own, sizeof(own), (double)v->d->pin[i].bytes));
	}
}

static void print_chart(const struct memory_view *v)
{
	uint64_t top = 1;
	char size[32];

	for (size_t i = 0; i < CHART_COLUMNS; i++)
		if (v->chart[i] > top)
			top = v->chart[i];
	if (!v->d->replay.n)
		return;
	printf("\ntensors over time\n");
	for (int row = CHART_ROWS; row > 0; row--) {
		if (row == CHART_ROWS)
			printf("  %12s |", format_bytes(size, sizeof(size), (double)top));
		else
			printf("  %12s |", "");
		for (size_t i = 0; i < CHART_COLUMNS; i++)
			putchar((double)v->chart[i] / (double)top * CHART_ROWS > row - 0.5 ? '#' : ' ');
		putchar('\n');
	}
	printf("  %12s +------------------------------------------------------------\n", "0");
}

void memory_print(const struct memory_view *v, int width)
{
	print_totals(v);
	print_rows(v, width);
	print_pins(v);
	print_chart(v);
	if (v->d->growth.steady) {
		const struct snap_line *at = snap_line(v->l, v->d->growth.line);
		char size[32];

		printf("\n%s:%u holds more and more: %s in %u blocks\n", snap_text(v->s, at->file), at->line,
		       format_bytes(size, sizeof(size), (double)v->d->growth.bytes), v->d->growth.blocks);
	}
}

/* --- JSON ------------------------------------------------------------------------------------- */

static json_t *json_rows(const struct memory_view *v)
{
	json_t *list = json_array(), *o;

	for (size_t i = 0; i < v->n; i++) {
		const struct memory_row *r = &v->row[i];

		o = json_pack("{s:o, s:o, s:o}", "name", json_text(r->name), "bytes", json_bytes(r->bytes),
			      "blocks", json_bytes(r->blocks));
		if (r->line) {
			json_object_set_new(o, "file", json_text(snap_text(v->s, r->line->file)));
			json_object_set_new(o, "line", json_integer(r->line->line));
			json_object_set_new(o, "function", json_text(snap_text(v->s, r->line->function)));
			json_object_set_new(o, "library", json_boolean(r->line->library));
		}
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *json_oom(const struct snap_oom *o)
{
	if (!o->found)
		return json_null();
	return json_pack("{s:o, s:o, s:o, s:o, s:i, s:i}", "request", json_bytes(o->request), "free", json_bytes(o->free),
			 "allocated", json_bytes(positive(o->now.allocated)), "reserved", json_bytes(positive(o->now.reserved)),
			 "event", (int)o->event, "count", (int)o->count);
}

static json_t *json_device(const struct memory_view *v)
{
	const struct snap_use *u = &v->d->all;
	const struct snap_now *peak = &v->d->replay.peak;
	json_t *o = json_object(), *chart = json_array();

	json_object_set_new(o, "device", json_integer(v->d->device));
	json_object_set_new(o, "reserved", json_bytes(u->reserved));
	json_object_set_new(o, "allocated", json_bytes(u->allocated));
	json_object_set_new(o, "requested", json_bytes(u->requested));
	json_object_set_new(o, "pending_free", json_bytes(u->pending));
	json_object_set_new(o, "inactive_split", json_bytes(u->split));
	json_object_set_new(o, "free_segments", json_bytes(u->cached));
	json_object_set_new(o, "largest_free", json_bytes(u->largest_free));
	json_object_set_new(o, "events", json_integer((json_int_t)v->d->replay.n));
	json_object_set_new(o, "peak", json_pack("{s:o, s:o, s:I}", "allocated", json_bytes(positive(peak->allocated)),
						 "reserved", json_bytes(positive(peak->reserved)), "event",
						 (json_int_t)v->d->replay.peak_moment));
	json_object_set_new(o, "oom", json_oom(&v->d->oom));
	json_object_set_new(o, "at", json_text(v->at));
	json_object_set_new(o, "by", json_text(v->by));
	json_object_set_new(o, "holders", json_rows(v));
	for (size_t i = 0; i < CHART_COLUMNS; i++)
		json_array_append_new(chart, json_bytes(v->chart[i]));
	json_object_set_new(o, "timeline", chart);
	return o;
}

void memory_print_json(const struct memory_view *v, size_t n)
{
	json_t *list = json_array(), *o;

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_device(&v[i]));
	o = json_pack("{s:i, s:s, s:o}", "schema", 1, "source", "snapshot", "devices", list);
	json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(o);
}
