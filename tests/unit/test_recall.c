/* SPDX-License-Identifier: Apache-2.0
 * GPU memory that is recalled from what was copied there: what is known, what is only likely, and what must stay unknown.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "find/failure/place.h"
#include "find/fault/culprit.h"
#include "find/fault/fault.h"
#include "find/fault/recall.h"
#include "find/fault/recall_values.h"
#include "read/dump/dump.h"
#include "read/recording/copies.h"
#include "judge.h"
#include "trace_builder.h"

#define SLOTS	16u
#define BYTES	4096u
#define A	0x7f0000000000ull
#define B	0x7f0000001000ull
#define API_HTOD 162
#define API_WAIT 32
#define API_DTOD 166
#define API_SET32 177
#define API_2D	169

#define PAIR "std::array<char*, 2ul>"
#define EACH "void at::native::vectorized_elementwise_kernel<2, "
#define OUTER "at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::"
#define LAMBDA OUTER "{lambda()#4}::operator()() const::{lambda(long)#1}"
#define NO_GAPS "TrivialOffsetCalculator<1, unsigned int>"
#define CASTS "at::native::memory::LoadWithCast<1>, at::native::memory::StoreWithCast<1> "
#define CAST \
	"void at::native::unrolled_elementwise_kernel<" LAMBDA ", " PAIR ", 4, " NO_GAPS ", " NO_GAPS ", " CASTS \
	">(int, " LAMBDA ", " PAIR ", int)"
#define SAME EACH LAMBDA ", " PAIR " >(int, " LAMBDA ", " PAIR ")"
#define FILLER "at::native::FillFunctor<long>, std::array<char*, 1ul>"
#define FILL EACH FILLER " >(int, " FILLER ")"
#define ADDER "at::native::CUDAFunctorOnSelf_add<long>, " PAIR
#define SHIFT EACH ADDER " >(int, " ADDER ")"
#define NEGATE EACH "at::native::neg_kernel_cuda, " PAIR " >(int, at::native::neg_kernel_cuda, " PAIR ")"
#define READS "reads(float*, long const*, int)"
#define WRITES "writes(float*, long*, int)"
#define RANGER "at::native::arange_cuda_out(c10::Scalar const&)::{lambda()#1}::operator()() const::{lambda()#4}::operator()() const::{lambda(long)#1}"
#define RANGE \
	"void (anonymous namespace)::elementwise_kernel_with_index<int, " RANGER ">(int, " RANGER \
	", function_traits<" RANGER ">::result_type*)"
#define GAPS "void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<x>(at::TensorIteratorBase&)::{lambda(int)#1}>(int, x)"

struct past {
	struct tb b;
	struct cw_allocation *block;
	struct cw_freed *freed;
	struct cw_ring *freed_ring;
	struct cw_copies *copies;
	size_t n_blocks;
	struct trace *t;
	struct recall *r;
};

static int setup(void **state)
{
	struct past *s = calloc(1, sizeof(*s));

	tb_init(&s->b);
	s->block = (void *)(s->b.data + tb_chunk(&s->b, CW_CHUNK_BLOCKS, 16 * sizeof(*s->block)));
	s->freed_ring = (void *)(s->b.data + tb_chunk(&s->b, CW_CHUNK_FREED,
						      sizeof(struct cw_ring) + 16 * sizeof(struct cw_freed)));
	*s->freed_ring = (struct cw_ring){.tid = 1, .slot_size = sizeof(struct cw_freed), .n_slots = 16};
	s->freed = (struct cw_freed *)(s->freed_ring + 1);
	s->copies = (void *)(s->b.data + tb_chunk(&s->b, CW_CHUNK_COPIES,
						  sizeof(*s->copies) + SLOTS * sizeof(struct cw_copy) + BYTES));
	s->copies->n_slots = SLOTS;
	s->copies->n_bytes = BYTES;
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct past *s = *state;

	recall_close(s->r);
	trace_free(s->t);
	free(s->b.data);
	free(s);
	return 0;
}

static uint32_t line(struct past *s, unsigned n)
{
	char text[64];

	snprintf(text, sizeof(text), "/home/me/train.py:%u:step", n);
	return tb_stack(&s->b, text, NULL);
}

static void block(struct past *s, uint64_t addr, uint64_t size, unsigned at)
{
	s->b.ticks += 1000;
	s->block[s->n_blocks++] = (struct cw_allocation){
		.addr = addr, .size = size, .ticks = s->b.ticks, .stack = line(s, at), .kind = CW_MEM_TORCH, .device = 0};
}

/* The newest block is freed. */
static void release(struct past *s)
{
	struct cw_allocation *a = &s->block[--s->n_blocks];

	s->b.ticks += 1000;
	s->freed[s->freed_ring->head++] = (struct cw_freed){.seq = s->freed_ring->head + 1, .addr = a->addr, .size = a->size,
							    .made_ticks = a->ticks, .ticks = s->b.ticks, .stack = a->stack,
							    .kind = CW_MEM_TORCH};
	s->freed[s->freed_ring->head - 1].seq = s->freed_ring->head;
	*a = (struct cw_allocation){.addr = 0};
}

