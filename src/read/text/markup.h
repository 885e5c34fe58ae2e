/* SPDX-License-Identifier: Apache-2.0
 * Text inside markup: the strings of JSON logs and notebooks, the lines of web pages.
 */
#ifndef CUWHY_TEXT_MARKUP_H
#define CUWHY_TEXT_MARKUP_H

#include <stdbool.h>
#include <stddef.h>

/* A text that was inside; may hold several lines. */
typedef void markup_fn(void *arg, const char *s, size_t len);

/* A line of JSON: an object or a part of one, or a string of an array that is printed one item per line. Passes on the strings that are
 * messages. `room` has at least `len` bytes. False: it is something else, or has none. */
bool markup_json(const char *s, size_t len, char *room, markup_fn *fn, void *arg);

/* Nothing but the brackets of JSON? */
bool markup_json_brackets(const char *s, size_t len);

/* Copies the text without tags and entities to `to`, which has at least `len` bytes; '\n' where a tag ends a line. Returns its length, or
 * `len` + 1 when the line has neither and nothing was copied. */
size_t markup_html(const char *s, size_t len, char *to);

#endif
