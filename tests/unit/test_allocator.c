/* SPDX-License-Identifier: Apache-2.0
 * The model of PyTorch's caching allocator: the rules one by one. That all of them together do what PyTorch does is compared by
 * tests/torch/allocator.py.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "allocator/card.h"
#include "allocator/ordered.h"
#include "base/err.h"
#include "base/mem.h"
#include "dice.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static const struct allocator_pool_id NORMAL;

struct setup {
	struct card card;
	struct allocator_settings settings;
	const struct allocator_release *release;
	struct allocator_driver driver;
	struct allocator *a;
	uint64_t passed;		/* events of any stream */
};

static void setup_on(struct setup *s, unsigned minor, const char *text, uint64_t bytes, bool ascending)
{
	*s = (struct setup){.release = allocator_release_find(2, minor), .passed = UINT64_MAX};
	allocator_settings_init(&s->settings);
	assert_int_equal(allocator_settings_parse(&s->settings, s->release, text, NULL), 0);
	card_init(&s->card, bytes, ascending);
	s->driver = card_driver(&s->card);
	s->a = allocator_new(s->release, &s->settings, &s->driver, bytes);
}

static void setup(struct setup *s, const char *text, uint64_t bytes)
{
	setup_on(s, 11, text, bytes, false);
}

static void setup_end(struct setup *s)
{
	allocator_free(s->a);
	card_release(&s->card);
}

static struct allocator_block *take(struct setup *s, uint64_t size)
{
	return allocator_alloc(s->a, size, 0, NORMAL);
}

static uint64_t reserved(struct setup *s)
{
	return allocator_counters(s->a)->reserved.now;
}

static int key_order(const void *x, const void *y)
{
	const struct ordered_key *a = x, *b = y;

	if (a->size != b->size)
		return a->size < b->size ? -1 : 1;
	return a->rank < b->rank ? -1 : a->rank > b->rank;
}

static void ordered__walks_in_order_and_finds_the_next_larger_one(void **state)
{
	static struct ordered_key keys[3000];
	struct ordered set = {0};
	struct ordered_at at;
	size_t n = 0;

	(void)state;
	for (int round = 0; round < 30000; round++) {
		struct ordered_key wanted = {roll(4) ? roll(100) * 512 : roll(GIB * 64), roll(100000)};
		size_t first = 0;

		if (n < 3000 && roll(3)) {
			keys[n] = (struct ordered_key){roll(2) ? roll(100) * 512 : roll(GIB * 64), (uint64_t)round};
			ordered_add(&set, keys[n], &keys[n]);
			n++;
		} else if (n) {
			size_t i = roll(n);

			ordered_remove(&set, keys[i]);
			keys[i] = keys[--n];
		}
		if (round % 500)
			continue;
		qsort(keys, n, sizeof(*keys), key_order);
		while (first < n && key_order(&keys[first], &wanted) < 0)
			first++;
		assert_int_equal(ordered_find(&set, wanted, &at), first < n);
		for (size_t i = first; i < n; i++) {
			assert_int_equal(key_order(&ordered_item(&set, at)->key, &keys[i]), 0);
			assert_int_equal(ordered_next(&set, &at), i + 1 < n);
		}
		for (size_t i = n; i-- > 0;) {
			assert_true(ordered_previous(&set, &at));
			assert_int_equal(key_order(&ordered_item(&set, at)->key, &keys[i]), 0);
		}
		assert_false(ordered_previous(&set, &at));
		assert_int_equal(set.n, n);
	}
	ordered_release(&set);
}

static void ordered__many_of_one_size_are_no_problem(void **state)
{
	struct ordered set = {0};
	struct ordered_at at;

	(void)state;
	for (uint64_t i = 0; i < 100000; i++)
		ordered_add(&set, (struct ordered_key){2 * MIB, i * 7919 % 100000}, NULL);
	assert_true(ordered_first(&set, &at));
	for (uint64_t i = 0; i < 100000; i++) {
		assert_int_equal(ordered_item(&set, at)->key.rank, i);
		assert_int_equal(ordered_next(&set, &at), i + 1 < 100000);
	}
	for (uint64_t i = 0; i < 100000; i++)
		ordered_remove(&set, (struct ordered_key){2 * MIB, i});
	assert_false(ordered_first(&set, &at));
	ordered_release(&set);
}

