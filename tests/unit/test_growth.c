/* SPDX-License-Identifier: Apache-2.0
 * Recordings of several sizes: the curve of each request, and the program at a size that was not recorded.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "find/memory/growth.h"
#include "dice.h"
#include "program_make.h"

static void point__of_a_constant_is_exact(void **state)
{
	struct growth_point p = growth_point((double[]){8, 16}, (double[]){4096, 4096}, 2, 64);

	(void)state;
	assert_true(p.bytes == 4096 && p.error == 0 && !p.doubts);
}

static void point__of_two_is_on_their_line(void **state)
{
	struct growth_point p = growth_point((double[]){8, 16}, (double[]){9 * MIB, 17 * MIB}, 2, 64);

	(void)state;
	assert_true(p.bytes == 65 * MIB);
	assert_true(p.error > 0 && p.error < 16 * 1024);	/* the unit of recorded sizes, extrapolated */
}

/* Attention over a length: a line through 64 and 256 would begin at -128. */
static void point__that_would_begin_below_zero_is_on_a_parabola(void **state)
{
	struct growth_point p = growth_point((double[]){8, 16}, (double[]){64 * MIB, 256 * MIB}, 2, 32);

	(void)state;
	assert_true(p.bytes > 1023.9 * MIB && p.bytes < 1024.1 * MIB);
}

static void point__of_three_on_a_line_has_no_doubt(void **state)
{
	struct growth_point p = growth_point((double[]){8, 16, 24}, (double[]){9 * MIB, 17 * MIB, 25 * MIB}, 3, 64);

	(void)state;
	assert_true(p.bytes > 64.99 * MIB && p.bytes < 65.01 * MIB && !p.doubts);
}

static void point__of_a_parabola_is_checked_by_a_fourth(void **state)
{
	double x[] = {8, 16, 24, 32}, y[4];

	(void)state;
	for (int i = 0; i < 4; i++)
		y[i] = MIB * (3 + 2 * x[i] + x[i] * x[i]);
	for (size_t n = 3; n <= 4; n++) {
		struct growth_point p = growth_point(x, y, n, 64);
		double want = (double)MIB * (3 + 2 * 64 + 64 * 64);

		assert_true(p.bytes > want - MIB && p.bytes < want + MIB);
		assert_int_equal(p.doubts, n == 3 ? 1u << GROWTH_CURVE : 0);
	}
}

/* A library's workspace that has reached its most stays there. */
static void point__of_what_grows_no_more_stays(void **state)
{
	struct growth_point p =
		growth_point((double[]){8, 16, 24}, (double[]){50 * MIB, 132 * MIB, 132 * MIB}, 3, 64);

	(void)state;
	assert_true(p.bytes == 132 * MIB);
	assert_int_equal(p.doubts, 1u << GROWTH_BENT);
}

static void point__off_the_curve_has_that_error(void **state)
{
	struct growth_point p =
		growth_point((double[]){8, 16, 24}, (double[]){50 * MIB, 132 * MIB, 140 * MIB}, 3, 48);

	(void)state;
	assert_int_equal(p.doubts, 1u << GROWTH_BENT);
	assert_true(p.error > 20 * MIB);
}

#define BIG (64 * GIB)

/* Parameters of 100 MiB, and in each of three turns activations of 10 MiB for each of the batch; `extra`: a workspace as well. */
static struct replay *record(struct program *p, uint64_t batch, bool extra)
{
	struct allocator_block *kept, *work;

	program_begin(p, "2.11.0", "", BIG);
	program_at(p, 0);
	program_alloc(p, 100 * MIB, 0);
	for (int turn = 0; turn < 3; turn++) {
		program_at(p, 1);
		kept = program_alloc(p, batch * 10 * MIB, 0);
		program_at(p, 2);
		if (extra)
			program_free(p, program_alloc(p, 4 * MIB, 0));
		work = program_alloc(p, batch * 2 * MIB, 0);
		program_free(p, work);
		program_free(p, kept);
	}
	return program_replay(p);
}

static struct replay_answer ask_at(const struct growth *g, double size, uint64_t total)
{
	struct replay *r = growth_at(g, size, 0);
	struct replay_question q = replay_same(r);
	struct replay_answer a;

	q.total = total;
	replay_ask(r, &q, &a);
	replay_free(r);
	return a;
}

