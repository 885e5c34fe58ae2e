/* SPDX-License-Identifier: Apache-2.0
 * What earlier turns of loops left behind, in recordings made by hand whose answer is known; and the verdict on it: the line
 * to blame, the one that asked, what would have fit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/pool.h"
#include "find/memory/further.h"
#include "find/memory/leftovers.h"
#include "find/memory/per_turn.h"
#include "find/memory/replay_steps.h"
#include "find/failure/place.h"
#include "memory_make.h"

#define EPOCHS	1u		/* loops: in main() of train.py, except LAYERS */
#define BATCHES	2u
#define STEPS	3u		/* inside of BATCHES: over time */
#define LAYERS	4u		/* in forward() of model.py */
#define FEEDS	5u		/* in feed() of train.py, which another thread runs */
#define N_LOOPS	8u
#define N_TURNS	512u

#define CALL	TORCH "nn/modules/module.py:1700:_call_impl"
#define MAIN	"train.py:20:main"

struct made {
	struct mm m;
	struct cw_loop *loop;
	struct cw_turn *turn;
	struct cw_failure_turns *failed;
	uint32_t n_turns;
	uint32_t embed, layer, head, loss;	/* stacks of a model that main() calls, and of what it does with the result */
	uint32_t keep, work;			/* lines of main() without autograd */
	uint32_t backward;
	/* the answer */
	struct pool pool;
	struct trace *t;
	struct moment moment;
	struct kinds kinds;
	struct leftovers left;
};

static void setup_without_turns(struct made *x)
{
	*x = (struct made){0};
	mm_init(&x->m);
	x->embed = tb_stack(&x->m.b, "model.py:5:embed", CALL, MAIN, NULL);
	x->layer = tb_stack(&x->m.b, TORCH "nn/functional.py:10:relu", CALL, "model.py:8:forward", CALL, MAIN, NULL);
	x->head = tb_stack(&x->m.b, "model.py:11:head", CALL, MAIN, NULL);
	x->loss = tb_stack(&x->m.b, "train.py:22:main", NULL);
	x->keep = tb_stack(&x->m.b, "train.py:31:log", "train.py:25:main", NULL);
	x->work = tb_stack(&x->m.b, "train.py:24:main", NULL);
	x->backward = tb_stack(&x->m.b, TORCH "_tensor.py:600:backward", "train.py:23:main", NULL);
	mm_segment(&x->m, 137 * GIB);
}

static void setup(struct made *x)
{
	uint32_t train, model, name, forward, feed;
	struct cw_loop *loop;
	struct tb *b = &x->m.b;

	setup_without_turns(x);
	train = tb_string(b, "train.py");
	model = tb_string(b, "model.py");
	name = tb_string(b, "main");
	forward = tb_string(b, "forward");
	feed = tb_string(b, "feed");
	loop = (void *)(b->data + tb_chunk(b, CW_CHUNK_LOOPS, N_LOOPS * sizeof(*loop)));
	loop[EPOCHS] = (struct cw_loop){.frame = {train, name, 17, 1}, .flags = CW_LOOP_FOR};
	loop[BATCHES] = (struct cw_loop){.frame = {train, name, 18, 1}, .flags = CW_LOOP_FOR};
	loop[STEPS] = (struct cw_loop){.frame = {train, name, 19, 1}, .flags = CW_LOOP_FOR};
	loop[LAYERS] = (struct cw_loop){.frame = {model, forward, 7, 1}, .flags = CW_LOOP_FOR};
	loop[FEEDS] = (struct cw_loop){.frame = {train, feed, 51, 50}, .flags = CW_LOOP_FOR};
	x->loop = loop;
	x->turn = (void *)(b->data + tb_chunk(b, CW_CHUNK_TURNS, N_TURNS * sizeof(*x->turn)));
	x->failed = (void *)(b->data + tb_chunk(b, CW_CHUNK_FAILURE_TURNS, TB_FAILURES * sizeof(*x->failed)));
}

static uint32_t turn(struct made *x, uint32_t up, uint32_t loop, uint32_t number)
{
	struct cw_turn *r = &x->turn[x->n_turns++];

	if (x->n_turns > N_TURNS)
		abort();
	*r = (struct cw_turn){.up = up, .at = {loop, number, CW_TURN_EXACT}, .refs = 1, .serial = x->n_turns};
	return (uint32_t)((uint8_t *)r - x->m.b.data);
}

static struct cw_turn *turn_at(struct made *x, uint32_t off)
{
	return (struct cw_turn *)(x->m.b.data + off);
}

/* A tensor that stays. */
static void stays(struct made *x, uint64_t size, uint32_t stack, uint32_t in)
{
	mm_block(&x->m, size, stack, 0, 0)->extra |= (uint64_t)in << 32;
}

/* One that is freed when the clock says `ticks`; 0: at once. */
static struct cw_freed *goes(struct made *x, uint64_t size, uint32_t stack, uint32_t in, uint64_t ticks)
{
	struct cw_freed *f = (struct cw_freed *)(x->m.freed + 1) + (x->m.freed->head & (MM_FREED - 1));

	mm_passed(&x->m, size, stack, 0);
	x->m.b.ticks += 998;
	f->turn = in;
	f->turn_serial = in ? (uint32_t)turn_at(x, in)->serial : 0;
	f->ticks = ticks ? ticks : f->ticks;
	return f;
}

/* Without a model at work, loops may build what they need, and nothing is exact. */
static void works_with_model(struct made *x, uint32_t batch)
{
	stays(x, MIB, x->layer, turn(x, 0, BATCHES, batch));
}

/* A pass of the model and a loss. `run`: backward ran it. */
static void nodes_of_pass(struct made *x, bool run)
{
	const uint32_t order[] = {x->embed, x->layer, x->layer, x->head, x->loss};

	for (size_t i = 0; i < 5; i++)
		mm_node(&x->m, order[i], run);
}

static void pass_stays(struct made *x, uint32_t in)
{
	stays(x, GIB, x->embed, in);
	stays(x, 4 * GIB, x->layer, turn(x, in, LAYERS, 1));
	stays(x, 4 * GIB, x->layer, turn(x, in, LAYERS, 2));
	stays(x, GIB, x->head, in);
	stays(x, MIB, x->loss, in);
	nodes_of_pass(x, false);
}

/* Out of memory in this turn; `in` 0: in no loop. */
static struct cw_failure *fails(struct made *x, uint32_t stack, uint32_t in)
{
	struct cw_failure *f = mm_oom(&x->m, 20 * GIB, GIB, stack);

	for (uint32_t i = 0; x->failed && i < x->m.b.n_failures; i++) {
		struct cw_failure_turns *at = &x->failed[i];
		uint32_t up = in;

		if (at->seq)	/* an earlier failure */
			continue;
		*at = (struct cw_failure_turns){.seq = x->m.b.failure[i].seq};
		for (; up; up = turn_at(x, up)->up)
			at->at[at->n++] = turn_at(x, up)->at;
	}
	return f;
}

static void find(struct made *x, const struct cw_failure *f)
{
	struct cw_failure at = *f;

	x->t = tb_trace(&x->m.b);
	moment_init(&x->moment, x->t, at.ticks, 0);
	kinds_init(&x->kinds, x->t, &x->moment, failure_in_backward(x->t, &at), &x->pool);
	leftovers_find(&x->left, x->t, &x->moment, &x->kinds, &at, &x->pool);
}

static void release(struct made *x)
{
	moment_free(&x->moment);
	trace_free(x->t);
	pool_release(&x->pool);
}

static void expect_none(struct made *x)
{
	assert_true(x->left.known);
	assert_int_equal(x->left.graphs.bytes, 0);
	assert_int_equal(x->left.tensors.bytes, 0);
	for (size_t i = 0; i < x->moment.torch.n; i++)
		assert_false(x->left.graphs.gone[i] || x->left.tensors.gone[i]);
}

/* The blocks that are said to belong to it, and no others, are its bytes. */
static void expect_gone(const struct made *x, const struct left *l)
{
	uint64_t bytes = 0, blocks = 0;

	for (size_t i = 0; i < x->moment.torch.n; i++) {
		bytes += l->gone[i] ? x->moment.torch.list[i].size : 0;
		blocks += l->gone[i];
	}
	assert_int_equal(bytes, l->bytes);
	assert_int_equal(blocks, l->blocks);
}

static void leftovers__graphs_that_stay_are_those_of_earlier_turns(void **state)
{
	struct made x;

	(void)state;
	setup(&x);
	for (uint32_t i = 1; i <= 7; i++)
		pass_stays(&x, turn(&x, 0, BATCHES, i));
	find(&x, fails(&x, x.embed, turn(&x, 0, BATCHES, 7)));
	assert_true(x.left.known && x.left.exact && x.left.in_loop && x.left.turned);
	assert_int_equal(x.left.graphs.bytes, 6 * (10 * GIB + MIB));	/* the seventh is of this turn */
	assert_int_equal(x.left.graphs.blocks, 6 * 5);
	assert_int_equal(x.left.graphs.turns, 6);
	assert_int_equal(x.left.graphs.most.line, 8);
	assert_int_equal(x.left.graphs.most_bytes, 6 * 8 * GIB);
	assert_string_equal(x.left.last.file, "train.py");	/* the loss was kept */
	assert_int_equal(x.left.last.line, 22);
	assert_int_equal(x.left.tensors.bytes, 0);
	expect_gone(&x, &x.left.graphs);
	release(&x);
}

