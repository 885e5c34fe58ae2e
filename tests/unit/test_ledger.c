/* SPDX-License-Identifier: Apache-2.0
 * The ledger: it adds up, tensors have the right kind, and every OOM has its cause, its line and its numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "show/report.h"
#include "find/failure/observe.h"
#include "case/case.h"
#include "case/ledger.h"
#include "case/module_groups.h"
#include "base/pool.h"
#include "dice.h"
#include "memory_make.h"
#include "probe/usage.h"
#include "show/report_ledger.h"
#include "read/recording/trace_memory.h"

#define CARD 150110011392ull
#define MODULE TORCH "nn/modules/module.py:1400:_apply"

static void fill_at_random(struct mm *m)
{
	uint32_t stacks[5] = {0, tb_stack(&m->b, USER, NULL), tb_stack(&m->b, "a.py:1:f", NULL),
			      tb_stack(&m->b, MODULE, USER, NULL), tb_stack(&m->b, "b.py:7:g", USER, NULL)};

	for (uint64_t i = roll(20); i > 0; i--) {
		uint64_t size = (1 + roll(400)) * 2 * MIB, left = size;

		if (roll(4) == 0) {
			mm_allocate(m, size, roll(2) ? tb_string(&m->b, "/x/libnccl.so.2") : 0, stacks[roll(5)],
				    roll(3) ? CW_MEM_DEVICE : CW_MEM_ASYNC);
			continue;
		}
		mm_segment(m, size);
		while (left > 4096 && roll(6)) {
			uint64_t bytes = 512 * (1 + roll(left / 1024));

			if (roll(2))
				mm_block(m, bytes, stacks[roll(5)], roll(5) ? 0 : stacks[1], (uint32_t)roll(8));
			else
				mm_gap(m, bytes);
			left -= bytes;
		}
	}
	for (uint64_t i = roll(9); i > 0; i--)
		mm_node(m, stacks[1 + roll(4)], roll(2));
}

static void expect_sums(const struct ledger *l)
{
	uint64_t parts = 0, kinds = 0, tensors = 0;

	for (int p = 0; p < PART_COUNT; p++)
		parts += l->part[p];
	for (int k = 0; k < KIND_COUNT; k++)
		kinds += l->kind[k];
	for (size_t i = 0; i < l->n; i++)
		tensors += l->line[i].part == PART_TENSORS ? l->line[i].bytes : 0;
	assert_true(l->total_known);
	assert_int_equal(parts, l->total);
	assert_int_equal(kinds, l->part[PART_TENSORS]);
	assert_true(tensors >= l->part[PART_TENSORS]);
}

static void ledger__adds_up_to_the_card(void **state)
{
	(void)state;
	for (int round = 0; round < 400; round++) {
		struct pool pool = {0};
		struct ledger_holder holder = {77, "python other.py", roll(CARD)};
		struct ledger_seen seen = {roll(2), roll(2) ? roll(CARD) : 0, &holder, roll(2)};
		struct cw_failure *f;
		struct ledger l;
		struct trace *t;
		struct mm m;

		mm_init(&m);
		fill_at_random(&m);
		f = mm_oom(&m, 1 + roll(8 * GIB), roll(round % 3 ? 4 * GIB : CARD), tb_stack(&m.b, USER, NULL));
		if (round % 5 == 0)	/* figures that contradict each other */
			f->torch_allocated = roll(2 * CARD);
		t = tb_trace(&m.b);
		ledger_build(&l, t, 0, LEDGER_OOM, ledger_oom(t, 0), round % 2 ? &seen : NULL, &pool);
		expect_sums(&l);
		ledger_build(&l, t, 0, LEDGER_END, NULL, NULL, &pool);
		expect_sums(&l);
		ledger_build(&l, t, 0, LEDGER_PEAK, NULL, NULL, &pool);
		expect_sums(&l);
		pool_release(&pool);
		trace_free(t);
	}
}

