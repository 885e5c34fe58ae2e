/* SPDX-License-Identifier: Apache-2.0
 * A hash table that finds elements of a list that the caller keeps: maps a hash to an index.
 *
 * The table holds only numbers. The caller has the keys in its list, hashes them and compares them, so one table works
 * for all kinds of keys and nothing is allocated per element. A slot keeps half of the hash next to the index: most
 * other elements are skipped without looking at the list, and the table grows without looking at it.
 *
 *	static bool same_word(const void *list, uint32_t i, const void *key)
 *	{
 *		return !strcmp(((char *const *)list)[i], key);
 *	}
 *
 *	i = map_put(&m, hash, same_word, words, "x", n);
 *	if (i == n)
 *		words[n++] = "x";
 */
#ifndef CUWHY_MAP_H
#define CUWHY_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MAP_NONE	UINT32_MAX	/* no index; every other number is one */

struct map_slot {
	uint32_t hash;
	uint32_t index;			/* plus one; 0 = empty */
};

/* All zero is an empty map. */
struct map {
	struct map_slot *slot;
	size_t slots;			/* a power of two, at least a quarter of them empty; 0 before the first element */
	size_t n;
};

/* Is `key` the key of element `index`? Called only for elements whose hash matches, which are few. */
typedef bool map_same(const void *list, uint32_t index, const void *key);

/* Spreads a number, such as an address, over all bits. */
static inline uint64_t map_hash(uint64_t number)
{
	number = (number ^ number >> 33) * 0xff51afd7ed558ccdu;
	return number ^ number >> 29;
}

/* `seed`: a random one keeps attackers from crafting bytes that all collide. Recordings keep such numbers (seal.c), so the
 * function must not change. */
uint64_t map_hash_bytes(uint64_t seed, const void *bytes, size_t len);

static inline uint32_t map_fold(uint64_t hash)
{
	return (uint32_t)(hash ^ hash >> 32);
}

/* The slot of the element, or the empty one where the search ends. Inline, so that `same` can be inlined, too. */
static inline struct map_slot *map_seek(const struct map *m, uint64_t hash, map_same *same, const void *list,
					const void *key)
{
	uint32_t half = map_fold(hash);
	size_t mask = m->slots - 1, k = half & mask;

	while (m->slot[k].index && (m->slot[k].hash != half || !same(list, m->slot[k].index - 1, key)))
		k = (k + 1) & mask;
	return &m->slot[k];
}

static inline uint32_t map_find(const struct map *m, uint64_t hash, map_same *same, const void *list, const void *key)
{
	return m->n ? map_seek(m, hash, same, list, key)->index - 1 : MAP_NONE;
}

void map_grow(struct map *m);					/* for map_put */
void map_clear_slot(struct map *m, struct map_slot *s);		/* for map_take */

/* Like map_find; if there is no such element, adds it under the number `index`, which the caller appends to its list.
 * With MAP_NONE (the caller has no room for another one) nothing is added. */
static inline uint32_t map_put(struct map *m, uint64_t hash, map_same *same, const void *list, const void *key,
			       uint32_t index)
{
	struct map_slot *s;

	if (m->n * 4 >= m->slots * 3)
		map_grow(m);
	s = map_seek(m, hash, same, list, key);
	if (s->index || index == MAP_NONE)
		return s->index - 1;
	*s = (struct map_slot){map_fold(hash), index + 1};
	m->n++;
	return index;
}

/* Like map_find, and removes the element from the map. */
static inline uint32_t map_take(struct map *m, uint64_t hash, map_same *same, const void *list, const void *key)
{
	struct map_slot *s = m->n ? map_seek(m, hash, same, list, key) : NULL;
	uint32_t index = s ? s->index - 1 : MAP_NONE;

	if (index != MAP_NONE)
		map_clear_slot(m, s);
	return index;
}

/* The element with this hash has a new number, for example because the last one of the list moved into a gap. */
void map_moved(struct map *m, uint64_t hash, uint32_t from, uint32_t to);

void map_release(struct map *m);

#endif
