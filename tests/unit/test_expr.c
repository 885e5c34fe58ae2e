/* SPDX-License-Identifier: Apache-2.0
 * Expressions and templates: values, unknowns, and mistakes that must be found.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

#include "base/err.h"
#include "knowledge/compile/compile.h"
#include "verdict/rules/expr.h"
#include "verdict/rules/template.h"

/* Facts used below: known number, text and flags; device.name and oom.free are unknown. */
static void some_facts(struct casefile *f, struct pool *pool)
{
	case_init(f, pool);
	fact_set_number(f, FACT_launch_grid_z, 70000);
	fact_set_number(f, FACT_limit_grid_z, 65535);
	fact_set_number(f, FACT_oom_request, 4398046511104.0);
	fact_set_number(f, FACT_error_code, 9);
	fact_set_text(f, FACT_error_text, "CUDA error: invalid \"argument\"");
	fact_set_flag(f, FACT_launch_is, true);
	fact_set_flag(f, FACT_error_sticky, false);
}

/* 'y', 'n', '?' (unknown) or '!' (does not parse); numbers are in *number. */
static char outcome(const char *text, double *number)
{
	struct pool pool = {0};
	struct arena a;
	struct casefile f;
	struct err e = {0};
	const struct expr *x;
	struct value v;
	char c;

	some_facts(&f, &pool);
	arena_init(&a);
	x = expr_parse(NULL, &a, text, strlen(text), &e);
	if (!x) {
		assert_true(e.msg[0] != '\0');
		c = '!';
	} else {
		v = expr_eval(x, &f);
		c = !v.known ? '?' : v.number != 0 ? 'y' : 'n';
		if (number)
			*number = v.number;
	}
	arena_release(&a);
	pool_release(&pool);
	return c;
}

#define YES(text) assert_int_equal(outcome(text, NULL), 'y')
#define NO(text) assert_int_equal(outcome(text, NULL), 'n')
#define UNKNOWN(text) assert_int_equal(outcome(text, NULL), '?')
#define BAD(text) assert_int_equal(outcome(text, NULL), '!')

static void number_is(const char *text, double expected)
{
	double n = -1;

	assert_int_not_equal(outcome(text, &n), '!');
	assert_true(n == expected);
}

static void expr__compares_and_calculates(void **state)
{
	(void)state;
	YES("launch.grid.z > limit.grid.z");
	NO("launch.grid.z <= limit.grid.z");
	YES("launch.grid.z == 70000 && limit.grid.z != 70000");
	number_is("1 + 2 * 3 - 4 / 2", 5);
	number_is("(1 + 2) * 3", 9);
	number_is("-launch.grid.z + 1", -69999);
	number_is("7 % 4", 3);
	number_is("0x10 + 1.5", 17.5);
	number_is("ceil(launch.grid.z / limit.grid.z)", 2);
	number_is("floor(1.9) + abs(-2) + min(3, 4) + max(3, 4)", 10);
	number_is("10 - 3 - 2", 5);
}

static void expr__compares_texts(void **state)
{
	(void)state;
	YES("contains(error.text, \"CUDA error\")");
	NO("contains(error.text, \"cuda error\")");
	YES("matches(error.text, \"*invalid*\")");
	YES("matches(\"a/b\nc\", \"a*c\")");
	YES("contains(error.text, \"\\\"argument\\\"\")");
	YES("error.text != \"\"");
	YES("error.code in (1, 9, 98)");
	NO("error.code in (1, 2)");
	YES("\"b\" in (\"a\", \"b\")");
	YES("true && !false");
}

static void expr__names_codes_sets_and_numbers(void **state)
{
	(void)state;
	YES("error.code == cuda.invalid_configuration");
	NO("error.code == cuda.illegal_address");
	number_is("cuda.illegal_address", 700);
	number_is("cuda.success", 0);
	YES("error.code in cuda_set.launch_refused && launch.is");
	NO("error.code in cuda_set.illegal_access");
	YES("!(error.code in cuda_set.illegal_access)");
	UNKNOWN("driver.init in cuda_set.mps_refused");
	BAD("error.code == cuda.no_such_code");
	BAD("error.code == cuda.illegal");
	BAD("error.code in cuda_set.no_such_set");
	BAD("error.text in cuda_set.illegal_access");
	BAD("error.code == cuda_set.illegal_access");
	BAD("sign.some_sign");
	number_is("threshold.exbibyte", 1152921504606846976.0);
	BAD("oom.request > threshold.no_such");
}

static void expr__unknown_spreads_but_not_where_the_answer_is_decided(void **state)
{
	(void)state;
	UNKNOWN("oom.free > 1");
	UNKNOWN("!(oom.free > 1)");
	UNKNOWN("oom.free + 1 == 2");
	UNKNOWN("contains(device.name, \"H200\")");
	UNKNOWN("oom.free in (1, 2)");
	NO("error.sticky && oom.free > 1");
	NO("oom.free > 1 && error.sticky");
	YES("launch.is || oom.free > 1");
	YES("oom.free > 1 || launch.is");
	UNKNOWN("launch.is && oom.free > 1");
	UNKNOWN("error.sticky || oom.free > 1");
	NO("known(oom.free)");
	YES("known(error.text) && !known(oom.free)");
}

static void expr__division_by_zero_is_unknown(void **state)
{
	(void)state;
	UNKNOWN("1 / 0 > 1");
	UNKNOWN("1 % 0 == 0");
	UNKNOWN("launch.grid.z / (limit.grid.z - limit.grid.z) > 0");
}