/* Retained, or detached by somebody who keeps them: that cannot be told. */
static void leftovers__graphs_that_backward_ran_are_not_exact(void **state)
{
	struct made x;

	(void)state;
	setup(&x);
	for (uint32_t i = 1; i <= 7; i++) {
		pass_stays(&x, turn(&x, 0, BATCHES, i));
		nodes_of_pass(&x, true);
	}
	find(&x, fails(&x, x.embed, turn(&x, 0, BATCHES, 7)));
	assert_int_equal(x.left.graphs.bytes, 6 * (10 * GIB + MIB));
	assert_false(x.left.exact);
	release(&x);
}

/* A pass that backward ran; its nodes let go of what they had saved. */
static void nodes_let_go(struct made *x)
{
	const uint32_t order[] = {x->embed, x->layer, x->layer, x->head, x->loss};

	for (size_t i = 0; i < 5; i++)
		mm_node(&x->m, order[i], true)->stack |= CW_NODE_RELEASED;
}

static void leftovers__what_stays_of_nodes_that_let_go_is_no_graph(void **state)
{
	struct made x;

	(void)state;
	setup(&x);
	for (uint32_t i = 1; i <= 7; i++) {
		stays(&x, 4 * GIB, x.layer, turn(&x, 0, BATCHES, i));
		nodes_let_go(&x);
	}
	nodes_of_pass(&x, false);	/* the current turn's are about to run */
	find(&x, fails(&x, x.embed, turn(&x, 0, BATCHES, 8)));
	assert_int_equal(x.left.graphs.bytes, 0);
	assert_int_equal(x.left.tensors.bytes, 7 * 4 * GIB);
	assert_int_equal(x.left.tensors.turns, 7);
	assert_false(x.left.exact);
	release(&x);
}

/* The first turns trained; those that came later only keep. */
static void leftovers__graphs_of_turns_after_the_last_backward_stay(void **state)
{
	struct made x;

	(void)state;
	setup(&x);
	for (uint32_t i = 1; i <= 4; i++)
		nodes_let_go(&x);
	for (uint32_t i = 5; i <= 10; i++)
		pass_stays(&x, turn(&x, 0, BATCHES, i));
	find(&x, fails(&x, x.embed, turn(&x, 0, BATCHES, 11)));
	assert_int_equal(x.left.graphs.bytes, 6 * (10 * GIB + MIB));
	assert_int_equal(x.left.tensors.bytes, 0);
	release(&x);
}

/* A head that backward never runs keeps what it got from the layers that backward has run. */
static void leftovers__a_node_that_waits_keeps_its_input_too(void **state)
{
	struct made x;

	(void)state;
	setup(&x);
	for (uint32_t i = 1; i <= 7; i++) {
		uint32_t in = turn(&x, 0, BATCHES, i);

		stays(&x, 4 * GIB, x.layer, in);
		stays(&x, MIB, x.head, in);
		mm_node(&x.m, x.layer, true)->stack |= CW_NODE_RELEASED;
		mm_node(&x.m, x.head, false);
	}
	find(&x, fails(&x, x.embed, turn(&x, 0, BATCHES, 8)));
	assert_int_equal(x.left.graphs.bytes, 7 * (4 * GIB + MIB));
	assert_int_equal(x.left.tensors.bytes, 0);
	assert_false(x.left.exact);
	release(&x);
}

/* One line makes two passes in each turn. Backward runs and frees the first; the other is kept. */
static void leftovers__what_backward_frees_is_not_of_the_graphs_that_stay(void **state)
{
	struct made x;

	(void)state;
	setup(&x);
	for (uint32_t i = 1; i <= 8; i++) {
		uint32_t in = turn(&x, 0, BATCHES, i);
		struct cw_freed *saved = goes(&x, 3 * GIB, x.layer, in, 0);

		mm_node(&x.m, x.layer, true)->stack |= CW_NODE_RELEASED;
		stays(&x, 2 * GIB, x.layer, in);
		mm_node(&x.m, x.layer, false);
		stays(&x, GIB, x.head, in);
		mm_node(&x.m, x.head, false);
		saved->ticks = ++x.m.b.ticks;
	}
	find(&x, fails(&x, x.embed, turn(&x, 0, BATCHES, 9)));
	assert_int_equal(x.left.graphs.bytes, 8 * 3 * GIB);
	assert_int_equal(x.left.tensors.bytes, 0);
	release(&x);
}

static void leftovers__the_result_of_a_model_is_kept_where_it_is_called(void **state)
{
	struct made x;

	(void)state;
	setup(&x);
	for (uint32_t i = 1; i <= 7; i++) {
		uint32_t in = turn(&x, 0, BATCHES, i);

		stays(&x, 4 * GIB, x.embed, in);
		stays(&x, GIB, x.head, in);
		nodes_of_pass(&x, false);
	}
	find(&x, fails(&x, x.embed, turn(&x, 0, BATCHES, 8)));
	assert_int_equal(x.left.graphs.bytes, 7 * 5 * GIB);
	assert_string_equal(x.left.last.file, "train.py");
	assert_int_equal(x.left.last.line, 20);
	release(&x);
}

/* Backward, or the end of the turn, frees what the graph needed; the results alone stay. */
static void leftovers__of_graphs_that_are_gone_only_results_stay(void **state)
{
	struct made x;

	(void)state;
	setup(&x);
	for (uint32_t i = 1; i <= 8; i++) {
		uint32_t in = turn(&x, 0, BATCHES, i);
		struct cw_freed *saved[2] = {goes(&x, GIB, x.embed, in, 0),
					     goes(&x, 4 * GIB, x.layer, turn(&x, in, LAYERS, 1), 0)};

		stays(&x, 2 * GIB, x.head, in);
		nodes_of_pass(&x, false);
		saved[0]->ticks = saved[1]->ticks = ++x.m.b.ticks;
	}
	find(&x, fails(&x, x.embed, turn(&x, 0, BATCHES, 9)));
	assert_int_equal(x.left.graphs.bytes, 0);
	assert_null(x.left.last.file);
	assert_int_equal(x.left.tensors.bytes, 8 * 2 * GIB);
	assert_int_equal(x.left.tensors.turns, 8);
	assert_int_equal(x.left.tensors.most.line, 11);
	assert_true(x.left.exact);
	expect_gone(&x, &x.left.tensors);
	release(&x);
}

/* If so much was freed since that no turn is known as a whole, nobody can tell a graph from its results. */
static void leftovers__frees_that_were_forgotten_make_graphs_inexact(void **state)
{
	struct made x;

	(void)state;
	for (int forgotten = 0; forgotten < 2; forgotten++) {
		setup(&x);
		for (uint32_t i = 1; i <= 7; i++)
			pass_stays(&x, turn(&x, 0, BATCHES, i));
		for (int i = 0; i < 4; i++)
			goes(&x, MIB, x.work, 0, 0);
		x.m.b.h->n_blocks_freed += forgotten ? 100000 : 0;
		find(&x, fails(&x, x.embed, turn(&x, 0, BATCHES, 8)));
		assert_int_equal(x.left.graphs.bytes, 7 * (10 * GIB + MIB));
		assert_int_equal(x.left.exact, !forgotten);
		release(&x);
	}
}

/* A thread that puts batches into a queue. */
static uint32_t feeds(struct made *x, uint32_t turns)
{
	uint32_t stack = tb_stack(&x->m.b, "train.py:52:feed", "/usr/lib/python3.12/threading.py:1000:_bootstrap", NULL);

	for (uint32_t i = 1; i <= turns; i++)
		stays(x, GIB, stack, turn(x, 0, FEEDS, i));
	return stack;
}

static void leftovers__what_another_thread_adds_counts_too(void **state)
{
	struct made x;
	uint32_t in;

	(void)state;
	setup(&x);
	in = turn(&x, 0, BATCHES, 1);
	stays(&x, GIB, x.embed, in);	/* the loop that works with the model is another */
	feeds(&x, 9);
	find(&x, fails(&x, x.embed, in));
	assert_int_equal(x.left.tensors.bytes, 9 * GIB);
	assert_int_equal(x.left.tensors.most.line, 52);
	release(&x);
}

/* It has long been over, unless it ran out of memory itself. */
static void leftovers__a_dataset_that_another_thread_loaded_is_none(void **state)
{
	for (int cut = 0; cut < 2; cut++) {
		struct made x;
		uint32_t in, stack;

		(void)state;
		setup(&x);
		stack = feeds(&x, 9);
		if (cut)
			fails(&x, stack, turn(&x, 0, FEEDS, 10));
		in = turn(&x, 0, BATCHES, 1);
		for (int i = 0; i < 100; i++)
			goes(&x, GIB, x.embed, in, 0);
		stays(&x, GIB, x.embed, in);
		find(&x, fails(&x, x.embed, in));
		assert_int_equal(x.left.tensors.bytes, cut ? 9 * GIB : 0);
		release(&x);
	}
}

/* Stacks of one step that main() calls in a `try` at one line, and again from another. */
struct retry { uint32_t tried, again, before; };

static struct retry retry_stacks(struct made *x)
{
	return (struct retry){tb_stack(&x->m.b, "model.py:5:embed", CALL, "train.py:40:step", "train.py:21:main", NULL),
			      tb_stack(&x->m.b, "model.py:5:embed", CALL, "train.py:40:step", "train.py:23:main", NULL),
			      tb_stack(&x->m.b, "train.py:19:main", NULL)};
}