static struct cw_call *call(struct past *s, uint32_t api, uint64_t a0, uint64_t a1, uint64_t a2, unsigned at)
{
	struct cw_call *c = tb_call(&s->b, api, 1, line(s, at));

	c->arg[0] = a0;
	c->arg[1] = a1;
	c->arg[2] = a2;
	return c;
}

static struct cw_copy *copy(struct past *s, uint64_t to, const void *bytes, size_t n, unsigned at)
{
	struct cw_copies *h = s->copies;
	struct cw_copy *c = (struct cw_copy *)(h + 1) + h->head++ % SLOTS;
	uint8_t *contents = (uint8_t *)((struct cw_copy *)(h + 1) + SLOTS);
	struct cw_call *k = call(s, API_HTOD, to, 0x1000, n, at);

	*c = (struct cw_copy){.seq = h->head, .ticks = ++s->b.ticks, .to = to, .from = 0x1000, .bytes = n, .contents = h->written,
			      .kept = (uint32_t)n, .stack = k->stack, .tid = 1};
	for (size_t i = 0; i < n; i++)
		contents[(h->written + i) % BYTES] = ((const uint8_t *)bytes)[i];
	h->written += n;
	return c;
}

/* With parameters of these sizes, each aligned to its own, 8 at most; but those that say how to cast, 4. */
static uint32_t kernel(struct past *s, const char *name, unsigned n, const unsigned *size)
{
	uint32_t i = tb_function(&s->b, name), off = s->b.heap, at = 0;
	struct cw_layout *y = (struct cw_layout *)(s->b.data + off);

	y->n = n;
	for (unsigned k = 0; k < n; k++) {
		unsigned align = k > 4 ? 4 : size[k] < 8 ? size[k] : 8;

		at = (at + align - 1) / align * align;
		y->param[k].off = (uint16_t)at;
		y->param[k].size = (uint16_t)size[k];
		at += size[k];
	}
	s->b.heap += (uint32_t)(sizeof(*y) + n * sizeof(y->param[0]) + 7) / 8 * 8;
	s->b.function[i].layout = off;
	s->b.function[i].n_params = n;
	s->b.function[i].param_bytes = at;
	return i;
}

static struct cw_launch *launch(struct past *s, uint32_t func, const void *params, size_t n, unsigned at)
{
	struct cw_launch *l = tb_launch(&s->b, 1, line(s, at));

	l->func = func;
	memcpy(l->params, params, n);
	l->n_param = (uint16_t)n;
	return l;
}

/* An elementwise kernel over two tensors of `n` elements. */
static struct cw_launch *pairs(struct past *s, const char *name, uint32_t n, uint64_t to, uint64_t from, unsigned at)
{
	const struct { uint32_t n, functor; uint64_t to, from; } p = {n, 0, to, from};

	return launch(s, kernel(s, name, 3, (const unsigned[]){4, 1, 16}), &p, sizeof(p), at);
}

/* Everything as it is now, for a launch that comes next. */
static void finish(struct past *s)
{
	struct cw_launch *own = tb_launch(&s->b, 1, line(s, 99));

	own->func = tb_function(&s->b, "own()");
	s->b.function[own->func].n_params = s->b.function[own->func].param_bytes = 0;
	s->t = tb_trace(&s->b);
	s->r = recall_open(s->t);
	recall_launch(s->r, own, own->ticks);
}

static bool read_number(struct past *s, uint64_t address, int64_t *v)
{
	return recall_memory(s->r, address, v, sizeof(*v));
}

#define known(s, address, want)                                  \
	do {                                                     \
		int64_t v_ = 0;                                  \
		assert_true(read_number(s, address, &v_));       \
		assert_int_equal(v_, want);                      \
	} while (0)
#define unknown(s, address)                                      \
	do {                                                     \
		int64_t v_;                                      \
		assert_false(read_number(s, address, &v_));      \
	} while (0)

static unsigned line_at(struct past *s, uint32_t stack)
{
	struct place p = {0};

	return stack && place_of_stack(s->t, stack, &p) ? p.line : 0;
}

static struct recalled origin(struct past *s, uint64_t address)
{
	struct recalled o;

	recall_origin(s->r, address, 8, &o);
	return o;
}

