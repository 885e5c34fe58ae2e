/* SPDX-License-Identifier: Apache-2.0
 * What words say about causes (kb/words.def), as it is after cuwhy was built: for each word, how much it speaks for which causes.
 */
#ifndef CUWHY_KNOWLEDGE_LIKENESS_H
#define CUWHY_KNOWLEDGE_LIKENESS_H

#include <stdbool.h>

#include "base/ref.h"

/* A word of a row. */
struct like_weight {
	uint16_t row;
	uint16_t place;		/* in the row: the heaviest words come first */
	int16_t weight;		/* of row 0: how rare it is */
};

struct like_word {
	uint32_t hash;
	uint32_t first;		/* of its weights; they go up to the first of the next word */
	REF(const char) s;
};

struct like_row {
	REF(const char) cause;
};

/* The words are in the order of their hashes. */
struct like_table {
	uint32_t n_rows, n_words;	/* the first row is no cause's: how rare each word is */
	REF(const struct like_row) rows;
	REF(const struct like_word) words;	/* and one more */
	REF(const uint32_t) head;	/* of each beginning of a hash: the first word; and one more */
	REF(const struct like_weight) weights;
};

const struct like_table *like_get(void);

/* NULL: no row has it. Its weights go up to those of the next one. */
const struct like_word *like_find(const struct like_table *t, const char *word);

#define LIKE_HEAD_BITS 14
uint32_t like_hash(const char *word, size_t len);

#endif