static void leftovers__a_try_that_ran_out_of_memory_leaves_its_tensors(void **state)
{
	struct made x;
	struct retry stack;
	uint32_t in;

	(void)state;
	setup(&x);
	stack = retry_stacks(&x);
	in = turn(&x, 0, BATCHES, 1);
	mm_node(&x.m, stack.tried, false);
	mm_node(&x.m, stack.again, false);
	stays(&x, GIB, stack.before, in);		/* not the try's */
	stays(&x, 4 * GIB, stack.tried, in);
	stays(&x, 4 * GIB, stack.tried, in);
	fails(&x, stack.tried, in);
	stays(&x, 2 * GIB, stack.again, in);
	find(&x, fails(&x, stack.again, in));
	assert_int_equal(x.left.graphs.bytes, 8 * GIB);
	assert_int_equal(x.left.tensors.bytes, 0);
	assert_int_equal(x.left.tried, 8 * GIB);
	assert_int_equal(x.left.try.line, 21);
	assert_false(x.left.exact);
	expect_gone(&x, &x.left.graphs);
	release(&x);
}

static void leftovers__a_try_of_an_earlier_turn_is_over(void **state)
{
	struct made x;
	struct retry stack;
	uint32_t in;

	(void)state;
	setup(&x);
	stack = retry_stacks(&x);
	in = turn(&x, 0, BATCHES, 2);
	stays(&x, 4 * GIB, stack.tried, in);
	fails(&x, stack.tried, in);
	in = turn(&x, 0, BATCHES, 3);
	stays(&x, 2 * GIB, stack.tried, in);
	find(&x, fails(&x, stack.tried, in));
	assert_int_equal(x.left.tensors.bytes, 4 * GIB);
	assert_int_equal(x.left.tried, 4 * GIB);
	release(&x);
}

/* Another turn, in which the call that fails at last succeeded, left something: that is no try's. */
static void leftovers__a_try_that_left_nothing_is_none(void **state)
{
	struct made x;
	struct retry stack;
	uint32_t in;

	(void)state;
	setup(&x);
	stack = retry_stacks(&x);
	stays(&x, 4 * GIB, stack.tried, turn(&x, 0, BATCHES, 1));
	in = turn(&x, 0, BATCHES, 2);
	fails(&x, stack.tried, in);
	stays(&x, 2 * GIB, stack.again, in);
	find(&x, fails(&x, stack.again, in));
	assert_int_equal(x.left.tried, 0);
	expect_none(&x);
	release(&x);
}

static void leftovers__tensors_of_earlier_turns_add_up(void **state)
{
	struct made x;

	(void)state;
	setup(&x);
	for (uint32_t i = 1; i <= 20; i++) {
		uint32_t in = turn(&x, 0, BATCHES, i);

		goes(&x, GIB, x.work, in, 0);
		stays(&x, 4 * GIB, x.keep, in);
		stays(&x, MIB, x.keep, in);
	}
	works_with_model(&x, 20);
	find(&x, fails(&x, x.work, turn(&x, 0, BATCHES, 20)));
	assert_int_equal(x.left.graphs.bytes, 0);
	assert_int_equal(x.left.tensors.bytes, 19 * (4 * GIB + MIB));
	assert_int_equal(x.left.tensors.blocks, 38);
	assert_int_equal(x.left.tensors.turns, 19);
	assert_int_equal(x.left.tensors.most.line, 31);
	assert_true(x.left.exact && x.left.turned);
	expect_gone(&x, &x.left.tensors);
	release(&x);
}

/* Two epochs of ten batches are twenty turns, although the batches begin at 1 again. */
static void leftovers__turns_of_another_epoch_are_others(void **state)
{
	uint32_t epoch[2], in;
	struct made x;

	(void)state;
	setup(&x);
	for (uint32_t i = 0; i < 20; i++) {
		if (i % 10 == 0)
			epoch[i / 10] = turn(&x, 0, EPOCHS, 1 + i / 10);
		in = turn(&x, epoch[i / 10], BATCHES, 1 + i % 10);
		stays(&x, 4 * GIB, x.keep, in);
	}
	in = turn(&x, epoch[1], BATCHES, 11);
	stays(&x, GIB, x.layer, in);		/* a model is called in both loops */
	find(&x, fails(&x, x.work, in));
	assert_int_equal(x.left.tensors.bytes, 20 * 4 * GIB);
	assert_int_equal(x.left.tensors.turns, 20);
	release(&x);
}

/* Each call of a function that calls itself is a turn. */
static uint32_t recursive(struct tb *b, struct cw_frame frame, uint32_t depth)
{
	uint32_t off = b->heap;
	struct cw_stack *s = (struct cw_stack *)(b->data + off);

	s->n = depth;
	for (uint32_t i = 0; i < depth; i++)
		s->frame[i] = frame;
	b->heap += (uint32_t)(sizeof(*s) + depth * sizeof(frame));
	return off;
}

static void leftovers__calls_of_a_recursion_are_turns(void **state)
{
	struct cw_frame walk;
	struct made x;

	(void)state;
	setup(&x);
	walk = (struct cw_frame){tb_string(&x.m.b, "walk.py"), tb_string(&x.m.b, "walk"), 5, 1};
	for (uint32_t depth = 1; depth <= 8; depth++)
		stays(&x, 4 * GIB, recursive(&x.m.b, walk, depth), 0);
	find(&x, fails(&x, recursive(&x.m.b, walk, 9), 0));
	assert_int_equal(x.left.tensors.bytes, 7 * 4 * GIB);	/* one call alone is no recursion */
	assert_int_equal(x.left.tensors.turns, 7);
	assert_int_equal(x.left.tensors.most.line, 5);
	assert_true(x.left.in_loop && x.left.turned);
	release(&x);
}

static void leftovers__a_loop_that_is_over_has_only_earlier_turns(void **state)
{
	struct made x;

	(void)state;
	setup(&x);
	for (uint32_t i = 1; i <= 8; i++)
		stays(&x, 4 * GIB, x.keep, turn(&x, 0, BATCHES, i));
	find(&x, fails(&x, x.work, 0));
	assert_int_equal(x.left.tensors.bytes, 8 * 4 * GIB);
	assert_int_equal(x.left.tensors.turns, 8);
	assert_false(x.left.in_loop || x.left.turned);
	release(&x);
}

static void leftovers__a_window_that_drops_its_oldest_leaves_none(void **state)
{
	struct cw_freed *kept[18];
	struct made x;

	(void)state;
	setup(&x);
	for (uint32_t i = 1; i <= 20; i++) {
		uint32_t in = turn(&x, 0, BATCHES, i);

		if (i > 3 && i - 3 <= 17)
			kept[i - 3]->ticks = x.m.b.ticks;
		if (i <= 17)
			kept[i] = goes(&x, 4 * GIB, x.keep, in, 0);
		else
			stays(&x, 4 * GIB, x.keep, in);
	}
	find(&x, fails(&x, x.work, turn(&x, 0, BATCHES, 21)));
	expect_none(&x);
	release(&x);
}

/* Half of what comes is used up, oldest first. */
static void leftovers__a_queue_that_grows_adds_although_it_drops_its_oldest(void **state)
{
	struct made x;
	struct cw_freed *waits[16] = {NULL};

	(void)state;
	setup(&x);
	for (uint32_t i = 1; i <= 32; i++) {
		uint32_t in = turn(&x, 0, BATCHES, i);

		if (i <= 16)
			waits[i - 1] = goes(&x, GIB, x.keep, in, 0);
		else
			stays(&x, GIB, x.keep, in);
		if (i >= 4 && i % 2 == 0)
			waits[(i - 4) / 2]->ticks = x.m.b.ticks + 1;
	}
	waits[15]->ticks = ++x.m.b.ticks;
	find(&x, fails(&x, x.embed, turn(&x, 0, BATCHES, 33)));
	assert_int_equal(x.left.tensors.bytes, 16 * GIB);
	release(&x);
}

static void leftovers__what_a_turn_replaces_is_none(void **state)
{
	struct made x;

	(void)state;
	setup(&x);
	for (uint32_t i = 1; i < 20; i++)
		goes(&x, 4 * GIB, x.keep, turn(&x, 0, BATCHES, i), 0);
	stays(&x, 40 * GIB, x.keep, turn(&x, 0, BATCHES, 20));
	find(&x, fails(&x, x.work, turn(&x, 0, BATCHES, 21)));
	expect_none(&x);
	release(&x);
}

/* Optimizer state, caches, workspaces: the first turns make them, and they stay. */
static void leftovers__what_only_the_first_turns_make_is_none(void **state)
{
	struct made x;

	(void)state;
	setup(&x);
	for (uint32_t i = 1; i <= 20; i++) {
		uint32_t in = turn(&x, 0, BATCHES, i);

		if (i <= 3)
			stays(&x, 4 * GIB, x.keep, in);
		goes(&x, GIB, x.work, in, 0);
	}
	find(&x, fails(&x, x.work, turn(&x, 0, BATCHES, 21)));
	expect_none(&x);
	assert_true(x.left.in_loop && x.left.turned);
	release(&x);
}

/* Loaded in a loop, long before the work begins. */
static void leftovers__a_dataset_on_the_gpu_is_none(void **state)
{
	struct made x;

	(void)state;
	setup(&x);
	for (uint32_t i = 1; i <= 8; i++)
		stays(&x, 4 * GIB, x.keep, turn(&x, 0, EPOCHS, i));
	for (uint32_t i = 1; i <= 40; i++)
		goes(&x, GIB, x.work, turn(&x, 0, BATCHES, i), 0);
	find(&x, fails(&x, x.work, turn(&x, 0, BATCHES, 41)));
	expect_none(&x);
	release(&x);
}

