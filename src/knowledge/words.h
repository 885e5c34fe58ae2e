/* SPDX-License-Identifier: Apache-2.0
 * The words that logs are searched for, made when cuwhy is built (knowledge/compile/words.c): what makes an error (kb/text_marks.def), what
 * rules and questions look for, and messages of packages that are errors by themselves. A word has a number: its place in this table, which
 * says("...") has, too.
 */
#ifndef CUWHY_WORDS_H
#define CUWHY_WORDS_H

#include <stdbool.h>

#include "base/ref.h"

struct needle_table;

struct word {
	REF(const char) text;
};

struct word_table {
	uint32_t n;
	uint32_t n_errors;		/* the first ones make an event */
	uint32_t n_fixed;		/* and those up to here are PyTorch's footers; the rest is in order */
	REF(const struct word) list;
	REF(const bool) logged;		/* of each word: a message that is an error has it */
	REF(const bool) asked;		/* of each word: it is only a rule's, which asks whether it is there */
	REF(const struct needle_table) in_line, fast;	/* all of them, to be found in a line; in all of a log */
};

const struct word_table *words_get(void);

static inline const char *word_text(const struct word_table *t, size_t which)
{
	return AT(AT(t->list)[which].text);
}

/* The first one of this text; `n` when there is none. */
size_t word_find(const struct word_table *t, const char *text);

#endif
