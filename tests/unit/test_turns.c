/* SPDX-License-Identifier: Apache-2.0
 * Turns of loops, read from a recording: of a failure, of blocks, of the blocks of one site; and what damage does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/pool.h"
#include "find/memory/turns.h"
#include "trace_make.h"

#define EPOCHS	1u		/* loops */
#define BATCHES	2u
#define LAYERS	3u

struct made {
	struct make m;
	struct cw_turn *turn;
	struct cw_allocation *block;
	struct cw_failure_turns *failure;
	struct trace *t;
	uint32_t n_turns, n_blocks;
};

static void setup(struct made *x)
{
	uint32_t heap, at, user, library, name;
	struct cw_loop *loop;

	*x = (struct made){0};
	make_init(&x->m);
	heap = at = make_chunk(&x->m, CW_CHUNK_HEAP, 1024);
	(void)heap;
	user = make_string(&x->m, &at, "/home/me/train.py");
	library = make_string(&x->m, &at, "/usr/lib/python3.12/site-packages/lib/model.py");
	name = make_string(&x->m, &at, "train");
	loop = (void *)(x->m.data + make_chunk(&x->m, CW_CHUNK_LOOPS, 8 * sizeof(*loop)));
	loop[EPOCHS] = (struct cw_loop){.frame = {user, name, 8, 5}, .flags = CW_LOOP_FOR};
	loop[BATCHES] = (struct cw_loop){.frame = {user, name, 9, 5}, .flags = CW_LOOP_FOR};
	loop[LAYERS] = (struct cw_loop){.frame = {library, name, 20, 18}, .flags = CW_LOOP_FOR};
	x->turn = (void *)(x->m.data + make_chunk(&x->m, CW_CHUNK_TURNS, 32 * sizeof(*x->turn)));
	x->block = (void *)(x->m.data + make_chunk(&x->m, CW_CHUNK_BLOCKS, 32 * sizeof(*x->block)));
	x->failure = (void *)(x->m.data + make_chunk(&x->m, CW_CHUNK_FAILURE_TURNS, 4 * sizeof(*x->failure)));
}

static uint32_t turn(struct made *x, uint32_t up, uint32_t loop, uint32_t number, bool exact)
{
	struct cw_turn *r = &x->turn[x->n_turns++];

	*r = (struct cw_turn){.up = up, .at = {loop, number, exact ? CW_TURN_EXACT : 0}, .refs = 1, .serial = x->n_turns};
	return (uint32_t)((uint8_t *)r - x->m.data);
}

static void block(struct made *x, uint32_t site, uint64_t size, uint32_t in)
{
	x->block[x->n_blocks] = (struct cw_allocation){.addr = 4096 * (x->n_blocks + 1ull), .size = size, .kind = CW_MEM_TORCH,
						       .site = site, .extra = (uint64_t)in << 32 | 64};
	x->n_blocks++;
}

static void open_it(struct made *x)
{
	struct err e = {0};

	x->t = trace_from_bytes(x->m.data, x->m.used, &e);
	assert_non_null(x->t);
}

static void turns__a_failure_is_in_the_innermost_loop_of_the_user(void **state)
{
	struct cw_failure f = {.seq = 7};
	struct turn turns[CW_LOOP_TURNS];
	struct pool pool = {0};
	struct made x;
	size_t n;

	(void)state;
	setup(&x);
	x.failure[2] = (struct cw_failure_turns){
		.seq = 7, .n = 3, .at = {{LAYERS, 4, CW_TURN_EXACT}, {BATCHES, 16, 0}, {EPOCHS, 2, CW_TURN_EXACT}}};
	open_it(&x);
	n = turns_of_failure(x.t, &f, turns);
	assert_int_equal(n, 3);
	assert_true(turns[0].loop.library && !turns[1].loop.library);
	assert_int_equal(turn_to_name(turns, n)->turn, 16);
	assert_string_equal(turns_in_words(x.t, turns, n, &pool),
		"about iteration 16 of the loop at /home/me/train.py:9, in iteration 2 of the loop at /home/me/train.py:8");
	f.seq = 8;
	assert_int_equal(turns_of_failure(x.t, &f, turns), 0);
	assert_null(turn_to_name(turns, 0));
	pool_release(&pool);
	trace_free(x.t);
}

