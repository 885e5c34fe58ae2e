/* SPDX-License-Identifier: Apache-2.0
 * Finds a word among those that causes are known by (see likeness.h).
 */
#include "knowledge/likeness.h"

#include <string.h>

#include "base/map.h"

uint32_t like_hash(const char *word, size_t len)
{
	return map_fold(map_hash_bytes(0, word, len));
}

const struct like_word *like_find(const struct like_table *t, const char *word)
{
	uint32_t hash = like_hash(word, strlen(word)), at = hash >> (32 - LIKE_HEAD_BITS);
	const uint32_t *head = AT(t->head);
	const struct like_word *words = AT(t->words);

	for (uint32_t i = head[at]; i < head[at + 1]; i++)
		if (words[i].hash == hash && !strcmp(AT(words[i].s), word))
			return &words[i];
	return NULL;
}
