/* SPDX-License-Identifier: Apache-2.0
 * What the terminal can do and wants.
 */
#ifndef CUWHY_TERM_H
#define CUWHY_TERM_H

#include <stdbool.h>
#include <stdio.h>

#define COLOR_WORDS "auto always never"
enum color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* "auto", "always", "never"; false for any other word. */
bool term_parse_color(const char *word, enum color *c);

/* AUTO: `fd` is a terminal, NO_COLOR is unset or empty, TERM is set and not "dumb". */
bool term_color(int fd, enum color c);

/* From here on nothing that is printed to stdout or stderr can control the terminal: most of it was named by others, and no
 * single place that prints could be relied on to remember that. */
void term_guard(void);

/* Standard output for bytes that are not text for people: it passes everything. */
FILE *term_bytes(void);

/* Does the locale have more than ASCII? By its name, as programs without locales of their own do it. */
bool term_utf8(void);

/* How it looks from here on, through the guard. */
enum look { LOOK_PLAIN, LOOK_BOLD, LOOK_ERROR, LOOK_CODE, LOOK_DIM };
void term_look(FILE *out, enum look look);

/* Columns of the terminal, else those that COLUMNS names, else 100, so that files are the same everywhere. */
int term_width(int fd);

#endif