/* What a plain case holds, to the byte. */
static void ledger__every_part_is_what_it_is(void **state)
{
	struct pool pool = {0};
	struct ledger_holder holder = {77, "python other.py", 3 * GIB};
	struct ledger_seen seen = {true, 0, &holder, 1};
	struct ledger l;
	struct trace *t;
	struct mm m;

	(void)state;
	mm_init(&m);
	mm_segment(&m, 100 * MIB);
	mm_block(&m, 30 * MIB, tb_stack(&m.b, MODULE, USER, NULL), 0, 0);
	mm_gap(&m, 10 * MIB);
	mm_block(&m, 20 * MIB, tb_stack(&m.b, "train.py:9:main", NULL), 0, 0);
	mm_segment(&m, 40 * MIB);
	mm_allocate(&m, 64 * MIB, tb_string(&m.b, "/usr/lib/libnccl.so.2"), tb_stack(&m.b, "train.py:5:main", NULL),
		    CW_MEM_DEVICE);
	mm_allocate(&m, 8 * MIB, 0, 0, CW_MEM_PINNED);
	mm_oom(&m, GIB, 100 * MIB, tb_stack(&m.b, USER, NULL));
	t = tb_trace(&m.b);
	seen.own = 204 * MIB + 500 * MIB;
	ledger_build(&l, t, 0, LEDGER_OOM, ledger_oom(t, 0), &seen, &pool);
	assert_int_equal(l.part[PART_TENSORS], 50 * MIB);
	assert_int_equal(l.part[PART_CACHE_USED], 50 * MIB);
	assert_int_equal(l.part[PART_CACHE_FREE], 0);
	assert_int_equal(l.part[PART_POOLS], 40 * MIB);	/* else PyTorch had returned it */
	assert_int_equal(l.part[PART_LIBRARIES], 64 * MIB);
	assert_int_equal(l.part[PART_CONTEXT], 500 * MIB);
	assert_int_equal(l.part[PART_PROCESSES], 3 * GIB);
	assert_int_equal(l.part[PART_FREE], 100 * MIB);
	assert_int_equal(l.kind[KIND_PARAMETERS], 30 * MIB);
	assert_int_equal(l.kind[KIND_OTHER], 20 * MIB);
	assert_int_equal(l.segments.largest, 40 * MIB);
	assert_int_equal(l.segments.used, 1);
	assert_int_equal(l.pinned, 8 * MIB);
	assert_true(l.lines_complete);
	expect_sums(&l);
	pool_release(&pool);
	trace_free(t);
}

static void kinds_of_a_training(bool in_backward)
{
	struct pool pool = {0};
	uint32_t forward, optim, backward, load, init, closure;
	struct ledger l;
	struct trace *t;
	struct mm m;

	mm_init(&m);
	forward = tb_stack(&m.b, TORCH "nn/functional.py:10:relu", USER, NULL);
	optim = tb_stack(&m.b, TORCH "optim/adam.py:120:Adam._init_group", TORCH "optim/optimizer.py:5:wrapper", USER,
			 NULL);
	backward = tb_stack(&m.b, TORCH "autograd/graph.py:80:_engine_run_backward", USER, NULL);
	load = tb_stack(&m.b, TORCH "serialization.py:80:load", USER, NULL);
	init = tb_stack(&m.b, TORCH "nn/modules/linear.py:90:Linear.__init__", "model.py:4:Net.__init__", NULL);
	mm_segment(&m, 100 * MIB);
	mm_block(&m, 1 * MIB, init, 0, 0);
	mm_block(&m, 2 * MIB, tb_stack(&m.b, MODULE, USER, NULL), 0, 0);
	mm_block(&m, 4 * MIB, optim, 0, 0);
	mm_block(&m, 8 * MIB, load, 0, 0);
	mm_block(&m, 16 * MIB, backward, 0, CW_SITE_BACKWARD);	/* before the forward pass: gradients */
	mm_block(&m, 512, backward, 0, CW_SITE_BACKWARD | CW_SITE_GRADIENT);
	mm_node(&m, forward, false);
	mm_block(&m, 3 * MIB, forward, 0, 0);
	/* a model that the optimizer's closure calls is not optimizer state */
	closure = tb_stack(
		&m.b, TORCH "nn/functional.py:10:relu", "/venv/lib/python3.12/site-packages/lib/net.py:3:forward",
		TORCH "nn/modules/module.py:1700:Module._call_impl", TORCH "optim/adam.py:90:Adam.step", USER, NULL);
	mm_node(&m, closure, false);
	mm_block(&m, 9 * MIB, closure, 0, 0);
	mm_block(&m, 5 * MIB, backward, forward, CW_SITE_BACKWARD);	/* after it: unknown while backward runs */
	mm_block(&m, 6 * MIB, tb_stack(&m.b, "cap.py:3:run", NULL), 0, CW_SITE_CAPTURED);
	mm_block(&m, 7 * MIB, tb_stack(&m.b, "train.py:3:run", NULL), 0, 0)->ticks = 1;
	m.block[9].ticks = 2;	/* captured before */
	mm_oom(&m, GIB, 0, in_backward ? backward : forward);
	t = tb_trace(&m.b);
	ledger_build(&l, t, 0, LEDGER_OOM, ledger_oom(t, 0), NULL, &pool);
	assert_int_equal(l.kind[KIND_PARAMETERS], 3 * MIB);
	assert_int_equal(l.kind[KIND_OPTIMIZER], 4 * MIB);
	assert_int_equal(l.kind[KIND_LOADED], 8 * MIB);
	assert_int_equal(l.kind[KIND_GRADIENTS], 16 * MIB + 512 + (in_backward ? 0 : 5 * MIB));
	assert_int_equal(l.kind[KIND_ACTIVATIONS], 12 * MIB);
	assert_int_equal(l.kind[KIND_BACKWARD], in_backward ? 5 * MIB : 0);
	assert_int_equal(l.kind[KIND_GRAPHS], 6 * MIB);
	assert_int_equal(l.kind[KIND_OTHER], 7 * MIB);
	pool_release(&pool);
	trace_free(t);
}

