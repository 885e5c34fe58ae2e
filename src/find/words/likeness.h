/* SPDX-License-Identifier: Apache-2.0
 * Which causes a text is like, by its words alone (kb/words.def).
 *
 * A last resort: for an error that no rule knows, and for failures that are described in sentences. It is never more than
 * possible. Clean logs and unrelated failures have a row, too.
 */
#ifndef CUWHY_TEXT_LIKENESS_H
#define CUWHY_TEXT_LIKENESS_H

#include "base/map.h"
#include "base/pool.h"
#include "case/case.h"

struct like_table;

/* Another table than that of kb/words.def, for tests. */
void likeness_learned(const struct like_table *t);

#define LIKENESS_WORDS_MAX 4096	/* a pasted report has a few hundred; a long log has all of them, and is like everything */

/* The words of a text, each once. All zero is none. */
struct text_words {
	struct map map;
	const char **list;
	bool *failing;		/* of each: a line that says what failed has it */
	size_t n, room;
};

/* True: the line says what failed. */
bool text_words_line(struct text_words *w, struct pool *pool, const char *s);
bool text_words_has(const struct text_words *w, const char *word);
void text_words_release(struct text_words *w);

/* The causes that it is most like, best first, at most `max`. Returns how many. */
size_t likeness_rank(const struct text_words *w, struct likeness *list, size_t max, struct pool *pool);

/* By how much the words speak more for the most alike cause than for none of them: the logarithm of the odds. -INFINITY: they are too many,
 * or too few, to tell. */
double likeness_lead(const struct text_words *w);

#endif