static int parse(unsigned minor, const char *text, struct allocator_settings *s)
{
	allocator_settings_init(s);
	return allocator_settings_parse(s, allocator_release_find(2, minor), text, NULL);
}

static void settings__are_read_as_pytorch_reads_them(void **state)
{
	struct allocator_settings s;

	(void)state;
	assert_int_equal(parse(11, "max_split_size_mb:128, garbage_collection_threshold:0.8", &s), 0);
	assert_int_equal(s.max_split, 128 * MIB);
	assert_true(s.collect_above > 0.79 && s.collect_above < 0.81);
	assert_int_equal(parse(11, "expandable_segments:True,roundup_power2_divisions:[256:1,512:2,1024:4,>:8]", &s), 0);
	assert_true(s.expandable);
	assert_int_equal(s.divisions[0], 1);
	assert_int_equal(s.divisions[8], 1);
	assert_int_equal(s.divisions[9], 2);
	assert_int_equal(s.divisions[10], 4);
	assert_int_equal(s.divisions[11], 8);
	assert_int_equal(s.divisions[15], 8);
	assert_int_equal(parse(11, "large_segment_size_mb:64", &s), 0);
	assert_int_equal(s.large_segment, 64 * MIB);
	assert_int_equal(s.non_split_rounding, 64 * MIB);
	assert_int_equal(parse(11, "backend:cudaMallocAsync", &s), 0);
	assert_string_equal(s.unmodeled, "backend");
	assert_int_equal(parse(4, "", &s), 0);
	assert_int_equal(s.max_split, UINT64_MAX);
}

static void settings__a_release_refuses_what_it_does_not_know(void **state)
{
	struct allocator_settings s;
	struct err e = {0};

	(void)state;
	assert_int_not_equal(parse(11, "max_split_size_mb:19", &s), 0);
	assert_int_equal(parse(11, "max_split_size_mb:20", &s), 0);
	assert_int_not_equal(parse(8, "max_split_size_mb:20", &s), 0);
	assert_int_not_equal(parse(4, "max_non_split_rounding_mb:40", &s), 0);
	assert_int_equal(parse(6, "max_non_split_rounding_mb:40", &s), 0);
	assert_int_not_equal(parse(8, "large_segment_size_mb:40", &s), 0);
	assert_int_not_equal(parse(11, "garbage_collection_threshold:1.5", &s), 0);
	assert_int_not_equal(parse(11, "roundup_power2_divisions:3", &s), 0);
	assert_int_not_equal(parse(11, "roundup_power2_divisions:[256:1", &s), 0);
	assert_int_not_equal(parse(11, "expandable_segments:yes", &s), 0);
	assert_int_not_equal(parse(11, "max_split_size_mb", &s), 0);
	assert_int_not_equal(parse(11, ":", &s), 0);
	assert_int_not_equal(allocator_settings_parse(&s, allocator_release_find(2, 8), "color:red", &e), 0);
	assert_non_null(strstr(e.msg, "'color'"));
	assert_null(allocator_release_find(2, 3));
	assert_int_equal(allocator_release_find(2, 13)->minor, 12);
	assert_false(allocator_release_find(2, 13)->compared);
	assert_true(allocator_release_find(2, 11)->compared);
	assert_int_equal(allocator_release_find(3, 0)->minor, 15);
}

static void settings__the_rest_of_the_intervals_began_earlier_before_2_10(void **state)
{
	struct allocator_settings s;

	(void)state;
	assert_int_equal(parse(8, "roundup_power2_divisions:[4:2,>:8]", &s), 0);
	assert_int_equal(s.divisions[2], 8);
	assert_int_equal(parse(10, "roundup_power2_divisions:[4:2,>:8]", &s), 0);
	assert_int_equal(s.divisions[2], 2);
	assert_int_equal(s.divisions[3], 8);
}

static uint64_t block_size(struct setup *s, uint64_t size)
{
	return allocator_block_size(take(s, size));
}