static void kinds__by_code_by_nodes_and_by_time(void **state)
{
	(void)state;
	kinds_of_a_training(true);
	kinds_of_a_training(false);	/* backward is over: what it left are gradients */
}

/* The exception frees the tensors: the ledger shows the failure, not the end. */
static void ledger__is_that_of_the_failure(void **state)
{
	struct pool pool = {0};
	struct ledger l;
	struct trace *t;
	struct cw_failure *f;
	struct mm m;

	(void)state;
	mm_init(&m);
	mm_segment(&m, 100 * MIB);
	mm_passed(&m, 60 * MIB, tb_stack(&m.b, "train.py:9:main", NULL), 0);
	m.allocated = 60 * MIB;
	f = mm_oom(&m, GIB, 0, tb_stack(&m.b, USER, NULL));
	((struct cw_freed *)(m.freed + 1))->ticks = f->ticks + 10;
	m.b.h->memory[0].allocated = 0;
	t = tb_trace(&m.b);
	ledger_build(&l, t, 0, LEDGER_OOM, ledger_oom(t, 0), NULL, &pool);
	assert_int_equal(l.part[PART_TENSORS], 60 * MIB);
	assert_int_equal(l.line[0].place.line, 9);
	ledger_build(&l, t, 0, LEDGER_END, NULL, NULL, &pool);
	assert_int_equal(l.part[PART_TENSORS], 0);
	pool_release(&pool);
	trace_free(t);
}

static json_t *expect(struct mm *m, const char *cause, const char *certainty)
{
	json_t *j = judge(&m->b, 1);

	assert_string_equal(field(j, "cause"), cause);
	assert_string_equal(field(j, "certainty"), certainty);
	assert_true(json_is_object(json_object_get(json_object_get(j, "memory"), "ledger")));
	return j;
}

/* Twelve segments of 10 GiB, each kept by one small tensor. */
static void fragmentation__names_who_keeps_the_segments(void **state)
{
	uint32_t small;
	json_t *j;
	struct mm m;

	(void)state;
	for (int expandable = 0; expandable < 2; expandable++) {
		mm_init(&m);
		small = tb_stack(&m.b, "train.py:12:keep", NULL);
		for (int i = 0; i < 12; i++) {
			mm_segment(&m, 10 * GIB);
			mm_gap(&m, 5 * GIB);
			mm_block(&m, 2 * MIB, small, 0, 0);
		}
		if (expandable)
			snprintf(m.b.h->alloc_conf, sizeof(m.b.h->alloc_conf), "expandable_segments:True");
		mm_oom(&m, 20 * GIB, 19 * GIB, tb_stack(&m.b, USER, NULL));
		j = expect(&m, "oom-fragmentation", "certain");
		assert_true(mentions(j, "why", "train.py:12"));
		assert_true(mentions(j, "why", "12 live tensors"));
		assert_true(mentions(j, "why", "the largest gap is 5.0 GiB"));
		assert_int_equal(mentions(j, "fix", "expandable_segments:True"), !expandable);
		json_decref(j);
	}
}

static void fragmentation__a_full_card_is_none(void **state)
{
	json_t *j;
	struct mm m;

	(void)state;
	mm_init(&m);
	mm_segment(&m, 138 * GIB);
	mm_block(&m, 136 * GIB, tb_stack(&m.b, "train.py:12:keep", NULL), 0, 0);
	mm_oom(&m, 10 * GIB, GIB, tb_stack(&m.b, USER, NULL));
	j = expect(&m, "oom-capacity", "certain");
	assert_false(mentions(j, "candidates", "oom-fragmentation"));
	assert_true(mentions(j, "why", "train.py:12"));
	json_decref(j);
}

/* Passes of two layers that call one line, an input and a loss. */
static void pass(struct mm *m, const uint32_t stack[3], bool run, bool live)
{
	static const int order[] = {0, 1, 1, 2};

	for (int i = 0; i < 4; i++) {
		mm_node(m, stack[order[i]], run);
		if (live)
			mm_block(m, 4 * GIB, stack[order[i]], 0, 0);
		else
			mm_passed(m, 4 * GIB, stack[order[i]], 0);
	}
}

static void stacks_of_a_model(struct mm *m, const char *caller, uint32_t stack[3])
{
	stack[0] = tb_stack(&m->b, "model.py:5:embed", caller, NULL);
	stack[1] = tb_stack(&m->b, "model.py:8:layer", caller, NULL);
	stack[2] = tb_stack(&m->b, "model.py:11:head", caller, NULL);
}

static void eval__graphs_are_made_and_never_run(void **state)
{
	uint32_t stack[3];
	json_t *j;
	struct mm m;

	(void)state;
	mm_init(&m);
	mm_segment(&m, 136 * GIB);
	stacks_of_a_model(&m, "eval.py:20:main", stack);
	for (int i = 0; i < 8; i++)
		pass(&m, stack, false, true);
	mm_oom(&m, 10 * GIB, GIB, stack[0]);
	j = expect(&m, "oom-eval-without-no-grad", "likely");
	assert_true(mentions(j, "why", "model.py:11"));	/* the last node of each graph */
	assert_true(mentions(j, "why", "activations of at least 8 passes"));
	json_decref(j);
}