static void growth__is_the_program_at_another_size(void **state)
{
	struct program small, middle, large, real;
	struct growth_recording list[] = {{4, record(&small, 4, false), small.trace},
					  {8, record(&middle, 8, false), middle.trace},
					  {12, record(&large, 12, false), large.trace}};
	struct replay *want = record(&real, 30, false);
	struct replay_question q = replay_same(want);
	struct replay_answer a, b;
	struct growth g;

	(void)state;
	growth_init(&g, list, 3);
	assert_int_equal(g.doubts, 0);
	assert_int_equal(g.apart, 0);
	for (uint64_t total = 400 * MIB; total < 600 * MIB; total += 7 * MIB) {
		q.total = total;
		a = ask_at(&g, 30, total);
		replay_ask(want, &q, &b);
		assert_int_equal(a.fits, b.fits);
		assert_int_equal(a.peak_reserved, b.peak_reserved);
	}
	growth_release(&g);
	for (int i = 0; i < 3; i++)
		replay_free((struct replay *)list[i].replay);
	replay_free(want);
	program_end(&small);
	program_end(&middle);
	program_end(&large);
	program_end(&real);
}

static void growth__of_two_recordings_is_a_doubt(void **state)
{
	struct program small, large;
	struct growth_recording list[] = {{4, record(&small, 4, false), small.trace},
					  {8, record(&large, 8, false), large.trace}};
	struct growth g;

	(void)state;
	growth_init(&g, list, 2);
	assert_int_equal(g.doubts, 1u << GROWTH_TWO);
	growth_release(&g);
	replay_free((struct replay *)list[0].replay);
	replay_free((struct replay *)list[1].replay);
	program_end(&small);
	program_end(&large);
}

/* One of them needs a workspace that the other does not: it is said, and the rest is still matched. */
static void growth__of_different_requests_is_a_doubt(void **state)
{
	for (int extra = 0; extra < 2; extra++) {
		struct program small, large;
		struct growth_recording list[] = {{4, record(&small, 4, !extra), small.trace},
						  {8, record(&large, 8, extra), large.trace}};
		struct growth g;

		(void)state;
		growth_init(&g, list, 2);
		assert_int_equal(g.doubts, 1u << GROWTH_TWO | 1u << GROWTH_APART);
		assert_int_equal(g.apart, 3);
		assert_int_equal(ask_at(&g, 16, BIG).peak_allocated, (100 + 160 + 32) * MIB);
		growth_release(&g);
		replay_free((struct replay *)list[0].replay);
		replay_free((struct replay *)list[1].replay);
		program_end(&small);
		program_end(&large);
	}
}

/* Nothing that recordings of other programs say can do harm. */
static void growth__of_programs_that_have_nothing_in_common_ends(void **state)
{
	(void)state;
	for (int round = 0; round < 20; round++) {
		struct program p[2];
		struct growth_recording list[2];
		struct growth g;

		for (int i = 0; i < 2; i++) {
			program_begin(&p[i], "2.11.0", "", BIG);
			for (uint32_t n = 0; n < 1 + roll(600); n++) {
				program_at(&p[i], (uint32_t)roll(4));
				program_alloc(&p[i], 1 + roll(8 * MIB), 0);
			}
			list[i] = (struct growth_recording){8 * (i + 1), program_replay(&p[i]), p[i].trace};
		}
		growth_init(&g, list, 2);
		ask_at(&g, 1, BIG);
		ask_at(&g, 1e9, BIG);
		growth_release(&g);
		for (int i = 0; i < 2; i++) {
			replay_free((struct replay *)list[i].replay);
			program_end(&p[i]);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(point__of_a_constant_is_exact),
		cmocka_unit_test(point__of_two_is_on_their_line),
		cmocka_unit_test(point__that_would_begin_below_zero_is_on_a_parabola),
		cmocka_unit_test(point__of_three_on_a_line_has_no_doubt),
		cmocka_unit_test(point__of_a_parabola_is_checked_by_a_fourth),
		cmocka_unit_test(point__of_what_grows_no_more_stays),
		cmocka_unit_test(point__off_the_curve_has_that_error),
		cmocka_unit_test(growth__is_the_program_at_another_size),
		cmocka_unit_test(growth__of_two_recordings_is_a_doubt),
		cmocka_unit_test(growth__of_different_requests_is_a_doubt),
		cmocka_unit_test(growth__of_programs_that_have_nothing_in_common_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
