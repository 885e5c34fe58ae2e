/* SPDX-License-Identifier: Apache-2.0
 * A memory snapshot of PyTorch: who held what, at which moment (see memory.h).
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "find/memory/observe_snapshot.h"
#include "find/memory/snap_analyze.h"
#include "base/format.h"
#include "show/memory.h"

#define ROWS_SHOWN	12
#define CHART_ROWS	8
#define CHART_COLUMNS	60
#define PINS_SHOWN	3

struct snap_row {		/* of a table: a line, a function, a stream or a pool */
	char *name;
	uint64_t bytes, blocks;
	const struct snap_line *line;	/* NULL when it is none */
};

struct snap_view {		/* of one device */
	const struct snapshot *s;
	struct snap_device d;
	const struct snap_lines *l;
	const char *by, *at;	/* as they were chosen */
	size_t moment;
	struct snap_now now;
	struct snap_row *row;	/* the largest first */
	size_t n;
	uint64_t chart[CHART_COLUMNS];
	struct snap_keeps keeps;
};

struct snap_views {
	struct snap_lines lines;
	struct snap_view *view;
	size_t n;
	struct pool pool;
};

static char *snap_row_name(const struct snap_view *v, const struct snap_line *at)
{
	const char *function = snap_text(v->s, at->function);

	if (!at->file)
		return xstrdup("(not known)");
	return xasprintf("%s:%u%s%s", snap_text(v->s, at->file), at->line, function[0] ? " " : "", function);
}

static struct snap_row *snap_row_add(struct snap_view *v, size_t *cap, char *name)
{
	v->row = xgrow(v->row, v->n, cap, sizeof(*v->row));
	v->row[v->n] = (struct snap_row){.name = name};
	return &v->row[v->n++];
}

static int snap_row_larger(const void *a, const void *b)
{
	const struct snap_row *x = a, *y = b;

	return x->bytes != y->bytes ? (x->bytes > y->bytes ? -1 : 1) : strcmp(x->name, y->name);
}

static int snap_row_by_name(const void *a, const void *b)
{
	return strcmp(((const struct snap_row *)a)->name, ((const struct snap_row *)b)->name);
}

/* Neighbors of the same name become one. */
static void snap_rows_join(struct snap_view *v)
{
	size_t n = 0;

	if (!v->n)
		return;
	xsort(v->row, v->n, sizeof(*v->row), snap_row_by_name);
	for (size_t i = 0; i < v->n; i++) {
		if (n && !strcmp(v->row[n - 1].name, v->row[i].name)) {
			v->row[n - 1].bytes += v->row[i].bytes;
			v->row[n - 1].blocks += v->row[i].blocks;
			free(v->row[i].name);
		} else {
			v->row[n++] = v->row[i];
		}
	}
	v->n = n;
	xsort(v->row, v->n, sizeof(*v->row), snap_row_larger);
}

static void snap_rows_by_line(struct snap_view *v, bool function)
{
	struct snap_holder *h;
	size_t n = snap_holders(&v->d, v->l, v->moment, &h), cap = 0;

	for (size_t i = 0; i < n; i++) {
		const struct snap_line *at = snap_line(v->l, h[i].line);
		const char *name = snap_text(v->s, at->function);
		bool by_function = function && at->file;
		struct snap_row *r;

		if (by_function)
			r = snap_row_add(v, &cap, xasprintf("%s in %s", name[0] ? name : "?", snap_text(v->s, at->file)));
		else
			r = snap_row_add(v, &cap, snap_row_name(v, at));
		r->bytes = h[i].bytes;
		r->blocks = h[i].blocks;
		r->line = function || !at->file ? NULL : at;
	}
	free(h);
	snap_rows_join(v);
}

static char *snap_part_name(const struct snap_use *u, bool pool)
{
	if (!pool)
		return u->stream ? xasprintf("stream 0x%" PRIx64, u->stream) : xstrdup("default stream");
	if (!u->pool[0] && !u->pool[1])
		return xstrdup("default pool");
	return xasprintf("pool (%" PRIu64 ", %" PRIu64 ")", u->pool[0], u->pool[1]);
}