/* The same memory, but the code says that it trains: this was the forward part of its first step. */
static void eval__code_that_trains_is_no_evaluation(void **state)
{
	static const char *const caller[] = {"run.py:20:training_step", "run.py:20:predict", "run.py:20:Runner.evaluate"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		uint32_t stack[3];
		struct mm m;

		mm_init(&m);
		mm_segment(&m, 136 * GIB);
		stacks_of_a_model(&m, caller[i], stack);
		for (int k = 0; k < 8; k++)
			pass(&m, stack, false, true);
		mm_oom(&m, 10 * GIB, GIB, stack[0]);
		json_decref(expect(&m, i ? "oom-eval-without-no-grad" : "oom-capacity", "likely"));
	}
}

/* A single pass may be the first training step: layers called from one line are not passes. */
static void eval__the_first_pass_of_a_training_is_capacity(void **state)
{
	uint32_t stack[3];
	json_t *j;
	struct mm m;

	(void)state;
	mm_init(&m);
	mm_segment(&m, 138 * GIB);
	stacks_of_a_model(&m, "train.py:20:main", stack);
	mm_node(&m, stack[0], false);
	mm_block(&m, GIB, stack[0], 0, 0);
	for (int i = 0; i < 30; i++) {
		mm_node(&m, stack[1], false);
		mm_block(&m, 4 * GIB, stack[1], 0, 0);
	}
	mm_oom(&m, 19 * GIB, GIB, stack[1]);
	j = expect(&m, "oom-capacity", "certain");
	assert_true(mentions(j, "candidates", "oom-eval-without-no-grad"));
	assert_false(mentions(j, "candidates", "oom-graph-retention"));
	json_decref(j);
}

static void retention__graphs_of_earlier_steps(void **state)
{
	uint32_t train[3], kept[3], backward;
	json_t *j;
	struct mm m;

	(void)state;
	for (int leak = 0; leak < 2; leak++) {
		mm_init(&m);
		mm_segment(&m, 137 * GIB);
		stacks_of_a_model(&m, "train.py:20:main", train);
		stacks_of_a_model(&m, "train.py:30:probe", kept);
		backward = tb_stack(&m.b, TORCH "_tensor.py:600:backward", "train.py:22:main", NULL);
		for (int i = 0; i < 7; i++) {
			pass(&m, train, true, false);
			for (int k = 0; k < 4; k++)
				mm_passed(&m, GIB, backward, train[1]);
			pass(&m, kept, false, leak);
		}
		if (!leak)
			mm_block(&m, 120 * GIB, tb_stack(&m.b, MODULE, USER, NULL), 0, 0);
		mm_oom(&m, 30 * GIB, GIB, train[0]);
		j = expect(&m, leak ? "oom-graph-retention" : "oom-capacity", "certain");
		if (leak) {
			assert_true(mentions(j, "why", "model.py:11"));
			assert_true(mentions(j, "why", "it was called at train.py:30"));	/* not by the training itself */
		}
		json_decref(j);
	}
}

static void growth__one_line_never_lets_go(void **state)
{
	uint32_t work, keep;
	json_t *j;
	struct mm m;

	(void)state;
	for (int leak = 0; leak < 2; leak++) {
		mm_init(&m);
		mm_segment(&m, 136 * GIB);
		work = tb_stack(&m.b, "train.py:20:step", NULL);
		keep = tb_stack(&m.b, "train.py:31:log", NULL);
		for (int i = 0; i < 32; i++) {
			if (leak)	/* while the program is working: otherwise it just fills the card */
				mm_passed(&m, 2 * GIB, work, 0);
			mm_block(&m, 4 * GIB, keep, 0, 0);
		}
		mm_oom(&m, 15 * GIB, GIB, work);
		j = expect(&m, leak ? "oom-growth" : "oom-capacity", "certain");
		if (leak) {
			assert_true(mentions(j, "why", "32 of the 32 tensors ever allocated at train.py:31"));
			assert_true(mentions(j, "why", "about 4.0 GiB more stays alive"));
		}
		json_decref(j);
	}
}

static json_t *judge_with(struct mm *m, const struct gpu_usage *u)
{
	struct trace *t = tb_trace(&m->b);
	struct process_end end = {.pid = 100, .status_known = true, .exit = 1, .usage = u};
	struct verdict *v = verdict_of_process(t, &end);
	json_t *j;

	trace_free(t);
	j = verdict_object(v);
	verdict_free(v);
	return j;
}

static struct gpu_usage *usage_of_two(uint64_t own, uint64_t other, const char *command)
{
	struct gpu_card card = {.total = CARD, .used = own + other, .free = CARD - own - other};
	struct gpu_holder h = { .pid = 100, .instance = UINT32_MAX, .kind = HOLDER_COMPUTE, .state = HOLDER_RUNNING,
			       .bytes = own,
			       .command = "python train.py"};
	struct gpu_usage *u = usage_new();
	struct gpu_state *g;