static void allocator__rounds_and_takes_segments_as_pytorch_does(void **state)
{
	struct setup s;

	(void)state;
	setup(&s, "", GIB);
	assert_null(take(&s, 0));
	assert_int_equal(block_size(&s, 1), 512);
	assert_int_equal(reserved(&s), 2 * MIB);
	assert_int_equal(block_size(&s, 513), 1024);
	assert_int_equal(reserved(&s), 2 * MIB);
	assert_int_equal(block_size(&s, 3 * MIB), 3 * MIB);
	assert_int_equal(reserved(&s), 22 * MIB);
	assert_int_equal(block_size(&s, 12 * MIB), 12 * MIB);		/* from the 20 MiB segment */
	assert_int_equal(reserved(&s), 22 * MIB);
	assert_int_equal(block_size(&s, 13 * MIB + 300 * KIB), 14 * MIB);	/* the rest is not worth a block */
	assert_int_equal(reserved(&s), 36 * MIB);
	setup_end(&s);
}

static void allocator__power_of_two_divisions(void **state)
{
	struct setup s;

	(void)state;
	setup(&s, "roundup_power2_divisions:4", GIB);
	assert_int_equal(block_size(&s, 1200), 1536);		/* too small for divisions */
	assert_int_equal(block_size(&s, 5 * KIB + 1), 6 * KIB);
	assert_int_equal(block_size(&s, 8 * KIB), 8 * KIB);
	assert_int_equal(block_size(&s, 9 * MIB), 10 * MIB);
	setup_end(&s);
}

static void allocator__a_free_block_is_the_best_fit_and_neighbors_merge(void **state)
{
	struct allocator_block *b[4];
	struct setup s;
	uint64_t third;

	(void)state;
	setup(&s, "", GIB);
	for (int i = 0; i < 4; i++)
		b[i] = take(&s, (uint64_t)(i + 2) * MIB);
	third = allocator_block_addr(b[2]);
	allocator_delete(s.a, b[0]);
	allocator_delete(s.a, b[2]);
	b[0] = take(&s, 3 * MIB);	/* 2 MiB does not fit, 4 MiB does */
	assert_int_equal(allocator_block_addr(b[0]), third);
	allocator_delete(s.a, b[0]);
	allocator_delete(s.a, b[1]);
	allocator_delete(s.a, b[3]);
	assert_int_equal(allocator_counters(s.a)->inactive_split.now, 0);
	assert_true(allocator_empty_cache(s.a, NORMAL));
	assert_int_equal(reserved(&s), 0);
	assert_int_equal(s.card.free, GIB);
	setup_end(&s);
}

static uint64_t taken_of_two(unsigned minor, bool ascending, bool *first)
{
	struct allocator_block *a, *b, *c;
	struct setup s;
	uint64_t addr;

	setup_on(&s, minor, "", GIB, ascending);
	a = take(&s, 20 * MIB);
	b = take(&s, 20 * MIB);
	addr = allocator_block_addr(a);
	allocator_delete(s.a, b);
	allocator_delete(s.a, a);
	c = take(&s, 20 * MIB);
	*first = allocator_block_addr(c) == addr;
	addr = allocator_block_addr(c);
	setup_end(&s);
	return addr;
}

static void allocator__ties_go_to_the_lowest_address_and_from_2_15_on_to_the_oldest_segment(void **state)
{
	bool first;

	(void)state;
	taken_of_two(11, true, &first);
	assert_true(first);
	taken_of_two(11, false, &first);
	assert_false(first);
	taken_of_two(15, true, &first);
	assert_true(first);
	taken_of_two(15, false, &first);
	assert_true(first);
}

static void allocator__releases_the_cache_before_it_runs_out_of_memory(void **state)
{
	struct allocator_block *b;
	struct setup s;

	(void)state;
	setup(&s, "", 100 * MIB);
	b = take(&s, 60 * MIB);
	allocator_delete(s.a, b);
	b = take(&s, 70 * MIB);
	assert_non_null(b);
	assert_int_equal(allocator_counters(s.a)->retries, 1);
	assert_int_equal(reserved(&s), 70 * MIB);
	assert_null(take(&s, 40 * MIB));
	assert_int_equal(allocator_counters(s.a)->ooms, 1);
	assert_int_equal(allocator_failure(s.a)->segment, 40 * MIB);
	assert_false(allocator_failure(s.a)->at_limit);
	setup_end(&s);
}

