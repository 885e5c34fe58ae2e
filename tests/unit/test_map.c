/* SPDX-License-Identifier: Apache-2.0
 * The hash table of indices, compared with a plain array that is searched linearly.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/map.h"
#include "base/mem.h"
#include "dice.h"

static bool same_number(const void *list, uint32_t i, const void *key)
{
	return ((const uint64_t *)list)[i] == *(const uint64_t *)key;
}

static bool same_word(const void *list, uint32_t i, const void *key)
{
	return !strcmp(((const char *const *)list)[i], key);
}

static void map__an_empty_one_finds_nothing(void **state)
{
	struct map m = {0};
	uint64_t key = 7;

	(void)state;
	assert_int_equal(map_find(&m, map_hash(key), same_number, NULL, &key), MAP_NONE);
	assert_int_equal(map_take(&m, map_hash(key), same_number, NULL, &key), MAP_NONE);
	map_release(&m);
}

static void map__words_are_found_by_what_they_say(void **state)
{
	static const char *const words[] = {"", "a", "fragmentation", "fragmentations"};
	struct map m = {0};
	char other[] = "fragmentation";

	(void)state;
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(
			map_put(&m, map_hash_bytes(1, words[i], strlen(words[i])), same_word, words, words[i], i), i);
	assert_int_equal(map_find(&m, map_hash_bytes(1, other, strlen(other)), same_word, words, other), 2);
	assert_int_equal(map_find(&m, map_hash_bytes(1, "", 0), same_word, words, ""), 0);
	assert_int_equal(map_find(&m, map_hash_bytes(1, "b", 1), same_word, words, "b"), MAP_NONE);
	map_release(&m);
	assert_null(m.slot);
}

static void map__equal_hashes_are_told_apart_by_the_caller(void **state)
{
	uint64_t list[500];
	struct map m = {0};

	(void)state;
	for (uint32_t i = 0; i < 500; i++) {
		list[i] = i * 3;
		assert_int_equal(map_put(&m, 42, same_number, list, &list[i], i), i);
	}
	for (uint64_t key = 0; key < 1500; key++)
		assert_int_equal(map_find(&m, 42, same_number, list, &key), key % 3 ? MAP_NONE : key / 3);
	for (uint64_t key = 1497; key > 0; key -= 3)
		assert_int_equal(map_take(&m, 42, same_number, list, &key), key / 3);
	assert_int_equal(m.n, 1);
	map_release(&m);
}

static void map__a_quarter_stays_empty(void **state)
{
	uint64_t *list = xcalloc(100000, sizeof(*list));
	struct map m = {0};

	(void)state;
	for (uint32_t i = 0; i < 100000; i++) {
		uint64_t key = list[i] = i;

		assert_int_equal(map_put(&m, map_hash(key), same_number, list, &key, i), i);
		assert_true(m.n * 4 <= m.slots * 3);
	}
	assert_true(m.slots <= 100000 * 4);
	map_release(&m);
	free(list);
}

static bool same_always(const void *list, uint32_t i, const void *key)
{
	(void)list, (void)i, (void)key;
	return true;
}

static void map__the_largest_index_is_one_below_none(void **state)
{
	struct map m = {0};

	(void)state;
	assert_int_equal(map_put(&m, 5, same_always, NULL, NULL, MAP_NONE - 1), MAP_NONE - 1);
	assert_int_equal(map_find(&m, 5, same_always, NULL, NULL), MAP_NONE - 1);
	map_release(&m);
}

static void map__nothing_is_added_when_the_caller_has_no_room(void **state)
{
	uint64_t list[] = {3}, other = 4;
	struct map m = {0};

	(void)state;
	assert_int_equal(map_put(&m, map_hash(3), same_number, list, &list[0], 0), 0);
	assert_int_equal(map_put(&m, map_hash(4), same_number, list, &other, MAP_NONE), MAP_NONE);
	assert_int_equal(map_put(&m, map_hash(3), same_number, list, &list[0], MAP_NONE), 0);
	assert_int_equal(m.n, 1);
	map_release(&m);
}

#define KEYS	700

struct book {
	uint64_t list[KEYS];
	size_t n;
	struct map map;
	uint64_t hash_mask;	/* few bits: collisions, which are rare otherwise */
};