static void copy__of_several_the_newest_counts_for_each_byte(void **state)
{
	const int64_t first[4] = {1, 2, 3, 4}, second[1] = {-7};
	struct past *s = *state;

	block(s, A, 512, 10);
	copy(s, A, first, sizeof(first), 11);
	copy(s, A + 8, second, sizeof(second), 12);
	copy(s, A + 20, "\1\1\1\1", 4, 13);
	finish(s);
	known(s, A, 1);
	known(s, A + 8, -7);
	known(s, A + 16, 3 + (0x01010101ll << 32));
	known(s, A + 24, 4);
	unknown(s, A + 32);
	unknown(s, A + 28);
	unknown(s, A - 8);
	assert_int_equal(line_at(s, origin(s, A).copied), 11);
	assert_int_equal(line_at(s, origin(s, A + 8).copied), 12);
	assert_true(origin(s, A).sure && origin(s, A).contents);
}

static void copy__one_whose_contents_were_not_kept_hides_what_was_there(void **state)
{
	const int64_t first[4] = {1, 2, 3, 4};
	struct past *s = *state;

	block(s, A, 512, 10);
	copy(s, A, first, sizeof(first), 11);
	call(s, API_HTOD, A + 8, 0x9000, 8, 12);
	finish(s);
	known(s, A, 1);
	unknown(s, A + 8);
	known(s, A + 16, 3);
	assert_int_equal(line_at(s, origin(s, A + 8).made), 12);
}

static void copy__only_a_prefix_of_a_large_one_is_known(void **state)
{
	const int64_t first[4] = {1, 2, 3, 4};
	struct past *s = *state;

	block(s, A, 4096, 10);
	copy(s, A, first, sizeof(first), 11)->bytes = 4096;
	((struct cw_call *)(s->b.calls + 1))->arg[2] = 4096;
	finish(s);
	known(s, A + 24, 4);
	unknown(s, A + 32);
	assert_int_equal(line_at(s, origin(s, A + 1024).copied), 11);
}

static void copy__contents_that_the_ring_has_lost_are_unknown(void **state)
{
	int64_t many[128] = {5};
	struct past *s = *state;

	block(s, A, 4096, 10);
	block(s, B, 4096, 10);
	copy(s, A, many, 64, 11);
	for (int i = 0; i < 4; i++)
		copy(s, B, many, sizeof(many), 12);
	finish(s);
	unknown(s, A);
	known(s, B, 5);
	assert_int_equal(line_at(s, origin(s, A).copied), 11);
}

static void copy__damaged_tables_give_nothing(void **state)
{
	struct past *s = *state;
	const struct cw_copy **list;
	struct cw_copy *c;
	uint8_t byte[8];

	block(s, A, 512, 10);
	c = copy(s, A, "12345678", 8, 11);
	s->t = tb_trace(&s->b);
	assert_int_equal(trace_copies(s->t, &list), 1);
	free(list);
	assert_true(trace_copied(s->t, c, 0, byte, 8));
	assert_false(trace_copied(s->t, c, 1, byte, 8));
	assert_false(trace_copied(s->t, c, 9, byte, 0));
	c->kept = 9;
	assert_false(trace_copied(s->t, c, 0, byte, 8));
	c->kept = 8;
	c->contents = UINT64_MAX - 2;
	assert_false(trace_copied(s->t, c, 0, byte, 8));
	c->contents = 1;
	assert_false(trace_copied(s->t, c, 0, byte, 8));
	c->contents = 0;
	c->bytes = UINT64_MAX;
	assert_int_equal(trace_copies(s->t, &list), 0);
	free(list);
	for (unsigned i = 0; i < 4; i++) {
		s->copies->n_slots = (const uint32_t[]){0, 3, 1u << 31, SLOTS}[i];
		s->copies->n_bytes = i == 3 ? 1u << 31 : BYTES;
		assert_int_equal(trace_copies(s->t, &list), 0);
		free(list);
	}
	s->copies->n_bytes = BYTES;
}

static void block__another_one_at_its_address_has_nothing_of_it(void **state)
{
	const int64_t first[4] = {1, 2, 3, 4}, second[1] = {9};
	struct past *s = *state;

	block(s, A, 512, 10);
	copy(s, A, first, sizeof(first), 11);
	release(s);
	block(s, A, 512, 20);
	copy(s, A + 8, second, sizeof(second), 21);
	finish(s);
	unknown(s, A);
	known(s, A + 8, 9);
	unknown(s, A + 16);
	assert_int_equal(line_at(s, origin(s, A + 16).made), 20);
	assert_int_equal(origin(s, A + 16).copied, 0);
}

static void block__freed_after_the_launch_it_was_still_there(void **state)
{
	const int64_t first[4] = {1, 2, 3, 4}, second[4] = {5, 6, 7, 8};
	struct past *s = *state;
	struct cw_launch *own;

	block(s, A, 512, 10);
	copy(s, A, first, sizeof(first), 11);
	own = pairs(s, NEGATE, 4, B, A, 12);
	release(s);
	block(s, A, 512, 20);
	copy(s, A, second, sizeof(second), 21);
	s->t = tb_trace(&s->b);
	s->r = recall_open(s->t);
	recall_launch(s->r, own, own->ticks);
	known(s, A + 8, 2);
	recall_launch(s->r, NULL, UINT64_MAX);
	known(s, A + 8, 6);
}