static void allocator__a_fraction_is_a_limit_below_the_card(void **state)
{
	struct setup s;

	(void)state;
	setup(&s, "", GIB);
	allocator_set_fraction(s.a, 0.1);
	assert_non_null(take(&s, 100 * MIB));
	assert_null(take(&s, 20 * MIB));
	assert_true(allocator_failure(s.a)->at_limit);
	allocator_set_fraction(s.a, 1);
	assert_non_null(take(&s, 20 * MIB));
	setup_end(&s);
}

static void allocator__oversize_blocks_are_not_split(void **state)
{
	struct allocator_block *b;
	struct setup s;

	(void)state;
	setup(&s, "max_split_size_mb:40", GIB);
	b = take(&s, 100 * MIB);
	allocator_delete(s.a, b);
	b = take(&s, 30 * MIB);
	assert_int_equal(reserved(&s), 130 * MIB);	/* not from the 100 MiB */
	b = take(&s, 79 * MIB);
	assert_int_equal(reserved(&s), 210 * MIB);	/* 100 is more than 20 above 79 */
	b = take(&s, 90 * MIB);
	assert_int_equal(reserved(&s), 210 * MIB);
	assert_int_equal(allocator_block_size(b), 100 * MIB);
	setup_end(&s);
}

static void allocator__garbage_that_is_old_is_released(void **state)
{
	struct allocator_block *b, *c;
	struct setup s;

	(void)state;
	setup(&s, "garbage_collection_threshold:0.5", 200 * MIB);
	allocator_set_fraction(s.a, 0.99);
	b = take(&s, 60 * MIB);
	c = take(&s, 60 * MIB);
	allocator_delete(s.a, b);
	for (int i = 0; i < 10; i++) {
		b = take(&s, 8 * MIB);
		allocator_delete(s.a, b);
	}
	allocator_delete(s.a, c);
	take(&s, 70 * MIB);
	assert_true(reserved(&s) < 200 * MIB);
	assert_int_equal(allocator_counters(s.a)->retries, 0);
	assert_int_not_equal(allocator_counters(s.a)->driver_frees, 0);
	setup_end(&s);
}

static void allocator__an_expandable_segment_grows_and_gives_back_pages(void **state)
{
	struct allocator_block *b, *c;
	struct setup s;

	(void)state;
	setup(&s, "expandable_segments:True", 200 * MIB);
	b = take(&s, 30 * MIB);
	c = take(&s, 30 * MIB);
	assert_int_equal(reserved(&s), 60 * MIB);
	assert_int_equal(allocator_block_addr(c), allocator_block_addr(b) + 30 * MIB);
	allocator_delete(s.a, b);
	assert_true(allocator_empty_cache(s.a, NORMAL));
	assert_int_equal(reserved(&s), 40 * MIB);	/* one page of 20 MiB is free as a whole */
	b = take(&s, 30 * MIB);
	assert_int_equal(allocator_block_addr(c), allocator_block_addr(b) + 30 * MIB);
	assert_int_equal(reserved(&s), 60 * MIB);
	assert_null(take(&s, 150 * MIB));
	allocator_delete(s.a, b);
	allocator_delete(s.a, c);
	assert_non_null(take(&s, 190 * MIB));		/* one range, whatever was there before */
	setup_end(&s);
}

static bool events_passed(void *of, uint64_t stream, uint64_t nth)
{
	struct setup *s = of;

	(void)stream;
	return nth <= s->passed;
}

static uint64_t events_alloc(void *of, uint64_t size, uint64_t stream)
{
	struct setup *s = of;
	struct allocator_driver d = card_driver(&s->card);

	return d.alloc(d.of, size, stream);
}

static void events_free(void *of, uint64_t addr, uint64_t size)
{
	struct setup *s = of;
	struct allocator_driver d = card_driver(&s->card);

	d.free(d.of, addr, size);
}

static void setup_events(struct setup *s, unsigned minor)
{
	setup_on(s, minor, "", GIB, false);
	allocator_free(s->a);
	s->driver = (struct allocator_driver){
		.of = s, .alloc = events_alloc, .free = events_free, .passed = events_passed};
	s->a = allocator_new(s->release, &s->settings, &s->driver, GIB);
	s->passed = 0;
}