static void leftovers__layers_are_no_turns_where_the_program_has_no_loop(void **state)
{
	struct made x;

	(void)state;
	setup(&x);
	for (uint32_t i = 1; i <= 6; i++)
		stays(&x, 4 * GIB, x.layer, turn(&x, 0, LAYERS, i));
	find(&x, fails(&x, x.layer, turn(&x, 0, LAYERS, 7)));
	expect_none(&x);
	release(&x);
}

/* What ran them again was not seen, but the first layer came six times, and the second. */
static void leftovers__layers_that_were_run_again_are_noticed(void **state)
{
	struct made x;

	(void)state;
	for (uint32_t runs = 1; runs <= 6; runs += 5) {
		setup(&x);
		for (uint32_t i = 0; i < runs; i++) {
			stays(&x, 4 * GIB, x.layer, turn(&x, 0, LAYERS, 1));
			stays(&x, 2 * GIB, x.layer, turn(&x, 0, LAYERS, 2));
		}
		find(&x, fails(&x, x.layer, turn(&x, 0, LAYERS, 1)));
		assert_int_equal(x.left.run_again, (runs - 1) * 6 * GIB);
		release(&x);
	}
}

/* The same stack came again and again: a library's line stands for who called, which is not known. */
static void leftovers__calls_inside_a_library_are_noticed(void **state)
{
	struct made x;

	(void)state;
	setup(&x);
	x.loop[LAYERS].flags = CW_LOOP_CALLS;
	x.loop[LAYERS].frame.file = tb_string(&x.m.b, TORCH "nn/modules/module.py");
	for (uint32_t i = 1; i <= 6; i++)
		stays(&x, 4 * GIB, x.layer, turn(&x, 0, LAYERS, i));
	find(&x, fails(&x, x.layer, turn(&x, 0, LAYERS, 7)));
	assert_int_equal(x.left.run_again, 5 * 4 * GIB);
	release(&x);
}

/* Twenty tables, before anything works with them: all are needed. If the loop lets something go, it works. */
static void leftovers__a_loop_that_only_builds_leaves_nothing(void **state)
{
	struct made x;

	(void)state;
	for (int works = 0; works < 2; works++) {
		setup(&x);
		for (uint32_t i = 1; i <= 20; i++) {
			uint32_t in = turn(&x, 0, EPOCHS, i);

			stays(&x, 4 * GIB, x.work, in);
			if (works)
				goes(&x, GIB, x.keep, in, 0);
		}
		find(&x, fails(&x, x.work, turn(&x, 0, EPOCHS, 21)));
		assert_int_equal(x.left.built, works ? 0 : 20 * 4 * GIB);
		assert_int_equal(x.left.tensors.bytes, works ? 20 * 4 * GIB : 0);
		assert_false(x.left.exact);
		release(&x);
	}
}

/* Where backward frees the graphs, a result that was computed from one and detached is a tensor. */
static void leftovers__one_tensor_a_turn_is_no_graph(void **state)
{
	struct made x;

	(void)state;
	setup(&x);
	for (uint32_t i = 1; i <= 8; i++) {
		uint32_t in = turn(&x, 0, BATCHES, i);

		nodes_of_pass(&x, true);
		mm_node(&x.m, x.keep, false);
		stays(&x, 4 * GIB, x.keep, in);
	}
	find(&x, fails(&x, x.work, turn(&x, 0, BATCHES, 9)));
	assert_int_equal(x.left.graphs.bytes, 0);
	assert_int_equal(x.left.tensors.bytes, 8 * 4 * GIB);
	release(&x);
}

static void leftovers__layers_of_a_model_are_no_turns(void **state)
{
	uint32_t batch;
	struct made x;

	(void)state;
	setup(&x);
	batch = turn(&x, 0, BATCHES, 1);
	for (uint32_t i = 1; i <= 30; i++) {
		mm_node(&x.m, x.layer, false);
		stays(&x, 4 * GIB, x.layer, turn(&x, batch, LAYERS, i));
	}
	find(&x, fails(&x, x.layer, turn(&x, batch, LAYERS, 31)));
	expect_none(&x);
	assert_int_equal(x.left.run_again, 0);
	assert_true(x.left.in_loop && !x.left.turned);
	release(&x);
}

/* model.score(x) instead of model(x): the loop over its layers is outside of any module then. The training, which calls the model, tells. */
static void leftovers__layers_of_a_model_are_no_turns_past_its_forward(void **state)
{
	(void)state;
	for (int known = 0; known < 2; known++) {
		uint32_t batch, direct;
		struct made x;

		setup(&x);
		batch = turn(&x, 0, BATCHES, 1);
		direct = tb_stack(&x.m.b, TORCH "nn/functional.py:10:relu", CALL, "model.py:8:forward", MAIN, NULL);
		if (known)
			stays(&x, MIB, x.layer, turn(&x, batch, LAYERS, 1));
		for (uint32_t i = 1; i <= 7; i++) {
			mm_node(&x.m, direct, false);
			stays(&x, 4 * GIB, direct, turn(&x, batch, LAYERS, i));
		}
		find(&x, fails(&x, direct, turn(&x, batch, LAYERS, 8)));
		if (known)
			expect_none(&x);
		else
			assert_int_equal(x.left.graphs.bytes, 7 * 4 * GIB);
		release(&x);
	}
}

/* Each step of a rollout hangs on the one before: whether a training left these graphs or an evaluation, the loop around backward tells. */
static void leftovers__graphs_of_a_loop_without_backward_are_of_one_pass(void **state)
{
	(void)state;
	for (int trains = 0; trains < 2; trains++) {
		struct made x;
		uint32_t batch;

		setup(&x);
		mm_block(&x.m, GIB, x.backward, 0, CW_SITE_BACKWARD)->extra |= (uint64_t)turn(&x, 0, BATCHES, 2) << 32;
		batch = turn(&x, 0, BATCHES, 4);
		for (uint32_t i = 1; i <= 7; i++)
			pass_stays(&x, trains ? turn(&x, 0, BATCHES, 3 + i) : turn(&x, batch, STEPS, i));
		find(&x, fails(&x, x.embed, trains ? turn(&x, 0, BATCHES, 11) : turn(&x, batch, STEPS, 8)));
		assert_int_equal(x.left.graphs.bytes, 7 * (10 * GIB + MIB));
		assert_int_equal(x.left.graphs_in_training, trains);
		release(&x);
	}
}

/* What a single run of an inner loop has left is counted in turns of that loop, not of the one around it. */
static void per_turn__one_run_of_a_loop_has_its_own_count(void **state)
{
	struct replay none = {.n = 0};
	struct turns_left left = {.turns = 7, .requests = 5};
	struct per_turn_loop loop;
	struct cw_failure *f, at;
	uint64_t turns;
	struct made x;
	uint32_t batch;

	(void)state;
	setup(&x);
	batch = turn(&x, 0, BATCHES, 4);
	for (uint32_t i = 1; i <= 7; i++)
		pass_stays(&x, turn(&x, batch, STEPS, i));
	f = fails(&x, x.embed, turn(&x, batch, STEPS, 8));
	at = *f;
	find(&x, f);
	per_turn_count(&loop, &none, &left, &(struct per_turn_known){x.t, &x.moment, &at, &x.left}, &turns);
	assert_int_equal(loop.place.line, 19);
	assert_int_equal(loop.turn, 8);
	assert_int_equal(loop.since, 1);
	assert_int_equal(turns, 7);
	release(&x);
}

/* Nothing calls a module: the inner loop may be one over layers, so the outermost is the only one that counts. */
static void leftovers__without_modules_the_outermost_loop_counts(void **state)
{
	struct made x;

	(void)state;
	for (uint32_t batch = 1; batch <= 6; batch += 5) {
		setup(&x);
		for (uint32_t b = 1; b <= batch; b++) {
			uint32_t in = turn(&x, 0, BATCHES, b);

			for (uint32_t i = 1; i <= 5; i++) {
				mm_node(&x.m, x.work, false);
				stays(&x, 4 * GIB, x.work, turn(&x, in, STEPS, i));
			}
		}
		find(&x, fails(&x, x.work, turn(&x, turn(&x, 0, BATCHES, batch), STEPS, 6)));
		if (batch == 1)
			expect_none(&x);
		else
			assert_int_equal(x.left.graphs.bytes, 5 * 5 * 4 * GIB);
		assert_int_equal(x.left.turned, batch > 1);
		release(&x);
	}
}

/* Backpropagation through time: the graph of all steps is needed until backward, which comes after the inner loop. */
static void leftovers__steps_that_wait_for_backward_are_none(void **state)
{
	struct made x;

	(void)state;
	for (int backward = 1; backward >= 0; backward--) {
		uint32_t batch;

		setup(&x);
		for (uint32_t b = 1; b <= 3; b++) {
			batch = turn(&x, 0, BATCHES, b);
			for (uint32_t i = 1; backward && b < 3 && i <= 8; i++) {
				goes(&x, 4 * GIB, x.layer, turn(&x, batch, STEPS, i), 0);
				mm_node(&x.m, x.layer, true);
			}
			if (backward && b < 3)
				goes(&x, GIB, x.backward, batch, 0);
		}
		if (backward)	/* gradients, which the next backward adds to */
			mm_block(&x.m, GIB, x.backward, 0, CW_SITE_BACKWARD)->extra |= (uint64_t)turn(&x, 0, BATCHES, 2)
										       << 32;
		for (uint32_t i = 1; i <= 8; i++) {
			mm_node(&x.m, x.layer, false);
			stays(&x, 4 * GIB, x.layer, turn(&x, batch, STEPS, i));
		}
		find(&x, fails(&x, x.layer, turn(&x, batch, STEPS, 9)));
		if (backward)
			expect_none(&x);
		else	/* nothing will ever free them */
			assert_int_equal(x.left.graphs.bytes, 8 * 4 * GIB);
		release(&x);
	}
}

