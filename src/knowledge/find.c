/* SPDX-License-Identifier: Apache-2.0
 * Finds causes and words by name (see kb.h, words.h).
 */
#include <string.h>

#include "knowledge/kb.h"
#include "knowledge/words.h"

const struct cause *kb_find(const struct kb *kb, const char *id)
{
	for (const struct cause *c = AT(kb->first); c; c = AT(c->next))
		if (!strcmp(AT(c->id), id))
			return c;
	return NULL;
}

size_t word_find(const struct word_table *t, const char *text)
{
	size_t low = t->n_fixed, high = t->n;

	for (size_t i = 0; i < t->n_fixed; i++)
		if (text[0] == word_text(t, i)[0] && !strcmp(text, word_text(t, i)))
			return i;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int order = strcmp(text, word_text(t, mid));

		if (!order)
			return mid;
		if (order < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return t->n;
}