	snprintf(card.uuid, sizeof(card.uuid), "GPU-01020304-0506-0708-090a-0b0c0d0e0f10");
	g = usage_add_gpu(u, &card);
	g->holders_known = true;
	usage_add_holder(g, &h);
	h.pid = 4711;
	h.bytes = other;
	snprintf(h.command, sizeof(h.command), "%s", command);
	usage_add_holder(g, &h);
	return u;
}

static void others__another_process_holds_the_card(void **state)
{
	struct gpu_usage *u = usage_of_two(20 * GIB + 600 * MIB, 118 * GIB, "python other.py");
	json_t *j;
	struct mm m;

	(void)state;
	for (int known = 0; known < 2; known++) {
		mm_init(&m);
		mm_segment(&m, 20 * GIB);
		mm_block(&m, 20 * GIB, tb_stack(&m.b, "train.py:12:keep", NULL), 0, 0);
		mm_oom(&m, 10 * GIB, CARD - 138 * GIB - 600 * MIB, tb_stack(&m.b, USER, NULL));
		j = judge_with(&m, known ? u : NULL);
		assert_string_equal(field(j, "cause"), "oom-other-process");
		assert_string_equal(field(j, "certainty"), known ? "certain" : "likely");
		assert_int_equal(mentions(j, "why", "process 4711, python other.py"), known);
		assert_int_equal(mentions(j, "fix", "kill 4711"), known);
		json_decref(j);
	}
	/* a context is not another process */
	mm_init(&m);
	mm_segment(&m, 138 * GIB);
	mm_block(&m, 137 * GIB, tb_stack(&m.b, "train.py:12:keep", NULL), 0, 0);
	mm_oom(&m, 10 * GIB, GIB, tb_stack(&m.b, USER, NULL));
	json_decref(expect(&m, "oom-capacity", "certain"));
	usage_free(u);
}

/* A failure that the program survived has only the sample that was taken then. */
static void others__a_note_knows_them_too(void **state)
{
	struct gpu_usage *u = usage_of_two(20 * GIB + 600 * MIB, 118 * GIB, "python other.py");

	(void)state;
	for (int then = 0; then < 2; then++) {
		struct process_end end = {.pid = 100, .status_known = true, .usage = u};
		struct cw_failure *f;
		struct verdict *v;
		struct trace *t;
		json_t *j, *note;
		struct mm m;

		mm_init(&m);
		mm_segment(&m, 20 * GIB);
		mm_block(&m, 20 * GIB, tb_stack(&m.b, "train.py:12:keep", NULL), 0, 0);
		f = mm_oom(&m, 10 * GIB, CARD - 138 * GIB - 600 * MIB, tb_stack(&m.b, USER, NULL));
		u->mono_ns = f->mono_ns + (then ? 100000000 : 9000000000);
		t = tb_trace(&m.b);
		v = verdict_of_process(t, &end);
		j = verdict_object(v);
		note = json_array_get(json_object_get(j, "notes"), 0);
		assert_string_equal(field(j, "cause"), "none");
		assert_string_equal(field(note, "cause"), "oom-other-process");
		assert_string_equal(field(note, "certainty"), then ? "certain" : "likely");
		json_decref(j);
		verdict_free(v);
		trace_free(t);
	}
	usage_free(u);
}

static void others__the_ranks_of_this_job(void **state)
{
	struct gpu_usage *u = usage_of_two(20 * GIB, 115 * GIB, "python train.py");
	json_t *j;
	struct mm m;

	(void)state;
	for (int rank = 0; rank < 3; rank++) {
		mm_init(&m);
		m.b.h->device_count = 2;
		m.b.h->device[1] = m.b.h->device[0];
		m.b.h->local_rank = m.b.h->rank = (uint32_t)rank;
		m.b.h->world_size = 4;
		mm_segment(&m, 20 * GIB);
		mm_block(&m, 20 * GIB, tb_stack(&m.b, TORCH "serialization.py:80:load", USER, NULL), 0, 0);
		mm_oom(&m, 10 * GIB, 4 * GIB,
		       rank == 2 ? tb_stack(&m.b, TORCH "serialization.py:80:load", USER, NULL)
				 : tb_stack(&m.b, USER, NULL));
		j = judge_with(&m, u);
		assert_string_equal(field(j, "cause"), "oom-rank0-checkpoint-load");
		assert_string_equal(field(j, "certainty"), rank == 2 ? "certain" : "likely");
		json_decref(j);
	}
	usage_free(u);
}

