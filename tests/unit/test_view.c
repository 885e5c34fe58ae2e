/* SPDX-License-Identifier: Apache-2.0
 * Tensors as PyTorch's kernels see them: parameters made as PyTorch makes them, with several ranks and operands; what only looks alike;
 * and what must stay unknown.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "dice.h"
#include "find/fault/culprit.h"
#include "find/fault/observe_dump.h"

#define BASE	0x7d45ee400000ull
#define APART	((uint64_t)1 << 32)	/* tensors */
#define ADD	"at::native::CUDAFunctor_add<float>"
#define LAMBDA	"at::native::gpu_kernel_impl_nocast<" ADD " >(at::TensorIteratorBase&, " ADD " const&)::{lambda(int)#1}"
#define ITERATE	"void at::native::elementwise_kernel<128, 2, " LAMBDA ">(int, " LAMBDA ")"
#define ASSIGN \
	"operator()<at::native::TensorAssign>(at::TensorIterator&, long, long, long, at::native::TensorAssign const&)"
#define GATHER	"at::native::_cuda_scatter_gather_internal_kernel<false, at::native::OpaqueType<4>, long>::" ASSIGN "::{lambda(int)#1}"
#define SCATTER	"void at::native::_scatter_gather_elementwise_kernel<128, 8, " GATHER ">(int, " GATHER ")"
#define FILL	"at::native::FillFunctor<float>, std::array<char*, 2ul>"
#define VECTOR(n) "void at::native::vectorized_elementwise_kernel<" #n ", " FILL " >(int, " FILL ")"
#define INFO_OF(t) "at::cuda::detail::TensorInfo<" t ", unsigned int>, "
#define SELECT \
	"void at::native::(anonymous namespace)::indexSelectSmallIndex<float, long, unsigned int, 2, 2, -2>(" INFO_OF( \
		"float") INFO_OF("float const") INFO_OF("long const") "int, int, unsigned int, long)"
#define ROWS_OF \
	"void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, long, long, long, bool)"

struct launch {
	uint8_t bytes[2048];
	struct view_scene s;
	unsigned dims, operands, width;
	uint64_t size[VIEW_DIMS], stride[VIEW_DIMS][8];	/* fastest first; in bytes */
	uint64_t numel;
};

static void put(struct launch *l, size_t at, uint64_t v, unsigned n)
{
	assert_true(at + n <= sizeof(l->bytes));
	memcpy(l->bytes + at, &v, n);
}

/* Bytes that nobody sets contain what was there before, such as older pointers. */
static void begin(struct launch *l, const char *kernel, size_t len)
{
	for (size_t i = 0; i < sizeof(l->bytes); i++)
		l->bytes[i] = (uint8_t)(i * 37 + 11);
	for (size_t i = 16; i + 8 <= len; i += 48)
		put(l, i, BASE + i % 3 * APART, 8);
	l->s = (struct view_scene){.kernel = kernel, .params = {l->bytes, len}, .threads = 128, .width = l->width};
}

static void put_divider(struct launch *l, size_t at, uint64_t d)
{
	unsigned s = 0;

	while (((uint64_t)1 << s) < d)
		s++;
	put(l, at, d, 4);
	put(l, at + 4, ((1ull << 32) * ((1ull << s) - d)) / d + 1, 4);
	put(l, at + 8, s, 4);
}

static size_t put_calculator(struct launch *l)
{
	put(l, 0, l->numel, 4);
	put(l, 8, l->dims, 4);
	for (unsigned i = 0; i < l->dims; i++) {
		put_divider(l, 12 + 12 * (size_t)i, l->size[i]);
		for (unsigned k = 0; k < l->operands; k++)
			put(l, 312 + 4 * ((size_t)i * l->operands + k), l->stride[i][k], 4);
	}
	return (312 + 100 * (size_t)l->operands + 7) / 8 * 8;
}

static uint64_t offset_of(const struct launch *l, unsigned operand, uint64_t number)
{
	uint64_t offset = 0;

	for (unsigned i = 0; i < l->dims; i++) {
		offset += number % l->size[i] * l->stride[i][operand];
		number /= l->size[i];
	}
	return offset;
}