static void expr__mistakes_are_found_when_parsed(void **state)
{
	char deep[400];

	(void)state;
	BAD("");
	BAD("   ");
	BAD("launch.is &&");
	BAD("launch.is launch.is");
	BAD("no.such.fact");
	BAD("known(no.such.fact)");
	BAD("known(1)");
	BAD("error.text > 3");
	BAD("error.text == 3");
	BAD("error.text < \"a\"");
	BAD("launch.is + 1");
	BAD("error.code && launch.is");
	BAD("!error.code");
	BAD("-error.text");
	BAD("contains(error.text)");
	BAD("contains(error.text, 1)");
	BAD("ceil(error.text)");
	BAD("ceil(1, 2)");
	BAD("min(1)");
	BAD("(1 + 2");
	BAD("1 + 2)");
	BAD("\"open");
	BAD("error.code in 1");
	BAD("error.code in (1");
	BAD("error.code in (1, \"a\")");
	BAD("12abc");
	BAD("0xzz");
	BAD("@");
	BAD("contains");
	memset(deep, '(', sizeof(deep) - 1);
	deep[sizeof(deep) - 1] = '\0';
	BAD(deep);
	memset(deep, '!', sizeof(deep) - 1);
	BAD(deep);
}

static void expand(const char *text, const char *expected)
{
	struct pool pool = {0};
	struct arena a;
	struct casefile f;
	struct err e = {0};
	const struct template *t;
	char *out;

	some_facts(&f, &pool);
	arena_init(&a);
	t = template_parse(NULL, &a, text, strlen(text), &e);
	assert_non_null(t);
	assert_string_equal(AT(t->text), text);
	out = template_expand(t, &f, &pool);
	if (expected)
		assert_string_equal(out, expected);
	else
		assert_null(out);
	arena_release(&a);
	pool_release(&pool);
}

static void template__numbers_sizes_and_texts(void **state)
{
	(void)state;
	expand("plain", "plain");
	expand("", "");
	expand("z is {launch.grid.z:n} of {limit.grid.z}", "z is 70,000 of 65535");
	expand("{oom.request:bytes}", "4.0 TiB");
	expand("{512:bytes} {1:bytes} {1536:bytes}", "512 bytes 1 byte 1.5 KiB");
	expand("{ceil(launch.grid.z / limit.grid.z)} pieces", "2 pieces");
	expand("{error.text}", "CUDA error: invalid \"argument\"");
	expand("a {{brace} and {launch.grid.z}", "a {brace} and 70000");
	expand("{-1234567:n} {999:n} {1000:n} {0:n} {1.5:n}", "-1,234,567 999 1,000 0 1.50");
	expand("{\"}\"}", "}");
}

static void template__one_thing_is_in_the_singular(void **state)
{
	static const char *const said[][2] = {
		{"{1} other processes hold memory", "1 other process holds memory"},
		{"{2} other processes hold memory", "2 other processes hold memory"},
		{"{1:n} threads", "1 thread"},
		{"{1} processes were started", "1 process was started"},
		{"shows {1} devices", "shows 1 device"},
		{"{1} x {1} = {1:n} threads: each", "1 x 1 = 1 thread: each"},
		{"{1} of {1} ranks arrived", "1 of 1 rank arrived"},
		{"{1001:n} blocks", "1,001 blocks"},
		{"{10 + 1} blocks", "11 blocks"},
		{"{1} autograd nodes, {3} threads", "1 autograd node, 3 threads"},
		{"{1} is not the same as threads", "1 is not the same as threads"},
		{"{0} threads", "0 threads"},
		{"1 threads", "1 threads"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(said) / sizeof(said[0]); i++)
		expand(said[i][0], said[i][1]);
}

static void template__a_sentence_with_an_unknown_fact_is_not_said(void **state)
{
	(void)state;
	expand("on {device.name}", NULL);
	expand("{oom.free:bytes} free", NULL);
	expand("{1 / 0}", NULL);
}

static void template__a_sentence_with_an_empty_text_is_not_said(void **state)
{
	(void)state;
	expand("the status is {\"\"}", NULL);
	expand("{\" \"}: of the library", NULL);
	expand("VARIABLE is \"{\"\"}\"", "VARIABLE is \"\"");
}

static void template__mistakes_are_found_when_parsed(void **state)
{
	static const char *const bad[] = {"{",		 "{launch.grid.z",     "{}",	 "{nothing}", "{error.text:n}",
					  "{launch.is}", "{error.text:bytes}", "a {b c}"};
	struct arena a;

	(void)state;
	arena_init(&a);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct err e = {0};

		assert_null(template_parse(NULL, &a, bad[i], strlen(bad[i]), &e));
		assert_true(e.msg[0] != '\0');
	}
	arena_release(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expr__compares_and_calculates),
		cmocka_unit_test(expr__compares_texts),
		cmocka_unit_test(expr__names_codes_sets_and_numbers),
		cmocka_unit_test(expr__unknown_spreads_but_not_where_the_answer_is_decided),
		cmocka_unit_test(expr__division_by_zero_is_unknown),
		cmocka_unit_test(expr__mistakes_are_found_when_parsed),
		cmocka_unit_test(template__numbers_sizes_and_texts),
		cmocka_unit_test(template__one_thing_is_in_the_singular),
		cmocka_unit_test(template__a_sentence_with_an_unknown_fact_is_not_said),
		cmocka_unit_test(template__a_sentence_with_an_empty_text_is_not_said),
		cmocka_unit_test(template__mistakes_are_found_when_parsed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