static void others__another_library(void **state)
{
	uint32_t library;
	json_t *j;
	struct mm m;

	(void)state;
	for (int named = 0; named < 2; named++) {
		mm_init(&m);
		mm_segment(&m, 20 * GIB);
		mm_block(&m, 20 * GIB, tb_stack(&m.b, "train.py:12:keep", NULL), 0, 0);
		library = named ? tb_string(&m.b, "/venv/cupy_backends/cuda/libcupy.so") : 0;
		mm_allocate(&m, 115 * GIB, library, tb_stack(&m.b, "pre.py:4:load", NULL), CW_MEM_DEVICE);
		m.allocation[m.n_allocations - 1].size -= 1000;	/* not a size that PyTorch would request */
		m.driver -= 1000;
		mm_oom(&m, 10 * GIB, 4 * GIB, tb_stack(&m.b, USER, NULL));
		j = expect(&m, "oom-other-library", named ? "certain" : "likely");
		assert_int_equal(mentions(j, "why", "libcupy.so holds 115.0 GiB"), named);
		assert_int_equal(mentions(j, "why", "pre.py:4"), named);
		assert_int_equal(mentions(j, "fix", "free_all_blocks"), named);
		json_decref(j);
	}
}

static void others__pinned_memory_is_the_hosts(void **state)
{
	struct cw_failure *f;
	json_t *j;
	struct tb b;

	(void)state;
	tb_init(&b);
	b.h->torch_path[0] = '\0';
	b.h->pinned_bytes = 30 * GIB;
	f = tb_fail(&b, CW_SRC_DRIVER, 2, tb_stack(&b, USER, NULL));
	for (f->api = 1; f->api < 1000 && strcmp(api_name(f->api), "cuMemHostAlloc"); f->api++)
		;
	f->request_bytes = 8 * GIB;
	f->memory_known = 1;
	f->free_bytes = 100 * GIB;
	f->total_bytes = CARD;
	j = judge(&b, 1);
	assert_string_equal(field(j, "cause"), "oom-pinned-host");
	assert_string_equal(field(j, "certainty"), "certain");
	assert_true(mentions(j, "why", "30.0 GiB of pinned memory"));
	json_decref(j);
}

static void others__a_library_hides_it(void **state)
{
	static const char text[] = "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`";
	struct cw_failure *f;
	json_t *j;
	struct tb b;

	(void)state;
	for (int refused = 0; refused < 2; refused++) {
		tb_init(&b);
		if (refused) {
			f = tb_fail(&b, CW_SRC_DRIVER, 2, tb_stack(&b, USER, NULL));
			f->api = 120;
			f->request_bytes = 2 * MIB;
			f->memory_known = 1;
			f->free_bytes = MIB;
			f->total_bytes = CARD;
		}
		tb_fail_text(&b, CW_SRC_TORCH_CHECK, tb_stack(&b, USER, NULL), "createCublasHandle", text);
		tb_fail_text(&b, CW_SRC_PYTHON, tb_stack(&b, USER, NULL), "RuntimeError", text);
		j = judge(&b, 1);
		assert_string_equal(field(j, "cause"), "oom-masked-as-library-error");
		assert_string_equal(field(j, "certainty"), refused ? "certain" : "possible");
		assert_int_equal(mentions(j, "why", "1.0 MiB was free"), refused);
		json_decref(j);
	}
}

static void report__names_the_parts_and_the_lines(void **state)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	struct verdict *v;
	struct mm m;

	(void)state;
	mm_init(&m);
	mm_segment(&m, 138 * GIB);
	mm_block(&m, 100 * GIB, tb_stack(&m.b, MODULE, USER, NULL), 0, 0);
	mm_block(&m, 36 * GIB, tb_stack(&m.b, "train.py:12:keep", NULL), 0, 0);
	mm_oom(&m, 10 * GIB, GIB, tb_stack(&m.b, USER, NULL));
	v = judge_end(&m.b, 1, 0);
	report_text(out, v, &(struct text_style){.verbose = true});
	fclose(out);
	assert_non_null(strstr(text, "HELD"));
	assert_non_null(strstr(text, "100.0 GiB   72 %  - parameters and buffers"));
	assert_non_null(strstr(text, "36.0 GiB    train.py:12 in keep  (other tensors)"));
	assert_non_null(strstr(text, "CUDA contexts, modules and other processes"));
	free(text);
	verdict_free(v);
}

static void facts__each_kind_is_its_own(void **state)
{
	static const enum fact_id ids[KIND_COUNT] = {
		FACT_memory_parameters,	 FACT_memory_gradients, FACT_memory_optimizer,
		FACT_memory_activations, FACT_memory_backward,	FACT_memory_graphs,
		FACT_memory_workspaces,	 FACT_memory_loaded,	FACT_memory_other,
	};
	struct ledger_seen seen = {.known = false};
	struct pool pool = {0};
	struct casefile f = {.pool = &pool};
	struct incidents all;
	struct ledger l;
	struct trace *t;
	struct mm m;

	(void)state;
	mm_init(&m);
	mm_segment(&m, GIB);
	mm_block(&m, GIB, tb_stack(&m.b, USER, NULL), 0, 0);
	mm_oom(&m, GIB, 0, tb_stack(&m.b, USER, NULL));
	t = tb_trace(&m.b);
	incidents_collect(&all, t, &pool);
	ledger_build(&l, t, 0, LEDGER_OOM, all.list[0].lead, &seen, &pool);
	for (int k = 0; k < KIND_COUNT; k++)
		l.kind[k] = 1000u + (unsigned)k;
	fact_set_number(&f, FACT_error_code, 2);
	ledger_facts(&f, &all.list[0], t, &l, &seen);
	for (int k = 0; k < KIND_COUNT; k++)
		assert_int_equal((int)fact_number(&f, ids[k], -1), 1000 + k);
	assert_int_equal((int)fact_number(&f, FACT_error_code, -1), 2);
	trace_free(t);
	pool_release(&pool);
}

