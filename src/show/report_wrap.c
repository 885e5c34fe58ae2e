/* SPDX-License-Identifier: Apache-2.0
 * Lines of a report (see report_wrap.h).
 */
#include "show/report.h"
#include "show/report_wrap.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "case/case.h"
#include "base/mem.h"
#include "base/private.h"
#include "base/str.h"
#include "base/term.h"

#define LABEL_WIDTH 5
#define TEXT_COLUMN (2 + LABEL_WIDTH + 2)
#define WIDTH_MIN 40
#define WIDTH_DEFAULT 100

void wrap_init(struct wrap *w, FILE *out, const struct text_style *style)
{
	int width = style ? style->width : 0;

	*w = (struct wrap){.out = out, .color = style && style->color};
	w->width = width <= 0 ? WIDTH_DEFAULT : width < WIDTH_MIN ? WIDTH_MIN : width;
}

static void put_bytes(struct wrap *w, const char *s, size_t n)
{
	char *plain = xcalloc(1, n + 1);

	str_plain(plain, s, n);
	str_make_line(plain);
	fputs(plain, w->out);
	free(plain);
}

/* Columns of n bytes of UTF-8: continuation bytes take none. */
static int columns(const char *s, size_t n)
{
	int c = 0;

	for (size_t i = 0; i < n; i++)
		c += (s[i] & 0xc0) != 0x80;
	return c;
}

static void put_look(struct wrap *w, enum look look)
{
	if (w->color)
		term_look(w->out, look);
}

/* Returns the column after it: a long label moves the line that it begins. */
static int put_label(struct wrap *w)
{
	int column = TEXT_COLUMN;

	if (w->label) {
		fputs("  ", w->out);
		put_look(w, LOOK_BOLD);
		fprintf(w->out, "%-*s", LABEL_WIDTH, w->label);
		put_look(w, LOOK_PLAIN);
		fputs("  ", w->out);
		if (strlen(w->label) > LABEL_WIDTH)
			column += (int)strlen(w->label) - LABEL_WIDTH;
	} else {
		fprintf(w->out, "%*s", TEXT_COLUMN, "");
	}
	w->label = NULL;
	return column;
}

void wrap_label(struct wrap *w, const char *label)
{
	w->label = label;
}

static bool is_unit(const char *s, size_t len)
{
	static const char *const units[] = {"%",    "B",     "KiB", "MiB", "GiB", "TiB", "PiB", "EiB",
					    "byte", "bytes", "s",   "ms",  "ns",  "min", "h"};
	size_t n = len && *s == '%';

	while (n < len && isalpha((unsigned char)s[n]))
		n++;
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (n && n == strlen(units[i]) && memcmp(s, units[i], n) == 0)
			return true;
	return false;
}

/* Bytes up to the next space at which a line may break: not the one between a number and its unit. */
static size_t piece_len(const char *s, size_t len)
{
	size_t n = 0;

	while (n < len && s[n] != ' ')
		n++;
	if (n && n < len && isdigit((unsigned char)s[n - 1]) && is_unit(s + n + 1, len - n - 1))
		n += 1 + piece_len(s + n + 1, len - n - 1);
	return n;
}

/* Wraps one paragraph, whose first line begins at column `start`. Runs of spaces inside a line are kept. */
static void put_paragraph(struct wrap *w, const char *s, size_t len, int start, int indent)
{
	int at = start, gap = 0, begin = start;

	while (len) {
		int spaces = 0;
		size_t n;

		while (len && *s == ' ') {
			s++;
			len--;
			spaces++;
		}
		n = piece_len(s, len);
		gap = at == begin ? 0 : spaces ? spaces : 1;
		if (at > begin && at + gap + columns(s, n) > w->width) {
			fprintf(w->out, "\n%*s", indent, "");
			at = begin = indent;
			gap = 0;
		}
		fprintf(w->out, "%*s", gap, "");
		put_bytes(w, s, n);
		at += gap + columns(s, n);
		s += n;
		len -= n;
	}
	putc('\n', w->out);
}

static void put_lines(struct wrap *w, const char *said, int indent, bool labeled)
{
	char *shown = private_shown(said);
	const char *text = shown;

	do {
		size_t n = strcspn(text, "\n");
		int start = indent;

		if (labeled)
			start = put_label(w);
		else
			fprintf(w->out, "%*s", n ? indent : 0, "");
		if (w->look)
			put_look(w, w->look);
		put_paragraph(w, text, n, start, indent);
		if (w->look)
			put_look(w, LOOK_PLAIN);
		text += n + (text[n] == '\n');
	} while (*text);
	free(shown);
}

void wrap_text(struct wrap *w, const char *text)
{
	put_lines(w, text, TEXT_COLUMN, true);
}

void wrap_plain(struct wrap *w, int indent, const char *text)
{
	put_lines(w, text, indent, false);
}

void wrap_plain_printf(struct wrap *w, int indent, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	wrap_plain(w, indent, text);
	free(text);
}

void wrap_printf(struct wrap *w, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	wrap_text(w, text);
	free(text);
}

void wrap_code(struct wrap *w, int indent, const char *said)
{
	char *shown = private_shown(said);
	const char *code = shown;

	while (*code) {
		size_t n = strcspn(code, "\n");

		fprintf(w->out, "%*s", n ? indent : 0, "");
		put_bytes(w, code, n);
		putc('\n', w->out);
		code += n + (code[n] == '\n');
	}
	free(shown);
}

void wrap_source(struct wrap *w, const char *code)
{
	w->look = LOOK_CODE;
	wrap_text(w, code);
	w->look = LOOK_PLAIN;
}

void wrap_command(struct wrap *w, const char *command)
{
	wrap_code(w, TEXT_COLUMN + 4, command);
}

static void put_heading(struct wrap *w, const char *text, enum look look)
{
	char *shown = private_shown(text);

	put_look(w, look);
	put_bytes(w, shown, strlen(shown));
	put_look(w, LOOK_PLAIN);
	putc('\n', w->out);
	free(shown);
}

void wrap_heading(struct wrap *w, const char *text)
{
	put_heading(w, text, LOOK_BOLD);
}

void wrap_failure(struct wrap *w, const char *text)
{
	put_heading(w, text, LOOK_ERROR);
}

size_t wrap_said(struct wrap *w, const char *label, const struct said *s, size_t most)
{
	size_t left = 0;

	wrap_label(w, label);
	for (; s && most; s = s->next, most--) {
		wrap_text(w, s->text);
		if (s->command)
			wrap_command(w, s->command);
	}
	for (; s; s = s->next)
		left++;
	w->label = NULL;
	return left;
}
