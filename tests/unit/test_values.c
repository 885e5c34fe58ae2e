/* SPDX-License-Identifier: Apache-2.0
 * The values behind a failed check: kernels of our own are executed to their trap, with and without memory, and what must
 * stay unknown.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "assert_make.h"
#include "find/fault/sass_run.h"
#include "find/fault/values.h"

#define BASE	0x7f1298760000ull
#define STEPS	20000

struct row {
	unsigned arch;
	const char *kind;
	uint64_t trap;
	uint32_t tid, ctaid, nctaid;
	uint64_t params_offset;
	uint32_t count, stride, place, bytes;
	uint64_t value;
	const uint64_t *code;
	size_t n;
};

#define ROW(arch, kind, trap, tid, ctaid, nctaid, params, count, stride, place, bytes, value, ...)                                \
	{arch, kind, trap, tid, ctaid, nctaid, params, count, stride, place, bytes, value, (const uint64_t[]){__VA_ARGS__},     \
	 sizeof((const uint64_t[]){__VA_ARGS__}) / 8},

static const struct row rows[] = {
#define CHECK(...) ROW(__VA_ARGS__)
#define ACCESS(...)
#include "tests/dump/run_table.def"
};

static const struct row accesses[] = {
#define CHECK(...)
#define ACCESS(...) ROW(__VA_ARGS__)
#include "tests/dump/run_table.def"
};

#define N_ROWS	(sizeof(rows) / sizeof(rows[0]))

struct memory {
	uint8_t bytes[8192];
	size_t n;
};

static bool is_real(const struct row *r)
{
	return r->kind[0] == 'f' || r->kind[0] == 'b';
}

static void fill_memory(struct memory *m, const struct row *r)
{
	uint64_t good = !strcmp(r->kind, "f32")	   ? 0x3f000000
			: !strcmp(r->kind, "f64")  ? 0x3fe0000000000000
			: !strcmp(r->kind, "f16")  ? 0x3800
			: !strcmp(r->kind, "bf16") ? 0x3f00
						   : 5;

	m->n = (size_t)r->count * r->stride * r->bytes;
	assert_true(m->n <= sizeof(m->bytes));
	for (size_t i = 0; i < (size_t)r->count * r->stride; i++)
		memcpy(m->bytes + i * r->bytes, i == (size_t)r->place * r->stride ? &r->value : &good, r->bytes);
}

static bool read_memory(void *arg, uint64_t address, void *to, size_t n)
{
	const struct memory *m = arg;

	if (address < BASE || address - BASE > m->n || n > m->n - (address - BASE))
		return false;
	memcpy(to, m->bytes + (address - BASE), n);
	return true;
}

static bool no_memory(void *arg, uint64_t address, void *to, size_t n)
{
	(void)arg, (void)address, (void)to, (void)n;
	return false;
}

struct launch {
	struct sass_thread t;
	uint8_t params[32];
	struct am *image;
	struct memory memory;
};

static void launch_make(struct launch *l, const struct row *r)
{
	struct am_plan p = {.code = r->code, .n_code = r->n};
	uint64_t words[3] = {0x7f1234560000, BASE, 10};

	memcpy(l->params, words, sizeof(words));
	memcpy(l->params + 24, &r->count, 4);
	memcpy(l->params + 28, &r->stride, 4);
	l->image = calloc(1, sizeof(*l->image));
	fill_memory(&l->memory, r);
	l->t = (struct sass_thread){
		.image = am_make(l->image, &p), .arch = r->arch, .entry = AM_CODE, .params = {l->params, sizeof(l->params)},
		.params_offset = r->params_offset, .id = r->tid % 32, .thread = {r->tid}, .block = {r->ctaid},
		.block_dim = {32, 1, 1}, .grid_dim = {r->nctaid, 1, 1}, .memory = read_memory, .arg = &l->memory,
	};
}

static void run__the_value_that_fails_is_found_on_every_architecture(void **state)
{
	struct launch l;
	struct sass_found f;

	(void)state;
	assert_true(N_ROWS >= 60);
	for (size_t i = 0; i < N_ROWS; i++) {
		const struct row *r = &rows[i];

		launch_make(&l, r);
		print_message("# sm_%u %s %u\n", r->arch, r->kind, r->place);
		assert_int_equal(sass_run(&l.t, AM_CODE + r->trap, false, STEPS, &f), SASS_END_THERE);
		assert_int_equal(f.from.at, BASE + (uint64_t)r->place * r->stride * r->bytes);
		assert_int_equal(f.from.n, r->bytes);
		assert_int_equal(f.from.base, BASE);
		assert_true(f.compared && f.compare.real == is_real(r));
		assert_false(f.missing);
		free(l.image);
	}
}

/* Whatever the memory has: a thread that checks one element checks this one. In a loop it may have been any of them. */
static void run__without_memory_the_place_is_known_or_nothing_is(void **state)
{
	struct launch l;
	struct sass_found f;
	enum sass_end end;
	size_t known = 0;

	(void)state;
	for (size_t i = 0; i < N_ROWS; i++) {
		const struct row *r = &rows[i];

		launch_make(&l, r);
		l.t.memory = no_memory;
		print_message("# sm_%u %s %u\n", r->arch, r->kind, r->place);
		end = sass_run(&l.t, AM_CODE + r->trap, false, STEPS, &f);
		assert_true(f.missing);
		if (r->nctaid > 1) {
			assert_int_equal(end, SASS_END_THERE);
			assert_int_equal(f.from.at, BASE + (uint64_t)r->place * r->stride * r->bytes);
			known++;
		} else {
			assert_int_equal(end, SASS_END_MISSING);
		}
		free(l.image);
	}
	assert_int_equal(known, N_ROWS / 2);
}

