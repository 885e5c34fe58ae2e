/* SPDX-License-Identifier: Apache-2.0
 * A memory trace played back: the same again is the same, and what-ifs have the answers that can be worked out by hand.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "dice.h"
#include "read/recording/trace_memory.h"
#include "show/what_if.h"
#include "program_make.h"

static struct replay_answer ask(const struct replay *r, const char *words, uint64_t total)
{
	struct replay_question q = replay_same(r);
	struct replay_answer a;

	assert_int_equal(replay_settings(r, words, &q.settings, NULL), 0);
	q.total = total ? total : q.total;
	replay_ask(r, &q, &a);
	return a;
}

#define LIVE 200

static void random_steps(struct program *p, struct allocator_block **live, int n)
{
	for (int i = 0; i < n; i++) {
		size_t k = roll(LIVE);
		uint64_t most = roll(4) ? 2 * MIB : 30 * MIB;

		if (i % 4000 == 3999)
			allocator_empty_cache(p->a, (struct allocator_pool_id){0, 0});
		if (live[k]) {
			program_free(p, live[k]);
			live[k] = NULL;
		} else {
			live[k] = program_alloc(p, 1 + roll(most), roll(5) ? 0 : 3);
		}
	}
}

static void random_program(struct program *p, int n)
{
	struct allocator_block *live[LIVE] = {NULL};

	random_steps(p, live, n);
}

static void same_again__every_block_is_where_it_was(void **state)
{
	static const char *const confs[] = {"", "max_split_size_mb:22", "roundup_power2_divisions:4",
					    "expandable_segments:True"};

	(void)state;
	for (size_t i = 0; i < sizeof(confs) / sizeof(confs[0]); i++) {
		struct program p;
		struct replay *r;
		struct replay_answer a;

		program_begin(&p, "2.11.0+cu130", confs[i], TOTAL);
		random_program(&p, 20000);
		r = program_replay(&p);
		assert_int_equal(replay_facts(r)->doubts & ~(1u << REPLAY_LIMIT), 0);
		assert_int_equal(replay_facts(r)->outside, OUTSIDE);
		assert_int_equal(replay_facts(r)->peak_reserved, allocator_counters(p.a)->reserved.peak);
		a = ask(r, "", 16 * GIB);
		assert_int_equal(a.doubts & ~(1u << REPLAY_BEYOND | 1u << REPLAY_ADDRESSES | 1u << REPLAY_LIMIT), 0);
		assert_true(a.fits);
		replay_free(r);
		program_end(&p);
	}
}

static void same_again__a_block_that_is_elsewhere_is_a_doubt(void **state)
{
	struct program p;
	struct replay *r;

	(void)state;
	program_begin(&p, "2.11.0", "", TOTAL);
	program_alloc(&p, 3 * MIB, 0);
	note(&p, CW_EVENT_MADE, 0x1234000, 4 * MIB, p.block_site);
	r = program_replay(&p);
	assert_int_equal(replay_facts(r)->doubts, 1u << REPLAY_DIFFERS);
	assert_true(ask(r, "", 0).fits);
	replay_free(r);
	program_end(&p);
}

static int piece_is_first(const struct allocator_piece *list, size_t i)
{
	return i == 0 || list[i].segment != list[i - 1].segment;
}

/* What the program has now was there before; what it does from now on is known. */
static void program_start(struct program *p)
{
	struct allocator_piece *list;
	size_t n = allocator_snapshot(p->a, &list);

	em_release(&p->em);
	em_init(&p->em);
	for (size_t i = 0; i < p->ranges; i++) {
		for (size_t k = 0; k < n; k++)
			if (list[k].expandable && list[k].segment - p->range[i].addr < p->range[i].size)
				em_more(&p->em, CW_MORE_STREAM, 0, list[k].stream);
		note(p, CW_EVENT_GAVE, p->range[i].addr + 1, p->range[i].size, p->range_site);
	}
	for (size_t i = 0; i < n; i++) {
		if (!piece_is_first(list, i))
			continue;
		em_more(&p->em, CW_MORE_STREAM, 0, list[i].stream);
		if (!list[i].expandable)
			note(p, CW_EVENT_GAVE, list[i].segment, list[i].segment_size, p->segment_site);
		for (uint64_t done = 0; list[i].expandable && done < list[i].segment_size;
		     done += page_of(p, list[i].segment))
			note(p, CW_EVENT_GAVE, list[i].segment + done, page_of(p, list[i].segment), p->page_site);
	}
	for (size_t i = 0; i < n; i++) {
		if (list[i].state != ALLOCATOR_ALLOCATED)
			continue;
		em_more(&p->em, CW_MORE_STREAM, 0, list[i].stream);
		em_asked(&p->em, 0, (list[i].requested + 511) / 512 * 512);
		note(p, CW_EVENT_MADE, list[i].addr, list[i].size, p->block_site);
	}
	em_more(&p->em, CW_MORE_START, 0, 1000);
	em_more(&p->em, CW_MORE_FREE, 0, p->card.free);
	free(list);
}

