/* SPDX-License-Identifier: Apache-2.0
 * What memory was used for over time: columns add up, kinds match the ledger, and damaged histories do no
 * harm.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "find/memory/over_time.h"
#include "memory_make.h"
#include "read/recording/trace_memory.h"

#define MODULE TORCH "nn/modules/module.py:1400:_apply"
#define ADAM TORCH "optim/adamw.py:200:_init_group"

struct made {
	struct mm m;
	struct cw_epochs *epochs;
	uint32_t *mark;
	struct cw_history *history;
	uint32_t n;
};

static void make(struct made *x)
{
	*x = (struct made){0};
	mm_init(&x->m);
	x->epochs = (void *)(x->m.b.data + tb_chunk(&x->m.b, CW_CHUNK_EPOCHS, sizeof(*x->epochs)));
	x->mark = (void *)(x->m.b.data + tb_chunk(&x->m.b, CW_CHUNK_SITE_MARKS, MM_SITES * sizeof(*x->mark)));
	x->history = (void *)(x->m.b.data + tb_chunk(&x->m.b, CW_CHUNK_HISTORIES, 8 * sizeof(*x->history)));
	*x->epochs = (struct cw_epochs){.n_max = CW_EPOCHS};
}

/* The next epoch, with what PyTorch had allocated at its moment; its generation is 10, 20, ... */
static void epoch(struct made *x, uint64_t begin, uint64_t at, uint64_t allocated)
{
	uint64_t n = x->epochs->now++;

	x->epochs->epoch[0][n] = (struct cw_epoch){ .begin = begin, .at = at, .allocated = allocated, .reserved = 100 * MIB,
						   .driver = 110 * MIB,
						   .generation = 10 * ((uint32_t)n + 1)};
}

static void held(struct made *x, uint32_t site, uint32_t mark, const uint64_t *bytes, size_t n)
{
	struct cw_history *h = &x->history[x->n++];

	h->site = site;
	x->mark[site] = mark;
	for (size_t i = 0; i < n; i++)
		h->held[i] = (uint32_t)(bytes[i] / CW_HISTORY_UNIT);
}

static uint64_t tensors(const struct over_column *c)
{
	uint64_t sum = c->untold;

	for (int k = 0; k < KIND_COUNT; k++)
		sum += c->kind[k];
	return sum;
}

/* A model and its optimizer, a step with a workspace on the line of its layers, then out of memory. */
static void make_training(struct made *x)
{
	static const uint64_t layers[] = {0, 14 * MIB, 10 * MIB}, states[] = {0, 0, 0};
	struct cw_allocation *workspace;
	uint32_t layer;

	make(x);
	layer = tb_stack(&x->m.b, USER, NULL);
	mm_segment(&x->m, 100 * MIB);
	mm_block(&x->m, 30 * MIB, tb_stack(&x->m.b, MODULE, USER, NULL), 0, 0);	/* site 1: holds the same as before */
	mm_node(&x->m, layer, true);
	workspace = mm_block(&x->m, 8 * MIB, layer, 0, 0);			/* site 2 */
	workspace->library = tb_string(&x->m.b, "/x/libcublas.so.13");
	mm_block(&x->m, 20 * MIB, tb_stack(&x->m.b, ADAM, USER, NULL), 0, 0);	/* site 3: made after the last epoch's moment */
	epoch(x, 500, 600, 30 * MIB);
	epoch(x, workspace->ticks - 100, workspace->ticks + 10, 44 * MIB);
	epoch(x, workspace->ticks + 100, workspace->ticks + 200, 41 * MIB);
	x->mark[1] = 5;
	held(x, 2, 40, layers, 3);
	held(x, 3, 40, states, 3);
	x->m.b.ticks += 1000;
	mm_oom(&x->m, GIB, MIB, layer);
}

