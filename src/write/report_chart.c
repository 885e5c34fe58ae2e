/* SPDX-License-Identifier: Apache-2.0
 * Pictures of memory for a terminal: how much there was over time, and what lies in PyTorch's segments.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cuwhy/format.h"
#include "write/report_ledger.h"
#include "rules/template.h"

#define HEIGHT 6
#define MARGIN 14
#define COLUMNS_MAX 160

/* Largest values of each column. A column without a sample goes on as the one before it: nothing had happened. */
static void fill_columns(const struct cw_sample *s, size_t n, int columns, uint64_t *allocated, uint64_t *reserved)
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
static void put_cell(FILE *out, double allocated, double reserved, int row)
{
	static const char *const part[] = { " ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	double a = allocated - row, r = reserved - row;
	int eighths = a >= 1 ? 8 : a <= 0 ? 0 : (int)(a * 8 + 0.5);

	if (eighths)
		fputs(part[eighths], out);
	else
		fputs(r >= 0.5 ? "░" : " ", out);
}

void timeline_print(FILE *out, const struct cw_sample *s, size_t n, struct seconds_span span, uint64_t total, int width)
{
	int columns = width - MARGIN - 1;
	uint64_t *allocated, *reserved, top = 1;
	char text[32], from[32], to[32];

	columns = columns > COLUMNS_MAX ? COLUMNS_MAX : columns;
	if (n < 2 || columns < 10)
		return;
	allocated = xcalloc((size_t)columns, sizeof(*allocated));
	reserved = xcalloc((size_t)columns, sizeof(*reserved));
	fill_columns(s, n, columns, allocated, reserved);
	for (int c = 0; c < columns; c++) {
		top = allocated[c] > top ? allocated[c] : top;
		top = reserved[c] > top ? reserved[c] : top;
	}
	fprintf(out, "  over time: █ tensors  ░ PyTorch's cache%s%s\n", total && width >= 80 ? "; the card has " : "",
		total && width >= 80 ? format_bytes(text, sizeof(text), (double)total) : "");
	for (int row = HEIGHT - 1; row >= 0; row--) {
		if (row == HEIGHT - 1)
			fprintf(out, "  %10s ┤", format_bytes(text, sizeof(text), (double)top));
		else
			fprintf(out, "  %10s │", "");
		for (int c = 0; c < columns; c++)
			put_cell(out, (double)allocated[c] * HEIGHT / (double)top,
				 (double)reserved[c] * HEIGHT / (double)top, row);
		putc('\n', out);
	}
	snprintf(from, sizeof(from), "%.1f s", span.from);
	snprintf(to, sizeof(to), "%.1f s", span.to);
	fprintf(out, "  %10s └ %s%*s\n", "", from, columns - 1 - (int)strlen(from), to);
	free(allocated);
	free(reserved);
}

/* Only the emptiest ones have a map. */
static bool looks_like(const struct ledger_segment *a, const struct ledger_segment *b)
{
	return a->size == b->size && a->free == b->free && a->largest == b->largest && a->n == b->n &&
	       (!b->map[0] || !strcmp(a->map, b->map));
}

void ledger_print_segments(FILE *out, const struct ledger *l, size_t most)
{
	const struct ledger_segments *s = &l->segments;
	struct pool pool = { 0 };
	char size[32], empty[32], largest[32];

	if (!s->used || !s->free_used)
		return;
	fprintf(out, "\n  segments of PyTorch that tensors use: %zu, with %s free in them; the largest free block has %s\n",
		s->used, format_bytes(empty, sizeof(empty), (double)s->free_used),
		format_bytes(largest, sizeof(largest), (double)s->largest));
	for (size_t i = 0, more, row = 0; i < s->used && row < most && s->list[i].free && s->list[i].map[0]; i += 1 + more, row++) {
		for (more = 0; i + 1 + more < s->used && looks_like(&s->list[i], &s->list[i + 1 + more]); more++)
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