static void segments__the_same_ones_are_one_row(void **state)
{
	struct ledger_segment list[5];
	struct ledger l = {.segments = {.list = list, .n = 5, .used = 5, .free_used = 50 * MIB, .largest = 9 * MIB}};
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	(void)state;
	for (int i = 0; i < 5; i++)
		list[i] = (struct ledger_segment){
			.size = 20 * MIB, .free = (i ? 10 : 11) * MIB, .largest = 9 * MIB, .n = 1};
	for (int i = 0; i < 3; i++)
		strcpy(list[i].map, "..##");
	ledger_print_segments(out, &l, 2);
	fclose(out);
	assert_non_null(strstr(text, "11.0 MiB free, 9.0 MiB of it in one piece, 1 tensor\n"));
	assert_non_null(strstr(text, "10.0 MiB free, 9.0 MiB of it in one piece, 1 tensor; 3 more with these figures\n"));
	free(text);
}

static void chart__is_as_wide_as_the_terminal(void **state)
{
	struct cw_sample s[100];
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int columns = 0, widest = 0;

	(void)state;
	for (uint64_t i = 0; i < 100; i++)
		s[i] = (struct cw_sample){.ticks = 1000 + i, .allocated = i * MIB, .reserved = i * 2 * MIB};
	timeline_print(out, s, 100, (struct seconds_span){3.7, 12.5}, CARD, 60);
	timeline_print(out, s, 1, (struct seconds_span){0}, 0, 60);	/* nothing to draw */
	timeline_print(out, s, 100, (struct seconds_span){0, 1}, 0, 5); /* no room */
	fclose(out);
	for (const char *c = text; *c; c++) {
		columns = *c == '\n' ? 0 : columns + ((*c & 0xc0) != 0x80);
		widest = columns > widest ? columns : widest;
	}
	assert_true(widest <= 60);
	assert_non_null(strstr(text, "198.0 MiB"));
	assert_non_null(strstr(text, "└ 3.7 s "));
	assert_non_null(strstr(text, " 12.5 s\n"));
	assert_non_null(strstr(text, "█"));
	assert_non_null(strstr(text, "░"));
	free(text);
}

/* PyTorch frees its cache and asks again: such refusals must not push out the failure itself. */
static void refusals_that_pytorch_survived_are_not_the_failure(void **state)
{
	struct mm m;
	json_t *j, *memory;

	(void)state;
	mm_init(&m);
	for (int i = 0; i < 4; i++) {
		mm_segment(&m, 34 * GIB);
		mm_block(&m, 34 * GIB, tb_stack(&m.b, USER, NULL), 0, 0);
	}
	for (uint64_t i = 1; i <= 20; i++) {
		struct cw_failure *f = tb_fail(&m.b, CW_SRC_DRIVER, 2, tb_stack(&m.b, USER, NULL));

		f->api = 120;
		f->request_bytes = i * MIB;
	}
	mm_oom(&m, 10 * GIB, GIB, tb_stack(&m.b, USER, NULL));
	j = expect(&m, "oom-capacity", "certain");
	memory = json_object_get(j, "memory");
	assert_int_equal(json_integer_value(json_object_get(memory, "request")), 10 * GIB);
	assert_int_equal(json_integer_value(json_object_get(memory, "torch_allocated")), 136 * GIB);
	json_decref(j);
}

/* What was freed after the failure is in the ring of freed memory, which has no room for the library. */
static void segments_freed_since_are_still_pytorchs(void **state)
{
	struct pool pool = {0};
	struct ledger l;
	struct trace *t;
	struct mm m;

	(void)state;
	mm_init(&m);
	mm_segment(&m, 2 * GIB);
	mm_oom(&m, 10 * GIB, GIB, tb_stack(&m.b, USER, NULL));
	m.allocation[0].library = 0;
	m.allocation[0].site = mm_site(&m, 0, 0, CW_MEM_DEVICE, 0);
	m.site[m.allocation[0].site].library = m.c10;
	m.site[m.allocation[0].site].live = 2 * GIB;
	m.b.failure[1].torch_reserved = 0;	/* so that its own sum does not find it */
	t = tb_trace(&m.b);
	ledger_build(&l, t, 0, LEDGER_OOM, ledger_oom(t, 0), NULL, &pool);
	assert_int_equal(l.part[PART_LIBRARIES], 0);
	assert_int_equal(l.segments.n, 1);
	trace_free(t);
	pool_release(&pool);
}