static void kinds__are_the_ledgers_in_every_epoch(void **state)
{
	struct pool pool = {0};
	struct over_time o;
	struct ledger l;
	struct trace *t;
	struct made x;

	(void)state;
	make_training(&x);
	t = tb_trace(&x.m.b);
	over_time_build(&o, t, 0, NULL, &pool);
	assert_int_equal(o.n, 4);
	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(o.column[i].kind[KIND_PARAMETERS], 30 * MIB);
		assert_int_equal(tensors(&o.column[i]) + o.column[i].cache, 100 * MIB);
		assert_int_equal(o.column[i].libraries, 10 * MIB);
		assert_false(o.column[i].ledger);
	}
	assert_int_equal(o.column[0].kind[KIND_ACTIVATIONS] + o.column[0].kind[KIND_WORKSPACES], 0);
	assert_int_equal(o.column[1].kind[KIND_ACTIVATIONS], 6 * MIB);
	assert_int_equal(o.column[1].kind[KIND_WORKSPACES], 8 * MIB);
	assert_int_equal(o.column[2].kind[KIND_ACTIVATIONS], 2 * MIB);
	assert_int_equal(o.column[2].untold, MIB);	/* unattributed: there was no room for its history */
	ledger_build(&l, t, 0, LEDGER_OOM, ledger_oom(t, 0), NULL, &pool);
	assert_true(o.column[3].ledger && o.column[3].begin == ledger_oom(t, 0)->ticks);
	assert_memory_equal(o.column[3].kind, l.kind, sizeof(l.kind));
	assert_int_equal(o.column[3].kind[KIND_OPTIMIZER], 20 * MIB);
	assert_int_equal(tensors(&o.column[3]), l.part[PART_TENSORS]);
	pool_release(&pool);
	trace_free(t);
}

static void kinds__what_comes_after_the_failure_stays_there(void **state)
{
	struct pool pool = {0};
	struct over_time o;
	struct trace *t;
	struct made x;

	(void)state;
	make_training(&x);
	epoch(&x, x.m.b.ticks + 5000, x.m.b.ticks + 5000, 30 * MIB);
	t = tb_trace(&x.m.b);
	over_time_build(&o, t, 0, NULL, &pool);
	assert_int_equal(o.n, 5);
	assert_true(o.column[3].ledger && !o.column[4].ledger);
	assert_int_equal(tensors(&o.column[4]), 30 * MIB);
	pool_release(&pool);
	trace_free(t);
}

/* Without a failure the last column is the end. */
static void kinds__end_with_the_end(void **state)
{
	struct pool pool = {0};
	struct over_time o;
	struct ledger l;
	struct trace *t;
	struct made x;

	(void)state;
	make_training(&x);
	x.m.b.h->n_failures = 0;
	for (uint32_t i = 0; i < x.m.b.h->n_chunks; i++)
		if (x.m.b.h->chunk[i].kind == CW_CHUNK_FAILURES)
			memset(x.m.b.data + x.m.b.h->chunk[i].off, 0, x.m.b.h->chunk[i].len);
	t = tb_trace(&x.m.b);
	assert_null(ledger_oom(t, 0));
	ledger_build(&l, t, 0, LEDGER_END, NULL, NULL, &pool);
	over_time_build(&o, t, 0, &l, &pool);
	assert_int_equal(o.n, 4);
	assert_true(o.column[3].ledger && o.column[3].begin == trace_header(t)->clock1.ticks);
	assert_memory_equal(o.column[3].kind, l.kind, sizeof(l.kind));
	pool_release(&pool);
	trace_free(t);
}

/* Gradients that existed before a backward pass are distinguished from what it allocates; the peak's ledger agrees. */
static void kinds__of_backward_and_at_the_peak(void **state)
{
	static const uint64_t weights[] = {4 * MIB, 10 * MIB, 4 * MIB, 0, 6 * MIB};
	struct pool pool = {0};
	struct over_time o;
	struct ledger l;
	struct trace *t;
	struct made x;
	uint32_t layer;

	(void)state;
	make(&x);
	layer = tb_stack(&x.m.b, USER, NULL);
	mm_segment(&x.m, 100 * MIB);
	mm_block(&x.m, 4 * MIB, 0, layer, CW_SITE_BACKWARD);
	for (uint64_t i = 0; i < 5; i++)
		epoch(&x, 1000 + 100 * i, 1010 + 100 * i, weights[i]);
	x.epochs->epoch[0][1].flags = x.epochs->epoch[0][4].flags = CW_EPOCH_BACKWARD;
	held(&x, 1, 60, weights, 5);
	x.m.site[1].at_peak = 10 * MIB;
	x.m.site[1].peak_generation = 1;
	x.m.b.h->memory[0] = (struct cw_memory_now){ .allocated = 4 * MIB, .reserved = 100 * MIB, .peak_allocated = 10 * MIB,
						    .peak_reserved = 100 * MIB,
						    .driver = 100 * MIB,
						    .driver_peak = 100 * MIB,
						    .peak_ticks = 1110,
						    .peak_generation = 1};
	t = tb_trace(&x.m.b);
	over_time_build(&o, t, 0, NULL, &pool);
	assert_int_equal(o.n, 6);
	assert_int_equal(o.column[0].kind[KIND_GRADIENTS], 4 * MIB);
	assert_int_equal(o.column[1].kind[KIND_GRADIENTS], 4 * MIB);
	assert_int_equal(o.column[1].kind[KIND_BACKWARD], 6 * MIB);
	assert_int_equal(o.column[2].kind[KIND_GRADIENTS], 4 * MIB);
	assert_int_equal(o.column[4].kind[KIND_BACKWARD], 6 * MIB);
	ledger_build(&l, t, 0, LEDGER_PEAK, NULL, NULL, &pool);
	assert_memory_equal(l.kind, o.column[1].kind, sizeof(l.kind));
	pool_release(&pool);
	trace_free(t);
}

