/* SPDX-License-Identifier: Apache-2.0
 * Who held the memory of a device, and how it grew (see report_ledger.h).
 */
#include "show/report_ledger.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/term.h"
#include "case/module_groups.h"
#include "cuwhy/format.h"
#include "find/memory/over_time.h"
#include "read/recording/trace.h"
#include "base/format.h"

#define BAR		20
#define CHART_HEIGHT	6
#define CHART_MARGIN	14
#define CHART_COLUMNS	160	/* at most */
#define SEGMENTS_SHOWN	16	/* in JSON */

char *ledger_line_name(const struct ledger_line *l, struct pool *pool)
{
	const char *f = l->place.function && l->place.function[0] != '<' ? l->place.function : NULL;
	char *place = NULL;

	if (l->place.file)
		place = pool_printf(pool, "%s:%u%s%s", l->place.file, l->place.line, str_if(f, " in "), str_given(f));
	if (l->part == PART_PROCESSES && !l->pid)
		return pool_strdup(pool, "a process outside this container");
	if (l->part == PART_PROCESSES)
		return pool_printf(pool, "process %u%s%s", l->pid, str_if(l->command && l->command[0], ": "),
				   str_given(l->command));
	if (l->part == PART_LIBRARIES)
		return pool_printf(pool, "%s%s%s", l->library ? l->library : "a library that is not known",
				   str_if(place, ", requested at "), str_given(place));
	return place ? place : pool_strdup(pool, "no line known");
}

static char *line_details(const struct ledger_line *l, struct pool *pool)
{
	const char *what = l->part == PART_TENSORS ? ledger_kind_text(l->kind) : ledger_part_text(l->part);

	if (l->part == PART_TENSORS && l->count > 1)
		return pool_printf(pool, "%s, %llu tensors", what, (unsigned long long)l->count);
	return pool_strdup(pool, what);
}

static void wrap_share(struct wrap *w, const char *name, uint64_t bytes, const struct ledger *l, const char *before)
{
	char text[32], share[16] = "";

	if (l->total)
		snprintf(share, sizeof(share), "%3.0f %%", (double)bytes * 100 / (double)l->total);
	wrap_printf(w, "%-10s %5s  %s%s", format_bytes(text, sizeof(text), (double)bytes), share, before, name);
}

static void wrap_parts(struct wrap *w, const struct ledger *l)
{
	for (int p = 0; p < PART_COUNT; p++) {
		if (!l->part[p])
			continue;
		wrap_share(w, ledger_part_text((enum ledger_part)p), l->part[p], l, "");
		for (int k = 0; p == PART_TENSORS && k < KIND_COUNT; k++)
			if (l->kind[k] && l->kind[k] != l->part[PART_TENSORS])
				wrap_share(w, ledger_kind_text((enum ledger_kind)k), l->kind[k], l, "- ");
	}
}

static const char *module_words(const char *name, uint64_t modules, const uint64_t *kind, struct pool *pool)
{
	const char *many = modules > 1 ? pool_printf(pool, "%llu modules, ", (unsigned long long)modules) : "";

	return pool_printf(pool, "%s  (%s%s)", name ? name : "no module known", many, module_kinds_words(kind, pool));
}

static const char *module_group_words(const struct module_group *g, struct pool *pool)
{
	return module_words(g->name, g->modules, g->kind, pool);
}

static void wrap_modules(struct wrap *w, const struct ledger *l, size_t most)
{
	struct pool pool = {0};
	struct module_group *g;
	size_t n = l->modules_known ? module_groups(&g, l, &pool) : 0;
	char text[32];

	for (size_t i = 0, put = 0; i < n && put < most; i++) {
		if (!g[i].name)
			continue;
		if (!put++)
			wrap_text(w, "the biggest modules:");
		wrap_printf(w, "%-10s  %s", format_bytes(text, sizeof(text), (double)g[i].bytes),
			    module_group_words(&g[i], &pool));
	}
	pool_release(&pool);
}