/* A warp of a block, the threads' element number `turn`. */
static void access_by(struct launch *l, unsigned operand, uint64_t block, uint64_t warp, uint64_t turn, uint64_t per)
{
	l->s.n_lanes = 0;
	for (uint64_t t = warp * 32; t < warp * 32 + 32; t++) {
		uint64_t number = (block * per + turn) * 128 + t;

		if (number < l->numel)
			l->s.lane[l->s.n_lanes++] =
				(struct view_lane){block, t, BASE + operand * APART + offset_of(l, operand, number)};
	}
}

/* Operand k is permuted, has gaps, or repeats a dimension. */
static void make_shape(struct launch *l, unsigned dims, unsigned operands)
{
	l->dims = dims;
	l->operands = operands;
	l->numel = 1;
	for (unsigned i = 0; i < dims; i++) {
		l->size[i] = 2 + roll(dims > 4 ? 3 : 40);
		l->numel *= l->size[i];
	}
	for (unsigned k = 0; k < operands; k++) {
		uint64_t step = l->width;
		unsigned first = (unsigned)roll(dims);

		for (unsigned i = 0; i < dims; i++) {
			unsigned at = (first + i) % dims;

			l->stride[at][k] = roll(8) ? step : 0;
			step = step * l->size[at] + roll(2) * 3 * l->width;
		}
	}
}

static void check_view(const struct launch *l, const struct view *v, unsigned operand, size_t at)
{
	uint64_t position[VIEW_DIMS], reached;

	assert_int_equal(v->n, l->dims);
	assert_int_equal(v->at, at);
	assert_int_equal(v->pointer, BASE + operand * APART);
	assert_int_equal(v->bytes, v->typed ? l->width : 1);
	for (unsigned i = 0; i < v->n; i++) {
		assert_int_equal(v->size[i], l->size[l->dims - 1 - i]);
		assert_int_equal(v->stride[i] * v->bytes, l->stride[l->dims - 1 - i][operand]);
	}
	for (size_t k = 0; k < l->s.n_lanes; k++) {
		reached = 0;
		assert_true(view_position(v, &l->s.lane[k], position));
		for (unsigned i = 0; i < v->n; i++)
			reached += position[i] * v->stride[i] * v->bytes;
		assert_int_equal(v->pointer + reached, l->s.lane[k].address);
	}
}

static void iterator__ranks_and_operands_are_read(void **state)
{
	static const unsigned widths[] = {1, 2, 4, 8, 16};
	struct launch l;
	struct view v;
	size_t found = 0, tried = 0;

	(void)state;
	for (unsigned turn = 0; turn < 4000; turn++) {
		unsigned operands = 1 + turn % 4, dims = 1 + turn / 4 % 6, operand = (unsigned)roll(operands);
		uint64_t block;
		size_t at;

		l.width = widths[turn % 5];
		make_shape(&l, dims, operands);
		begin(&l, ITERATE, (312 + 100 * (size_t)operands + 7) / 8 * 8 + 8 * (size_t)operands + 8);
		at = put_calculator(&l);
		for (unsigned k = 0; k < operands; k++)
			put(&l, at + 8 * (size_t)k, BASE + k * APART, 8);
		block = roll((l.numel + 255) / 256);
		access_by(&l, operand, block, 0, block * 256 + 128 < l.numel ? roll(2) : 0, 2);
		tried++;
		if (!view_find(&v, &l.s))
			continue;
		found++;
		check_view(&l, &v, operand, at + 8 * (size_t)operand);
		/* what the code says must not contradict it */
		l.s.pointer_known = true;
		l.s.pointer = (unsigned)at + 8 * operand;
		assert_true(view_find(&v, &l.s));
		l.s.pointer -= 8;
		assert_false(view_find(&v, &l.s));
	}
	print_message("# %zu of %zu\n", found, tried);
	assert_true(found > tried * 9 / 10);	/* the others have stride 0 wherever it shows */
}

static void make_sample(struct launch *l)
{
	*l = (struct launch){
		.width = 4, .dims = 2, .operands = 2, .size = {50, 40}, .numel = 2000, .stride = {{4, 160}, {200, 4}}};
	begin(l, ITERATE, 544);
	put_calculator(l);
	put(l, 512, BASE, 8);
	put(l, 520, BASE + APART, 8);
	access_by(l, 1, 3, 1, 0, 2);
}