static void made__simple_kernels_are_computed(void **state)
{
	const int64_t first[4] = {1, -2, 3, 1ll << 40};
	const int32_t small[4] = {7, -8, 9, 10};
	const double real[2] = {1.5, -2.5};
	const struct {
		uint32_t n, functor;
		uint64_t to, from;
		uint8_t pad[4];
		uint8_t in, a[3];
		uint32_t in_bytes;
		uint8_t out, b[3];
		uint32_t out_bytes;
	} casts[] = {
		{4, 0, B, A + 512, {0}, 3, {1, 2, 3}, 4, 4, {4, 5, 6}, 8},
		{2, 0, B + 512, A + 1024, {0}, 7, {0}, 8, 4, {0}, 8},
		{2, 0, B + 1024, A, {0}, 4, {0}, 8, 6, {0}, 4},
		{4, 0, B + 1536, A, {0}, 5, {0}, 2, 4, {0}, 8},	/* halves are not read */
	};
	const struct { uint32_t n, pad; int64_t value; uint64_t to; } fill = {2, 0, 77, B + 2048};
	const struct { uint32_t n, pad; int64_t by, times; uint64_t to, from; } shift = {4, 0, 3, -1, B + 2560, A};
	const struct { uint32_t n, pad; int64_t from, by; uint64_t other, to; } range = {4, 0, 10, -2, 0, B + 3072};
	struct past *s = *state;
	float f;

	block(s, A, 2048, 10);
	for (unsigned i = 0; i < 8; i++)
		block(s, B + 512 * i, 512, 20 + i);
	copy(s, A, first, sizeof(first), 11);
	copy(s, A + 512, small, sizeof(small), 12);
	copy(s, A + 1024, real, sizeof(real), 13);
	for (unsigned i = 0; i < 4; i++)
		launch(s, kernel(s, CAST, 7, (const unsigned[]){4, 1, 16, 1, 1, 8, 8}), &casts[i], 44, 30 + i);
	launch(s, kernel(s, FILL, 3, (const unsigned[]){4, 8, 8}), &fill, sizeof(fill), 34);
	launch(s, kernel(s, SHIFT, 3, (const unsigned[]){4, 16, 16}), &shift, sizeof(shift), 35);
	launch(s, kernel(s, RANGE, 3, (const unsigned[]){4, 24, 8}), &range, sizeof(range), 36);
	pairs(s, SAME, 4, B + 3584, B + 2560, 37);
	finish(s);
	s->b = (struct tb){.data = NULL};
	known(s, B + 24, 10);
	known(s, B + 8, -8);
	unknown(s, B + 32);
	known(s, B + 512, 1);
	known(s, B + 520, -2);
	assert_true(recall_memory(s->r, B + 1028, &f, sizeof(f)));
	assert_true(f == -2.0f);
	unknown(s, B + 1536);
	known(s, B + 2056, 77);
	unknown(s, B + 2064);
	known(s, B + 2568, -5);
	known(s, B + 3072 + 24, 4);
	unknown(s, B + 3072 + 32);
	known(s, B + 3584 + 24, (1ll << 40) - 3);
	assert_int_equal(line_at(s, origin(s, B + 3584).made), 37);
	assert_int_equal(line_at(s, origin(s, B + 3584).copied), 11);
	assert_int_equal(line_at(s, origin(s, B + 2048).made), 34);
	assert_int_equal(origin(s, B + 2048).copied, 0);
	assert_true(origin(s, B + 3584).sure);
}

static void made__others_and_numbers_that_do_not_fit_are_unknown(void **state)
{
	const double real[4] = {1e300, 5, 0.0 / 0.0, -3};
	const struct {
		uint32_t n, functor;
		uint64_t to, from;
		uint8_t pad[4];
		uint8_t in, a[3];
		uint32_t in_bytes;
		uint8_t out, b[3];
		uint32_t out_bytes;
	} cast = {4, 0, B, A, {0}, 7, {0}, 8, 4, {0}, 8};
	struct past *s = *state;

	block(s, A, 512, 10);
	block(s, B, 512, 10);
	block(s, B + 512, 512, 14);
	copy(s, A, real, sizeof(real), 11);
	launch(s, kernel(s, CAST, 7, (const unsigned[]){4, 1, 16, 1, 1, 8, 8}), &cast, 44, 12);
	pairs(s, NEGATE, 4, B + 512, A, 13);
	finish(s);
	unknown(s, B);
	known(s, B + 8, 5);
	unknown(s, B + 16);
	known(s, B + 24, -3);
	unknown(s, B + 512);
	assert_int_equal(line_at(s, origin(s, B + 512).made), 13);
	assert_int_equal(line_at(s, origin(s, B + 512).copied), 11);
}