void ledger_wrap(struct wrap *w, const struct ledger *l, size_t lines)
{
	struct pool pool = {0};
	char text[32];

	if (l->total_known)
		wrap_printf(w, "%s of device %d%s%s, by holder:", format_bytes(text, sizeof(text), (double)l->total),
			    l->device, l->device_name[0] ? ", " : "", l->device_name);
	wrap_parts(w, l);
	for (size_t i = 0, n = 0; i < l->n && n < lines; i++) {
		const struct ledger_line *x = &l->line[i];

		if (!x->place.file && !x->library && !x->pid)
			continue;
		if (!n++)
			wrap_text(w, "the biggest lines:");
		wrap_printf(w, "%-10s  %s  (%s)", format_bytes(text, sizeof(text), (double)x->bytes),
			    ledger_line_name(x, &pool), line_details(x, &pool));
	}
	wrap_modules(w, l, lines);
	if (l->segments.n_pins && l->part[PART_CACHE_USED])
		wrap_printf(w, "'cuwhy memory' shows the segments of PyTorch and which lines keep them");
	pool_release(&pool);
}

/* A bar of eighths of a column. */
static void put_bar(FILE *out, double share, int width)
{
	static const char *const part[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	bool utf8 = term_utf8();
	int step = utf8 ? 8 : 1, filled = (int)(share * width * step + 0.5), used = filled / step + (filled % step > 0);

	for (int i = 0; i < filled / step; i++)
		fputs(utf8 ? "█" : "#", out);
	fprintf(out, "%s%*s", part[filled % step], width - used > 0 ? width - used : 0, "");
}

static bool begins_character(char c)
{
	return (c & 0xc0) != 0x80;
}

/* What does not fit is cut, visibly, but never the file and line: these are what a reader looks for. */
static void put_cut_name(FILE *out, const char *s, int columns)
{
	char *name = xstrdup(s), *details;
	int all = 0, put = 0;

	str_make_line(name);
	details = strstr(name, "  (");
	for (const char *c = name; *c; c++)
		all += begins_character(*c);
	for (const char *c = name; *c; c++) {
		put += begins_character(*c);
		if (all > columns && put >= columns && c > details)
			break;
		putc(*c, out);
	}
	fputs(all <= columns || !details ? "\n" : term_utf8() ? "…\n" : "...\n", out);
	free(name);
}

static void ledger_print_row(FILE *out, uint64_t bytes, uint64_t of, const char *name, int indent, int width)
{
	char text[32];
	double share = of ? (double)bytes / (double)of : 0;

	share = share > 1 ? 1 : share;
	fprintf(out, "  %10s %5.1f %%  ", format_bytes(text, sizeof(text), (double)bytes), share * 100);
	if (width >= 80) {
		put_bar(out, share, BAR);
		fputs("  ", out);
	}
	fprintf(out, "%*s", indent, "");
	put_cut_name(out, name, width - (width >= 80 ? 44 : 22) - indent);
}

static uint64_t sum_of_parts(const struct ledger *l)
{
	uint64_t sum = 0;

	for (int p = 0; p < PART_COUNT; p++)
		sum += l->part[p];
	return sum;
}

static void ledger_print_parts(FILE *out, const struct ledger *l, int width)
{
	uint64_t of = l->total_known ? l->total : sum_of_parts(l);

	for (int p = 0; p < PART_COUNT; p++) {
		if (!l->part[p])
			continue;
		ledger_print_row(out, l->part[p], of, ledger_part_text((enum ledger_part)p), 0, width);
		for (int k = 0; p == PART_TENSORS && k < KIND_COUNT; k++)
			if (l->kind[k])
				ledger_print_row(out, l->kind[k], of, ledger_kind_text((enum ledger_kind)k), 2, width);
	}
	ledger_print_row(out, of, of, l->total_known ? "the whole card" : "in all", 0, width);
}

const char *ledger_group_name(const struct ledger_line *l, enum ledger_by by, struct pool *pool)
{
	switch (by) {
	case BY_FUNCTION:
		if (l->part != PART_TENSORS || !l->place.file)
			return ledger_line_name(l, pool);
		return pool_printf(pool, "%s in %s", l->place.function ? l->place.function : "?", l->place.file);
	case BY_KIND:
		return l->part == PART_TENSORS ? ledger_kind_text(l->kind) : ledger_part_text(l->part);
	case BY_LIBRARY:
		if (l->part == PART_TENSORS)
			return "PyTorch's tensors";
		if (l->part == PART_PROCESSES)
			return "other processes";
		return l->library ? l->library : "a library that is not known";
	default:
		return pool_printf(pool, "%s  (%s)", ledger_line_name(l, pool), line_details(l, pool));
	}
}

struct ledger_group { const char *name; uint64_t bytes; };

static int group_by_bytes(const void *a, const void *b)
{
	const struct ledger_group *x = a, *y = b;

	return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

/* Modules that are alike are one row, unless all of them are to be shown. */
static size_t ledger_group_modules(struct ledger_group *g, const struct ledger *l, size_t rows, struct pool *pool)
{
	struct module_group *alike;
	size_t n = l->n_modules > rows ? module_groups(&alike, l, pool) : 0;

	for (size_t i = 0; i < n; i++)
		g[i] = (struct ledger_group){module_group_words(&alike[i], pool), alike[i].bytes};
	for (size_t i = 0; !n && i < l->n_modules; i++)
		g[i] = (struct ledger_group){
			module_words(module_name_shown(l, &l->module[i], pool), 1, l->module[i].kind, pool),
			l->module[i].bytes};
	return n ? n : l->n_modules;
}

static size_t ledger_group_lines(struct ledger_group *g, const struct ledger *l, enum ledger_by by, struct pool *pool)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		const char *name = ledger_group_name(&l->line[i], by, pool);
		size_t k = 0;

		while (k < n && strcmp(g[k].name, name))
			k++;
		if (k == n)
			g[n++] = (struct ledger_group){name, 0};
		g[k].bytes += l->line[i].bytes;
	}
	xsort(g, n, sizeof(*g), group_by_bytes);
	return n;
}

