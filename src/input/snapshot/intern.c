/* SPDX-License-Identifier: Apache-2.0
 * Equal bytes are kept once (see intern.h).
 */
#include "input/snapshot/intern.h"

#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/mem.h"
#include "base/banned.h"

#define FIRST_SLOTS 64

void intern_init(struct intern *t)
{
	*t = (struct intern){.n_slots = FIRST_SLOTS};
	t->slot = xcalloc(FIRST_SLOTS, sizeof(*t->slot));
	if (getrandom(&t->seed, sizeof(t->seed), GRND_NONBLOCK) != (ssize_t)sizeof(t->seed))
		t->seed = (uintptr_t)t->slot;
}

void intern_release(struct intern *t)
{
	free(t->words);
	free(t->item);
	free(t->slot);
	*t = (struct intern){0};
}

static uint64_t intern_mix(uint64_t a, uint64_t b)
{
	__uint128_t p = (__uint128_t)(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xd6e8feb86659fd93u);

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static uint32_t intern_hash(const struct intern *t, const uint8_t *p, size_t len)
{
	uint64_t h = t->seed ^ len, w;

	for (; len >= 8; p += 8, len -= 8) {
		memcpy(&w, p, 8);
		h = intern_mix(h, w);
	}
	w = 0;
	if (len)
		memcpy(&w, p, len);
	return (uint32_t)intern_mix(h, w);
}

static void intern_more_slots(struct intern *t)
{
	size_t n = t->n_slots * 2, k;
	uint32_t *slot = xcalloc(n, sizeof(*slot));

	for (size_t i = 0; i < t->n; i++) {
		for (k = t->item[i].hash & (n - 1); slot[k]; k = (k + 1) & (n - 1))
			;
		slot[k] = (uint32_t)i + 1;
	}
	free(t->slot);
	t->slot = slot;
	t->n_slots = n;
}

static uint32_t intern_add(struct intern *t, const void *bytes, size_t len, uint32_t hash, size_t k)
{
	size_t words = len / 4 + 1;

	if (t->n >= INTERN_MAX || len > UINT32_MAX - 8 || t->n_words + words > UINT32_MAX)
		return INTERN_FULL;
	while (t->n_words + words > t->cap_words) {
		t->cap_words = t->cap_words ? t->cap_words + t->cap_words / 2 : 256;
		t->words = xrealloc(t->words, t->cap_words, sizeof(*t->words));
	}
	t->item = xgrow(t->item, t->n, &t->cap, sizeof(*t->item));
	t->item[t->n] = (struct interned){(uint32_t)t->n_words, (uint32_t)len, hash};
	t->words[t->n_words + words - 1] = 0;
	if (len)
		memcpy(&t->words[t->n_words], bytes, len);
	t->n_words += words;
	t->slot[k] = (uint32_t)++t->n;
	if (t->n * 4 > t->n_slots * 3)
		intern_more_slots(t);
	return (uint32_t)t->n - 1;
}

uint32_t intern_put(struct intern *t, const void *bytes, size_t len)
{
	uint32_t hash = intern_hash(t, bytes, len);
	size_t k = hash & (t->n_slots - 1);

	for (; t->slot[k]; k = (k + 1) & (t->n_slots - 1)) {
		const struct interned *i = &t->item[t->slot[k] - 1];

		if (i->hash == hash && i->len == len && (!len || !memcmp(&t->words[i->at], bytes, len)))
			return t->slot[k] - 1;
	}
	return intern_add(t, bytes, len, hash, k);
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