static void start__what_was_there_goes_on_as_it_did(void **state)
{
	static const char *const confs[] = {"", "max_split_size_mb:22", "expandable_segments:True"};

	(void)state;
	for (size_t i = 0; i < 3 * 5; i++) {
		struct allocator_block *live[LIVE] = {NULL};
		struct program p;
		struct replay *r;
		struct replay_answer a;

		program_begin(&p, "2.11.0+cu130", confs[i % 3], TOTAL);
		random_steps(&p, live, 3000 + (int)roll(3000));
		program_start(&p);
		random_steps(&p, live, 9000);
		r = program_replay(&p);
		assert_int_equal(replay_facts(r)->doubts & ~(1u << REPLAY_LIMIT), 0);
		assert_int_equal(replay_facts(r)->before, 1000);
		a = ask(r, "", 16 * GIB);
		assert_true(a.fits);
		assert_int_equal(a.doubts & 1u << REPLAY_BEFORE, 0);
		replay_free(r);
		program_end(&p);
	}
}

/* Ten of 20 MiB, each second one freed: 100 MiB free in pieces. Then 100 MiB on a card that has no more. */
static void start__a_question_that_the_past_decides_is_in_doubt(void **state)
{
	struct allocator_block *b[10];
	struct program p;
	struct replay_answer a;
	struct replay *r;

	(void)state;
	program_begin(&p, "2.11.0", "", OUTSIDE + 240 * MIB);
	b[0] = program_alloc(&p, 200 * MIB, 0);
	program_free(&p, b[0]);
	for (int i = 0; i < 10; i++)
		b[i] = program_alloc(&p, 20 * MIB, 0);
	for (int i = 0; i < 10; i += 2)
		program_free(&p, b[i]);
	program_start(&p);
	assert_null(program_alloc(&p, 100 * MIB, 0));
	r = program_replay(&p);
	a = ask(r, "", 0);
	assert_false(a.fits);
	assert_int_equal(a.doubts, 0);
	a = ask(r, "expandable_segments:True", 0);
	assert_false(a.fits);		/* where the blocks were, it does not; allocated anew, it does */
	assert_true(a.doubts & 1u << REPLAY_BEFORE);
	a = ask(r, "", OUTSIDE + 300 * MIB);
	assert_true(a.fits);
	assert_int_equal(a.doubts & 1u << REPLAY_BEFORE, 0);
	a = ask(r, "", OUTSIDE + 80 * MIB);	/* less than is live */
	assert_false(a.fits);
	assert_int_equal(a.doubts & 1u << REPLAY_BEFORE, 0);
	replay_free(r);
	program_end(&p);
}

/* The whole run had more than the part that is known: a smaller card may have been too small for that. */
static void start__a_peak_before_it_is_a_doubt_on_a_smaller_card(void **state)
{
	struct cw_memory_now *m;
	struct program p;
	struct replay *r;

	(void)state;
	program_begin(&p, "2.11.0", "", TOTAL);
	program_alloc(&p, 30 * MIB, 0);
	program_start(&p);
	program_alloc(&p, 30 * MIB, 0);
	m = (struct cw_memory_now *)(uintptr_t)trace_memory(p.trace, 0);
	m->peak_allocated = m->peak_reserved = 500 * MIB;
	r = program_replay(&p);
	assert_true(ask(r, "", OUTSIDE + 400 * MIB).doubts & 1u << REPLAY_BEFORE);
	assert_false(ask(r, "", OUTSIDE + 600 * MIB).doubts & 1u << REPLAY_BEFORE);
	replay_free(r);
	program_end(&p);
}

/* Three of 100 MiB, and 64 MiB besides: the third finds 36 of 300. */
static void what_if__a_smaller_card_fails_at_the_third_request(void **state)
{
	struct program p;
	struct replay_answer a;
	struct replay *r;

	(void)state;
	program_begin(&p, "2.11.0", "", TOTAL);
	for (int i = 0; i < 3; i++)
		program_alloc(&p, 100 * MIB, 0);
	r = program_replay(&p);
	a = ask(r, "", 0);
	assert_true(a.fits);
	assert_int_equal(a.doubts, 0);
	assert_int_equal(a.peak_reserved, 300 * MIB);
	assert_int_equal(a.spare, TOTAL - OUTSIDE - 300 * MIB);
	a = ask(r, "", 364 * MIB);
	assert_true(a.fits);
	assert_int_equal(a.spare, 0);
	a = ask(r, "", 363 * MIB);
	assert_false(a.fits);
	assert_int_equal(a.doubts, 0);
	assert_int_equal(a.failure.request, 100 * MIB);
	assert_int_equal(a.failure.free, 99 * MIB);
	assert_true(a.failure.stack != 0);
	replay_free(r);
	program_end(&p);
}

