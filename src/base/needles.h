/* SPDX-License-Identifier: Apache-2.0
 * Finds many words in a text at once, ignoring case: picks the interesting lines of a log out of millions.
 */
#ifndef CUWHY_NEEDLES_H
#define CUWHY_NEEDLES_H

#include <stdbool.h>
#include <stddef.h>

#define NEEDLE_MIN	6	/* characters between two '*': shorter words are everywhere */
#define NEEDLE_FAST	8	/* for needles searched for in the whole log */

struct needles;

/* A needle is a text; '*' in it stands for anything on the same line. '^' before it: the line begins with it; '$' behind it: the
 * line ends with it; spaces around a line do not count. Needles without a piece of `window` characters
 * (NEEDLE_MIN, or NEEDLE_FAST for twice the speed) are never found. The words must live as long as the result. */
struct needles *needles_new(const char *const *words, size_t n, size_t window);
void needles_free(struct needles *n);
size_t needles_count(const struct needles *n);
bool needle_ok(const char *word);	/* it has NEEDLE_MIN characters in a row */

/* A place inside the longest piece of some needle, which is the first one; NULL: none. Then check the whole line. `which`: that needle. */
const char *needles_find(struct needles *n, const char *s, const char *end, size_t *which);
/* needles_find does not see a needle while it is muted. */
void needles_mute(struct needles *n, size_t which, bool muted);

/* Calls `hit` for each needle that is in the line, once each. */
typedef void needle_fn(void *arg, size_t which);
void needles_in_line(struct needles *n, const char *s, size_t len, needle_fn *hit, void *arg);

/* Is the pattern (with '*') in the text? Ignores case. */
bool needle_matches(const char *pattern, const char *s, size_t len);

#endif