static void run__a_thread_that_does_not_fail_does_not_get_there(void **state)
{
	struct launch l;
	struct sass_found f;

	(void)state;
	for (size_t i = 0; i < N_ROWS; i++) {
		launch_make(&l, &rows[i]);
		l.t.thread[0] = (l.t.thread[0] + 1) % 32;
		assert_int_equal(sass_run(&l.t, AM_CODE + rows[i].trap, false, STEPS, &f), SASS_END_LEFT);
		free(l.image);
	}
}

static void run__unknown_parameters_and_instructions_give_no_value(void **state)
{
	static const uint64_t odd[] = {0x0000000000007fff, 0, 0x000000000000794d, 0x000fea0003800000};
	struct row strange = rows[0];
	struct launch l;
	struct sass_found f;

	(void)state;
	for (size_t i = 0; i < N_ROWS; i++) {
		launch_make(&l, &rows[i]);
		l.t.params.len = 0;
		assert_true(sass_run(&l.t, AM_CODE + rows[i].trap, false, STEPS, &f) != SASS_END_THERE ||
			    f.from.n == SASS_SEVERAL);
		l.t.params.len = sizeof(l.params);
		l.t.arch = 120;
		assert_int_equal(sass_run(&l.t, AM_CODE + rows[i].trap, false, STEPS, &f), SASS_END_LOST);
		l.t.arch = rows[i].arch;
		assert_int_equal(sass_run(&l.t, AM_CODE + rows[i].trap, false, 3, &f), SASS_END_LONG);
		free(l.image);
	}
	strange.code = odd;
	strange.n = 4;
	launch_make(&l, &strange);
	assert_int_equal(sass_run(&l.t, AM_CODE + 16, false, STEPS, &f), SASS_END_LOST);
	assert_int_equal(f.lost_at, AM_CODE);
	free(l.image);
}

static void run__an_address_says_which_number_it_was_computed_from(void **state)
{
	struct launch l;
	struct sass_found f;

	(void)state;
	assert_int_equal(sizeof(accesses) / sizeof(accesses[0]), 4);
	for (size_t i = 0; i < 4; i++) {
		const struct row *r = &accesses[i];

		for (int memory = 0; memory < 2; memory++) {
			launch_make(&l, r);
			l.t.memory = memory ? read_memory : no_memory;
			assert_int_equal(sass_run(&l.t, AM_CODE + r->trap, true, STEPS, &f), SASS_END_THERE);
			assert_int_equal(f.from.at, BASE + (uint64_t)r->place * r->stride * 4);
			assert_int_equal(f.from.n, 4);
			/* where to is not known without the number, but from where */
			assert_int_equal(f.pointer, 0);
			assert_int_equal(f.address_known, memory);
			free(l.image);
		}
	}
}