static void allocator__streams_do_not_share_blocks(void **state)
{
	struct allocator_block *b;
	struct setup s;

	(void)state;
	setup(&s, "", GIB);
	b = allocator_alloc(s.a, 20 * MIB, 1, NORMAL);
	allocator_delete(s.a, b);
	allocator_alloc(s.a, 20 * MIB, 2, NORMAL);
	assert_int_equal(reserved(&s), 40 * MIB);
	allocator_alloc(s.a, 20 * MIB, 1, NORMAL);
	assert_int_equal(reserved(&s), 40 * MIB);
	setup_end(&s);
}

static void allocator__a_block_that_another_stream_uses_waits_for_it(void **state)
{
	struct allocator_block *b;
	struct setup s;

	(void)state;
	setup_events(&s, 11);
	b = take(&s, 20 * MIB);
	allocator_record_stream(s.a, b, 0);		/* its own */
	allocator_record_stream(s.a, b, 7);
	allocator_record_stream(s.a, b, 7);
	allocator_delete(s.a, b);
	assert_int_equal(allocator_counters(s.a)->allocated.now, 0);
	assert_int_equal(allocator_counters(s.a)->active.now, 20 * MIB);
	take(&s, 20 * MIB);
	assert_int_equal(reserved(&s), 40 * MIB);
	s.passed = 1;
	take(&s, 20 * MIB);
	assert_int_equal(reserved(&s), 40 * MIB);
	setup_end(&s);
}

static void allocator__in_a_capture_nothing_is_waited_for(void **state)
{
	static const struct allocator_pool_id graph = {1, 0};

	(void)state;
	for (unsigned minor = 11; minor <= 15; minor += 4) {
		struct allocator_block *b, *c;
		struct setup s;

		setup_events(&s, minor);
		s.passed = UINT64_MAX;
		b = take(&s, 20 * MIB);
		c = take(&s, 20 * MIB);
		allocator_record_stream(s.a, b, 7);
		allocator_pool_begin(s.a, graph);
		allocator_set_captured(s.a, true);
		allocator_record_stream(s.a, c, 7);
		allocator_delete(s.a, b);
		allocator_delete(s.a, c);
		allocator_alloc(s.a, MIB, 0, graph);
		assert_int_equal(reserved(&s), 42 * MIB);
		take(&s, 20 * MIB);
		assert_int_equal(reserved(&s), 62 * MIB);
		allocator_set_captured(s.a, false);
		allocator_pool_end(s.a, graph);
		take(&s, 20 * MIB);
		take(&s, 20 * MIB);
		assert_int_equal(reserved(&s), 62 * MIB);
		setup_end(&s);
	}
}

static void allocator__a_pool_keeps_its_memory_until_nobody_uses_it(void **state)
{
	static const struct allocator_pool_id graph = {1, 0};
	struct allocator_block *b;
	struct setup s;

	(void)state;
	setup(&s, "", GIB);
	allocator_pool_begin(s.a, graph);
	b = allocator_alloc(s.a, 20 * MIB, 0, graph);
	allocator_pool_end(s.a, graph);
	allocator_delete(s.a, b);
	take(&s, 20 * MIB);
	assert_int_equal(reserved(&s), 40 * MIB);
	assert_true(allocator_empty_cache(s.a, NORMAL));
	assert_int_equal(reserved(&s), 40 * MIB);
	allocator_pool_drop(s.a, graph);
	assert_true(allocator_empty_cache(s.a, NORMAL));
	assert_int_equal(reserved(&s), 20 * MIB);
	setup_end(&s);
}

static void allocator__a_pool_lends_when_memory_is_out(void **state)
{
	static const struct allocator_pool_id pool = {0, 5};
	struct allocator_block *b;
	struct setup s;

	(void)state;
	setup(&s, "", 100 * MIB);
	allocator_pool_use(s.a, pool, ALLOCATOR_POOL_USE_ON_OOM);
	allocator_pool_begin(s.a, pool);
	b = allocator_alloc(s.a, 80 * MIB, 0, pool);
	allocator_pool_end(s.a, pool);
	allocator_pool_drop(s.a, pool);
	allocator_delete(s.a, b);
	assert_non_null(take(&s, 50 * MIB));
	assert_int_equal(reserved(&s), 80 * MIB);
	setup_end(&s);
}