static void iterator__what_only_looks_alike_is_not_read(void **state)
{
	struct launch l;
	struct view v;

	(void)state;
	make_sample(&l);
	assert_true(view_find(&v, &l.s));
	/* every word of it counts: the sizes, their factors and shifts, the strides, the pointer, the number of elements */
	for (size_t at = 0; at < 36; at += 4) {
		if (at == 4)
			continue;
		make_sample(&l);
		l.bytes[at] ^= 1;
		assert_false(view_find(&v, &l.s));
	}
	make_sample(&l);
	put(&l, 312 + 4, 164, 4);
	assert_false(view_find(&v, &l.s));
	make_sample(&l);
	put(&l, 520, BASE + APART + 4, 8);
	assert_false(view_find(&v, &l.s));
	for (size_t i = 0; i < 32; i++) {	/* one thread that accessed something else */
		make_sample(&l);
		l.s.lane[i].address += 4;
		assert_false(view_find(&v, &l.s));
	}
	make_sample(&l);
	l.s.n_lanes = 0;
	assert_false(view_find(&v, &l.s));
	for (size_t len = 0; len < 528; len++) {	/* cut short */
		make_sample(&l);
		l.s.params.len = len;
		assert_false(view_find(&v, &l.s));
	}
}

static void iterator__kernels_of_others_are_not_read(void **state)
{
	static const char *const names[] = {
		"void my::elementwise_kernel<128, 2, " LAMBDA ">(int, " LAMBDA ")",
		"void at::native::elementwise_kernel<256, 2, " LAMBDA ">(int, " LAMBDA ")",
		"void at::native::elementwise_kernel<128, 4, " LAMBDA ">(int, " LAMBDA ")",
		"void at::native::elementwise_kernel<128, x, " LAMBDA ">(int, " LAMBDA ")",
		"void at::native::elementwise_kernel<128, 2, f>(int, f)",
		"at::native::elementwise_kernel", "at::native::elementwise_kernel<128", "", "<", "at::native::<>()",
	};
	struct launch l;
	struct view v;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		make_sample(&l);
		l.s.kernel = names[i];
		assert_false(view_find(&v, &l.s));
	}
	l.s.kernel = NULL;
	assert_false(view_find(&v, &l.s));
}

/* An access to its first element could have been to any operand: they lie apart, but may as well be one. */
static void iterator__two_readings_are_none(void **state)
{
	struct launch l;
	struct view v;

	(void)state;
	make_sample(&l);
	put(&l, 520, BASE, 8);
	l.s.n_lanes = 1;
	l.s.lane[0] = (struct view_lane){0, 0, BASE};
	assert_false(view_find(&v, &l.s));
	/* the same tensor twice is one */
	for (unsigned i = 0; i < 2; i++)
		put(&l, 312 + 8 * (size_t)i + 4, l.stride[i][0], 4);
	assert_true(view_find(&v, &l.s));
}

/* All strides are even: it may be a tensor of larger elements, of which the code read the lower half. */
static void iterator__elements_of_unknown_size_are_bytes(void **state)
{
	struct launch l = {
		.width = 4, .dims = 2, .operands = 2, .size = {50, 40}, .numel = 2000, .stride = {{4, 8}, {200, 400}}};
	struct view v;

	(void)state;
	begin(&l, ITERATE, 544);
	put_calculator(&l);
	put(&l, 512, BASE, 8);
	put(&l, 520, BASE + APART, 8);
	access_by(&l, 1, 3, 1, 0, 2);
	assert_true(view_find(&v, &l.s));
	assert_false(v.typed);
	assert_int_equal(v.stride[0], 400);
	assert_int_equal(v.stride[1], 8);
	assert_int_equal(view_last(&v), 39 * 400 + 49 * 8);
	access_by(&l, 0, 3, 1, 0, 2);
	assert_true(view_find(&v, &l.s) && v.typed && v.bytes == 4);
}

static void iterator__pointers_among_other_things_are_found(void **state)
{
	struct launch l = {
		.width = 8, .dims = 2, .operands = 3, .size = {5, 40}, .numel = 200, .stride = {{8, 0, 8}, {48, 400, 40}}};
	struct view v;

	(void)state;
	begin(&l, SCATTER, 672);
	put_calculator(&l);
	put(&l, 616, BASE + 2 * APART, 8);
	put(&l, 624, 50, 8);
	put(&l, 640, BASE, 8);
	put(&l, 664, BASE + APART, 8);
	access_by(&l, 2, 0, 2, 0, 8);
	assert_true(view_find(&v, &l.s));
	check_view(&l, &v, 2, 616);
	/* with an index from memory the address is somewhere else */
	for (size_t i = 0; i < l.s.n_lanes; i++)
		l.s.lane[i].address += 4000 + 8 * i;
	assert_false(view_find(&v, &l.s));
}

