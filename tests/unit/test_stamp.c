/* SPDX-License-Identifier: Apache-2.0
 * Times in logs, and what they prove about runs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "find/words/log.h"
#include "read/text/line.h"

static double stamp(const char *line)
{
	double seconds = -1;

	return stamp_of_line(line, strlen(line), &seconds) ? seconds : -1;
}

static void stamp__the_time_that_begins_a_line(void **state)
{
	(void)state;
	assert_true(stamp("1970-01-02 00:00:01 x") == 86401);
	assert_true(stamp("[rank0]:[1970-01-01T00:01:00.5Z] x") == 60.5);
	assert_true(stamp("1970-01-01 01:00:00,250+01:00") == 0.25);
	assert_true(stamp("1970-01-01T00:00:00-0030 x") == 1800);
	assert_true(stamp("step 3 of 2025-03-04") == -1);
	assert_true(stamp("12025-03-04 11:12:13") == -1);
	assert_true(stamp("") == -1);
}

static void stamp__a_line_that_ends_inside_the_time_has_none(void **state)
{
	static const char whole[] = "1970-01-02 00:00:01.5+01:00";
	double seconds;

	(void)state;
	for (size_t n = 0; n < 19; n++)
		assert_false(stamp_of_line(whole, n, &seconds));
	for (size_t n = 19; n < sizeof(whole); n++)
		assert_true(stamp_of_line(whole, n, &seconds));
}

static void add(struct text_log *l, const char *name, const char *time, const char *error)
{
	char text[256];

	snprintf(text, sizeof(text), "%s step 1\n%s\n", time, error);
	log_read_text(l, name, text, strlen(text));
}

static size_t runs_of(const char *second, const char *error, int *run)
{
	struct text_log *l = log_new();
	size_t n;

	add(l, "a", "2025-03-04 11:00:00", "RuntimeError: CUDA error: an illegal memory access was encountered");
	add(l, "b", second, error);
	add(l, "c", "nothing", "all is well");
	log_finish(l);
	n = log_runs(l, run);
	log_free(l);
	return n;
}

static void runs__hours_between_two_failures_are_two_runs(void **state)
{
	int run[3];

	(void)state;
	assert_int_equal(runs_of("2025-03-05 11:00:00", "RuntimeError: CUDA error: unspecified launch failure", run), 2);
	assert_int_equal(run[0], 0);
	assert_int_equal(run[1], 1);
	assert_int_equal(run[2], RUN_ANY);
	assert_int_equal(runs_of("2025-03-03 11:00:00", "RuntimeError: CUDA error: unspecified launch failure", run), 2);
	assert_int_equal(run[0], 1);
}

static void runs__what_may_be_one_run_is_one(void **state)
{
	int run[3];

	(void)state;
	assert_int_equal(runs_of("2025-03-04 11:40:00", "RuntimeError: CUDA error: unspecified launch failure", run), 1);
	assert_int_equal(runs_of("no time", "RuntimeError: CUDA error: unspecified launch failure", run), 1);
	assert_int_equal(runs_of("2025-03-05 11:00:00", "all is well", run), 1);
	assert_int_equal(
		runs_of("2025-03-05 11:00:00", "ConnectionResetError: [Errno 104] Connection reset by peer", run), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stamp__the_time_that_begins_a_line),
		cmocka_unit_test(stamp__a_line_that_ends_inside_the_time_has_none),
		cmocka_unit_test(runs__hours_between_two_failures_are_two_runs),
		cmocka_unit_test(runs__what_may_be_one_run_is_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