/* An unconditional branch or call to another instruction (8.0). */
static void put_jump(uint64_t *code, uint64_t op, uint64_t from, uint64_t to)
{
	uint64_t words = (to - from - 1) * 4;

	code[from * 2] = op | 7u << 12 | (words & 0x3fffffff) << 34;
	code[from * 2 + 1] = (words >> 30 & 0x3ffff) | 7u << 23;
}

static void once__loops_and_functions_are_seen(void **state)
{
	uint64_t code[16];
	struct am_plan p = {.code = code, .n_code = 16};
	struct am *m = calloc(1, sizeof(*m));
	struct bytes image;

	(void)state;
	for (size_t i = 0; i < 8; i++) {
		code[i * 2] = 0x7918;
		code[i * 2 + 1] = 0;
	}
	put_jump(code, 0x947, 5, 2);
	image = am_make(m, &p);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(sass_once(image, 80, AM_CODE, AM_CODE + i * 16), i < 2 || i > 5);
	assert_false(sass_once(image, 80, AM_CODE, AM_CODE - 16));
	assert_false(sass_once(image, 80, AM_CODE + 16, AM_CODE + 32));
	put_jump(code, 0x947, 5, 7);	/* onwards */
	image = am_make(m, &p);
	for (uint64_t i = 0; i < 8; i++)
		assert_true(sass_once(image, 80, AM_CODE, AM_CODE + i * 16));
	put_jump(code, 0x944, 1, 6);	/* a call of what is at the end */
	image = am_make(m, &p);
	for (uint64_t i = 0; i < 8; i++)
		assert_int_equal(sass_once(image, 80, AM_CODE, AM_CODE + i * 16), i < 6);
	code[8] = 0x7949;		/* to wherever a register says */
	image = am_make(m, &p);
	assert_false(sass_once(image, 80, AM_CODE, AM_CODE + 3 * 16));
	assert_true(sass_once(image, 80, AM_CODE, AM_CODE + 5 * 16));
	free(m);
}

/* Registers that have something else: it is not what this thread did. */
static void run__registers_of_the_dump_are_compared(void **state)
{
	uint32_t regs[64];
	struct launch l;
	struct sass_found f;

	(void)state;
	memset(regs, 0x5a, sizeof(regs));
	for (size_t i = 0; i < 4; i++) {
		launch_make(&l, &accesses[i]);
		assert_int_equal(sass_run(&l.t, AM_CODE + accesses[i].trap, true, STEPS, &f), SASS_END_THERE);
		assert_true(!f.agree && !f.differ);
		l.t.regs = (struct bytes){(const uint8_t *)regs, sizeof(regs)};
		l.t.stopped = AM_CODE + accesses[i].trap;
		assert_int_equal(sass_run(&l.t, AM_CODE + accesses[i].trap, true, STEPS, &f), SASS_END_THERE);
		assert_true(!f.agree && f.differ);
		l.t.stopped -= 16;	/* before it */
		assert_int_equal(sass_run(&l.t, AM_CODE + accesses[i].trap, true, STEPS, &f), SASS_END_THERE);
		assert_true(!f.agree && !f.differ);
		free(l.image);
	}
}

static void number__halves_are_what_the_kernel_compared(void **state)
{
	static const struct { uint64_t raw; uint32_t compared; double want; } halves[] = {
		{0x3e00, 0x3fc00000, 1.5}, {0x3fc0, 0x3fc00000, 1.5}, {0xb800, 0xbf000000, -0.5}, {0xbf00, 0xbf000000, -0.5},
	};
	struct checked c = {.n = 2, .n_raw = 8, .compared = true};
	double got;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		memcpy(c.raw, &halves[i].raw, 8);
		c.compare = (struct sass_compare){.real = true, .known = true, .width = 4, .a = halves[i].compared, .n_a = 2};
		assert_true(checked_real(&c, &got));
		assert_true(got == halves[i].want);
	}
	c.compare.a = 0x12345678;
	assert_false(checked_real(&c, &got));
	assert_int_equal(checked_integer((const uint8_t *)"\xff\xff\xff\xff\xff\xff\xff\xff", 8), -1);
	assert_int_equal(checked_integer((const uint8_t *)"\xff\xff\xff\xff\x00\x00\x00\x00", 4), -1);
	assert_int_equal(checked_integer((const uint8_t *)"\xff\x01\x00\x00\x00\x00\x00\x00", 1), 255);
}