/* Contiguous tensors: `per` elements of a thread, `vector` at once. */
static void make_flat(struct launch *l, const char *kernel, uint64_t numel, uint64_t per, uint64_t vector,
		      unsigned bytes, uint64_t block, uint64_t turn, uint64_t piece)
{
	bool whole = numel - block * 128 * per >= 128 * per;
	uint64_t v = whole ? vector : 1, many = v * bytes;

	l->width = (unsigned)(many > 16 ? 16 : many);
	begin(l, kernel, 24);
	put(l, 0, numel, 4);
	put(l, 8, BASE, 8);
	put(l, 16, BASE + APART, 8);
	l->s.grid = (numel + 128 * per - 1) / (128 * per);
	l->s.n_lanes = 0;
	for (uint64_t t = 0; t < 32; t++) {
		uint64_t number = block * 128 * per + (t + turn * 128) * v;

		if (number < numel)
			l->s.lane[l->s.n_lanes++] =
				(struct view_lane){block, t, BASE + APART + number * bytes + piece * l->width};
	}
}

static void flat__elements_are_as_large_as_the_addresses_say(void **state)
{
	static const struct { const char *kernel; uint64_t vector; } kinds[] = {{VECTOR(2), 2}, {VECTOR(4), 4}, {VECTOR(8), 8}};
	struct launch l;
	struct view v;

	(void)state;
	for (unsigned bytes = 1; bytes <= 16; bytes *= 2)
		for (size_t k = 0; k < 3; k++)
			for (uint64_t per = 4; per <= 16; per *= 2) {
				uint64_t full = 3 * 128 * per + 77;

				if (per < kinds[k].vector)
					continue;
				make_flat(&l, kinds[k].kernel, full, per, kinds[k].vector, bytes, 1, 0, 0);
				if (view_find(&v, &l.s)) {	/* else two readings fit */
					assert_int_equal(v.bytes, bytes);
					assert_int_equal(v.size[0], full);
					assert_int_equal(v.pointer, BASE + APART);
				}
				make_flat(&l, kinds[k].kernel, full, per, kinds[k].vector, bytes, 3, 0, 0);
				assert_true(view_find(&v, &l.s));
				assert_int_equal(v.bytes, bytes);
				assert_int_equal(v.at, 16);
			}
	make_flat(&l, VECTOR(8), 10000, 8, 8, 4, 2, 0, 1);
	assert_true(view_find(&v, &l.s) && v.bytes == 4);
}

static void flat__what_does_not_fit_is_not_said(void **state)
{
	struct launch l;
	struct view v;

	(void)state;
	make_flat(&l, VECTOR(4), 6400, 8, 4, 4, 1, 1, 0);
	assert_true(view_find(&v, &l.s) && v.bytes == 4 && v.size[0] == 6400);
	l.s.grid = 3;
	assert_false(view_find(&v, &l.s));
	l.s.grid = 7;
	l.s.lane[5].address += 16;
	assert_false(view_find(&v, &l.s));
	make_flat(&l, VECTOR(4), 6400, 8, 4, 4, 1, 1, 0);
	put(&l, 16, BASE + APART + 8, 8);
	assert_false(view_find(&v, &l.s));
	make_flat(&l, VECTOR(4), 6400, 8, 4, 4, 1, 1, 0);
	put(&l, 0, 0, 4);
	assert_false(view_find(&v, &l.s));
	make_flat(&l, "void at::native::unrolled_elementwise_kernel<f, std::array<char*, 2ul>, 4, OffsetCalculator<1, unsigned int, false>, "
		  "TrivialOffsetCalculator<1, unsigned int> >(int, f)",
		  6400, 4, 1, 4, 1, 1, 0);
	assert_false(view_find(&v, &l.s));
}

static void put_info(struct launch *l, size_t at, uint64_t pointer, unsigned dims, const uint64_t *size,
		     const uint64_t *stride)
{
	put(l, at, pointer, 8);
	for (unsigned i = 0; i < dims; i++) {
		put(l, at + 8 + 4 * (size_t)i, size[i], 4);
		put(l, at + 108 + 4 * (size_t)i, stride[i], 4);
	}
	put(l, at + 208, dims, 4);
}