static void moved__a_copy_on_the_gpu_is_as_its_source_was(void **state)
{
	const int64_t first[4] = {1, 2, 3, 4}, second[4] = {5, 6, 7, 8};
	struct past *s = *state;

	block(s, A, 512, 10);
	block(s, B, 512, 10);
	copy(s, A, first, sizeof(first), 11);
	call(s, API_DTOD, B, A + 8, 16, 12);
	copy(s, A, second, sizeof(second), 13);
	call(s, API_SET32, B + 16, 6, 2, 14);
	finish(s);
	known(s, B, 2);
	known(s, B + 8, 3);
	known(s, B + 16, 6 + (6ll << 32));
	unknown(s, B + 24);
	assert_int_equal(line_at(s, origin(s, B).made), 12);
	assert_int_equal(line_at(s, origin(s, B).copied), 11);
	assert_int_equal(line_at(s, origin(s, B + 16).made), 14);
}

static void moved__in_a_circle_it_ends(void **state)
{
	struct past *s = *state;

	block(s, A, 512, 10);
	for (unsigned i = 0; i < 20; i++)
		call(s, API_DTOD, A + 8 * (i % 2), A + 8 * ((i + 1) % 2), 8, 12);
	finish(s);
	unknown(s, A);
}

static void launches__a_pointer_that_is_not_constant_may_have_written(void **state)
{
	const int64_t first[4] = {1, 2, 3, 4};
	const struct { uint64_t out, in; int32_t n; } p = {B, A, 4}, q = {A, B, 4};
	const unsigned size[] = {8, 8, 4};

	for (unsigned i = 0; i < 5; i++) {
		struct past *s = *state;

		block(s, A, 512, 10);
		block(s, B, 512, 10);
		copy(s, A, first, sizeof(first), 11);
		copy(s, B, first, sizeof(first), 11);
		if (i == 0)
			launch(s, kernel(s, READS, 3, size), &p, 20, 12);
		else if (i == 1)
			launch(s, kernel(s, WRITES, 3, size), &p, 20, 12);
		else if (i == 2)
			launch(s, kernel(s, READS, 3, size), &q, 20, 12);
		else if (i == 3)
			pairs(s, NEGATE, 4, B, A, 12);
		else
			pairs(s, NEGATE, 2, A, B, 12);
		finish(s);
		if (i == 0 || i == 3)
			known(s, A, 1);
		else
			unknown(s, A);
		assert_int_equal(origin(s, A).contents, i == 0 || i == 3);
		teardown(state);
		setup(state);
	}
}

static void launches__what_is_behind_the_recorded_parameters_makes_it_unsure(void **state)
{
	const int64_t first[4] = {1, 2, 3, 4};
	uint8_t params[CW_PARAM_BYTES] = {0};

	for (unsigned i = 0; i < 6; i++) {
		struct past *s = *state;
		uint32_t func;

		block(s, A, 512, 10);
		memcpy(params + 64, &(uint64_t){A}, 8);	/* what was there before in a field that is not used */
		if (i == 5)
			launch(s, kernel(s, GAPS, 2, (const unsigned[]){4, 600}), params, sizeof(params), 12);
		copy(s, A, first, sizeof(first), 11);
		func = i == 4 ? tb_function(&s->b, "nothing known")
			      : kernel(s, i == 0 ? GAPS : "other(x)", 2, (const unsigned[]){4, 600});
		if (i == 0 || i == 1)
			launch(s, func, params, sizeof(params), 12);
		else if (i == 2)
			call(s, API_2D, 0x1234, 0, 0, 12);
		else if (i == 3)
			launch(s, 0, params, 8, 12)->flags = CW_LAUNCH_GRAPH;
		else if (i == 4)
			launch(s, func, params, 0, 12);
		finish(s);
		if (i == 1)
			unknown(s, A);	/* for all we know, that is a pointer */
		else
			known(s, A, 1);
		if (i != 1)
			assert_int_equal(origin(s, A).sure, i == 5);
		teardown(state);
		setup(state);
	}
}

static void launches__what_a_graph_may_write_is_unknown(void **state)
{
	const int64_t first[4] = {1, 2, 3, 4};
	const struct { uint64_t out, in; int32_t n; } p = {B, A, 4};
	struct past *s = *state;
	struct cw_launch *l;

	block(s, A, 512, 10);
	l = launch(s, kernel(s, WRITES, 3, (const unsigned[]){8, 8, 4}), &p, 20, 12);
	l->flags = CW_LAUNCH_CAPTURED;
	l->result = 1;
	copy(s, A, first, sizeof(first), 11);
	launch(s, 0, "12345678", 8, 13)->flags = CW_LAUNCH_GRAPH;
	finish(s);
	unknown(s, A);
}