/* Every second of blocks of 12 MiB is freed, and one of 40 MiB is asked for: only expandable segments have it without more memory. */
static struct replay_answer ask_convolution(const struct replay *r, uint64_t total, bool fall_back)
{
	struct replay_question q = replay_same(r);
	struct replay_answer a;

	q.total = total;
	q.fall_back = fall_back;
	replay_ask(r, &q, &a);
	return a;
}

/* An output of 100 MiB, a workspace of 200 MiB that is freed at once, and another output. */
static void what_if__a_convolution_does_without_a_workspace(void **state)
{
	uint64_t context = 64 * MIB;
	struct replay_answer a;
	struct program p;
	struct replay *r;

	(void)state;
	program_begin(&p, "2.11.0", "", TOTAL);
	p.block_site = p.convolution_site;
	program_alloc(&p, 100 * MIB, 0);
	program_free(&p, program_alloc(&p, 200 * MIB, 0));
	program_alloc(&p, 100 * MIB, 0);
	r = program_replay(&p);
	a = ask_convolution(r, context + 250 * MIB, false);
	assert_false(a.fits);
	assert_true(a.doubts & 1u << REPLAY_FALLBACK);
	a = ask_convolution(r, context + 250 * MIB, true);
	assert_true(a.fits);
	assert_true(a.doubts & 1u << REPLAY_FALLBACK);
	assert_true(a.peak_allocated == 200 * MIB);
	a = ask_convolution(r, context + 150 * MIB, true);	/* its output is no workspace */
	assert_false(a.fits);
	assert_int_equal(a.failure.request, 100 * MIB);
	a = ask_convolution(r, TOTAL, true);
	assert_true(a.fits);
	assert_int_equal(a.doubts & 1u << REPLAY_FALLBACK, 0);
	replay_free(r);
	program_end(&p);
}

static void what_if__expandable_segments_close_gaps(void **state)
{
	struct allocator_block *piece[10];
	struct replay_answer plain, expandable;
	struct program p;
	struct replay *r;

	(void)state;
	program_begin(&p, "2.11.0", "", TOTAL);
	for (int i = 0; i < 10; i++)
		piece[i] = program_alloc(&p, 20 * MIB, 0);
	for (int i = 0; i < 5; i++)
		program_free(&p, piece[i]);
	program_alloc(&p, 100 * MIB, 0);
	r = program_replay(&p);
	plain = ask(r, "", 0);
	expandable = ask(r, "expandable_segments:True", 0);
	assert_int_equal(plain.peak_reserved, 300 * MIB);
	assert_int_equal(expandable.peak_reserved, 200 * MIB);
	assert_int_equal(plain.doubts | expandable.doubts, 0);
	plain = ask(r, "", OUTSIDE + 220 * MIB);	/* the cache is released for it */
	assert_true(plain.fits);
	assert_int_equal(plain.retries, 1);
	replay_free(r);
	program_end(&p);
}

static void what_if__memory_of_others_takes_room(void **state)
{
	struct program p;
	struct replay *r;

	(void)state;
	program_begin(&p, "2.11.0", "", TOTAL);
	note(&p, CW_EVENT_GAVE, 1 << 28, 99 * MIB, p.nccl_site);	/* 100, in pages */
	program_alloc(&p, 100 * MIB, 0);
	note(&p, CW_EVENT_TOOK, 1 << 28, 0, 0);
	program_alloc(&p, 100 * MIB, 0);
	r = program_replay(&p);
	assert_int_equal(replay_facts(r)->outside, OUTSIDE + 100 * MIB);
	assert_true(ask(r, "", OUTSIDE + 200 * MIB).fits);
	assert_false(ask(r, "", OUTSIDE + 198 * MIB).fits);
	replay_free(r);
	program_end(&p);
}