static void make_select(struct launch *l, uint64_t row, uint64_t column)
{
	l->width = 4;
	begin(l, SELECT, 672);
	put_info(l, 0, BASE, 2, (const uint64_t[]){1, 50}, (const uint64_t[]){50, 1});
	put_info(l, 216, BASE + APART, 2, (const uint64_t[]){1, 50}, (const uint64_t[]){64, 1});
	put_info(l, 432, BASE + 2 * APART, 1, (const uint64_t[]){10}, (const uint64_t[]){1});
	put(l, 648, 0, 4);
	put(l, 652, 0, 4);
	put(l, 656, 50, 4);
	put(l, 664, 200, 8);
	l->s.pointer_known = true;
	l->s.pointer = 216;
	l->s.n_lanes = 1;
	l->s.lane[0] = (struct view_lane){0, 0, BASE + APART + (row * 64 + column) * 4};
}

static void info__the_size_that_an_index_chooses_from_is_restored(void **state)
{
	uint64_t at[VIEW_DIMS];
	struct launch l;
	struct view v;

	(void)state;
	make_select(&l, 150, 7);
	assert_true(view_find(&v, &l.s));
	assert_true(v.n == 2 && v.size[0] == 200 && v.size[1] == 50 && v.stride[0] == 64 && v.stride[1] == 1 &&
		    v.bytes == 4);
	assert_true(view_position(&v, &l.s.lane[0], at) && at[0] == 150 && at[1] == 7);
	assert_int_equal(view_last(&v), 199 * 64 + 49);
	make_select(&l, 231, 7);	/* beyond its size */
	assert_true(view_find(&v, &l.s) && view_position(&v, &l.s.lane[0], at) && at[0] == 231 && at[1] == 7);
	make_select(&l, 3, 55);		/* between two rows */
	assert_true(view_find(&v, &l.s));
	assert_false(view_position(&v, &l.s.lane[0], at));
	make_select(&l, 1, 0);		/* the indices: of eight bytes, whatever was read of them */
	l.s.pointer = 432;
	l.s.lane[0].address = BASE + 2 * APART + 80;
	assert_true(view_find(&v, &l.s) && v.bytes == 8 && v.n == 1 && v.size[0] == 10);
	assert_true(view_position(&v, &l.s.lane[0], at) && at[0] == 10);
}

static void info__what_contradicts_itself_is_not_read(void **state)
{
	struct launch l;
	struct view v;

	(void)state;
	make_select(&l, 150, 7);
	l.s.pointer_known = false;
	assert_false(view_find(&v, &l.s));
	make_select(&l, 150, 7);
	put(&l, 216 + 208, 0, 4);
	assert_false(view_find(&v, &l.s));
	put(&l, 216 + 208, 26, 4);
	assert_false(view_find(&v, &l.s));
	make_select(&l, 150, 7);
	put(&l, 652, 2, 4);	/* no such dimension */
	assert_false(view_find(&v, &l.s));
	make_select(&l, 150, 7);
	put(&l, 652, 1, 4);	/* its size was not taken away */
	assert_false(view_find(&v, &l.s));
	make_select(&l, 150, 7);
	put(&l, 664, 0, 8);
	assert_false(view_find(&v, &l.s));
	make_select(&l, 150, 7);
	l.s.lane[0].address++;
	assert_false(view_find(&v, &l.s));
}

static void rows__are_counted_in_bytes(void **state)
{
	uint64_t at[VIEW_DIMS];
	struct launch l = {.width = 16};
	struct view v;

	(void)state;
	begin(&l, ROWS_OF, 65);
	put(&l, 0, BASE, 8);
	put(&l, 8, BASE + APART, 8);
	put(&l, 16, BASE + 2 * APART, 8);
	put(&l, 24, 10, 4);
	put(&l, 32, 256, 8);
	put(&l, 40, 100, 8);
	put(&l, 48, 512, 8);
	put(&l, 56, 256, 8);
	l.s.pointer_known = true;
	l.s.pointer = 8;
	l.s.n_lanes = 1;
	l.s.lane[0] = (struct view_lane){3, 2, BASE + APART + 512 * 77 + 32};
	assert_true(view_find(&v, &l.s));
	assert_true(!v.typed && v.bytes == 1 && v.size[0] == 100 && v.size[1] == 256 && v.stride[0] == 512);
	assert_true(view_position(&v, &l.s.lane[0], at) && at[0] == 77 && at[1] == 32);
}