static void launches__the_kernel_itself_reads_where_it_reads(void **state)
{
	const int64_t first[4] = {1, 2, 3, 4};
	const struct { uint64_t out, in; int32_t n; } p = {B, A, 4};
	struct past *s = *state;
	struct cw_launch *own;
	uint32_t func;

	block(s, A, 512, 10);
	block(s, B, 512, 10);
	func = kernel(s, WRITES, 3, (const unsigned[]){8, 8, 4});
	copy(s, A, first, sizeof(first), 11);
	launch(s, func, &p, 20, 12);
	own = launch(s, func, &p, 20, 12);
	s->t = tb_trace(&s->b);
	s->r = recall_open(s->t);
	recall_launch(s->r, own, own->ticks);
	known(s, A, 1);
	unknown(s, B);
}

static void streams__another_one_or_pinned_memory_is_unsure(void **state)
{
	const int64_t first[4] = {1, 2, 3, 4};
	struct past *s = *state;
	struct cw_copy *other;

	for (unsigned i = 0; i < 4; i++)
		block(s, A + 512 * i, 512, 10);
	copy(s, A, first, sizeof(first), 11);
	other = copy(s, A + 512, first, sizeof(first), 11);
	other->stream = 7;
	other->flags = CW_COPY_IN_STREAM;
	copy(s, A + 1024, first, sizeof(first), 11)->flags = CW_COPY_PINNED;
	finish(s);
	assert_true(origin(s, A).sure);
	for (unsigned i = 1; i < 3; i++)
		assert_true(origin(s, A + 512 * i).contents && !origin(s, A + 512 * i).sure);
	assert_true(!origin(s, A + 1536).contents);
}

static void rings__what_they_no_longer_have_makes_it_unsure(void **state)
{
	const int64_t first[4] = {1, 2, 3, 4};
	struct past *s = *state;
	uint32_t func;

	block(s, A, 512, 10);
	block(s, B, 512, 10);
	func = kernel(s, READS, 3, (const unsigned[]){8, 8, 4});
	copy(s, A, first, sizeof(first), 11);
	for (unsigned i = 0; i < TB_LAUNCHES; i++)
		launch(s, func, "12345678abcdefghijkl", 20, 12);
	copy(s, B, first, sizeof(first), 13);
	finish(s);
	assert_true(origin(s, A).contents && !origin(s, A).sure);
	assert_true(origin(s, B).contents && origin(s, B).sure);
}

/* The real dump of a kernel whose thread 35 failed `p[threadIdx.x] < n`: its launches, each after a copy of 64 numbers, 0 and `value` at 35. */
static bool found_behind(struct past *s, const int32_t *value, unsigned n, struct values *found, struct recalled *from)
{
	struct dump *d = dump_open("tests/dump/real/asserts.cudacore.gz", NULL);
	struct culprit *k = culprit_find(d), recalled;
	struct cw_failure *f;
	struct fault_launch m;
	uint64_t pointer;
	uint32_t func;
	bool is;

	assert_true(k && k->params.data && k->params.len >= 12 && k->params.len <= CW_PARAM_BYTES);
	memcpy(&pointer, k->params.data, sizeof(pointer));
	block(s, pointer, 512, 10);
	func = kernel(s, k->kernel, 2, (const unsigned[]){8, 4});
	for (unsigned i = 0; i < n; i++) {
		int32_t numbers[64] = {0};
		struct cw_launch *l;

		numbers[35] = value[i];
		copy(s, pointer, numbers, sizeof(numbers), 20 + i);
		l = launch(s, func, k->params.data, k->params.len, 30 + i);
		memcpy(l->grid, k->grid, sizeof(l->grid));
		memcpy(l->block, k->block, sizeof(l->block));
	}
	f = tb_fail(&s->b, CW_SRC_DRIVER, 710, line(s, 40));
	s->t = tb_trace(&s->b);
	fault_find_launch(&m, s->t, k, f);
	assert_int_equal(m.n_all, n);
	is = recall_values(&recalled, from, s->t, k, &m);
	*found = is ? recalled.values : k->values;
	culprit_free(k);
	dump_free(d);
	return is;
}