/* A block of 11 MiB may have been asked for as 10 MiB or more: in segments of 10 or of 12 MiB. */
static void what_if__sizes_that_were_not_recorded_are_an_interval(void **state)
{
	struct cw_events_file head;
	struct program p;
	struct replay_answer a;
	struct replay *r;

	(void)state;
	program_begin(&p, "2.11.0", "", TOTAL);
	memcpy(&head, p.em.data, sizeof(head));
	head.minor = 5;
	memcpy(p.em.data, &head, sizeof(head));
	program_alloc(&p, 12 * MIB - 512, 0);
	r = program_replay(&p);
	a = ask(r, "", 0);
	assert_int_equal(a.doubts, 0);
	assert_int_equal(a.peak_reserved, 12 * MIB);
	a = ask(r, "max_split_size_mb:21", OUTSIDE + 12 * MIB);
	assert_true(a.fits);
	replay_free(r);
	program_end(&p);
}

static uint64_t most_of(const uint64_t *value, size_t n)
{
	uint64_t most = 0;

	for (size_t i = 0; i < n; i++)
		most = value[i] > most ? value[i] : most;
	return most;
}

static void over_time__no_peak_is_lost(void **state)
{
	static const char *const confs[] = {"", "expandable_segments:True"};
	static const int lengths[] = {3, 400, 20000};

	(void)state;
	for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
		struct replay_intervals at;
		struct program p;
		struct replay *r;

		program_begin(&p, "2.11.0+cu130", "", TOTAL);
		random_program(&p, lengths[i]);
		r = program_replay(&p);
		at = replay_intervals(r);
		for (size_t k = 1; k < at.n; k++)
			assert_true(at.began[k] >= at.began[k - 1]);
		for (size_t k = 0; k < sizeof(confs) / sizeof(confs[0]); k++) {
			struct replay_question q = replay_same(r);
			struct replay_over_time o;
			struct replay_answer a, alone;

			assert_int_equal(replay_settings(r, confs[k], &q.settings, NULL), 0);
			replay_ask_over_time(r, &q, &a, &o);
			replay_ask(r, &q, &alone);
			assert_int_equal(a.peak_reserved, alone.peak_reserved);
			assert_int_equal(most_of(o.reserved, o.n), a.peak_reserved);
			assert_int_equal(most_of(o.allocated, o.n), a.peak_allocated);
			assert_true(o.n <= at.n && at.n <= REPLAY_INTERVALS && (a.fits ? o.n == at.n : true));
		}
		replay_free(r);
		program_end(&p);
	}
}

static void over_time__it_begins_with_what_was_there(void **state)
{
	struct allocator_block *live[LIVE] = {NULL};
	struct replay_over_time o;
	struct replay_question q;
	struct replay_answer a;
	struct replay_intervals at;
	struct program p;
	struct replay *r;

	(void)state;
	memset(&o, 0x5a, sizeof(o));
	program_begin(&p, "2.11.0+cu130", "", TOTAL);
	random_steps(&p, live, 3000);
	program_start(&p);
	random_steps(&p, live, 9000);
	r = program_replay(&p);
	q = replay_same(r);
	replay_ask_over_time(r, &q, &a, &o);
	at = replay_intervals(r);
	assert_int_equal(o.n, at.n);
	for (size_t i = 0; i < o.n; i++) {
		assert_in_range(o.allocated[i], 1, a.peak_allocated);
		assert_in_range(o.reserved[i], o.allocated[i], a.peak_reserved);
		assert_true(at.began[i] >= replay_facts(r)->since && (!i || at.began[i] >= at.began[i - 1]));
	}
	replay_free(r);
	program_end(&p);
}

static void over_time__it_ends_where_it_fails(void **state)
{
	struct replay_question q;
	struct replay_over_time o;
	struct replay_answer a;
	struct program p;
	struct replay *r;

	(void)state;
	program_begin(&p, "2.11.0", "", TOTAL);
	for (int i = 0; i < 5; i++)
		program_alloc(&p, 100 * MIB, 0);
	r = program_replay(&p);
	q = replay_same(r);
	q.total = OUTSIDE + 300 * MIB;
	replay_ask_over_time(r, &q, &a, &o);
	assert_false(a.fits);
	assert_int_equal(replay_room(r, &q), 300 * MIB);
	assert_int_equal(replay_intervals(r).steps, 1);
	assert_int_equal(o.n, a.failure.step);
	assert_int_equal(o.reserved[o.n - 1], 300 * MIB);
	replay_free(r);
	program_end(&p);
}

static void answer__says_what_is_not_known(void **state)
{
	struct program p;
	struct replay *r;

	(void)state;
	program_begin(&p, "2.13.0", "", TOTAL);
	program_alloc(&p, 3 * MIB, 0);
	em_lost(&p.em, 7);
	note(&p, CW_EVENT_FREED, 0x998000, 0, 0);
	r = program_replay(&p);
	assert_int_equal(replay_facts(r)->doubts, 1u << REPLAY_RELEASE | 1u << REPLAY_LOST | 1u << REPLAY_CONTRADICTION);
	replay_free(r);
	program_end(&p);
}

