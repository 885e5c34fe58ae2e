/* SPDX-License-Identifier: Apache-2.0
 * Tables of words that a line may have, and which of them it has.
 *
 * The words of a row match themselves. In them,
 *
 *   ^   at their beginning: the text begins with them
 *   $   at their end: the text ends with them, but for spaces
 *   *   anything
 *   #   a digit
 *   <   a word begins here: no letter comes before
 *   \   takes the next character as it is
 */
#ifndef CUWHY_PHRASES_H
#define CUWHY_PHRASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct phrase {
	const char *words;
	bool exact;	/* large and small letters differ */
	int means;	/* what they mean, to whoever asks */
	uint16_t next;	/* filled in: the next row that begins with the same character, counted from 1; 0: none */
};

struct phrases {
	struct phrase *row;
	size_t n;
	bool ready, anchored;	/* filled in; every row begins with '^' */
	uint32_t pair[32];	/* filled in: the last five bits of its first two characters, so that most places need no second look */
	uint16_t head[256];	/* filled in: by its first character; rows that begin with any digit are at 0 */
};

/* Where in a text the search goes on. */
struct phrase_scan {
	const char *text, *at, *end;	/* `at`: where the words were found */
	const char *after;		/* where they end */
	uint16_t row;
};

/* The next row that matches, from left to right, at one place the longer one first; NULL: no more. Begin with phrase_scan(). */
struct phrase_scan phrase_scan(const char *s, size_t len);
const struct phrase *phrase_next(struct phrases *p, struct phrase_scan *scan);

/* The first row that the text has: by its place in the text. NULL: none. */
const struct phrase *phrase_in(struct phrases *p, const char *s, size_t len);
/* The row whose words, without signs, are the text. */
const struct phrase *phrase_whole(struct phrases *p, const char *s, size_t len);
/* The next row of the table, from *i on, that the text has, and what follows its words; NULL: no more. */
const char *phrase_after(struct phrases *p, const char *s, size_t *i);

#endif