void ledger_print(FILE *out, const struct ledger *l, enum ledger_by by, size_t lines, int width)
{
	static const char *const titles[] = {"line", "function", "kind", "library", "module"};
	struct pool pool = {0};
	struct ledger_group *g = xcalloc(l->n + l->n_modules + 1, sizeof(*g));
	size_t n = by == BY_MODULE ? ledger_group_modules(g, l, lines, &pool) : ledger_group_lines(g, l, by, &pool);
	uint64_t of = l->total_known ? l->total : sum_of_parts(l);

	ledger_print_parts(out, l, width);
	if (n)
		fprintf(out, "\n  by %s\n", titles[by]);
	for (size_t i = 0; i < n && i < lines; i++)
		ledger_print_row(out, g[i].bytes, of, g[i].name, 0, width);
	if (n > lines)
		fprintf(out, "  %zu more\n", n - lines);
	free(g);
	pool_release(&pool);
}

/* Largest values of each column. A column without a sample goes on as the one before it: nothing had happened. */
static void chart_fill_columns(const struct cw_sample *s, size_t n, int columns, uint64_t *allocated, uint64_t *reserved)
{
	uint64_t first = s[0].ticks, span = s[n - 1].ticks - first + 1, a = 0, r = 0;
	size_t i = 0;

	for (int c = 0; c < columns; c++) {
		double end = (double)first + (double)span * (c + 1) / columns;

		for (bool any = false; i < n && (double)s[i].ticks < end; i++, any = true) {
			a = !any || s[i].allocated > a ? s[i].allocated : a;
			r = !any || s[i].reserved > r ? s[i].reserved : r;
		}
		allocated[c] = a;
		reserved[c] = r;
	}
}

