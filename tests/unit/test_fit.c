/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy fit`: of --vary, the program's words for each value and the search for the largest that fits; what counts as a change that helps.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/cuda/sim_spec.h"
#include "fit/fit_remedies.h"
#include "dice.h"

static void vary__is_a_name_and_two_numbers(void **state)
{
	static const char *const wrong[] = {"",	      "batch-size", "batch-size=4", "=4..8",
					    "b=8..4", "b=0..4",	    "b=4..x",	    "b=..4"};
	struct fit_vary v;
	struct err e;

	(void)state;
	assert_int_equal(fit_vary_parse(&v, "--batch-size=4..64", &e), 0);
	assert_string_equal(v.name, "batch-size");
	assert_int_equal(v.from, 4);
	assert_int_equal(v.to, 64);
	free(v.name);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
		assert_int_equal(fit_vary_parse(&v, wrong[i], &e), -EINVAL);
}

static void expect_words(const char *const *given, const char *const *want)
{
	struct fit_vary v = {.name = "batch-size"};
	char **words = fit_vary_words(&v, (char *const *)given, 7);
	size_t i = 0;

	for (; want[i]; i++)
		assert_string_equal(words[i], want[i]);
	assert_null(words[i]);
	fit_words_free(words);
}

static void words__have_the_value_where_the_program_expects_it(void **state)
{
	(void)state;
	expect_words((const char *const[]){"python3", "t.py", NULL},
		     (const char *const[]){"python3", "t.py", "--batch-size", "7", NULL});
	expect_words((const char *const[]){"python3", "t.py", "--batch-size", "4", "-v", NULL},
		     (const char *const[]){"python3", "t.py", "--batch-size", "7", "-v", NULL});
	expect_words((const char *const[]){"t.py", "--batch_size=4", NULL},
		     (const char *const[]){"t.py", "--batch_size=7", NULL});
	expect_words((const char *const[]){"t.py", "batch_size=4", NULL},
		     (const char *const[]){"t.py", "batch_size=7", NULL});
	expect_words((const char *const[]){"t.py", "--batch-size-eval", "4", NULL},
		     (const char *const[]){"t.py", "--batch-size-eval", "4", "--batch-size", "7", NULL});
	expect_words((const char *const[]){"t.py", "data.batch={}", "--batch-size", "4", NULL},
		     (const char *const[]){"t.py", "data.batch=7", "--batch-size", "4", NULL});
}

struct card_of_test {
	uint64_t limit;			/* the largest value that fits */
	uint64_t off;			/* by how much the guess is, at most */
	int64_t bias;			/* by how much it always is */
	unsigned asked;
};

static int ask_card(void *of, uint64_t value, bool *fits)
{
	struct card_of_test *c = of;

	c->asked++;
	*fits = value <= c->limit;
	return 0;
}

static uint64_t guess_card(void *of, uint64_t most)
{
	struct card_of_test *c = of;
	uint64_t guess = c->limit + roll((uint32_t)(2 * c->off + 1));

	guess = guess > c->off ? guess - c->off : 0;
	guess = c->bias >= 0 || guess > (uint64_t)-c->bias ? guess + (uint64_t)c->bias : 1;
	return guess < most ? guess : most;
}

static void largest__is_found_for_every_limit(void **state)
{
	(void)state;
	for (int i = 0; i < 2000; i++) {
		struct fit_vary v = {.from = 1 + roll(20)};
		struct card_of_test c = {.limit = roll(600), .off = roll(2) ? 0 : 50};
		struct fit_search s = {ask_card, guess_card, &c};
		uint64_t largest, want;

		v.to = v.from + roll(500);
		want = c.limit < v.from ? v.from - 1 : c.limit > v.to ? v.to : c.limit;
		assert_int_equal(fit_vary_largest(&v, &s, &largest), 0);
		assert_int_equal(largest, want);
		assert_true(c.asked <= (c.off ? 30 : 5));	/* a wrong guess costs two of three tries */
	}
}

/* A library that needs less where memory is short, each time: the guess stays wrong. */
static void largest__is_found_soon_beside_a_guess_that_stays_wrong(void **state)
{
	(void)state;
	for (int i = 0; i < 2000; i++) {
		struct fit_vary v = {.from = 1, .to = 4096};
		struct card_of_test c = {.limit = 1 + roll(4095), .bias = (int64_t)roll(200) - 100};
		struct fit_search s = {ask_card, guess_card, &c};
		uint64_t largest;

		assert_int_equal(fit_vary_largest(&v, &s, &largest), 0);
		assert_int_equal(largest, c.limit);
		assert_true(c.asked <= 20);
	}
}

static int ask_nobody(void *of, uint64_t value, bool *fits)
{
	(void)of;
	(void)value;
	(void)fits;
	return -EIO;
}

static void largest__ends_with_a_program_that_fails(void **state)
{
	struct fit_vary v = {.from = 4, .to = 64};
	struct fit_search s = {ask_nobody, guess_card, NULL};
	uint64_t largest;

	(void)state;
	assert_int_equal(fit_vary_largest(&v, &s, &largest), -EIO);
}

/* Batch normalization with a batch of 1. */
static int ask_from_two(void *of, uint64_t value, bool *fits)
{
	return value < 2 ? -EIO : ask_card(of, value, fits);
}

static void largest__is_found_where_the_program_refuses_the_first(void **state)
{
	(void)state;
	for (uint64_t limit = 0; limit <= 40; limit++) {
		struct fit_vary v = {.from = 1, .to = 40};
		struct card_of_test c = {.limit = limit};
		struct fit_search s = {ask_from_two, guess_card, &c};
		uint64_t largest;

		assert_int_equal(fit_vary_largest(&v, &s, &largest), 0);
		assert_int_equal(largest, limit < 2 ? 0 : limit);
	}
}

static void cards__are_in_the_table_once(void **state)
{
	const struct card_model *all;
	size_t n = cards_all(&all);
	struct err e = {0};

	(void)state;
	assert_true(n > 10);
	for (size_t i = 1; i < n; i++) {
		assert_true(all[i].memory >= all[i - 1].memory);
		for (size_t j = 0; j < i; j++)
			assert_string_not_equal(all[i].name, all[j].name);
	}
	assert_non_null(card_find("a100", &e));
	assert_null(card_find("a100-40", &e));
	assert_non_null(strstr(e.hint, "a100-40gb"));
}

static void cards__have_the_names_that_people_type(void **state)
{
	static const char *const names[][2] = {
		{"rtx4090", "rtx4090"},
		{"RTX4090", "rtx4090"},
		{"4090", "rtx4090"},
		{"RTX 4090", "rtx4090"},
		{"rtx_4090", "rtx4090"},
		{"NVIDIA GeForce RTX 4090", "rtx4090"},
		{"2080Ti", "rtx2080ti"},
		{"A100-80GB", "a100-80gb"},
		{"a100_40gb", "a100-40gb"},
		{"Tesla T4", "t4"},
		{"NVIDIA H200", "h200"},
		{"h100", "h100"},
		{"pro 6000", NULL},
		{"4091", NULL},
		{"nvidia", NULL},
		{"", NULL}, {"rtx", NULL}, {"100", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct sim_model *m = sim_model_find(names[i][0], strlen(names[i][0]));

		if (names[i][1])
			assert_string_equal(m ? m->id : "nothing", names[i][1]);
		else
			assert_null(m);
	}
}

static struct what_if_row row_of(bool fits, uint64_t grows, uint64_t fails_at, unsigned doubts)
{
	return (struct what_if_row){.answer = {.fits = fits, .doubts = doubts},
				    .growth = {.bytes = grows, .fails_at = fails_at}};
}

static void remedy__fits_if_what_still_grows_does_so_for_long(void **state)
{
	struct what_if_row good[] = {row_of(true, 0, 0, 0), row_of(true, 0, 0, 1u << REPLAY_LATER),
				     row_of(true, 512, 14000000, 1u << REPLAY_LATER)};
	struct what_if_row bad[] = {row_of(false, 0, 0, 0), row_of(true, 512, 900, 0), row_of(true, 512, 0, 0),
				    row_of(true, 0, 0, 1u << REPLAY_RISING), row_of(false, 512, 14000000, 0)};

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(fit_remedy_fits(&good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(fit_remedy_fits(&bad[i]));
}

static bool patch_of(const char *told, const char *change, struct fit_patch *p, struct pool *pool)
{
	json_t *list = json_loads(told, 0, NULL);
	bool found = fit_patch_read(p, list, change, pool);

	assert_non_null(list);
	json_decref(list);
	return found;
}

static void patch__is_what_the_program_told_of_that_change(void **state)
{
#define PATCH(file) "{\"patch\": \"bf16\", \"file\": \"" file "\", \"text\": \"t\", \"diff\": \"d\"}"
	struct pool pool = {0};
	struct fit_patch p;

	(void)state;
	assert_true(patch_of("[{\"able\": \"bf16\"}, " PATCH("/a/b.py") ", " PATCH("/c.py") "]", "bf16", &p, &pool));
	assert_string_equal(p.file, "/a/b.py");
	assert_string_equal(p.text, "t");
	assert_null(p.ran_on);
	assert_false(patch_of("[" PATCH("/a/b.py") "]", "foreach", &p, &pool));
	assert_false(patch_of("[" PATCH("b.py") "]", "bf16", &p, &pool));	/* in which folder is not known */
	assert_false(
		patch_of("[{\"patch\": \"bf16\", \"file\": \"/a\"}, {\"patch\": 7}, [], null, 1]", "bf16", &p, &pool));
	pool_release(&pool);
#undef PATCH
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vary__is_a_name_and_two_numbers),
		cmocka_unit_test(words__have_the_value_where_the_program_expects_it),
		cmocka_unit_test(largest__is_found_for_every_limit),
		cmocka_unit_test(largest__is_found_soon_beside_a_guess_that_stays_wrong),
		cmocka_unit_test(largest__ends_with_a_program_that_fails),
		cmocka_unit_test(largest__is_found_where_the_program_refuses_the_first),
		cmocka_unit_test(cards__have_the_names_that_people_type),
		cmocka_unit_test(cards__are_in_the_table_once),
		cmocka_unit_test(remedy__fits_if_what_still_grows_does_so_for_long),
		cmocka_unit_test(patch__is_what_the_program_told_of_that_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