/* A thread of backward has no frames. The thread that waits for it has launched before. */
static void leftovers__a_thread_without_frames_is_in_the_turn_of_the_last_launch(void **state)
{
	struct cw_failure *f;
	struct cw_turned *log;
	struct cw_ring *ring;
	struct made x;

	(void)state;
	setup(&x);
	ring = (void *)(x.m.b.data + tb_chunk(&x.m.b, CW_CHUNK_TURN_LOG, sizeof(*ring) + 4 * sizeof(*log)));
	*ring = (struct cw_ring){.slot_size = sizeof(*log), .n_slots = 4, .head = 1,
				 .thread_key = (uint64_t)((uint8_t *)x.m.b.ring - x.m.b.data)};
	log = (struct cw_turned *)(ring + 1);
	log[0] = (struct cw_turned){1, 1, 0, {BATCHES, 9, CW_TURN_EXACT}};
	for (uint32_t i = 1; i <= 9; i++)
		stays(&x, 4 * GIB, x.keep, turn(&x, 0, BATCHES, i));
	tb_launch(&x.m.b, 1, x.layer);
	f = fails(&x, 0, 0);
	find(&x, f);
	assert_true(x.left.in_loop && x.left.turned);
	assert_int_equal(x.left.tensors.bytes, 8 * 4 * GIB);
	release(&x);
}

static void leftovers__lost_turns_make_it_inexact(void **state)
{
	struct made x;

	(void)state;
	for (int lost = 0; lost < 3; lost++) {
		setup(&x);
		for (uint32_t i = 1; i <= 8; i++)
			stays(&x, 4 * GIB, x.keep, turn(&x, 0, BATCHES, i));
		if (lost == 1)
			x.m.b.h->lost_turns = 1;
		if (lost == 2)
			x.turn[4].at.flags = 0;	/* this turn was not counted exactly */
		works_with_model(&x, 9);
		find(&x, fails(&x, x.work, turn(&x, 0, BATCHES, 9)));
		assert_int_equal(x.left.tensors.bytes, 8 * 4 * GIB);
		assert_int_equal(x.left.exact, !lost);
		release(&x);
	}
}

static void leftovers__without_turns_nothing_is_known(void **state)
{
	struct made x;

	(void)state;
	setup_without_turns(&x);
	for (int i = 0; i < 8; i++)
		stays(&x, 4 * GIB, x.keep, 0);
	find(&x, fails(&x, x.work, 0));
	assert_false(x.left.known || x.left.in_loop);
	assert_int_equal(x.left.tensors.bytes, 0);
	assert_int_equal(x.left.graphs.bytes, 0);
	release(&x);
}

/* Up to 2.5, freed blocks had 56 bytes, without a turn. */
static void make_old(struct mm *m)
{
	enum { OLD = offsetof(struct cw_freed, turn) };
	uint8_t *slot = (uint8_t *)(m->freed + 1);

	for (uint32_t i = 0; i < MM_FREED; i++)
		memmove(slot + i * OLD, slot + i * sizeof(struct cw_freed), OLD);
	memset(slot + MM_FREED * OLD, 0xff, MM_FREED * (sizeof(struct cw_freed) - OLD));
	m->freed->slot_size = OLD;
	m->b.h->minor = 5;
}

static void leftovers__of_old_recordings_are_among_what_was_never_freed(void **state)
{
	struct made x;

	(void)state;
	setup(&x);
	for (uint32_t i = 1; i <= 8; i++) {
		uint32_t in = turn(&x, 0, BATCHES, i);

		goes(&x, GIB, x.work, in, 0);
		stays(&x, 4 * GIB, x.keep, in);
	}
	goes(&x, 4 * GIB, x.keep, turn(&x, 0, BATCHES, 9), x.m.b.ticks + 1000000);	/* by the exception */
	make_old(&x.m);
	find(&x, fails(&x, x.work, turn(&x, 0, BATCHES, 10)));
	assert_true(x.left.known);
	assert_int_equal(x.moment.torch.n, 9);
	assert_int_equal(x.left.tensors.bytes, 8 * 4 * GIB);
	release(&x);
}

/* What was freed has no turns there: a graph that is gone looks like one that stays. */
static void leftovers__graphs_of_old_recordings_are_not_exact(void **state)
{
	struct made x;

	(void)state;
	setup(&x);
	for (uint32_t i = 1; i <= 7; i++)
		pass_stays(&x, turn(&x, 0, BATCHES, i));
	make_old(&x.m);
	find(&x, fails(&x, x.embed, turn(&x, 0, BATCHES, 8)));
	assert_int_equal(x.left.graphs.bytes, 7 * (10 * GIB + MIB));
	assert_false(x.left.exact);
	release(&x);
}

static void leftovers__damaged_turns_count_for_nothing(void **state)
{
	uint32_t a, b, freed;
	struct made x;

	(void)state;
	setup(&x);
	a = turn(&x, 0, EPOCHS, 1);
	b = turn(&x, a, BATCHES, 1);
	turn_at(&x, a)->up = b;				/* a circle */
	for (int i = 0; i < 3; i++) {
		stays(&x, GIB, x.keep, b + 4);		/* not a turn */
		stays(&x, GIB, x.keep, 0xfffffff8u);	/* outside */
		stays(&x, GIB, x.keep, turn(&x, 0, N_LOOPS + 1, 1 + (uint32_t)i));	/* no such loop */
		stays(&x, GIB, x.keep, turn(&x, 0, N_LOOPS - 1, 1 + (uint32_t)i));	/* an empty one */
		stays(&x, GIB, x.keep, turn(&x, 0, BATCHES, 0));			/* no turn 0 */
	}
	freed = turn(&x, 0, BATCHES, 5);
	goes(&x, GIB, x.keep, freed, x.m.b.ticks + 1000000);
	turn_at(&x, freed)->serial += 100;		/* another turn has taken its place */
	find(&x, fails(&x, x.work, turn(&x, 0, BATCHES, 9)));
	expect_none(&x);
	release(&x);
}

static struct verdict *verdict_on_growth(void)
{
	struct made x;

	setup(&x);
	for (uint32_t i = 1; i <= 32; i++) {
		uint32_t in = turn(&x, 0, BATCHES, i);

		goes(&x, GIB, x.work, in, 0);
		stays(&x, 4 * GIB, x.keep, in);
	}
	mm_gap(&x.m, GIB);
	fails(&x, x.work, turn(&x, 0, BATCHES, 33));
	return judge_end(&x.m.b, 1, 0);
}

static void blame__where_is_the_line_that_adds_and_asked_the_one_that_failed(void **state)
{
	struct verdict *v = verdict_on_growth();
	json_t *j = verdict_object(v), *where = json_object_get(j, "where"), *asked = json_object_get(j, "asked"), *fit;

	(void)state;
	assert_string_equal(field(j, "cause"), "oom-growth");
	assert_string_equal(field(where, "file"), "train.py");
	assert_int_equal(json_integer_value(json_object_get(where, "line")), 31);
	assert_true(mentions(where, "stack", "25"));
	assert_int_equal(json_integer_value(json_object_get(asked, "line")), 24);
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "turn"), "number")), 33);
	fit = json_object_get(json_object_get(j, "memory"), "would_fit");
	assert_int_equal(json_integer_value(json_object_get(fit, "without_growth")), 118 * GIB);
	assert_int_equal(json_integer_value(json_object_get(fit, "without_gaps")), -(json_int_t)(10 * GIB));
	assert_true(json_is_null(json_object_get(fit, "without_kept_graphs")));
	json_decref(j);
	verdict_free(v);
}

/* One function makes both what stays and what failed: its callers tell them apart. */
static void blame__callers_tell_two_paths_through_one_line_apart(void **state)
{
	struct verdict *v;
	struct made x;
	uint32_t kept, asked;
	json_t *j;

	(void)state;
	setup(&x);
	kept = tb_stack(&x.m.b, "train.py:8:loss_of", "train.py:30:log", NULL);
	asked = tb_stack(&x.m.b, "train.py:8:loss_of", "train.py:24:step", NULL);
	for (uint32_t i = 1; i <= 32; i++) {
		uint32_t in = turn(&x, 0, BATCHES, i);

		goes(&x, GIB, asked, in, 0);
		stays(&x, 4 * GIB, kept, in);
	}
	mm_gap(&x.m, GIB);
	fails(&x, asked, turn(&x, 0, BATCHES, 33));
	v = judge_end(&x.m.b, 1, 0);
	j = verdict_object(v);
	assert_string_equal(field(j, "cause"), "oom-growth");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "where"), "line")), 8);
	assert_true(mentions(json_object_get(j, "where"), "stack", "30"));
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "asked"), "line")), 24);
	json_decref(j);
	verdict_free(v);
}