/* A load of 256 bits has two destinations of four registers: the pointer in the second one (R12) is gone after it. */
static void access__the_widest_load_overwrites_both_its_destinations(void **state)
{
	static const uint64_t code[] = {
		0x0000e000ff027b82, 0x000e220000000a00, /* LDC.64 R2, c[0x0][0x380] */
		0x0000e200ff0c7b82, 0x000e220000000a00, /* LDC.64 R12, c[0x0][0x388] */
		0xfe0000040208797e, 0x001eaa000812190c, /* LDG.E.ENL2.256 R12, R8, desc[UR4][R2.64] */
		0x000000060c007986, 0x000fe2000c101b04, /* STG.E.64 desc[UR4][R12.64], R6 */
		0x000000000000794d, 0x000fea0003800000, /* EXIT */
	};
	static const struct row row = {
		.arch = 100, .kind = "s32", .params_offset = 0x380, .code = code, .n = sizeof(code) / 8};
	struct sass_found f;
	struct launch l;

	(void)state;
	launch_make(&l, &row);
	assert_int_equal(sass_run(&l.t, AM_CODE + 2 * SASS_BYTES, true, STEPS, &f), SASS_END_THERE);
	assert_true(f.address_known && f.pointer == 0);
	assert_int_equal(sass_run(&l.t, AM_CODE + 3 * SASS_BYTES, true, STEPS, &f), SASS_END_THERE);
	assert_false(f.address_known);
	assert_int_equal(f.pointer, -1);
	free(l.image);
}

/* `__constant__` variables (bank 3): the module has what they were initialized with, and the program may have copied another value. */
static void access__variables_in_constant_memory_are_not_known(void **state)
{
	static const uint64_t code[] = {
		0x00000004ff027435, 0x000fe200000001ff, /* HFMA2.MMA R2, -RZ, RZ, 0, 2.38e-07: 4 */
		0x00c0000000057a02, 0x000fe40000000f00, /* MOV R5, c[0x3][0x0] */
		0x0000580005027625, 0x000fca00078e0002, /* IMAD.WIDE.U32 R2, R5, R2, c[0x0][0x160] */
		0x0000000502007986, 0x000fe2000c101904, /* STG.E [R2.64], R5 */
		0x000000000000794d, 0x000fea0003800000, /* EXIT */
	};
	static const struct row row = {
		.arch = 80, .kind = "s32", .params_offset = 0x160, .code = code, .n = sizeof(code) / 8};
	static const char bank[] = ".nv.constant4";
	struct sass_found f;
	struct launch l;
	char *name;

	(void)state;
	launch_make(&l, &row);
	name = memmem(l.image, sizeof(*l.image), bank, sizeof(bank));
	assert_non_null(name);
	name[sizeof(bank) - 2] = '3';
	assert_int_equal(sass_run(&l.t, AM_CODE + 3 * SASS_BYTES, true, STEPS, &f), SASS_END_THERE);
	assert_false(f.address_known);
	free(l.image);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(run__the_value_that_fails_is_found_on_every_architecture),
		cmocka_unit_test(run__without_memory_the_place_is_known_or_nothing_is),
		cmocka_unit_test(run__a_thread_that_does_not_fail_does_not_get_there),
		cmocka_unit_test(run__unknown_parameters_and_instructions_give_no_value),
		cmocka_unit_test(run__an_address_says_which_number_it_was_computed_from),
		cmocka_unit_test(run__registers_of_the_dump_are_compared),
		cmocka_unit_test(once__loops_and_functions_are_seen),
		cmocka_unit_test(number__halves_are_what_the_kernel_compared),
		cmocka_unit_test(access__the_widest_load_overwrites_both_its_destinations),
		cmocka_unit_test(access__variables_in_constant_memory_are_not_known),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
