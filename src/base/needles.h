/* SPDX-License-Identifier: Apache-2.0
 * Finds many words in a text at once, ignoring case: picks the interesting lines of a log out of millions.
 */
#ifndef CUWHY_NEEDLES_H
#define CUWHY_NEEDLES_H

#include <stdbool.h>
#include <stddef.h>

#include "base/ref.h"

#define NEEDLE_MIN	6	/* characters between two '*': shorter words are everywhere */
#define NEEDLE_FAST	8	/* for needles searched for in the whole log */

/* A needle is a text; '*' in it stands for anything on the same line. '^' before it: the line begins with it; '$' behind it: the
 * line ends with it; spaces around a line do not count. Needles without a piece of `window` characters
 * (NEEDLE_MIN, or NEEDLE_FAST for twice the speed) are never found. */
struct needle {
	REF(const char) word;
	uint16_t piece;		/* where its longest part without '*' begins */
	uint16_t len;		/* of the piece */
	uint16_t window;	/* where the window lies in the piece */
};

struct gram {
	uint32_t hash;
	uint16_t needle;
	uint16_t at;		/* where it begins in the needle's piece */
	uint16_t next;		/* with the same beginning of the hash */
};

/* Many needles, made when cuwhy is built (knowledge/compile/needles.c). */
struct needle_table {
	uint64_t factor;		/* of the hash */
	uint32_t n, window;
	REF(const uint8_t) has;		/* of each slot: some gram has it */
	REF(const uint16_t) head;	/* of each beginning of a hash: the first gram */
	REF(const struct gram) grams;
	REF(const struct needle) list;
};

struct needles;

struct needles *needles_new(const struct needle_table *t);
void needles_free(struct needles *n);
size_t needles_count(const struct needles *n);

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