static char *text_of(const struct verdict *v)
{
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);

	report_text(out, v, &(struct text_style){.verbose = true});
	fclose(out);
	return text;
}

static void blame__the_text_names_both_lines_and_what_would_have_fit(void **state)
{
	struct verdict *v = verdict_on_growth();
	char *text = text_of(v);

	(void)state;
	assert_non_null(strstr(text, "train.py:31 in log"));
	assert_non_null(strstr(text, "called at train.py:25"));
	assert_non_null(strstr(
		text, "the request that failed came from train.py:24, in iteration 33 of the loop at train.py:18"));
	assert_non_null(strstr(
		text, "FITS   would have fit without the tensors that earlier iterations left: 118.0 GiB to spare\n"));
	assert_non_null(strstr(text, "would not have fit without gaps between tensors either: 10.0 GiB too little\n"));
	free(text);
	verdict_free(v);
}

/* Growth and gaps would each have been enough: neither is certain, both are shown. */
static void blame__of_several_ways_none_is_certain(void **state)
{
	struct verdict *v;
	struct made x;
	char *text;
	json_t *j;

	(void)state;
	setup(&x);
	x.m.n_allocations = 0;
	x.m.driver = x.m.reserved = 0;
	for (uint32_t i = 1; i <= 12; i++) {
		mm_segment(&x.m, 10 * GIB);
		mm_gap(&x.m, 5 * GIB);
		stays(&x, 2 * GIB, x.keep, turn(&x, 0, BATCHES, i));
	}
	fails(&x, x.work, turn(&x, 0, BATCHES, 13));
	v = judge_end(&x.m.b, 1, 0);
	j = verdict_object(v);
	text = text_of(v);
	assert_string_equal(field(j, "cause"), "oom-fragmentation");	/* gaps have most */
	assert_string_equal(field(j, "certainty"), "likely");
	assert_true(mentions(j, "candidates", "oom-growth"));
	assert_non_null(strstr(text, "would have fit without the tensors that earlier iterations left: "));
	assert_non_null(strstr(text, "would have fit without gaps between tensors: "));
	free(text);
	json_decref(j);
	verdict_free(v);
}

static void blame__kept_graphs_are_blamed_on_what_keeps_them(void **state)
{
	struct verdict *v;
	struct made x;
	json_t *j;

	(void)state;
	setup(&x);
	mm_node(&x.m, x.embed, true);	/* this program trains */
	for (uint32_t i = 1; i <= 12; i++)
		pass_stays(&x, turn(&x, 0, BATCHES, i));
	fails(&x, x.embed, turn(&x, 0, BATCHES, 13));
	v = judge_end(&x.m.b, 1, 0);
	j = verdict_object(v);
	assert_string_equal(field(j, "cause"), "oom-graph-retention");
	assert_int_equal(json_integer_value(json_object_get(json_object_get(j, "where"), "line")), 22);
	assert_string_equal(field(json_object_get(j, "asked"), "file"), "model.py");
	json_decref(j);
	verdict_free(v);
}

/* Taking away what a pass has made so far lets the request through, but backward may be on its way to it. */
static void blame__graphs_that_backward_may_need_are_no_promise(void **state)
{
	(void)state;
	for (int trains = 0; trains < 2; trains++) {
		struct verdict *v;
		struct made x;
		char *text;

		setup(&x);
		mm_node(&x.m, x.embed, true);
		if (trains)
			mm_block(&x.m, GIB, x.backward, 0, CW_SITE_BACKWARD)->extra |= (uint64_t)turn(&x, 0, BATCHES, 1)
										       << 32;
		for (uint32_t i = 1; i <= 12; i++)
			pass_stays(&x, turn(&x, 0, BATCHES, i));
		fails(&x, x.embed, turn(&x, 0, BATCHES, 13));
		v = judge_end(&x.m.b, 1, 0);
		text = text_of(v);
		assert_non_null(strstr(text, "would have fit without the autograd graphs"));
		assert_int_equal(strstr(text, "if backward") == NULL, trains);
		free(text);
		verdict_free(v);
	}
}

static struct line line_at(const char *file, unsigned number)
{
	return (struct line){.file = file, .shown = file, .number = number};
}

static void blame__a_line_that_is_not_known_or_the_same_changes_nothing(void **state)
{
	struct pool pool = {0};
	struct casefile c;

	(void)state;
	case_init(&c, &pool);
	c.line[LINE_where] = line_at("train.py", 24);
	case_blame(&c, BLAMED_graphs);			/* nobody found any */
	assert_int_equal(c.line[LINE_where].number, 24);
	assert_null(c.line[LINE_asked].file);
	c.blamed[BLAMED_growth].line = line_at("train.py", 24);
	case_blame(&c, BLAMED_growth);
	assert_null(c.line[LINE_asked].file);
	c.blamed[BLAMED_growth] = (struct blamed){.line = line_at("train.py", 31), .caller = line_at("train.py", 25)};
	case_blame(&c, BLAMED_growth);
	assert_int_equal(c.line[LINE_where].number, 31);
	assert_int_equal(c.line[LINE_caller].number, 25);
	assert_int_equal(c.line[LINE_asked].number, 24);
	pool_release(&pool);
}

#define INIT TORCH "nn/modules/linear.py:100:__init__"
#define MOVE TORCH "nn/modules/module.py:900:_apply"

static void leftovers__layers_that_a_loop_builds_are_none(void **state)
{
	static const char *const made_by[] = {INIT, MOVE};
	struct made x;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		uint32_t build;

		setup(&x);
		build = tb_stack(&x.m.b, made_by[i], MAIN, NULL);
		for (uint32_t k = 1; k <= 9; k++)
			stays(&x, 2 * GIB, build, turn(&x, 0, BATCHES, k));
		find(&x, fails(&x, build, turn(&x, 0, BATCHES, 10)));
		expect_none(&x);
		release(&x);
	}
}

/* Two models that are trained in turn, one from the third batch on. */
static void leftovers__what_an_optimizer_needs_is_made_once(void **state)
{
	struct made x;
	uint32_t step;

	(void)state;
	setup(&x);
	step = tb_stack(&x.m.b, TORCH "optim/adam.py:180:_init_group", "train.py:24:main", NULL);
	for (uint32_t i = 1; i <= 4; i++) {
		uint32_t in = turn(&x, 0, BATCHES, i);

		goes(&x, GIB, x.layer, turn(&x, in, LAYERS, 1), 0);
		if (i % 2)
			stays(&x, 3 * GIB, step, in);
	}
	find(&x, fails(&x, x.layer, turn(&x, 0, BATCHES, 5)));
	expect_none(&x);
	release(&x);
}

/* One of each parameter, but PyTorch may give out a little more than was asked for: that is no second set. */
static void leftovers__gradients_are_not_more_than_the_parameters(void **state)
{
	(void)state;
	for (int more = 0; more < 2; more++) {
		struct made x;
		uint32_t in;

		setup(&x);
		for (int i = 0; i < 4; i++)
			stays(&x, 8 * MIB, tb_stack(&x.m.b, INIT, MAIN, NULL), 0);
		for (uint32_t b = 1; b <= 4; b++) {
			in = turn(&x, 0, BATCHES, b);
			mm_block(&x.m, 8 * MIB + (more ? 2 * MIB : MIB - 512), 0, x.layer, CW_SITE_BACKWARD)->extra |=
				(uint64_t)in << 32;
			goes(&x, GIB, x.layer, turn(&x, in, LAYERS, 1), 0);
		}
		in = turn(&x, 0, BATCHES, 5);
		stays(&x, GIB, x.layer, turn(&x, in, LAYERS, 1));
		find(&x, fails(&x, x.layer, in));
		assert_int_equal(x.left.tensors.bytes, more ? 4 * 10 * MIB : 0);
		release(&x);
	}
}

/* The batch is made once, and passes of an inner loop over its parts are kept: they keep the batch, too. */
static void leftovers__a_graph_of_an_inner_loop_keeps_what_is_made_around_it(void **state)
{
	struct made x;

	(void)state;
	setup(&x);
	for (uint32_t b = 1; b <= 7; b++) {
		uint32_t in = turn(&x, 0, BATCHES, b);

		stays(&x, 9 * GIB, x.work, in);
		for (uint32_t i = 1; i <= 2; i++)
			pass_stays(&x, turn(&x, in, STEPS, i));
	}
	find(&x, fails(&x, x.work, turn(&x, 0, BATCHES, 8)));
	assert_int_equal(x.left.tensors.bytes, 0);
	assert_int_equal(x.left.graphs.bytes, 7 * (9 * GIB + 2 * (10 * GIB + MIB)));
	release(&x);
}

static void leftovers__models_of_earlier_trials_add_up(void **state)
{
	struct made x;
	uint32_t build;

	(void)state;
	setup(&x);
	build = tb_stack(&x.m.b, INIT, MAIN, NULL);
	for (uint32_t i = 1; i <= 5; i++) {
		uint32_t in = turn(&x, 0, BATCHES, i);

		stays(&x, 3 * GIB, build, in);
		goes(&x, GIB, x.layer, turn(&x, in, LAYERS, 1), 0);
		goes(&x, GIB, x.layer, turn(&x, in, LAYERS, 2), 0);
	}
	stays(&x, GIB, x.layer, turn(&x, turn(&x, 0, BATCHES, 6), LAYERS, 1));
	find(&x, fails(&x, build, turn(&x, 0, BATCHES, 6)));
	assert_int_equal(x.left.tensors.bytes, 5 * 3 * GIB);
	release(&x);
}