static void answer__beyond_an_error_is_not_exact(void **state)
{
	struct program p;
	struct replay_answer a;
	struct replay *r;

	(void)state;
	program_begin(&p, "2.11.0", "", TOTAL);
	program_alloc(&p, 100 * MIB, 0);
	assert_null(program_alloc(&p, 2 * GIB, 0));
	r = program_replay(&p);
	assert_true(replay_facts(r)->ran_out);
	assert_int_equal(replay_facts(r)->doubts, 0);
	a = ask(r, "", 0);
	assert_false(a.fits);
	assert_int_equal(a.doubts, 0);
	assert_int_equal(a.failure.request, 2 * GIB);
	a = ask(r, "", 4 * GIB);
	assert_true(a.fits);
	assert_int_equal(a.doubts, 1u << REPLAY_BEYOND);
	replay_free(r);
	program_end(&p);
}

static void answer__is_exact_where_only_its_figures_are_not(void **state)
{
	struct what_if_row row = {.words = "b200", .total = 1 << 30,
				  .answer = {.fits = true, .figures = 1u << REPLAY_ADDRESSES, .spare = 1 << 20}};
	json_t *j = what_if_row_json(&row);
	char text[1024];
	FILE *out = fmemopen(text, sizeof(text), "w");

	(void)state;
	assert_true(json_is_false(json_object_get(j, "exact")));
	assert_int_equal(json_array_size(json_object_get(j, "doubts")), 1);
	what_if_print(out, &row, 1, &(struct what_if_style){.first = "GPU"});
	fclose(out);
	assert_non_null(strstr(text, " yes "));
	assert_non_null(strstr(text, "RESERVED and SPARE are not exact: it depends on the addresses"));
	json_decref(j);
}

static void settings__that_pytorch_refuses_are_refused(void **state)
{
	struct allocator_settings s;
	struct err e = {0};
	struct program p;
	struct replay *r;

	(void)state;
	program_begin(&p, "2.11.0", "", TOTAL);
	program_alloc(&p, 3 * MIB, 0);
	r = program_replay(&p);
	assert_int_equal(replay_settings(r, "no_such_option:1", &s, &e), -EINVAL);
	assert_non_null(strstr(e.msg, "no_such_option"));
	replay_free(r);
	program_end(&p);
}

/* Nothing that a file says can do harm. */
static void replay__of_any_bytes_ends(void **state)
{
	struct program p;

	(void)state;
	for (int round = 0; round < 300; round++) {
		struct replay *r;

		program_begin(&p, "2.11.0", "", TOTAL);
		random_program(&p, 100);
		for (int i = 0; i < 20; i++)
			p.em.data[sizeof(struct cw_events_file) + roll(p.em.len - sizeof(struct cw_events_file))] =
				(uint8_t)roll(256);
		r = replay_new(p.trace, p.em.data, p.em.len, 0, NULL);
		if (r)
			ask(r, "expandable_segments:True", 0);
		replay_free(r);
		program_end(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_again__every_block_is_where_it_was),
		cmocka_unit_test(same_again__a_block_that_is_elsewhere_is_a_doubt),
		cmocka_unit_test(start__what_was_there_goes_on_as_it_did),
		cmocka_unit_test(start__a_question_that_the_past_decides_is_in_doubt),
		cmocka_unit_test(start__a_peak_before_it_is_a_doubt_on_a_smaller_card),
		cmocka_unit_test(what_if__a_smaller_card_fails_at_the_third_request),
		cmocka_unit_test(what_if__a_convolution_does_without_a_workspace),
		cmocka_unit_test(what_if__expandable_segments_close_gaps),
		cmocka_unit_test(what_if__memory_of_others_takes_room),
		cmocka_unit_test(what_if__sizes_that_were_not_recorded_are_an_interval),
		cmocka_unit_test(over_time__no_peak_is_lost),
		cmocka_unit_test(over_time__it_begins_with_what_was_there),
		cmocka_unit_test(over_time__it_ends_where_it_fails),
		cmocka_unit_test(answer__says_what_is_not_known),
		cmocka_unit_test(answer__beyond_an_error_is_not_exact),
		cmocka_unit_test(answer__is_exact_where_only_its_figures_are_not),
		cmocka_unit_test(settings__that_pytorch_refuses_are_refused),
		cmocka_unit_test(replay__of_any_bytes_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