static void values__of_a_real_dump_are_those_of_the_launch_that_failed(void **state)
{
	static const struct { int32_t value[3]; int failed; } cases[] = {
		{{1 << 30, 0, 0}, 0},	    {{0, 1 << 30, 0}, 1}, {{0, 0, 1 << 30}, 2},
		{{0, 1 << 29, 1 << 30}, 1}, {{0, 0, 0}, -1},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct past *s = *state;
		struct recalled from;
		struct values v;
		bool found = found_behind(s, cases[i].value, 3, &v, &from);

		assert_int_equal(found, cases[i].failed >= 0);
		assert_int_equal(v.answer, found ? VALUES_FOUND : VALUES_PLACES);
		assert_true(v.value[0].at - v.value[0].base == 4 * 35 && v.value[0].n == 4);
		if (found) {
			assert_int_equal(checked_integer(v.value[0].raw, 4), cases[i].value[cases[i].failed]);
			assert_true(from.sure && from.contents);
		}
		assert_false(!found && from.contents);
		assert_int_equal(line_at(s, from.copied), found ? 20 + (unsigned)cases[i].failed : 0);
		teardown(state);
		setup(state);
	}
}

#define LOSS \
	"void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, float, long>(float*, float*, float const*, long const*, " \
	"float const*, bool, long, long, long, long)"

struct loss { uint64_t out[3], labels, weights; uint8_t mean, pad[7]; int64_t n, dims, classes, ignored; };

/* A loss over 8 classes with these labels, of which `n` are said to be there. */
static struct cw_launch *loss(struct past *s, uint32_t func, uint64_t at, const int64_t *labels, int64_t n, unsigned from)
{
	const struct loss p = {.labels = at, .n = n, .dims = 8, .classes = 8, .ignored = -100};

	block(s, at, 512, from);
	copy(s, at, labels, 64, from + 1);
	return launch(s, func, &p, sizeof(p), from + 2);
}

static json_t *without_a_dump(struct past *s)
{
	struct cw_failure *f = tb_fail(&s->b, CW_SRC_DRIVER, 710, line(s, 90));

	f->api = 90;
	return judge(&s->b, 1);
}

static void suspects__labels_that_were_copied_show_which_it_was(void **state)
{
	const int64_t good[8] = {0, 7, -100, 3}, bad[8] = {1, 2, -100, 8, -1, 9};
	struct past *s = *state;
	uint32_t func = kernel(s, LOSS, 1, (const unsigned[]){80});
	json_t *j;

	loss(s, func, A, good, 8, 10);
	loss(s, func, A + 512, bad, 5, 20);
	loss(s, func, A + 1024, good, 8, 30);
	j = without_a_dump(s);
	assert_string_equal(field(j, "cause"), "label-out-of-range");
	assert_string_equal(field(j, "certainty"), "likely");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "where"), "line")), 22);
	assert_true(mentions(j, "why", "labels[3] is 8, labels[4] is -1; classes are 0 to 7"));
	assert_true(mentions(j, "why", "train.py:21\""));
	json_decref(j);
}

static void suspects__labels_that_are_not_all_known_prove_nothing_about_others(void **state)
{
	const int64_t good[8] = {0, 7, -100, 3}, bad[8] = {1, 2, -100, 8, -1, 9};
	struct past *s = *state;
	uint32_t func = kernel(s, LOSS, 1, (const unsigned[]){80});
	json_t *j;

	loss(s, func, A, good, 9, 10);	/* one more than were copied */
	loss(s, func, A + 512, bad, 4, 20);
	j = without_a_dump(s);
	assert_true(mentions(j, "why", "labels[3] is 8; classes"));
	assert_true(mentions(j, "why", "train.py:21; it may have been changed since"));
	json_decref(j);
	teardown(state);
	setup(state);
	s = *state;
	func = kernel(s, LOSS, 1, (const unsigned[]){80});
	loss(s, func, A, good, 8, 10);
	j = without_a_dump(s);
	assert_string_equal(field(j, "cause"), "label-out-of-range");
	assert_false(mentions(j, "why", " is ") || mentions(j, "why", "copied"));
	json_decref(j);
}

#define BCE_LAMBDA "at::native::binary_cross_entropy_out_cuda(at::Tensor const&)::{lambda()#1}::operator()() const::{lambda(float, float)#1}"
#define BCE_OPERANDS BCE_LAMBDA ", std::array<char*, 3ul>"
#define BCE EACH BCE_OPERANDS " >(int, " BCE_OPERANDS ")"

static void suspects__probabilities_are_looked_at_too(void **state)
{
	const float good[4] = {0, 1, 0.5f, 0.25f}, bad[4] = {0.5f, 1.5f, -0.25f, 1};
	const struct { uint32_t n, functor; uint64_t out, in, target; } p = {4, 0, B, A, A + 512}, q = {4, 0, B, A + 512, A};
	struct past *s = *state;
	uint32_t func = kernel(s, BCE, 3, (const unsigned[]){4, 1, 24});
	json_t *j;

	block(s, A, 512, 10);
	block(s, A + 512, 512, 10);
	block(s, B, 512, 10);
	copy(s, A, bad, sizeof(bad), 11);
	copy(s, A + 512, good, sizeof(good), 12);
	launch(s, func, &q, sizeof(q), 13);
	launch(s, func, &p, sizeof(p), 14);
	j = without_a_dump(s);
	assert_string_equal(field(j, "cause"), "input-out-of-range");
	assert_true(mentions(j, "why", "the input at position 1 is 1.5, the input at position 2 is -0.25"));
	assert_true(mentions(j, "why", "train.py:11\""));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "where"), "line")), 14);
	json_decref(j);
}