static void turns__the_blocks_of_a_site_are_told_apart_by_turn(void **state)
{
	struct site_turns s;
	struct made x;
	uint32_t first, second;

	(void)state;
	setup(&x);
	first = turn(&x, 0, EPOCHS, 1, true);
	second = turn(&x, 0, EPOCHS, 2, true);
	block(&x, 5, 100, turn(&x, second, BATCHES, 1, true));
	block(&x, 5, 100, turn(&x, first, BATCHES, 1, true));
	block(&x, 5, 200, turn(&x, first, BATCHES, 2, true));
	block(&x, 5, 300, turn(&x, first, BATCHES, 2, true));	/* the same turn, recorded twice */
	block(&x, 5, 1000, 0);
	block(&x, 6, 9999, first);
	open_it(&x);
	site_turns_of(x.t, 5, BATCHES, &s);
	assert_int_equal(s.n, 3);
	assert_true(s.share[0].outer == 1 && s.share[0].turn == 1 && s.share[0].bytes == 100);
	assert_true(s.share[1].outer == 1 && s.share[1].turn == 2 && s.share[1].bytes == 500 && s.share[1].blocks == 2);
	assert_true(s.share[2].outer == 2 && s.share[2].turn == 1 && s.share[2].exact);
	assert_true(s.blocks == 1 && s.bytes == 1000);
	site_turns_release(&s);
	site_turns_of(x.t, 5, EPOCHS, &s);
	assert_int_equal(s.n, 2);
	assert_true(s.share[0].blocks == 3 && s.share[1].blocks == 1);
	site_turns_release(&s);
	trace_free(x.t);
}

static void turns__damage_does_no_harm(void **state)
{
	const struct cw_allocation *const *list;
	struct turn turns[CW_LOOP_TURNS];
	struct made x;
	uint32_t a, b;

	(void)state;
	setup(&x);
	a = turn(&x, 0, EPOCHS, 1, true);
	b = turn(&x, a, BATCHES, 1, true);
	x.turn[0].up = b;				/* in a circle */
	block(&x, 1, 100, b);
	block(&x, 1, 100, 12);				/* not a turn */
	block(&x, 1, 100, b + 4);
	block(&x, 1, 100, turn(&x, 0, 4000, 1, true));	/* no such loop */
	block(&x, 1, 100, turn(&x, 0, 7, 1, true));	/* an empty one */
	open_it(&x);
	assert_int_equal(trace_blocks(x.t, &list), 5);
	assert_int_equal(turns_of_block(x.t, list[0], turns), 2);	/* once around */
	for (int i = 1; i < 5; i++)
		assert_int_equal(turns_of_block(x.t, list[i], turns), 0);
	trace_free(x.t);
}

static void turns__of_a_launch_are_those_of_its_log(void **state)
{
	const struct cw_launch *const *list;
	struct turn turns[CW_LOOP_TURNS];
	struct cw_launch *launch;
	struct cw_turned *log;
	struct made x;
	uint32_t off;

	(void)state;
	setup(&x);
	launch = make_ring(&x.m, CW_CHUNK_LAUNCHES, 8, sizeof(*launch), 4);
	off = (uint32_t)((uint8_t *)launch - x.m.data) - (uint32_t)sizeof(struct cw_ring);
	for (uint32_t i = 0; i < 4; i++)
		launch[i] = (struct cw_launch){.seq = i + 1, .ticks = 1100 + i, .stack = i < 3 ? 64 : 0};
	log = make_ring(&x.m, CW_CHUNK_TURN_LOG, 4, sizeof(*log), 4);
	((struct cw_ring *)log - 1)->thread_key = off;
	log[0] = (struct cw_turned){1, 1, 0, {EPOCHS, 1, CW_TURN_EXACT}};
	log[1] = (struct cw_turned){2, 1, 1, {BATCHES, 1, 0}};
	log[2] = (struct cw_turned){3, 2, 1, {BATCHES, 2, 0}};
	log[3] = (struct cw_turned){4, 3, 1, {0, 0, 0}};
	open_it(&x);
	assert_int_equal(trace_launches(x.t, &list), 4);
	assert_int_equal(turns_of_launch(x.t, list[0], turns), 2);
	assert_true(turns[0].number == BATCHES && turns[0].turn == 1 && turns[1].number == EPOCHS);
	assert_int_equal(turns_of_launch(x.t, list[1], turns), 2);
	assert_int_equal(turns[0].turn, 2);
	assert_int_equal(turns_of_launch(x.t, list[2], turns), 1);
	assert_int_equal(turns[0].number, EPOCHS);
	assert_int_equal(turns_of_launch(x.t, list[3], turns), 0);	/* without frames */
	trace_free(x.t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(turns__a_failure_is_in_the_innermost_loop_of_the_user),
		cmocka_unit_test(turns__the_blocks_of_a_site_are_told_apart_by_turn),
		cmocka_unit_test(turns__damage_does_no_harm),
		cmocka_unit_test(turns__of_a_launch_are_those_of_its_log),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