/* An optimizer in every turn, none of which goes. */
static void leftovers__state_that_is_made_again_adds_up(void **state)
{
	uint32_t build, step;
	struct made x;

	(void)state;
	for (uint32_t turns = 4; turns <= 12; turns += 8) {
		setup(&x);
		build = tb_stack(&x.m.b, INIT, MAIN, NULL);
		step = tb_stack(&x.m.b, TORCH "optim/adam.py:180:_init_group", "train.py:24:main", NULL);
		stays(&x, GIB, build, 0);
		for (uint32_t i = 1; i <= turns; i++) {
			uint32_t in = turn(&x, 0, BATCHES, i);

			goes(&x, GIB, x.layer, turn(&x, in, LAYERS, 1), 0);
			stays(&x, GIB, step, in);
		}
		find(&x, fails(&x, step, turn(&x, 0, BATCHES, turns + 1)));
		assert_int_equal(x.left.tensors.bytes, turns == 4 ? 0 : 12 * GIB);
		release(&x);
	}
}

/* `elsewhere`: what the other line adds in every turn. */
static void grows_in_place(struct made *x, uint32_t turns, uint64_t elsewhere)
{
	setup(x);
	for (uint32_t i = 1; i <= turns; i++) {
		uint32_t in = turn(x, 0, BATCHES, i);

		goes(x, GIB + i * elsewhere, x->layer, turn(x, in, LAYERS, 1), 0);
		if (i < turns)
			goes(x, i * GIB, x->keep, in, 0);
		else
			stays(x, i * GIB, x->keep, in);
	}
	find(x, fails(x, x->keep, turn(x, 0, BATCHES, turns + 1)));
}

static void leftovers__a_tensor_that_is_extended_grows(void **state)
{
	struct made x;

	(void)state;
	grows_in_place(&x, 9, 0);
	assert_int_equal(x.left.tensors.bytes, 0);	/* the old one goes */
	assert_int_equal(x.left.grown.turns, 9);
	assert_int_equal(x.left.grown.first, GIB);
	assert_true(x.left.grown.alone);
	release(&x);
}

/* Two sessions take turns: each turn extends one of them. If one is once as short as before, it does not grow in every turn. */
static void leftovers__tensors_that_take_turns_at_growing_grow(void **state)
{
	struct made x;

	(void)state;
	for (int shrinks = 0; shrinks < 2; shrinks++) {
		setup(&x);
		for (uint32_t i = 1; i <= 8; i++)
			goes(&x, ((shrinks && i == 5 ? 1 : i) + 1) / 2 * GIB, x.keep, turn(&x, 0, BATCHES, i), 0);
		find(&x, fails(&x, x.keep, turn(&x, 0, BATCHES, 9)));
		assert_int_equal(x.left.grown.turns, shrinks ? 0 : 8);
		release(&x);
	}
}

static void leftovers__batches_that_grow_do_so_everywhere(void **state)
{
	struct made x;

	(void)state;
	grows_in_place(&x, 9, MIB);
	assert_int_equal(x.left.grown.turns, 9);
	assert_false(x.left.grown.alone);
	release(&x);
}

/* Entries of a cache: each turn extends the one that was extended longest ago, and frees what it was before. Another line allocates as
 * much in every turn, or `elsewhere` more than in the one before. */
static void extends_in_turn(struct made *x, uint32_t entries, uint32_t turns, uint64_t elsewhere)
{
	struct cw_freed *was[32] = {NULL};

	setup(x);
	for (uint32_t i = 1; i <= turns; i++) {
		uint32_t in = turn(x, 0, BATCHES, i);
		uint64_t size = ((i - 1) / entries + 1) * GIB;

		goes(x, GIB + i * elsewhere, x->layer, in, 0);
		if (i + entries <= turns)
			was[i] = goes(x, size, x->keep, in, 0);
		else
			stays(x, size, x->keep, in);
		if (i > entries)
			was[i - entries]->ticks = x->m.b.ticks + 1;
	}
	find(x, fails(x, x->work, turn(x, 0, BATCHES, turns + 1)));
}

static void leftovers__entries_that_are_extended_in_turn_add_up(void **state)
{
	struct made x;

	(void)state;
	extends_in_turn(&x, 4, 20, 0);
	assert_int_equal(x.left.tensors.bytes, 4 * 5 * GIB);
	assert_true(x.left.tensors.replaced);
	assert_false(x.left.exact);		/* a program that needs longer and longer ones looks the same */
	expect_gone(&x, &x.left.tensors);
	release(&x);
}

static void leftovers__a_tensor_that_is_extended_is_left_by_all_turns(void **state)
{
	struct made x;

	(void)state;
	extends_in_turn(&x, 1, 9, 0);
	assert_int_equal(x.left.tensors.bytes, 9 * GIB);
	assert_int_equal(x.left.tensors.turns, 7);
	assert_true(x.left.tensors.replaced);
	release(&x);
	extends_in_turn(&x, 1, 9, MIB);		/* the batches grow */
	expect_none(&x);
	assert_true(x.left.rising);
	release(&x);
	extends_in_turn(&x, 1, 3, 0);
	expect_none(&x);
	assert_false(x.left.rising);
	release(&x);
}

/* The turn has replaced its tensor before it runs out of memory elsewhere. */
static void leftovers__what_the_current_turn_has_extended_grows(void **state)
{
	struct cw_freed *was;
	struct made x;

	(void)state;
	for (uint64_t elsewhere = 0; elsewhere <= MIB; elsewhere += MIB) {
		uint32_t in = 0;

		setup(&x);
		was = NULL;
		for (uint32_t i = 1; i <= 9; i++) {
			in = turn(&x, 0, BATCHES, i);
			goes(&x, GIB + i * elsewhere, x.layer, in, 0);
			if (was)
				was->ticks = x.m.b.ticks + 2000;
			if (i < 9)
				was = goes(&x, i * GIB, x.keep, in, 0);
			else
				stays(&x, i * GIB, x.keep, in);
		}
		find(&x, fails(&x, x.work, in));
		assert_int_equal(x.left.tensors.bytes, elsewhere ? 0 : 9 * GIB);
		release(&x);
	}
}

/* The last four results, of many sizes. */
static void leftovers__a_window_of_many_sizes_leaves_none(void **state)
{
	struct cw_freed *was[32] = {NULL};
	struct made x;

	(void)state;
	setup(&x);
	for (uint32_t i = 1; i <= 20; i++) {
		uint32_t in = turn(&x, 0, BATCHES, i);
		uint64_t size = (1 + i * 7 % 5) * GIB;

		goes(&x, GIB, x.layer, in, 0);
		if (i + 4 <= 20)
			was[i] = goes(&x, size, x.keep, in, 0);
		else
			stays(&x, size, x.keep, in);
		if (i > 4)
			was[i - 4]->ticks = x.m.b.ticks + 1;
	}
	find(&x, fails(&x, x.work, turn(&x, 0, BATCHES, 21)));
	expect_none(&x);
	release(&x);
}

/* Members of an ensemble: each turn builds one and runs it. */
static void leftovers__objects_that_are_built_may_all_be_needed(void **state)
{
	struct made x;
	uint32_t built;

	(void)state;
	setup(&x);
	built = tb_stack(&x.m.b, "model.py:3:__init__", "train.py:21:main", NULL);
	for (uint32_t i = 1; i <= 9; i++) {
		uint32_t in = turn(&x, 0, BATCHES, i);

		stays(&x, 4 * GIB, built, in);
		goes(&x, GIB, x.layer, in, 0);
	}
	find(&x, fails(&x, built, turn(&x, 0, BATCHES, 10)));
	assert_int_equal(x.left.tensors.bytes, 36 * GIB);
	assert_false(x.left.exact);
	release(&x);
}

/* Experts that are made when needed: the model goes on after each. What it returns is the last that it allocates. */
static void leftovers__what_a_model_keeps_for_itself_may_be_needed(void **state)
{
	struct made x;

	(void)state;
	for (int result = 0; result < 2; result++) {
		setup(&x);
		for (uint32_t i = 1; i <= 9; i++) {
			uint32_t in = turn(&x, 0, BATCHES, i);

			if (!result)
				stays(&x, 4 * GIB, x.embed, in);
			goes(&x, GIB, x.layer, in, 0);
			if (result)
				stays(&x, 4 * GIB, x.head, in);
		}
		find(&x, fails(&x, x.embed, turn(&x, 0, BATCHES, 10)));
		assert_int_equal(x.left.tensors.bytes, 36 * GIB);
		assert_int_equal(x.left.tensors.built, !result);
		assert_int_equal(x.left.exact, result);
		release(&x);
	}
}

/* Operators of a tensor are in a file that also runs backward: weights that are drawn in a loop are no work with a model. */
static void leftovers__operators_are_no_work_with_a_model(void **state)
{
	struct made x;
	uint32_t minus;

	(void)state;
	setup(&x);
	minus = tb_stack(&x.m.b, TORCH "_tensor.py:1000:__rsub__", "train.py:24:main", NULL);
	for (uint32_t i = 1; i <= 9; i++) {
		stays(&x, 4 * GIB, x.keep, turn(&x, 0, BATCHES, i));
		goes(&x, GIB, minus, turn(&x, 0, BATCHES, i), 0);
	}
	find(&x, fails(&x, x.keep, turn(&x, 0, BATCHES, 10)));
	assert_false(x.left.exact);
	release(&x);
}