static void suspects__a_stream_of_each_thread_that_another_thread_waited_for_is_not_its_own(void **state)
{
	const int64_t bad[8] = {1, 2, -100, 8};
	struct past *s = *state;
	uint32_t func = kernel(s, LOSS, 1, (const unsigned[]){80});
	json_t *j;

	for (uint32_t tid = 1; tid <= 2; tid++) {
		loss(s, func, A, bad, 8, 10)->stream = 2;
		call(s, API_WAIT, 2, 0, 0, 20)->tid = tid;
		j = without_a_dump(s);
		assert_int_equal(mentions(j, "why", "labels[3] is 8; classes"), tid != 1);
		json_decref(j);
		teardown(state);
		setup(state);
		s = *state;
		func = kernel(s, LOSS, 1, (const unsigned[]){80});
	}
}

static void suspects__not_all_of_many_large_lists_are_looked_at(void **state)
{
	const int64_t bad[8] = {1, 2, -100, 8};
	const struct { uint32_t n, pad; int64_t value; uint64_t to; } fill = {1 << 20, 0, 7, B};
	const struct loss large = {.labels = B, .n = 1 << 20, .dims = 8, .classes = 8, .ignored = -100};
	struct past *s = *state;
	uint32_t func = kernel(s, LOSS, 1, (const unsigned[]){80});
	json_t *j;

	block(s, B, 8 << 20, 10);
	launch(s, kernel(s, FILL, 3, (const unsigned[]){4, 8, 8}), &fill, sizeof(fill), 11);
	for (unsigned i = 0; i < 30; i++)
		launch(s, func, &large, sizeof(large), 12);
	loss(s, func, A, bad, 8, 10);
	j = without_a_dump(s);
	assert_true(mentions(j, "why", "labels[3] is 8; classes"));
	assert_true(mentions(j, "why", "it may have been changed since"));
	json_decref(j);
}

static void suspects__a_launch_that_waited_is_the_one(void **state)
{
	const int64_t bad[8] = {1, 2, -100, 8};
	struct past *s = *state;
	uint32_t func = kernel(s, LOSS, 1, (const unsigned[]){80});
	struct cw_failure *f;
	json_t *j;

	loss(s, func, A, bad, 8, 10)->result = 710;
	f = tb_fail(&s->b, CW_SRC_DRIVER, 710, line(s, 12));
	f->api = 60;
	f->is_launch = 1;
	f->func = func;
	j = judge(&s->b, 1);
	assert_string_equal(field(j, "cause"), "label-out-of-range");
	assert_string_equal(field(j, "certainty"), "likely");
	assert_true(mentions(j, "why", "labels[3] is 8; classes"));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "where"), "line")), 12);
	json_decref(j);
}

#define test(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(copy__of_several_the_newest_counts_for_each_byte),
		test(copy__one_whose_contents_were_not_kept_hides_what_was_there),
		test(copy__only_a_prefix_of_a_large_one_is_known),
		test(copy__contents_that_the_ring_has_lost_are_unknown),
		test(copy__damaged_tables_give_nothing),
		test(block__another_one_at_its_address_has_nothing_of_it),
		test(block__freed_after_the_launch_it_was_still_there),
		test(made__simple_kernels_are_computed),
		test(made__others_and_numbers_that_do_not_fit_are_unknown),
		test(moved__a_copy_on_the_gpu_is_as_its_source_was),
		test(moved__in_a_circle_it_ends),
		test(launches__a_pointer_that_is_not_constant_may_have_written),
		test(launches__what_is_behind_the_recorded_parameters_makes_it_unsure),
		test(launches__what_a_graph_may_write_is_unknown),
		test(launches__the_kernel_itself_reads_where_it_reads),
		test(streams__another_one_or_pinned_memory_is_unsure),
		test(values__of_a_real_dump_are_those_of_the_launch_that_failed),
		test(suspects__labels_that_were_copied_show_which_it_was),
		test(suspects__labels_that_are_not_all_known_prove_nothing_about_others),
		test(suspects__probabilities_are_looked_at_too),
		test(suspects__a_stream_of_each_thread_that_another_thread_waited_for_is_not_its_own),
		test(suspects__not_all_of_many_large_lists_are_looked_at),
		test(suspects__a_launch_that_waited_is_the_one),
		test(rings__what_they_no_longer_have_makes_it_unsure),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
