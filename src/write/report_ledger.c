/* SPDX-License-Identifier: Apache-2.0
 * The ledger as a table (see report_ledger.h).
 */
#include "write/report_ledger.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "rules/template.h"

#define BAR 20

char *ledger_line_name(const struct ledger_line *l, struct pool *pool)
{
	const char *f = l->place.function && l->place.function[0] != '<' ? l->place.function : NULL;
	char *place = l->place.file ? pool_printf(pool, "%s:%u%s%s", l->place.file, l->place.line, f ? " in " : "", f ? f : "")
				    : NULL;

	if (l->part == PART_PROCESSES && !l->pid)
		return pool_strdup(pool, "a process outside this container");
	if (l->part == PART_PROCESSES)
		return pool_printf(pool, "process %u%s%s", l->pid, l->command && l->command[0] ? ": " : "",
				   l->command ? l->command : "");
	if (l->part == PART_LIBRARIES)
		return pool_printf(pool, "%s%s%s", l->library ? l->library : "a library that is not known",
				   place ? ", asked at " : "", place ? place : "");
	return place ? place : pool_strdup(pool, "no line known");
}

static char *line_more(const struct ledger_line *l, struct pool *pool)
{
	const char *what = l->part == PART_TENSORS ? ledger_kind_text(l->kind) : ledger_part_text(l->part);

	if (l->part == PART_TENSORS && l->count > 1)
		return pool_printf(pool, "%s, %llu tensors", what, (unsigned long long)l->count);
	return pool_strdup(pool, what);
}

/* ---- in a report ------------------------------------------------------------------------------------------ */

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

void ledger_wrap(struct wrap *w, const struct ledger *l, size_t lines)
{
	struct pool pool = { 0 };
	char text[32];

	if (l->total_known)
		wrap_printf(w, "%s of device %d%s%s, by who held them:", format_bytes(text, sizeof(text), (double)l->total),
			    l->device, l->device_name[0] ? ", " : "", l->device_name);
	wrap_parts(w, l);
	for (size_t i = 0, n = 0; i < l->n && n < lines; i++) {
		const struct ledger_line *x = &l->line[i];

		if (!x->place.file && !x->library && !x->pid)
			continue;
		if (!n++)
			wrap_text(w, "the biggest lines:");
		wrap_printf(w, "%-10s  %s  (%s)", format_bytes(text, sizeof(text), (double)x->bytes),
			    ledger_line_name(x, &pool), line_more(x, &pool));
	}
	if (l->segments.n_pins && l->part[PART_CACHE_USED])
		wrap_printf(w, "'cuwhy memory' shows the segments of PyTorch and which lines keep them");
	pool_release(&pool);
}

/* ---- alone ---------------------------------------------------------------------------------------------------- */

/* A bar of eighths of a column. */
static void put_bar(FILE *out, double share, int width)
{
	static const char *const part[] = { "", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
	int eighths = (int)(share * width * 8 + 0.5), used = eighths / 8 + (eighths % 8 > 0);

	for (int i = 0; i < eighths / 8; i++)
		fputs("█", out);
	fprintf(out, "%s%*s", part[eighths % 8], width - used > 0 ? width - used : 0, "");
}

static bool begins_character(char c)
{
	return (c & 0xc0) != 0x80;
}

/* What does not fit is cut, visibly. */
static void put_name(FILE *out, const char *s, int columns)
{
	int all = 0, put = 0;

	for (const char *c = s; *c; c++)
		all += begins_character(*c);
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		put += begins_character(*s);
		if (all > columns && put >= columns)
			break;
		putc(c < 0x20 || c == 0x7f ? '?' : c, out);
	}
	fputs(all > columns ? "…\n" : "\n", out);
}

static void print_row(FILE *out, uint64_t bytes, uint64_t of, const char *name, int indent, int width)
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
	put_name(out, name, width - (width >= 80 ? 44 : 22) - indent);
}

static uint64_t sum_of_parts(const struct ledger *l)
{
	uint64_t sum = 0;

	for (int p = 0; p < PART_COUNT; p++)
		sum += l->part[p];
	return sum;
}

static void print_parts(FILE *out, const struct ledger *l, int width)
{
	uint64_t of = l->total_known ? l->total : sum_of_parts(l);

	for (int p = 0; p < PART_COUNT; p++) {
		if (!l->part[p])
			continue;
		print_row(out, l->part[p], of, ledger_part_text((enum ledger_part)p), 0, width);
		for (int k = 0; p == PART_TENSORS && k < KIND_COUNT; k++)
			if (l->kind[k])
				print_row(out, l->kind[k], of, ledger_kind_text((enum ledger_kind)k), 2, width);
	}
	print_row(out, of, of, l->total_known ? "the whole card" : "in all", 0, width);
}

static const char *group_name(const struct ledger_line *l, enum ledger_by by, struct pool *pool)
{
	switch (by) {
	case BY_FUNCTION:
		if (l->part != PART_TENSORS || !l->place.file)
			return ledger_line_name(l, pool);
		return pool_printf(pool, "%s in %s", l->place.function ? l->place.function : "?", l->place.file);
	case BY_KIND:
		return l->part == PART_TENSORS ? ledger_kind_text(l->kind) : ledger_part_text(l->part);
	case BY_LIBRARY:
		return l->part == PART_TENSORS	? "PyTorch's tensors" :
		       l->part == PART_PROCESSES ? "other processes" :
		       l->library		? l->library :
						  "a library that is not known";
	default:
		return pool_printf(pool, "%s  (%s)", ledger_line_name(l, pool), line_more(l, pool));
	}
}

struct group { const char *name; uint64_t bytes; };

static int by_bytes(const void *a, const void *b)
{
	const struct group *x = a, *y = b;

	return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

static size_t group_lines(struct group *g, const struct ledger *l, enum ledger_by by, struct pool *pool)
{
	size_t n = 0;

	for (size_t i = 0; i < l->n; i++) {
		const char *name = group_name(&l->line[i], by, pool);
		size_t k = 0;

		while (k < n && strcmp(g[k].name, name))
			k++;
		if (k == n)
			g[n++] = (struct group){ name, 0 };
		g[k].bytes += l->line[i].bytes;
	}
	if (n)
		qsort(g, n, sizeof(*g), by_bytes);
	return n;
}

void ledger_print(FILE *out, const struct ledger *l, enum ledger_by by, size_t lines, int width)
{
	static const char *const titles[] = { "line", "function", "kind", "library" };
	struct pool pool = { 0 };
	struct group *g = xcalloc(l->n + 1, sizeof(*g));
	size_t n = group_lines(g, l, by, &pool);
	uint64_t of = l->total_known ? l->total : sum_of_parts(l);

	print_parts(out, l, width);
	if (n)
		fprintf(out, "\n  by %s\n", titles[by]);
	for (size_t i = 0; i < n && i < lines; i++)
		print_row(out, g[i].bytes, of, g[i].name, 0, width);
	if (n > lines)
		fprintf(out, "  %zu more\n", n - lines);
	free(g);
	pool_release(&pool);
}
