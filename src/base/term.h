/* SPDX-License-Identifier: Apache-2.0
 * What the terminal can do and wants.
 */
#ifndef CUWHY_TERM_H
#define CUWHY_TERM_H

#include <stdbool.h>

#define COLOR_WORDS "auto always never"
enum color { COLOR_AUTO, COLOR_ALWAYS, COLOR_NEVER };

/* "auto", "always", "never"; false for any other word. */
bool term_parse_color(const char *word, enum color *c);

/* AUTO: `fd` is a terminal, NO_COLOR is unset or empty, TERM is set and not "dumb". */
bool term_color(int fd, enum color c);

/* Columns of the terminal; 100 if it is not one, so that files are the same everywhere. */
int term_width(int fd);

#endif