struct told {
	struct pool pool;
	struct casefile c;
	struct culprit k;
	struct culprit_lane lane;
	uint8_t params[32];
};

static void say(struct told *s, const char *kernel, unsigned width, uint64_t address, uint64_t size, unsigned known)
{
	uint64_t words[] = {BASE, BASE + 64};

	memset(s, 0, sizeof(*s));
	memcpy(s->params, words, sizeof(words));
	case_init(&s->c, &s->pool);
	s->lane = (struct culprit_lane){.address = address, .address_known = true};
	s->k = (struct culprit){.kernel_text = (char *)(uintptr_t)kernel, .params = {s->params, sizeof(s->params)},
				.lanes = &s->lane, .n_kept = 1, .n_lanes = 1, .insn = {.width = width}};
	dump_observe_element(&s->c, &s->k, 0, 8, BASE + 64 + size, known);
}

static void is_said(struct told *s, double element, double of, double bytes, bool typed)
{
	assert_true(fact_known(&s->c, FACT_fault_element));
	assert_true(fact_number(&s->c, FACT_fault_element, 0) == element);
	assert_true(fact_number(&s->c, FACT_fault_elements, 0) == of);
	assert_true(fact_number(&s->c, FACT_fault_element_last, 0) == of - 1);
	assert_true(fact_number(&s->c, FACT_fault_element_bytes, 0) == bytes);
	assert_int_equal(fact_true(&s->c, FACT_fault_element_typed), typed);
	pool_release(&s->pool);
}

static void element__is_counted_from_the_pointer(void **state)
{
	static const char typed[] = "scale(long, c10::Half*, int)", bare[] = "scale";
	struct told s;

	(void)state;
	say(&s, typed, 2, BASE + 64 + 2000, 2000, 0);
	is_said(&s, 1000, 1000, 2, true);
	say(&s, typed, 16, BASE + 64 + 2016, 2000, 0);	/* several at once */
	is_said(&s, 1008, 1000, 2, true);
	say(&s, typed, 2, BASE + 64 - 4, 2000, 0);
	is_said(&s, -2, 1000, 2, true);
	say(&s, bare, 4, BASE + 64 + 4000, 4000, 0);
	is_said(&s, 1000, 1000, 4, false);
	say(&s, bare, 16, BASE + 64 + 4000, 4000, 4);	/* others know */
	is_said(&s, 1000, 1000, 4, true);
}

static void element__of_unknown_size_is_not_counted(void **state)
{
	struct told s;

	(void)state;
	say(&s, "scale", 16, BASE + 64 + 4000, 4000, 0);
	assert_false(fact_known(&s.c, FACT_fault_element));
	pool_release(&s.pool);
	say(&s, "scale(long, double*)", 4, BASE + 64 + 4004, 4000, 0);
	assert_false(fact_known(&s.c, FACT_fault_element));
	pool_release(&s.pool);
	say(&s, "scale(long, double*)", 8, BASE + ((uint64_t)1 << 50), 4000, 0);
	assert_false(fact_known(&s.c, FACT_fault_element));
	pool_release(&s.pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(iterator__ranks_and_operands_are_read),
		cmocka_unit_test(iterator__what_only_looks_alike_is_not_read),
		cmocka_unit_test(iterator__kernels_of_others_are_not_read),
		cmocka_unit_test(iterator__two_readings_are_none),
		cmocka_unit_test(iterator__elements_of_unknown_size_are_bytes),
		cmocka_unit_test(iterator__pointers_among_other_things_are_found),
		cmocka_unit_test(flat__elements_are_as_large_as_the_addresses_say),
		cmocka_unit_test(flat__what_does_not_fit_is_not_said),
		cmocka_unit_test(info__the_size_that_an_index_chooses_from_is_restored),
		cmocka_unit_test(info__what_contradicts_itself_is_not_read),
		cmocka_unit_test(rows__are_counted_in_bytes),
		cmocka_unit_test(element__is_counted_from_the_pointer),
		cmocka_unit_test(element__of_unknown_size_is_not_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