static size_t columns_with(void (*damage)(struct made *x), uint64_t *untold)
{
	struct pool pool = {0};
	struct over_time o;
	struct trace *t;
	struct made x;
	size_t n;

	make_training(&x);
	damage(&x);
	t = tb_trace(&x.m.b);
	over_time_build(&o, t, 0, NULL, &pool);
	n = o.n;
	*untold = n > 1 ? o.column[1].untold : 0;
	pool_release(&pool);
	trace_free(t);
	return n;
}

static void busy(struct made *x) { x->history[0].scale = CW_HISTORY_BAD; }
static void later(struct made *x) { x->history[0].scale = 7; }
static void nowhere(struct made *x) { x->history[0].site = 90000; }
static void backwards(struct made *x) { x->epochs->epoch[0][1].begin = 1; }
static void no_generation(struct made *x) { x->epochs->epoch[0][2].generation = 20; }
static void too_many(struct made *x) { x->epochs->now = 127; }
static void too_often(struct made *x) { x->epochs->now |= 32ull << 32; }
static void other_size(struct made *x) { x->epochs->n_max = 128; }
static void before_it_began(struct made *x) { x->epochs->epoch[0][0].at = 1; }

static void damage__what_cannot_be_is_left_out(void **state)
{
	static void (*const none[])(struct made *) = {backwards, no_generation, too_many,
						      too_often, other_size,	before_it_began};
	static void (*const one[])(struct made *) = {busy, later, nowhere};
	uint64_t untold;

	(void)state;
	for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
		assert_int_equal(columns_with(none[i], &untold), 0);
	for (size_t i = 0; i < sizeof(one) / sizeof(one[0]); i++) {
		assert_int_equal(columns_with(one[i], &untold), 4);
		assert_int_equal(untold, 14 * MIB);
	}
}

static uint64_t dice = 88172645463325252ull;

static uint64_t roll(uint64_t below)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return dice % below;
}

static void damage__any_bytes_are_read(void **state)
{
	(void)state;
	for (int round = 0; round < 300; round++) {
		struct pool pool = {0};
		struct over_time o;
		struct trace *t;
		struct made x;

		make_training(&x);
		for (uint64_t i = roll(200); i > 0; i--) {
			uint8_t *at[] = {(uint8_t *)x.epochs, (uint8_t *)x.mark, (uint8_t *)x.history};
			size_t size[] = {600, 64, 8 * sizeof(*x.history)}, which = roll(3);

			at[which][roll(size[which])] = (uint8_t)roll(round % 2 ? 4 : 256);
		}
		t = tb_trace(&x.m.b);
		over_time_build(&o, t, 0, NULL, &pool);
		for (size_t i = 1; i < o.n; i++)
			assert_true(o.column[i].begin >= o.column[i - 1].begin);
		pool_release(&pool);
		trace_free(t);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kinds__are_the_ledgers_in_every_epoch),
		cmocka_unit_test(kinds__what_comes_after_the_failure_stays_there),
		cmocka_unit_test(kinds__end_with_the_end),
		cmocka_unit_test(kinds__of_backward_and_at_the_peak),
		cmocka_unit_test(damage__what_cannot_be_is_left_out),
		cmocka_unit_test(damage__any_bytes_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