/* Streams and pools are known of the segments, and so at the end only. */
static void snap_rows_by_part(struct snap_view *v, bool pool)
{
	size_t cap = 0;

	for (size_t i = 0; i < v->d.n_parts; i++) {
		const struct snap_use *u = &v->d.part[i];
		struct snap_row *r = snap_row_add(v, &cap, snap_part_name(u, pool));

		r->bytes = u->reserved;
		r->blocks = u->blocks;
	}
	snap_rows_join(v);
}

static void view_choose(struct snap_view *v, const char *by, const char *at)
{
	const struct snap_device *d = &v->d;

	v->by = by ? by : "line";
	if (at)
		v->at = at;
	else if (d->oom.found)
		v->at = "oom";
	else
		v->at = d->replay.n ? "peak" : "end";
	if (!strcmp(v->by, "stream") || !strcmp(v->by, "pool") || (!strcmp(v->at, "oom") && !d->oom.found))
		v->at = "end";
	v->moment = !strcmp(v->at, "peak") ? d->replay.peak_moment : !strcmp(v->at, "oom") ? d->oom.event : d->replay.n;
	v->now = replay_at(&d->replay, v->moment);
}

static void view_fill(struct snap_view *v, const char *by, const char *at)
{
	view_choose(v, by, at);
	if (!strcmp(v->by, "stream") || !strcmp(v->by, "pool"))
		snap_rows_by_part(v, !strcmp(v->by, "pool"));
	else
		snap_rows_by_line(v, !strcmp(v->by, "function"));
	snap_timeline(&v->d, v->chart, CHART_COLUMNS);
}

struct snap_views *snap_views_new(const struct snapshot *s, const char *by, const char *at)
{
	int devices = snap_devices(s);
	struct snap_views *all = xcalloc(1, sizeof(*all));

	all->view = xcalloc((size_t)devices + 1, sizeof(*all->view));
	snap_lines_find(&all->lines, s, snapshot_owner);
	for (int i = 0; i < devices; i++) {
		struct snap_view *v = &all->view[all->n];

		*v = (struct snap_view){.s = s, .l = &all->lines};
		snap_analyze(&v->d, s, v->l, i);
		if (v->d.all.segments || v->d.replay.n) {
			view_fill(v, by, at);
			(void)snapshot_keeps(&v->keeps, s, &v->d, &all->pool);
			all->n++;
		} else {
			snap_device_release(&v->d);
		}
	}
	return all;
}

void snap_views_free(struct snap_views *all)
{
	if (!all)
		return;
	for (size_t k = 0; k < all->n; k++) {
		struct snap_view *v = &all->view[k];

		for (size_t i = 0; i < v->n; i++)
			free(v->row[i].name);
		free(v->row);
		snap_device_release(&v->d);
	}
	snap_lines_release(&all->lines);
	pool_release(&all->pool);
	free(all->view);
	free(all);
}

static uint64_t positive(int64_t n)
{
	return n > 0 ? (uint64_t)n : 0;
}

static void snap_print_bytes(FILE *out, const char *what, uint64_t bytes, const char *more)
{
	char size[32];

	fprintf(out, "  %-22s %12s%s%s\n", what, format_bytes(size, sizeof(size), (double)bytes), more[0] ? "  " : "",
		more);
}

static void snap_print_totals(FILE *out, const struct snap_view *v)
{
	const struct snap_use *u = &v->d.all;
	char more[64], size[32];

	fprintf(out, "device %d\n", v->d.device);
	snprintf(more, sizeof(more), "%zu segment%s, at the end", u->segments, u->segments == 1 ? "" : "s");
	snap_print_bytes(out, "reserved", u->reserved, more);
	snap_print_bytes(out, "  in tensors", u->allocated, "");
	if (u->pending)
		snap_print_bytes(out, "  freed, not yet done", u->pending, "another stream may still use it");
	snprintf(more, sizeof(more), "beside live blocks; largest piece %s",
		 format_bytes(size, sizeof(size), (double)u->largest_free));
	snap_print_bytes(out, "  free, fragmented", u->split, u->split ? more : "");
	snap_print_bytes(out, "  free segments", u->cached, "");
	if (v->d.replay.n) {
		snprintf(more, sizeof(more), "after event %zu of %zu", v->d.replay.peak_moment, v->d.replay.n);
		snap_print_bytes(out, "peak in tensors", positive(v->d.replay.peak.allocated), more);
	}
	if (v->d.oom.found) {
		snprintf(more, sizeof(more), "requested, %s free: event %u",
			 format_bytes(size, sizeof(size), (double)v->d.oom.free), v->d.oom.event + 1);
		snap_print_bytes(out, "out of memory", v->d.oom.request, more);
	}
}

