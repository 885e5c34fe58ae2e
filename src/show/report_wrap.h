/* SPDX-License-Identifier: Apache-2.0
 * Lines of a report: a label on the left, wrapped text next to it.
 */
#ifndef CUWHY_REPORT_WRAP_H
#define CUWHY_REPORT_WRAP_H

#include <stdbool.h>
#include <stdio.h>

#include "base/term.h"

struct said;
struct text_style;
struct verdict;

struct wrap {
	FILE *out;
	int width;
	bool color;
	enum look look;		/* of the text; labels and headings have their own */
	const char *label;	/* printed before the next line, once; NULL = spaces */
};

void wrap_init(struct wrap *w, FILE *out, const struct text_style *style);

/* The next line begins with this label. */
void wrap_label(struct wrap *w, const char *label);

/* Text next to the label, wrapped. Control characters are made visible: messages are not trusted. */
void wrap_text(struct wrap *w, const char *text);
void wrap_printf(struct wrap *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* A line of the program. */
void wrap_source(struct wrap *w, const char *code);

/* A command to paste: indented, never wrapped. */
void wrap_command(struct wrap *w, const char *command);

/* Code as it is: lines indented by `indent`, never wrapped. */
void wrap_code(struct wrap *w, int indent, const char *code);

/* Text without a label, `indent` columns in. */
void wrap_plain(struct wrap *w, int indent, const char *text);
void wrap_plain_printf(struct wrap *w, int indent, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Statements or advice, with their commands, after a label: at most this many. Returns how many were left out. */
size_t wrap_said(struct wrap *w, const char *label, const struct said *s, size_t most);

/* Bold, or red for what failed, if colors are on; the words carry the meaning by themselves. */
void wrap_heading(struct wrap *w, const char *text);
void wrap_failure(struct wrap *w, const char *text);

#endif