/* Live tensors are full blocks, the cache above them is light. */
static void chart_put_cell(FILE *out, double allocated, double reserved, int row)
{
	static const char *const part[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	double a = allocated - row, r = reserved - row;
	int eighths = a >= 1 ? 8 : a <= 0 ? 0 : (int)(a * 8 + 0.5);

	if (!term_utf8())
		putc(a >= 0.5 ? '#' : r >= 0.5 ? '.' : ' ', out);
	else if (eighths)
		fputs(part[eighths], out);
	else
		fputs(r >= 0.5 ? "░" : " ", out);
}

void timeline_print(FILE *out, const struct cw_sample *s, size_t n, struct seconds_span span, uint64_t total, int width)
{
	int columns = width - CHART_MARGIN - 1;
	uint64_t *allocated, *reserved, top = 1;
	char text[32], from[32], to[32];
	bool utf8 = term_utf8();

	columns = columns > CHART_COLUMNS ? CHART_COLUMNS : columns;
	if (n < 2 || columns < 10)
		return;
	allocated = xcalloc((size_t)columns, sizeof(*allocated));
	reserved = xcalloc((size_t)columns, sizeof(*reserved));
	chart_fill_columns(s, n, columns, allocated, reserved);
	for (int c = 0; c < columns; c++) {
		top = allocated[c] > top ? allocated[c] : top;
		top = reserved[c] > top ? reserved[c] : top;
	}
	fputs(utf8 ? "  over time: █ tensors  ░ PyTorch's cache" : "  over time: # tensors  . PyTorch's cache", out);
	if (total && width >= 80)
		fprintf(out, "; the card has %s", format_bytes(text, sizeof(text), (double)total));
	putc('\n', out);
	for (int row = CHART_HEIGHT - 1; row >= 0; row--) {
		if (row == CHART_HEIGHT - 1)
			fprintf(out, "  %10s %s", format_bytes(text, sizeof(text), (double)top), utf8 ? "┤" : "|");
		else
			fprintf(out, "  %10s %s", "", utf8 ? "│" : "|");
		for (int c = 0; c < columns; c++)
			chart_put_cell(out, (double)allocated[c] * CHART_HEIGHT / (double)top,
				       (double)reserved[c] * CHART_HEIGHT / (double)top, row);
		putc('\n', out);
	}
	snprintf(from, sizeof(from), "%.1f s", span.from);
	snprintf(to, sizeof(to), "%.1f s", span.to);
	fprintf(out, "  %10s %s %s%*s\n", "", utf8 ? "└" : "+", from, columns - 1 - (int)strlen(from), to);
	free(allocated);
	free(reserved);
}

/* Only the emptiest ones have a map. */
static bool segment_looks_like(const struct ledger_segment *a, const struct ledger_segment *b)
{
	return a->size == b->size && a->free == b->free && a->largest == b->largest && a->n == b->n &&
	       (!b->map[0] || !strcmp(a->map, b->map));
}

void ledger_print_segments(FILE *out, const struct ledger *l, size_t most)
{
	const struct ledger_segments *s = &l->segments;
	struct pool pool = {0};
	char size[32], empty[32], largest[32];

	if (!s->used || !s->free_used)
		return;
	fprintf(out,
		"\n  segments of PyTorch that tensors use: %zu, with %s free in them; the largest free block has %s\n",
		s->used, format_bytes(empty, sizeof(empty), (double)s->free_used),
		format_bytes(largest, sizeof(largest), (double)s->largest));
	for (size_t i = 0, more, row = 0; i < s->used && row < most && s->list[i].free && s->list[i].map[0];
	     i += 1 + more, row++) {
		for (more = 0; i + 1 + more < s->used && segment_looks_like(&s->list[i], &s->list[i + 1 + more]); more++)
			;
		fprintf(out, "  %10s [%s] ", format_bytes(size, sizeof(size), (double)s->list[i].size), s->list[i].map);
		fprintf(out, "%s free, %s of it in one piece, %zu tensor%s",
			format_bytes(empty, sizeof(empty), (double)s->list[i].free),
			format_bytes(largest, sizeof(largest), (double)s->list[i].largest), s->list[i].n,
			s->list[i].n == 1 ? "" : "s");
		if (more)
			fprintf(out, "; %zu more with these figures", more);
		putc('\n', out);
	}
	if (s->n_pins)
		fprintf(out, "  those that are more than half empty are kept by\n");
	for (size_t i = 0; i < s->n_pins; i++)
		fprintf(out, "  %10s  %s  (%llu tensor%s)\n", format_bytes(size, sizeof(size), (double)s->pin[i].bytes),
			ledger_line_name(&s->pin[i], &pool), (unsigned long long)s->pin[i].count,
			s->pin[i].count == 1 ? "" : "s");
	pool_release(&pool);
}

static json_t *ledger_line_json(const struct ledger_line *l)
{
	bool process = l->part == PART_PROCESSES;

	return JSON_OF(J_TEXT("part", ledger_part_id(l->part)),
		       J_IF(l->part == PART_TENSORS, J_TEXT("kind", ledger_kind_id(l->kind))),
		       J_TEXT("file", l->place.file), J_INT_OR_NULL("line", l->place.file, l->place.line),
		       J_TEXT("function", l->place.function), J_BYTES("bytes", l->bytes), J_BYTES("count", l->count),
		       J_IF(l->made, J_BYTES("made", l->made)),
		       J_IF(l->part == PART_LIBRARIES, J_TEXT("library", l->library)),
		       J_IF(process, J_INT_OR_NULL("pid", l->pid, l->pid)), J_IF(process, J_TEXT("command", l->command)));
}

static json_t *ledger_lines_json(const struct ledger_line *l, size_t n)
{
	json_t *j = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(j, ledger_line_json(&l[i]));
	return j;
}

static json_t *ledger_segments_json(const struct ledger_segments *s)
{
	static const struct field members[] = {F_ALWAYS(BYTES, "size", struct ledger_segment, size),
					       F_ALWAYS(BYTES, "free", struct ledger_segment, free),
					       F_ALWAYS(BYTES, "largest", struct ledger_segment, largest),
					       F_ALWAYS(BYTES, "tensors", struct ledger_segment, n),
					       F_ALWAYS(CHARS, "map", struct ledger_segment, map),
					       F_END};
	static const struct fields segment = {members, sizeof(struct ledger_segment), NULL};
	size_t shown = s->n < SEGMENTS_SHOWN ? s->n : SEGMENTS_SHOWN;

	return JSON_OF(J_BYTES("count", s->n), J_BYTES("in_use", s->used), J_BYTES("free_in_used", s->free_used),
		       J_BYTES("free_whole", s->free_whole), J_BYTES("largest_free_block", s->largest),
		       J_VALUE("kept_by", ledger_lines_json(s->pin, s->n_pins)),
		       J_VALUE("list", fields_write_list(&segment, s->list, shown)));
}

static json_t *ledger_modules_json(const struct ledger *l)
{
	json_t *j = json_array();

	for (size_t i = 0; i < l->n_modules; i++) {
		const struct ledger_module *m = &l->module[i];
		json_t *kinds = json_object();

		for (int k = 0; k < KIND_COUNT; k++)
			if (m->kind[k])
				JSON_ADD(kinds, J_BYTES(ledger_kind_id((enum ledger_kind)k), m->kind[k]));
		json_array_append_new(j, JSON_OF(J_TEXT("path", m->path), J_TEXT("class", m->class_name),
						 J_TEXT("model", m->root), J_BYTES("bytes", m->bytes),
						 J_VALUE("kinds", kinds)));
	}
	return j;
}

json_t *ledger_json(const struct ledger *l)
{
	static const char *const moments[] = {"end", "peak", "oom", "time"};
	json_t *parts = json_object(), *kinds = json_object();

	for (int p = 0; p < PART_COUNT; p++)
		JSON_ADD(parts, J_BYTES(ledger_part_id((enum ledger_part)p), l->part[p]));
	for (int k = 0; k < KIND_COUNT; k++)
		JSON_ADD(kinds, J_BYTES(ledger_kind_id((enum ledger_kind)k), l->kind[k]));
	return JSON_OF(J_TEXT("at", moments[l->at]),
		       J_IF(l->at == LEDGER_TIME, J_BOOL("exact", !l->sampled && !l->missing)),
		       J_INT("device", l->device),
		       J_TEXT("name", l->device_name),
		       l->total_known ? J_BYTES("total", l->total) : J_NULL("total"),
		       J_BYTES("allocated", l->allocated),
		       J_BYTES("reserved", l->reserved),
		       J_BYTES("peak_allocated", l->peak_allocated),
		       J_BYTES("peak_reserved", l->peak_reserved),
		       J_VALUE("parts", parts),
		       J_VALUE("kinds", kinds),
		       J_VALUE("lines", ledger_lines_json(l->line, l->n)),
		       J_VALUE("modules", ledger_modules_json(l)),
		       J_BOOL("lines_complete", l->lines_complete),
		       J_VALUE("segments", ledger_segments_json(&l->segments)),
		       J_VALUE("pinned", JSON_OF(J_BYTES("bytes", l->pinned), J_BYTES("peak", l->pinned_peak))));
}

/* One figure of every column; the place of the figure in it. */
static json_t *columns_json(const struct over_time *o, size_t offset)
{
	json_t *j = json_array();

	for (size_t i = 0; i < o->n; i++)
		json_array_append_new(j, json_bytes(*(const uint64_t *)((const char *)&o->column[i] + offset)));
	return j;
}

static json_t *column_times_json(const struct over_time *o, const struct trace *t, bool moments)
{
	json_t *j = json_array();

	for (size_t i = 0; i < o->n; i++)
		json_array_append_new(j, json_bytes(trace_ns(t, moments ? o->column[i].at : o->column[i].begin) / 1000));
	return j;
}

static bool kind_is_in_columns(const struct over_time *o, int k)
{
	for (size_t i = 0; i < o->n; i++)
		if (o->column[i].kind[k])
			return true;
	return false;
}

static json_t *kind_columns_json(const struct over_time *o)
{
	json_t *j = json_object();

	for (int k = 0; k < KIND_COUNT; k++)
		if (kind_is_in_columns(o, k))
			JSON_ADD(j, J_VALUE(ledger_kind_id((enum ledger_kind)k),
					    columns_json(o, offsetof(struct over_column, kind) +
								    (size_t)k * sizeof(uint64_t))));
	return j;
}

json_t *over_time_json(const struct over_time *o, const struct trace *t)
{
	size_t ledger = 0;

	if (!o->n)
		return json_null();
	while (ledger + 1 < o->n && !o->column[ledger].ledger)
		ledger++;
	return JSON_OF(J_VALUE("us", column_times_json(o, t, false)),
		       J_VALUE("at_us", column_times_json(o, t, true)),
		       J_VALUE("tensors", kind_columns_json(o)),
		       J_VALUE("untold", columns_json(o, offsetof(struct over_column, untold))),
		       J_VALUE("cache", columns_json(o, offsetof(struct over_column, cache))),
		       J_VALUE("other_libraries", columns_json(o, offsetof(struct over_column, libraries))),
		       J_INT("ledger", ledger),
		       J_BYTES("lost", o->lost));
}