static const char *moment_words(const struct snap_view *v)
{
	return !strcmp(v->at, "oom")	? "when memory ran out"
	       : !strcmp(v->at, "peak") ? "when tensors used the most"
					: "at the end";
}

static void snap_print_rows(FILE *out, const struct snap_view *v, int width)
{
	int room = width > 60 ? width - 30 : 40;
	bool part = !strcmp(v->by, "stream") || !strcmp(v->by, "pool");
	uint64_t rest = 0;
	char size[32];

	fprintf(out, "\n%s by %s, %s: %s\n", part ? "reserved" : "tensors", v->by, moment_words(v),
		format_bytes(size, sizeof(size), (double)(part ? v->d.all.reserved : positive(v->now.allocated))));
	for (size_t i = 0; i < v->n; i++) {
		const char *name = v->row[i].name;
		bool cut = strlen(name) > (size_t)room;

		if (i >= ROWS_SHOWN) {
			rest += v->row[i].bytes;
			continue;
		}
		fprintf(out, "  %12s  %8" PRIu64 "  %s%s\n", format_bytes(size, sizeof(size), (double)v->row[i].bytes),
			v->row[i].blocks, cut ? "..." : "", cut ? name + strlen(name) - room + 3 : name);
	}
	if (v->n > ROWS_SHOWN)
		fprintf(out, "  %12s            and %zu more\n", format_bytes(size, sizeof(size), (double)rest),
			v->n - ROWS_SHOWN);
}

static void snap_print_pins(FILE *out, const struct snap_view *v)
{
	char kept[32], own[32];

	if (v->d.all.split < v->d.all.reserved / 10)
		return;
	fputs("\nfree memory that cannot go back to the driver, by the line whose blocks lie beside it\n", out);
	for (size_t i = 0; i < v->d.n_pins && i < PINS_SHOWN; i++) {
		const struct snap_line *at = snap_line(v->l, v->d.pin[i].line);

		fprintf(out, "  %12s  %s:%u  (its blocks: %s)\n",
			format_bytes(kept, sizeof(kept), (double)v->d.pin[i].kept),
			at->file ? snap_text(v->s, at->file) : "(not known)", at->line,
			format_bytes(own, sizeof(own), (double)v->d.pin[i].bytes));
	}
}

static void snap_print_chart(FILE *out, const struct snap_view *v)
{
	uint64_t top = 1;
	char size[32];

	for (size_t i = 0; i < CHART_COLUMNS; i++)
		if (v->chart[i] > top)
			top = v->chart[i];
	if (!v->d.replay.n)
		return;
	fputs("\ntensors over time\n", out);
	for (int row = CHART_ROWS; row > 0; row--) {
		if (row == CHART_ROWS)
			fprintf(out, "  %12s |", format_bytes(size, sizeof(size), (double)top));
		else
			fprintf(out, "  %12s |", "");
		for (size_t i = 0; i < CHART_COLUMNS; i++)
			putc((double)v->chart[i] / (double)top * CHART_ROWS > row - 0.5 ? '#' : ' ', out);
		putc('\n', out);
	}
	fprintf(out, "  %12s +------------------------------------------------------------\n", "0");
}

static void snap_view_print(FILE *out, const struct snap_view *v, int width)
{
	char size[32];

	snap_print_totals(out, v);
	snap_print_rows(out, v, width);
	snap_print_pins(out, v);
	snap_print_chart(out, v);
	if (v->keeps.line)
		fprintf(out, "\n%s holds more and more: %s in %" PRIu64 " blocks of %zu earlier iterations\n",
			v->keeps.line, format_bytes(size, sizeof(size), (double)v->keeps.bytes), v->keeps.blocks,
			v->keeps.turns);
}

bool snap_views_print(FILE *out, const struct snap_views *all, int width)
{
	for (size_t i = 0; i < all->n; i++)
		snap_view_print(out, &all->view[i], width);
	return all->n > 0;
}