static uint64_t hash_in(const struct book *b, uint64_t key)
{
	return map_hash(key) & b->hash_mask;
}

static uint32_t search(const struct book *b, uint64_t key)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->list[i] == key)
			return (uint32_t)i;
	return MAP_NONE;
}

static void check_all(const struct book *b)
{
	assert_int_equal(b->map.n, b->n);
	for (uint64_t key = 0; key < KEYS; key++)
		assert_int_equal(map_find(&b->map, hash_in(b, key), same_number, b->list, &key), search(b, key));
}

static void book_toggle(struct book *b, uint64_t key)
{
	uint32_t want = search(b, key), got = map_take(&b->map, hash_in(b, key), same_number, b->list, &key);

	assert_int_equal(got, want);
	if (got == MAP_NONE) {
		assert_int_equal(map_put(&b->map, hash_in(b, key), same_number, b->list, &key, (uint32_t)b->n), b->n);
		b->list[b->n++] = key;
	} else if (got != --b->n) {
		b->list[got] = b->list[b->n];
		map_moved(&b->map, hash_in(b, b->list[got]), (uint32_t)b->n, got);
	}
}

static void map__answers_as_an_array_would(void **state)
{
	static const uint64_t masks[] = {UINT64_MAX, 0xff, 0x7, 0, 0xffffffff00000000u};

	(void)state;
	for (size_t k = 0; k < sizeof(masks) / sizeof(masks[0]); k++) {
		struct book *b = xcalloc(1, sizeof(*b));

		b->hash_mask = masks[k];
		for (int i = 0; i < 6000; i++) {
			/* most keys, then few: it must fill and empty, not hover */
			book_toggle(b, roll(i / 1000 % 2 ? KEYS / 8 : KEYS));
			if (i % 97 == 0)
				check_all(b);
		}
		check_all(b);
		while (b->n)
			book_toggle(b, b->list[roll(b->n)]);
		check_all(b);
		map_release(&b->map);
		free(b);
	}
}

static void map_hash__addresses_in_steps_spread_over_the_slots(void **state)
{
	static const uint64_t steps[] = {1, 512, 4096, 2u << 20, 1ull << 32};
	unsigned char taken[4096];

	(void)state;
	for (size_t k = 0; k < sizeof(steps) / sizeof(steps[0]); k++) {
		size_t n = 0;

		memset(taken, 0, sizeof(taken));
		for (uint64_t i = 0; i < 4096; i++) {
			unsigned char *at = &taken[map_fold(map_hash(0x7f0000000000u + i * steps[k])) % 4096];

			n += !*at;
			*at = 1;
		}
		assert_true(n > 4096 / 2);	/* at random: 63 percent */
	}
}

static void map_hash_bytes__every_byte_the_length_and_the_seed_count(void **state)
{
	char text[40] = {0};

	(void)state;
	for (size_t len = 0; len < sizeof(text); len++) {
		uint64_t plain = map_hash_bytes(1, text, len);

		for (size_t i = 0; i < len; i++) {
			text[i] = 1;
			assert_int_not_equal(map_hash_bytes(1, text, len), plain);
			text[i] = 0;
		}
		assert_int_not_equal(map_hash_bytes(1, text, len + 1), plain);
		assert_int_not_equal(map_hash_bytes(2, text, len), plain);
		assert_int_equal(map_hash_bytes(1, text, len), plain);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(map__an_empty_one_finds_nothing),
		cmocka_unit_test(map__words_are_found_by_what_they_say),
		cmocka_unit_test(map__equal_hashes_are_told_apart_by_the_caller),
		cmocka_unit_test(map__a_quarter_stays_empty),
		cmocka_unit_test(map__the_largest_index_is_one_below_none),
		cmocka_unit_test(map__nothing_is_added_when_the_caller_has_no_room),
		cmocka_unit_test(map__answers_as_an_array_would),
		cmocka_unit_test(map_hash__addresses_in_steps_spread_over_the_slots),
		cmocka_unit_test(map_hash_bytes__every_byte_the_length_and_the_seed_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