static void leftovers__two_sizes_are_no_growth(void **state)
{
	struct made x;

	(void)state;
	grows_in_place(&x, 2, 0);
	assert_int_equal(x.left.grown.turns, 0);
	release(&x);
}

static void further__a_turn_of_the_innermost_loop_adds_what_the_last_ones_did(void **state)
{
	struct further next;
	struct made x;
	uint32_t batch;

	(void)state;
	setup(&x);
	stays(&x, 9 * GIB, x.layer, turn(&x, turn(&x, 0, BATCHES, 1), LAYERS, 3));	/* of another batch */
	batch = turn(&x, 0, BATCHES, 2);
	stays(&x, 3 * GIB, x.layer, turn(&x, batch, LAYERS, 2));
	stays(&x, 3 * GIB, x.layer, turn(&x, batch, LAYERS, 3));
	stays(&x, 2 * GIB, x.work, turn(&x, batch, LAYERS, 3));				/* about to be replaced */
	stays(&x, GIB, x.layer, turn(&x, batch, LAYERS, 4));
	struct cw_failure f = *fails(&x, x.layer, turn(&x, batch, LAYERS, 4));

	find(&x, &f);
	further_find(&next, x.t, &x.moment, &f, x.m.allocated, 20 * GIB);
	assert_true(next.most_ever);
	assert_int_equal(next.turn, 3 * GIB);
	assert_int_equal(next.loop.line, 7);
	further_find(&next, x.t, &x.moment, &f, x.m.allocated - 20 * GIB, 10 * GIB);
	assert_true(next.most_ever);	/* the peak came later */
	release(&x);
}

/* Of the loops around the failure, the outer one has added more: 2 GiB in each of 9 turns, the inner one 3 GiB in one. */
static void further__the_loop_that_has_added_the_most_counts(void **state)
{
	struct further next;
	struct made x;
	uint32_t batch;

	(void)state;
	setup(&x);
	for (uint32_t i = 1; i <= 9; i++)
		stays(&x, 2 * GIB, x.keep, turn(&x, 0, BATCHES, i));
	batch = turn(&x, 0, BATCHES, 10);
	stays(&x, 3 * GIB, x.layer, turn(&x, batch, LAYERS, 1));
	struct cw_failure f = *fails(&x, x.layer, turn(&x, batch, LAYERS, 2));

	find(&x, &f);
	further_find(&next, x.t, &x.moment, &f, x.m.allocated, 20 * GIB);
	assert_int_equal(next.turn, 2 * GIB);
	assert_int_equal(next.turns, 9);
	assert_int_equal(next.added, 18 * GIB);
	assert_int_equal(next.loop.line, 18);
	release(&x);
}

static void further__what_the_program_had_before_is_no_more_than_ever(void **state)
{
	struct further next;
	struct made x;

	(void)state;
	setup(&x);
	stays(&x, 30 * GIB, x.layer, 0);
	struct cw_failure f = *fails(&x, x.layer, turn(&x, 0, BATCHES, 1));

	x.m.b.h->memory[0].peak_allocated = 50 * GIB;
	x.m.b.h->memory[0].peak_ticks = f.ticks - 1;
	find(&x, &f);
	further_find(&next, x.t, &x.moment, &f, 30 * GIB, 20 * GIB);
	assert_false(next.most_ever);
	assert_int_equal(next.turn, 0);		/* the first one: nothing is known of the next */
	further_find(&next, x.t, &x.moment, &f, 30 * GIB, 20 * GIB + 1);
	assert_true(next.most_ever);
	release(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(leftovers__graphs_that_stay_are_those_of_earlier_turns),
		cmocka_unit_test(leftovers__graphs_that_backward_ran_are_not_exact),
		cmocka_unit_test(leftovers__the_result_of_a_model_is_kept_where_it_is_called),
		cmocka_unit_test(leftovers__what_stays_of_nodes_that_let_go_is_no_graph),
		cmocka_unit_test(leftovers__graphs_of_turns_after_the_last_backward_stay),
		cmocka_unit_test(leftovers__a_node_that_waits_keeps_its_input_too),
		cmocka_unit_test(leftovers__what_backward_frees_is_not_of_the_graphs_that_stay),
		cmocka_unit_test(leftovers__of_graphs_that_are_gone_only_results_stay),
		cmocka_unit_test(leftovers__frees_that_were_forgotten_make_graphs_inexact),
		cmocka_unit_test(leftovers__what_another_thread_adds_counts_too),
		cmocka_unit_test(leftovers__a_dataset_that_another_thread_loaded_is_none),
		cmocka_unit_test(leftovers__a_try_that_ran_out_of_memory_leaves_its_tensors),
		cmocka_unit_test(leftovers__a_try_of_an_earlier_turn_is_over),
		cmocka_unit_test(leftovers__a_try_that_left_nothing_is_none),
		cmocka_unit_test(leftovers__tensors_of_earlier_turns_add_up),
		cmocka_unit_test(leftovers__turns_of_another_epoch_are_others),
		cmocka_unit_test(leftovers__calls_of_a_recursion_are_turns),
		cmocka_unit_test(leftovers__a_loop_that_is_over_has_only_earlier_turns),
		cmocka_unit_test(leftovers__a_window_that_drops_its_oldest_leaves_none),
		cmocka_unit_test(leftovers__a_queue_that_grows_adds_although_it_drops_its_oldest),
		cmocka_unit_test(leftovers__what_a_turn_replaces_is_none),
		cmocka_unit_test(leftovers__what_only_the_first_turns_make_is_none),
		cmocka_unit_test(leftovers__a_dataset_on_the_gpu_is_none),
		cmocka_unit_test(leftovers__layers_are_no_turns_where_the_program_has_no_loop),
		cmocka_unit_test(leftovers__layers_that_were_run_again_are_noticed),
		cmocka_unit_test(leftovers__calls_inside_a_library_are_noticed),
		cmocka_unit_test(leftovers__a_loop_that_only_builds_leaves_nothing),
		cmocka_unit_test(leftovers__one_tensor_a_turn_is_no_graph),
		cmocka_unit_test(leftovers__layers_of_a_model_are_no_turns),
		cmocka_unit_test(leftovers__layers_of_a_model_are_no_turns_past_its_forward),
		cmocka_unit_test(leftovers__graphs_of_a_loop_without_backward_are_of_one_pass),
		cmocka_unit_test(per_turn__one_run_of_a_loop_has_its_own_count),
		cmocka_unit_test(leftovers__without_modules_the_outermost_loop_counts),
		cmocka_unit_test(leftovers__steps_that_wait_for_backward_are_none),
		cmocka_unit_test(leftovers__a_thread_without_frames_is_in_the_turn_of_the_last_launch),
		cmocka_unit_test(leftovers__lost_turns_make_it_inexact),
		cmocka_unit_test(leftovers__without_turns_nothing_is_known),
		cmocka_unit_test(leftovers__of_old_recordings_are_among_what_was_never_freed),
		cmocka_unit_test(leftovers__graphs_of_old_recordings_are_not_exact),
		cmocka_unit_test(leftovers__damaged_turns_count_for_nothing),
		cmocka_unit_test(leftovers__layers_that_a_loop_builds_are_none),
		cmocka_unit_test(leftovers__what_an_optimizer_needs_is_made_once),
		cmocka_unit_test(leftovers__gradients_are_not_more_than_the_parameters),
		cmocka_unit_test(leftovers__a_graph_of_an_inner_loop_keeps_what_is_made_around_it),
		cmocka_unit_test(leftovers__state_that_is_made_again_adds_up),
		cmocka_unit_test(leftovers__a_tensor_that_is_extended_grows),
		cmocka_unit_test(leftovers__tensors_that_take_turns_at_growing_grow),
		cmocka_unit_test(leftovers__batches_that_grow_do_so_everywhere),
		cmocka_unit_test(leftovers__entries_that_are_extended_in_turn_add_up),
		cmocka_unit_test(leftovers__a_tensor_that_is_extended_is_left_by_all_turns),
		cmocka_unit_test(leftovers__what_the_current_turn_has_extended_grows),
		cmocka_unit_test(leftovers__a_window_of_many_sizes_leaves_none),
		cmocka_unit_test(leftovers__objects_that_are_built_may_all_be_needed),
		cmocka_unit_test(leftovers__what_a_model_keeps_for_itself_may_be_needed),
		cmocka_unit_test(leftovers__operators_are_no_work_with_a_model),
		cmocka_unit_test(leftovers__two_sizes_are_no_growth),
		cmocka_unit_test(leftovers__models_of_earlier_trials_add_up),
		cmocka_unit_test(further__a_turn_of_the_innermost_loop_adds_what_the_last_ones_did),
		cmocka_unit_test(further__the_loop_that_has_added_the_most_counts),
		cmocka_unit_test(further__what_the_program_had_before_is_no_more_than_ever),
		cmocka_unit_test(blame__callers_tell_two_paths_through_one_line_apart),
		cmocka_unit_test(blame__where_is_the_line_that_adds_and_asked_the_one_that_failed),
		cmocka_unit_test(blame__the_text_names_both_lines_and_what_would_have_fit),
		cmocka_unit_test(blame__of_several_ways_none_is_certain),
		cmocka_unit_test(blame__kept_graphs_are_blamed_on_what_keeps_them),
		cmocka_unit_test(blame__graphs_that_backward_may_need_are_no_promise),
		cmocka_unit_test(blame__a_line_that_is_not_known_or_the_same_changes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
