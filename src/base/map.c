/* SPDX-License-Identifier: Apache-2.0
 * A hash table of indices (see map.h): open addressing with linear probing.
 */
#include "base/map.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SLOTS_FIRST 64u

static uint64_t hash_step(uint64_t a, uint64_t b)
{
	__uint128_t p = (__uint128_t)(a ^ 0x9e3779b97f4a7c15u) * (b ^ 0xd6e8feb86659fd93u);

	return (uint64_t)p ^ (uint64_t)(p >> 64);
}

static uint64_t load_8(const uint8_t *p)
{
	uint64_t w;

	memcpy(&w, p, 8);
	return w;
}

static uint64_t load_4(const uint8_t *p)
{
	uint32_t w;

	memcpy(&w, p, 4);
	return w;
}

/* Eight bytes at a time. The last eight may overlap the ones before: that is faster than copying the rest. */
uint64_t map_hash_bytes(uint64_t seed, const void *bytes, size_t len)
{
	const uint8_t *p = bytes;
	uint64_t h = seed ^ len;

	if (len >= 8) {
		for (size_t at = 0; at + 8 < len; at += 8)
			h = hash_step(h, load_8(p + at));
		return hash_step(h, load_8(p + len - 8));
	}
	if (len >= 4)
		return hash_step(h, load_4(p) << 32 | load_4(p + len - 4));
	if (len)
		return hash_step(h, (uint64_t)p[0] << 16 | (uint64_t)p[len / 2] << 8 | p[len - 1]);
	return hash_step(h, 0);
}

static void slot_fill(struct map *m, struct map_slot s)
{
	size_t mask = m->slots - 1, k = s.hash & mask;

	while (m->slot[k].index)
		k = (k + 1) & mask;
	m->slot[k] = s;
}

void map_grow(struct map *m)
{
	struct map old = *m;

	m->slots = old.slots ? old.slots * 2 : SLOTS_FIRST;
	m->slot = xcalloc(m->slots, sizeof(*m->slot));
	for (size_t k = 0; k < old.slots; k++)
		if (old.slot[k].index)
			slot_fill(m, old.slot[k]);
	free(old.slot);
}

/* A search ends at the first empty slot: elements that were pushed past this one move up into the gap. */
void map_clear_slot(struct map *m, struct map_slot *s)
{
	size_t mask = m->slots - 1, k = (size_t)(s - m->slot);

	for (size_t next = (k + 1) & mask; m->slot[next].index; next = (next + 1) & mask) {
		size_t home = m->slot[next].hash & mask;

		if (((next - home) & mask) < ((next - k) & mask))
			continue;
		m->slot[k] = m->slot[next];
		k = next;
	}
	m->slot[k].index = 0;
	m->n--;
}

void map_moved(struct map *m, uint64_t hash, uint32_t from, uint32_t to)
{
	size_t mask = m->slots - 1, k = map_fold(hash) & mask;

	while (m->slot[k].index != from + 1) {
		if (!m->slot[k].index)
			BUG("an element that is not in the map");
		k = (k + 1) & mask;
	}
	m->slot[k].index = to + 1;
}

void map_release(struct map *m)
{
	free(m->slot);
	*m = (struct map){0};
}
