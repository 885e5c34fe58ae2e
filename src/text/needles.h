/* SPDX-License-Identifier: Apache-2.0
 * Finds many words in a text at once, whatever their case: what tells an interesting line of a log from the millions of others.
 */
#ifndef CUWHY_NEEDLES_H
#define CUWHY_NEEDLES_H

#include <stdbool.h>
#include <stddef.h>

#define NEEDLE_MIN	6	/* characters between two '*': shorter words are everywhere and would cost speed */

struct needles;

/* A needle is a text; '*' in it stands for anything on the same line. NULL for no needles at all. Those without a
 * piece of NEEDLE_MIN characters are never found: needle_ok tells. The words must live as long as the result. */
struct needles *needles_new(const char *const *words, size_t n);
void needles_free(struct needles *n);
size_t needles_count(const struct needles *n);
const char *needle_word(const struct needles *n, size_t which);
bool needle_ok(const char *word);

/* The first place where the longest piece of some needle ends, or NULL. A whole line must then be asked. */
const char *needles_find(const struct needles *n, const char *s, const char *end);

/* Calls `hit` for each needle that is in the line, once each. */
typedef void needle_fn(void *arg, size_t which);
void needles_in_line(struct needles *n, const char *s, size_t len, needle_fn *hit, void *arg);

/* Is the pattern (with '*') in the text? Whatever the case. */
bool needle_matches(const char *pattern, const char *s, size_t len);

#endif