static void check_pieces(struct setup *s)
{
	struct allocator_piece *list;
	size_t n = allocator_snapshot(s->a, &list);
	uint64_t total = 0, allocated = 0;

	for (size_t i = 0; i < n; i++) {
		if (i)
			assert_true(list[i - 1].addr + list[i - 1].size <= list[i].addr);
		if (list[i].addr != list[i].segment)
			assert_int_equal(list[i - 1].addr + list[i - 1].size, list[i].addr);
		if (i && list[i].segment == list[i - 1].segment)
			assert_false(list[i].state == ALLOCATOR_FREE && list[i - 1].state == ALLOCATOR_FREE);
		total += list[i].size;
		allocated += list[i].state == ALLOCATOR_ALLOCATED ? list[i].size : 0;
	}
	assert_int_equal(total, reserved(s));
	assert_int_equal(allocated, allocator_counters(s->a)->allocated.now);
	assert_int_equal(s->card.free + total, GIB);
	free(list);
}

static void allocator__blocks_tile_their_segments_and_all_memory_comes_back(void **state)
{
	static const char *const texts[] = {"",
					    "expandable_segments:True",
					    "max_split_size_mb:64,garbage_collection_threshold:0.6",
					    "roundup_power2_divisions:4",
					    "expandable_segments:True,max_split_size_mb:64"};

	(void)state;
	for (size_t t = 0; t < 5; t++)
		for (unsigned minor = 5; minor <= 15; minor += 5) {
			struct allocator_block *live[300] = {0};
			struct setup s;

			setup_on(&s, minor, texts[t], GIB, t & 1);
			allocator_set_fraction(s.a, 0.9);
			for (int round = 0; round < 20000; round++) {
				size_t i = roll(300);
				struct allocator_pool_id pool = {roll(10) ? 0 : 1, 0};

				if (live[i]) {
					allocator_delete(s.a, live[i]);
					live[i] = NULL;
				} else {
					live[i] = allocator_alloc(s.a, 1 + roll((uint64_t)1 << roll(26)), roll(3), pool);
					if (live[i] && !roll(9))
						allocator_record_stream(s.a, live[i], roll(3));
				}
				if (round % 1000 == 0)
					check_pieces(&s);
			}
			for (size_t i = 0; i < 300; i++)
				if (live[i])
					allocator_delete(s.a, live[i]);
			allocator_pool_drop(s.a, (struct allocator_pool_id){1, 0});
			assert_true(allocator_empty_cache(s.a, NORMAL));
			assert_int_equal(reserved(&s), 0);
			assert_int_equal(s.card.free, GIB);
			check_pieces(&s);
			setup_end(&s);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ordered__walks_in_order_and_finds_the_next_larger_one),
		cmocka_unit_test(ordered__many_of_one_size_are_no_problem),
		cmocka_unit_test(settings__are_read_as_pytorch_reads_them),
		cmocka_unit_test(settings__a_release_refuses_what_it_does_not_know),
		cmocka_unit_test(settings__the_rest_of_the_intervals_began_earlier_before_2_10),
		cmocka_unit_test(allocator__rounds_and_takes_segments_as_pytorch_does),
		cmocka_unit_test(allocator__power_of_two_divisions),
		cmocka_unit_test(allocator__a_free_block_is_the_best_fit_and_neighbors_merge),
		cmocka_unit_test(allocator__ties_go_to_the_lowest_address_and_from_2_15_on_to_the_oldest_segment),
		cmocka_unit_test(allocator__releases_the_cache_before_it_runs_out_of_memory),
		cmocka_unit_test(allocator__a_fraction_is_a_limit_below_the_card),
		cmocka_unit_test(allocator__oversize_blocks_are_not_split),
		cmocka_unit_test(allocator__garbage_that_is_old_is_released),
		cmocka_unit_test(allocator__an_expandable_segment_grows_and_gives_back_pages),
		cmocka_unit_test(allocator__streams_do_not_share_blocks),
		cmocka_unit_test(allocator__a_block_that_another_stream_uses_waits_for_it),
		cmocka_unit_test(allocator__in_a_capture_nothing_is_waited_for),
		cmocka_unit_test(allocator__a_pool_keeps_its_memory_until_nobody_uses_it),
		cmocka_unit_test(allocator__a_pool_lends_when_memory_is_out),
		cmocka_unit_test(allocator__blocks_tile_their_segments_and_all_memory_comes_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
