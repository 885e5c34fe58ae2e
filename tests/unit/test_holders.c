/* SPDX-License-Identifier: Apache-2.0
 * From a tensor's object to its block, and how much of that it has elements in: with the memory of a process made by hand.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "cuwhy/format.h"
#include "find/memory/holders_tensors.h"
#include "live_make.h"

#define TENSORS	5u
#define BLOCK	(1ull << 20)
#define FIRST	0x7f0000000000ull

/* Distances of a PyTorch that never was. */
#define IMPL	24u
#define STORAGE	16u
#define DATA	32u
#define SHAPE	72u

static struct image image;
static struct cw_allocation made[TENSORS];
static const struct cw_allocation *block[TENSORS];
static uint64_t object[TENSORS], impl[TENSORS];
static struct remote r;

/* A tensor of n rows of eight floats. */
static void put_tensor(uint32_t i, uint64_t n)
{
	uint64_t storage = image_room(&image, 64);

	object[i] = image_room(&image, 64);
	impl[i] = image_room(&image, 256);
	image_put(&image, object[i] + IMPL, impl[i], 8);
	image_put(&image, impl[i], 0x5000, 8);
	image_put(&image, impl[i] + STORAGE, storage, 8);
	image_put(&image, storage + DATA, FIRST + i * BLOCK, 8);
	image_put(&image, impl[i] + SHAPE, 2, 8);
	image_put(&image, impl[i] + SHAPE + 8, n, 8);
	image_put(&image, impl[i] + SHAPE + 16, 8, 8);
	image_put(&image, impl[i] + SHAPE + 96, n * 8, 8);
	image_put(&image, impl[i] + SHAPE + 104, 6, 2);
	made[i] = (struct cw_allocation){.addr = FIRST + i * BLOCK, .size = BLOCK};
	block[i] = &made[i];
}

static struct tensor_layout learn(void)
{
	struct tensor_layout l;

	remote_forget(&r);
	tensor_layout_learn(&l, &r, block, TENSORS, object, TENSORS);
	return l;
}

static int begin(void **state)
{
	(void)state;
	memset(&image, 0, sizeof(image));
	remote_init(&r, image_fetch, &image);
	for (uint32_t i = 0; i < TENSORS; i++)
		put_tensor(i, i ? 100 * i : 2);
	return 0;
}

static int end(void **state)
{
	(void)state;
	remote_release(&r);
	return 0;
}

static void tensors__their_memory_and_their_shape_are_learned(void **state)
{
	struct tensor_layout l = learn();

	(void)state;
	assert_true(l.known);
	assert_int_equal(l.impl, IMPL);
	assert_int_equal(l.storage, STORAGE);
	assert_int_equal(l.data, DATA);
	assert_int_equal(l.shape, SHAPE);
	assert_int_equal(tensor_block(&l, object[3]), 3);
	assert_int_equal(tensor_elements(&l, impl[0]), 2 * 8 * 4);	/* a view of a megabyte */
	assert_int_equal(tensor_elements(&l, impl[3]), 300 * 8 * 4);
}

static void tensors__elements_that_are_not_the_product_of_sizes_are_not_known(void **state)
{
	struct tensor_layout l;

	(void)state;
	for (uint32_t i = 0; i < TENSORS; i++)
		image_put(&image, impl[i] + SHAPE + 96, 17, 8);
	l = learn();
	assert_true(l.known);
	assert_int_equal(l.shape, 0);
	assert_int_equal(tensor_elements(&l, impl[1]), 0);
}

static void tensors__a_shape_that_does_not_fit_into_the_block_is_none(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < TENSORS; i++)
		made[i].size = 32;
	assert_int_equal(learn().shape, 0);
}

static void tensors__one_of_many_may_have_its_memory_elsewhere(void **state)
{
	struct tensor_layout l;

	(void)state;
	image_put(&image, impl[2] + STORAGE, 0, 8);	/* on no GPU */
	l = learn();
	assert_true(l.known);
	assert_int_equal(l.shape, SHAPE);
	assert_true(tensor_block(&l, object[2]) == SIZE_MAX);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(tensors__their_memory_and_their_shape_are_learned, begin, end),
		cmocka_unit_test_setup_teardown(tensors__elements_that_are_not_the_product_of_sizes_are_not_known,
						begin, end),
		cmocka_unit_test_setup_teardown(tensors__a_shape_that_does_not_fit_into_the_block_is_none, begin, end),
		cmocka_unit_test_setup_teardown(tensors__one_of_many_may_have_its_memory_elsewhere, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
