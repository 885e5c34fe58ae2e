/* SPDX-License-Identifier: Apache-2.0
 * Lines that mention an error without reporting one: results of tests, whose names are errors; commits, diffs, change logs, a program's help,
 * code, metrics. Nothing failed because of them.
 */
#ifndef CUWHY_TEXT_QUOTED_H
#define CUWHY_TEXT_QUOTED_H

#include <stdbool.h>

struct text_line;

struct quoted {
	enum { QUOTED_NOT, QUOTED_COMMIT, QUOTED_DIFF, QUOTED_USAGE, QUOTED_CHANGES } in;	/* what the lines before this one began */
};

/* Every line in order. True: whatever it says, it is a quotation. */
bool quoted_line(struct quoted *q, const struct text_line *line);

/* A line of code, as a listing or grep shows it, or a command: its errors are texts that it would print or look for. Not for lines inside a traceback. */
bool quoted_code(const char *s);

/* An item of a list, a heading, a question: there, an error is one of several that the text is about. */
bool quoted_item(const char *s);
/* The words from `s` on are cited within a sentence: I get "CUDA out of memory" at night. `line` has them. */
bool quoted_citation(const char *line, const char *s);
/* The underline of the heading above it, which is `length` characters long. */
bool quoted_underline(const char *s, unsigned long length);

#endif
