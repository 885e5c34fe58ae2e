/* SPDX-License-Identifier: Apache-2.0
 * Names of a Triton kernel's parameters, as several releases write them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "find/failure/triton_names.h"

static struct triton_param p[TRITON_PARAMS];

static void names_and_sizes(void **state)
{
	(void)state;
	assert_int_equal(
		triton_params(
			"module {\n  tt.func public @add(%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32} loc(\"x_ptr\"(#loc)), "
			"%n: i32 loc(\"n\"(#loc)), %eps: f32 loc(\"eps\"(#loc)), %big: i64, %flag: i1, %h: bf16) attributes "
			"{noinline = false} {",
			"add", p),
		6);
	assert_string_equal(p[0].name, "x_ptr");
	assert_string_equal(p[2].name, "eps");
	assert_string_equal(p[5].name, "h");
	assert_int_equal(p[0].size * 100000 + p[1].size * 10000 + p[2].size * 1000 + p[3].size * 100 + p[4].size * 10 +
				 p[5].size,
			 844812);
	assert_int_equal(p[0].points_to, 4);
	assert_true(!p[0].is_integer && p[1].is_integer && !p[2].is_integer && p[3].is_integer && !p[5].is_integer);
	assert_int_equal(p[1].points_to, 0);
	/* the name only in its place; a place without a name */
	assert_int_equal(triton_params("tt.func public @add(%arg0: !tt.ptr<f16, 1> loc(\"out\"(#loc1))) {", "add", p), 1);
	assert_string_equal(p[0].name, "out");
	assert_int_equal(p[0].points_to, 2);
	assert_int_equal(
		triton_params("tt.func public @add(%x: !tt.ptr<!tt.ptr<f32>>, %y: !tt.ptr<f8E5M2>) {", "add", p), 2);
	assert_true(p[0].points_to == 0 && p[1].points_to == 0);
	assert_int_equal(triton_params("tt.func public @add(%x: i32 loc(\"/a/b.py\":1:2)) {", "add", p), 1);
	assert_string_equal(p[0].name, "x");
}

static void nothing_is_guessed(void **state)
{
	static const char *const bad[] = {
		"",
		"tt.func public @add(",
		"tt.func public @add()",
		"tt.func public @adder(%x: i32)",
		"tt.func public @add(%arg0: i32 loc(\"/a.py\":1:2))",
		"tt.func public @add(%x: !tt.tensordesc<tensor<8xf32>>)",
		"tt.func public @add(%x: i32, %y)",
		"tt.func public @add(%x: i32",
		"tt.func public @add(%: i32)",
		"tt.func private @add(%x: i32)",
		"tt.func public @add(%x: i32x)",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(triton_params(bad[i], "add", p), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(names_and_sizes), cmocka_unit_test(nothing_is_guessed)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