/* PyTorch returns whole segments before it gives up, except those of private pools: they are no cache, and no gaps. */
static void pools__what_pytorch_could_not_return_is_theirs(void **state)
{
	struct pool pool = {0};
	struct ledger l;
	struct trace *t;
	struct mm m;

	(void)state;
	for (int capturing = 0; capturing < 2; capturing++) {
		struct cw_failure *f;

		mm_init(&m);
		mm_segment(&m, 60 * GIB);
		mm_block(&m, 60 * GIB, tb_stack(&m.b, USER, NULL), 0, 0);
		for (int i = 0; i < 3; i++)
			mm_segment(&m, 20 * GIB);
		mm_segment(&m, 10 * GIB);
		mm_block(&m, 2 * GIB, tb_stack(&m.b, "graph.py:3:capture", NULL), 0, CW_SITE_CAPTURED);
		mm_oom(&m, 10 * GIB, GIB, tb_stack(&m.b, USER, NULL));
		f = &m.b.failure[1];
		f->capturing = (uint32_t)capturing;	/* then it returns nothing */
		t = tb_trace(&m.b);
		ledger_build(&l, t, 0, LEDGER_OOM, ledger_oom(t, 0), NULL, &pool);
		assert_int_equal(l.part[PART_POOLS], capturing ? 0 : 68 * GIB);
		assert_int_equal(l.part[PART_CACHE_FREE], capturing ? 60 * GIB : 0);
		assert_int_equal(l.part[PART_CACHE_USED], capturing ? 8 * GIB : 0);
		expect_sums(&l);
		trace_free(t);
	}
	pool_release(&pool);
}

static void modules__that_differ_in_their_number_are_one(void **state)
{
	struct ledger_module m[] = {
		{.path = "h.0.mlp", .class_name = "MLP", .root = "Net", .bytes = 10, .kind[KIND_ACTIVATIONS] = 10},
		{.path = "h.11.mlp", .class_name = "MLP", .root = "Net", .bytes = 20, .kind[KIND_GRADIENTS] = 20},
		{.path = "h.2", .class_name = "Block", .root = "Net", .bytes = 7, .kind[KIND_OTHER] = 7},
		{.path = "", .class_name = "Net", .root = "Net", .bytes = 5, .kind[KIND_OTHER] = 5},
		{.path = "conv2d", .class_name = "Conv", .root = "Net", .bytes = 4, .kind[KIND_OTHER] = 4},
		{.bytes = 3, .kind[KIND_OTHER] = 3},
	};
	struct ledger l = {.module = m, .n_modules = sizeof(m) / sizeof(m[0])};
	static const char *const names[] = {"h.*.mlp", "h.2", "Net", "conv2d", NULL};
	struct pool pool = {0};
	struct module_group *g;

	(void)state;
	assert_int_equal(module_groups(&g, &l, &pool), 5);
	assert_int_equal(g[0].modules, 2);
	assert_int_equal(g[0].bytes, 30);
	assert_string_equal(module_kinds_words(g[0].kind, &pool),
			    "gradients 20 bytes, activations, for backward 10 bytes");
	for (size_t i = 0; i < 4; i++)
		assert_string_equal(g[i].name, names[i]);
	assert_null(g[4].name);
	l.several_roots = true;
	assert_string_equal(module_name_shown(&l, &m[0], &pool), "Net: h.0.mlp");
	assert_string_equal(module_name_shown(&l, &m[3], &pool), "Net");
	pool_release(&pool);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ledger__adds_up_to_the_card),
		cmocka_unit_test(ledger__every_part_is_what_it_is),
		cmocka_unit_test(kinds__by_code_by_nodes_and_by_time),
		cmocka_unit_test(ledger__is_that_of_the_failure),
		cmocka_unit_test(modules__that_differ_in_their_number_are_one),
		cmocka_unit_test(fragmentation__names_who_keeps_the_segments),
		cmocka_unit_test(fragmentation__a_full_card_is_none),
		cmocka_unit_test(eval__graphs_are_made_and_never_run),
		cmocka_unit_test(eval__code_that_trains_is_no_evaluation),
		cmocka_unit_test(eval__the_first_pass_of_a_training_is_capacity),
		cmocka_unit_test(retention__graphs_of_earlier_steps),
		cmocka_unit_test(growth__one_line_never_lets_go),
		cmocka_unit_test(others__another_process_holds_the_card),
		cmocka_unit_test(others__a_note_knows_them_too),
		cmocka_unit_test(others__the_ranks_of_this_job),
		cmocka_unit_test(others__another_library),
		cmocka_unit_test(others__pinned_memory_is_the_hosts),
		cmocka_unit_test(others__a_library_hides_it),
		cmocka_unit_test(report__names_the_parts_and_the_lines),
		cmocka_unit_test(facts__each_kind_is_its_own),
		cmocka_unit_test(segments__the_same_ones_are_one_row),
		cmocka_unit_test(refusals_that_pytorch_survived_are_not_the_failure),
		cmocka_unit_test(segments_freed_since_are_still_pytorchs),
		cmocka_unit_test(pools__what_pytorch_could_not_return_is_theirs),
		cmocka_unit_test(chart__is_as_wide_as_the_terminal),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
