/* SPDX-License-Identifier: Apache-2.0
 * Tests of the readers of GPU code, with the small cubin and PTX that tests/fuzz/make_code_seeds.py writes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "formats/gpu_code.h"

#define SEEDS "tests/fuzz/corpus/code/"

static uint8_t seed[65536];

static struct bytes seed_read(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct bytes b = {seed, 0};

	assert_non_null(f);
	b.len = fread(seed, 1, sizeof(seed), f);
	fclose(f);
	return b;
}

static void cubin__a_kernel_has_its_limits_and_parameters(void **state)
{
	struct bytes b = seed_read(SEEDS "small.cubin");
	const struct gpu_kernel *k;
	struct gpu_target t;
	struct gpu_code c;

	(void)state;
	assert_true(gpu_cubin_target(b, &t));
	assert_int_equal(t.arch, 80);
	assert_int_equal(gpu_cubin_size(b.data), b.len);
	assert_int_equal(gpu_code_from_cubin(&c, b), 0);
	k = gpu_code_kernel(&c, "scale");
	assert_non_null(k);
	assert_null(gpu_code_kernel(&c, "scal"));
	assert_int_equal(k->regs, 40);
	assert_int_equal(k->local, 16);
	assert_int_equal(k->shared, 2048);
	assert_int_equal(k->bounds, 256);
	assert_int_equal(k->code, 128);
	assert_int_equal(k->n_params, 2);
	assert_int_equal(k->param_bytes, 12);
	assert_int_equal(c.param[k->param + 1].offset, 8);
	assert_int_equal(c.param[k->param + 1].size, 4);
	gpu_code_release(&c);
}

static void cubin__a_variable_has_its_contents(void **state)
{
	struct bytes b = seed_read(SEEDS "small.cubin");
	const struct gpu_variable *v;
	struct gpu_code c;

	(void)state;
	assert_int_equal(gpu_code_from_cubin(&c, b), 0);
	v = gpu_code_variable(&c, "table");
	assert_non_null(v);
	assert_int_equal(v->size, 8);
	assert_memory_equal(v->init.data, "\1\2\3\4\5\6\7\10", 8);
	gpu_code_release(&c);
}

/* From sm_90 on, the section of static shared memory includes what the driver keeps. */
static void cubin__static_shared_memory_is_without_the_drivers_own(void **state)
{
	struct bytes b = seed_read(SEEDS "small.cubin");
	struct gpu_code c;

	(void)state;
	seed[49] = 90;
	assert_int_equal(gpu_code_from_cubin(&c, b), 0);
	assert_int_equal(gpu_code_kernel(&c, "scale")->shared, 1024);
	gpu_code_release(&c);
}

static void cubin__a_cut_file_is_refused(void **state)
{
	struct bytes b = seed_read(SEEDS "small.cubin");
	struct gpu_code c;

	(void)state;
	for (size_t len = 0; len < b.len; len += 7)
		if (gpu_code_from_cubin(&c, (struct bytes){b.data, len}) == 0)
			gpu_code_release(&c);
	assert_int_not_equal(gpu_code_from_cubin(&c, (struct bytes){b.data, 64}), 0);
}

static void ptx__a_kernel_has_its_bounds_and_parameters(void **state)
{
	struct bytes b = seed_read(SEEDS "small.ptx");
	const struct gpu_kernel *k;
	struct gpu_target t;
	struct gpu_code c;

	(void)state;
	assert_true(gpu_ptx_target(b, &t));
	assert_int_equal(t.arch, 80);
	assert_int_equal(t.ptx, 87);
	assert_int_equal(gpu_code_from_ptx(&c, b), 0);
	k = gpu_code_kernel(&c, "scale");
	assert_non_null(k);
	assert_int_equal(k->regs, 0);
	assert_int_equal(k->bounds, 256);
	assert_int_equal(k->shared, 1024);
	assert_int_equal(k->n_params, 3);
	assert_int_equal(k->param_bytes, 40);
	assert_int_equal(c.param[k->param + 2].offset, 16);
	assert_int_equal(gpu_code_variable(&c, "table")->size, 16);
	assert_true(gpu_code_variable(&c, "factor")->constant);
	assert_null(gpu_code_variable(&c, "dynamic"));
	gpu_code_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cubin__a_kernel_has_its_limits_and_parameters),
		cmocka_unit_test(cubin__a_variable_has_its_contents),
		cmocka_unit_test(cubin__static_shared_memory_is_without_the_drivers_own),
		cmocka_unit_test(cubin__a_cut_file_is_refused),
		cmocka_unit_test(ptx__a_kernel_has_its_bounds_and_parameters),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