static json_t *snap_rows_json(const struct snap_view *v)
{
	json_t *list = json_array();

	for (size_t i = 0; i < v->n; i++) {
		const struct snap_row *r = &v->row[i];
		json_t *o = JSON_OF(J_TEXT("name", r->name), J_BYTES("bytes", r->bytes), J_BYTES("blocks", r->blocks));

		if (r->line)
			JSON_ADD(o, J_TEXT("file", snap_text(v->s, r->line->file)), J_INT("line", r->line->line),
				 J_TEXT("function", snap_text(v->s, r->line->function)),
				 J_BOOL("library", r->line->library));
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *snap_oom_json(const struct snap_oom *o)
{
	if (!o->found)
		return json_null();
	return JSON_OF(J_BYTES("request", o->request), J_BYTES("free", o->free),
		       J_BYTES("allocated", positive(o->now.allocated)), J_BYTES("reserved", positive(o->now.reserved)),
		       J_INT("event", o->event), J_INT("count", o->count));
}

static json_t *snap_peak_json(const struct snap_replay *r)
{
	return JSON_OF(J_BYTES("allocated", positive(r->peak.allocated)),
		       J_BYTES("reserved", positive(r->peak.reserved)), J_INT("event", r->peak_moment));
}

static json_t *snap_view_json(const struct snap_view *v)
{
	const struct snap_use *u = &v->d.all;
	json_t *chart = json_array();

	for (size_t i = 0; i < CHART_COLUMNS; i++)
		json_array_append_new(chart, json_bytes(v->chart[i]));
	return JSON_OF(J_INT("device", v->d.device),
		       J_BYTES("reserved", u->reserved),
		       J_BYTES("allocated", u->allocated),
		       J_BYTES("requested", u->requested),
		       J_BYTES("pending_free", u->pending),
		       J_BYTES("inactive_split", u->split),
		       J_BYTES("free_segments", u->cached),
		       J_BYTES("largest_free", u->largest_free),
		       J_INT("events", v->d.replay.n),
		       J_VALUE("peak", snap_peak_json(&v->d.replay)),
		       J_VALUE("oom", snap_oom_json(&v->d.oom)),
		       J_TEXT("at", v->at),
		       J_TEXT("by", v->by),
		       J_VALUE("holders", snap_rows_json(v)),
		       J_VALUE("timeline", chart));
}

json_t *snap_views_json(const struct snap_views *all)
{
	json_t *list = json_array();

	for (size_t i = 0; i < all->n; i++)
		json_array_append_new(list, snap_view_json(&all->view[i]));
	return JSON_OF(J_INT("schema", 1), J_TEXT("source", "snapshot"), J_VALUE("devices", list));
}

bool snap_views_ran_out(const struct snap_views *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (all->view[i].d.oom.found)
			return true;
	return false;
}

size_t snap_views_count(const struct snap_views *all)
{
	return all->n;
}

const char *snap_views_ledger(const struct snap_views *all, size_t i, struct ledger *l, struct pool *pool)
{
	const struct snap_view *v = &all->view[i];

	*l = (struct ledger){.at = !strcmp(v->at, "oom") ? LEDGER_OOM : !strcmp(v->at, "peak") ? LEDGER_PEAK : LEDGER_END,
			     .device = v->d.device, .device_name = "", .allocated = positive(v->now.allocated),
			     .reserved = positive(v->now.reserved), .n = v->n};
	l->line = pool_alloc(pool, (v->n + 1) * sizeof(*l->line));
	for (size_t k = 0; k < v->n; k++) {
		const struct snap_row *r = &v->row[k];
		struct ledger_line one = {.part = PART_TENSORS, .kind = KIND_OTHER, .bytes = r->bytes, .count = r->blocks};

		if (r->line) {
			one.place.file = pool_strdup(pool, snap_text(v->s, r->line->file));
			one.place.function = pool_strdup(pool, snap_text(v->s, r->line->function));
			one.place.line = r->line->line;
		}
		l->line[k] = one;
	}
	l->part[PART_TENSORS] = l->allocated;
	l->part[PART_CACHE_USED] = l->reserved > l->allocated ? l->reserved - l->allocated : 0;
	return moment_words(v);
}
