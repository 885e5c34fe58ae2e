/* SPDX-License-Identifier: Apache-2.0
 * The knowledge base linked into the program (see kb.h, kb_blob.S).
 */
#include "knowledge/kb.h"
#include "knowledge/likeness.h"
#include "knowledge/words.h"

extern const struct kb cuwhy_kb __attribute__((visibility("hidden")));

const struct kb *kb_get(void)
{
	return &cuwhy_kb;
}

const struct word_table *words_get(void)
{
	return AT(cuwhy_kb.words);
}

const struct like_table *like_get(void)
{
	return AT(cuwhy_kb.likeness);
}
