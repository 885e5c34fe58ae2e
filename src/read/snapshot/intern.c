/* SPDX-License-Identifier: Apache-2.0
 * Equal bytes are kept once (see snapshot.h).
 */
#include "read/snapshot/snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"

void intern_init(struct intern *t)
{
	*t = (struct intern){0};
	if (getrandom(&t->seed, sizeof(t->seed), GRND_NONBLOCK) != (ssize_t)sizeof(t->seed))
		t->seed = (uintptr_t)t;
}

void intern_release(struct intern *t)
{
	free(t->words);
	free(t->item);
	map_release(&t->map);
	*t = (struct intern){0};
}

struct intern_key {
	const void *bytes;
	size_t len;
};

static bool interned_same(const void *table, uint32_t i, const void *key)
{
	const struct intern *t = table;
	const struct intern_key *k = key;

	return t->item[i].len == k->len && (!k->len || !memcmp(&t->words[t->item[i].at], k->bytes, k->len));
}

uint32_t intern_put(struct intern *t, const void *bytes, size_t len)
{
	uint64_t hash = map_hash_bytes(t->seed, bytes, len);
	size_t words = len / 4 + 1;
	bool full = t->n >= INTERN_MAX || len > UINT32_MAX - 8 || t->n_words + words > UINT32_MAX;
	uint32_t id = map_put(&t->map, hash, interned_same, t, &(struct intern_key){bytes, len},
			      full ? MAP_NONE : (uint32_t)t->n);

	if (id == t->n) {
		while (t->n_words + words > t->cap_words) {
			t->cap_words = t->cap_words ? t->cap_words + t->cap_words / 2 : 256;
			t->words = xrealloc(t->words, t->cap_words, sizeof(*t->words));
		}
		t->item = xgrow(t->item, t->n, &t->cap, sizeof(*t->item));
		t->item[t->n++] = (struct interned){(uint32_t)t->n_words, (uint32_t)len};
		t->words[t->n_words + words - 1] = 0;
		if (len)
			memcpy(&t->words[t->n_words], bytes, len);
		t->n_words += words;
	}
	return id == MAP_NONE ? INTERN_FULL : id;
}

const void *intern_get(const struct intern *t, uint32_t id, size_t *len)
{
	static const uint32_t nothing;

	if (len)
		*len = id < t->n ? t->item[id].len : 0;
	return id < t->n ? &t->words[t->item[id].at] : &nothing;
}

const char *intern_text(const struct intern *t, uint32_t id)
{
	return intern_get(t, id, NULL);
}
