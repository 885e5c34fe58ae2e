/* SPDX-License-Identifier: Apache-2.0
 * A program that ran out of memory in a later turn of its loop: how it would have gone on, and with how large a batch it would not have.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "find/memory/largest.h"
#include "find/memory/replay_steps.h"
#include "find/memory/replay_turn.h"
#include "find/memory/smaller.h"
#include "dice.h"
#include "program_make.h"

#define LAYERS_MAX 6
#define TURNS	   4

/* Activations of each layer for one of the batch, in forward; temporaries in backward; and optimizer state, from the first turn on. */
struct model {
	uint64_t layer[LAYERS_MAX], parameters;
	size_t n;
	bool adam, zero_late;		/* gradients are there during forward */
	uint64_t total;
};

struct trained {
	struct program p;
	int turns;			/* that it got through */
};

static struct model make_model(void)
{
	struct model m = {
		.parameters = (1 + roll(120)) * MIB + roll(4000), .n = 1 + roll(LAYERS_MAX), .adam = roll(4) != 0};

	for (size_t i = 0; i < m.n; i++)
		m.layer[i] = 1000 + roll(3000000);
	m.zero_late = roll(2);
	m.total = 800 * MIB + m.parameters * 5 + roll(800) * MIB;
	return m;
}

static struct allocator_block *ask(struct trained *t, uint32_t site, uint64_t bytes)
{
	t->p.block_site = site;
	return program_alloc(&t->p, bytes, 0);
}

/* False: it ran out of memory. */
static bool train_turn(struct trained *t, const struct model *m, uint64_t batch, struct allocator_block **gradient,
		       bool first)
{
	struct allocator_block *kept[LAYERS_MAX], *work;

	for (size_t i = 0; i < m->n; i++) {
		kept[i] = ask(t, t->p.lines[1], m->layer[i] * batch);
		if (!kept[i])
			return false;
	}
	if (*gradient)
		program_free(&t->p, *gradient);
	for (size_t i = m->n; i-- > 0;) {
		work = ask(t, t->p.lines[2], m->layer[i] * batch);
		if (!work)
			return false;
		program_free(&t->p, kept[i]);
		program_free(&t->p, work);
	}
	*gradient = ask(t, t->p.gradient_site, m->parameters);
	if (!*gradient ||
	    (first && m->adam && (!ask(t, t->p.state_site, m->parameters) || !ask(t, t->p.state_site, m->parameters))))
		return false;
	if (!m->zero_late) {
		program_free(&t->p, *gradient);
		*gradient = NULL;
	}
	return true;
}

static void train(struct trained *t, const struct model *m, uint64_t batch)
{
	struct allocator_block *gradient = NULL;

	*t = (struct trained){.turns = 0};
	program_begin(&t->p, "2.11.0", "", m->total);
	if (!ask(t, t->p.parameter_site, m->parameters))
		return;
	while (t->turns < TURNS && train_turn(t, m, batch, &gradient, t->turns == 0))
		t->turns++;
}

static bool runs(const struct model *m, uint64_t batch)
{
	struct trained t;

	train(&t, m, batch);
	program_end(&t.p);
	return t.turns == TURNS;
}

static uint64_t largest_named(struct replay *r, uint64_t batch)
{
	struct growth g;
	struct largest_part part = {.growth = &g, .q = replay_same(r)};
	struct largest l = {.part = &part, .n = 1, .most = batch - 1};
	size_t turn = SIZE_MAX;
	struct replay *whole = replay_completed(r, &(struct turn_began){.n = 0}, &turn);
	uint64_t named;

	assert_non_null(whole);
	assert_true(turn < SIZE_MAX);
	growth_init_alone(&g, whole, batch, turn);
	assert_false(largest_fits(&l, batch, 1));
	named = largest_find(&l, 1);
	growth_release(&g);
	replay_free(whole);
	return named;
}

/* Of a failure in a later turn: what is named runs, and hardly more does. */
static void smaller__runs_and_hardly_more_does(void **state)
{
	unsigned later = 0, exact = 0, ran = 0;

	(void)state;
	for (int round = 0; round < 1500; round++) {
		struct model m = make_model();
		uint64_t batch = 2 + roll(600), named;
		struct trained t;
		struct replay *r;

		train(&t, &m, batch);
		if (t.turns > 0 && t.turns < TURNS) {
			r = program_replay(&t.p);
			named = largest_named(r, batch);
			replay_free(r);
			ran += named == 0 || runs(&m, named);
			exact += !runs(&m, named + 1);
			later++;
		}
		program_end(&t.p);
	}
	print_message("of %u, %u ran, and of %u no larger one did\n", later, ran, exact);
	assert_true(later > 50);
	assert_true(ran * 100 >= later * 98);	/* where the allocator splits its blocks differs a little */
	assert_true(exact * 100 >= later * 90);
}

#define TURNS_MOST 8
#define PERCENT	   100

/* Batches of sequences; layers have memory for each element, or for each pair in a sequence, as scores of attention. */
struct uneven {
	uint64_t batch[TURNS_MOST + 2], length[TURNS_MOST + 2];
	int turns;
	uint64_t total, parameters;
	size_t n;
	struct { uint64_t each; bool pairs, brief; uint32_t part, line; } layer[LAYERS_MAX];
};

static struct uneven make_uneven(void)
{
	struct uneven u = {
		.turns = 2 + (int)roll(TURNS_MOST - 1), .n = 1 + roll(LAYERS_MAX), .parameters = (1 + roll(30)) * MIB};
	uint64_t most = 20 + roll(300), longest = 8 + roll(200);
	bool batches = roll(2), lengths = !batches || roll(2);
	uint32_t last = 1 + roll((uint32_t)u.turns - 1);

	for (uint32_t t = 0; t < (uint32_t)u.turns; t++) {
		u.batch[t] = !batches || t == last ? most : roll(3) ? 1 + most * (10 + roll(50)) / PERCENT : 1 + most / 3;
		u.length[t] = !lengths || t == last ? longest
			      : roll(3)		    ? 1 + longest * (10 + roll(50)) / PERCENT
						    : 1 + longest / 2;
	}
	for (size_t i = 0; i < u.n; i++) {
		u.layer[i].pairs = lengths && roll(4) == 0;
		u.layer[i].each = 1 + (1000 + roll(1000000)) / longest / (u.layer[i].pairs ? longest : 1);
		u.layer[i].brief = roll(4) == 0;
		u.layer[i].part = roll(2) ? 1 : 1 + roll(4);
		u.layer[i].line = u.layer[i].pairs ? 3 : 1 + roll(2);
		if (i && roll(3) == 0)
			u.layer[i] = u.layer[i - 1];		/* an inner loop */
	}
	u.total = 300 * MIB + u.parameters * 5 + roll(1500) * MIB;
	return u;
}

static uint64_t layer_bytes(const struct uneven *u, size_t i, uint64_t batch, uint64_t length)
{
	return u->layer[i].each * batch * length * (u->layer[i].pairs ? length : 1);
}

/* In backward, the line is that of forward. */
static bool uneven_turn(struct program *p, const struct uneven *u, uint64_t batch, uint64_t length, uint32_t *asked)
{
	struct allocator_block *kept[LAYERS_MAX + 1], *work;
	size_t n = 0;

	p->block_site = p->lines[0];
	kept[n++] = program_alloc(p, 64 * batch * length, 0);
	if (!kept[0])
		return false;
	++*asked;
	for (size_t i = 0; i < u->n; i++) {
		p->block_site = p->lines[u->layer[i].line];
		if (!(kept[n++] = program_alloc(p, layer_bytes(u, i, batch, length), 0)))
			return false;
		++*asked;
	}
	for (size_t i = u->n; i-- > 0;) {
		p->block_site = p->lines[u->layer[i].line];
		work = program_alloc(p, layer_bytes(u, i, batch, length) / u->layer[i].part, 0);
		if (!work)
			return false;
		++*asked;
		if (!u->layer[i].brief)
			program_free(p, kept[i + 1]);
		program_free(p, work);
		if (u->layer[i].brief)
			program_free(p, kept[i + 1]);
	}
	program_free(p, kept[0]);
	return true;
}

/* The turns it got through. `begun`: requests before the last turn. */
static int train_uneven(struct program *p, const struct uneven *u, uint64_t millionths, uint32_t *begun)
{
	uint32_t asked = 1;
	int t = 0;

	program_begin(p, "2.11.0", "", u->total);
	p->block_site = p->parameter_site;
	assert_non_null(program_alloc(p, u->parameters, 0));
	for (; t < u->turns; t++) {
		uint64_t batch = u->batch[t] * millionths / 1000000;

		*begun = asked;
		if (!uneven_turn(p, u, batch ? batch : 1, u->length[t], &asked))
			break;
	}
	return t;
}

/* The turn that failed, and another two like it. */
static bool gets_through(const struct uneven *u, int failed, uint64_t millionths)
{
	struct uneven longer = *u;
	struct program p;
	uint32_t begun;
	int got;

	for (longer.turns = failed + 1; longer.turns < failed + 3; longer.turns++) {
		longer.batch[longer.turns] = u->batch[failed];
		longer.length[longer.turns] = u->length[failed];
	}
	got = train_uneven(&p, &longer, millionths, &begun);
	program_end(&p);
	return got == longer.turns;
}

static size_t step_of_request(const struct replay *r, uint32_t request)
{
	size_t i = 0;

	while (i < r->n && (r->step[i].kind != STEP_ALLOC || request-- > 0))
		i++;
	return i;
}

/* Millionths of the batches; UINT64_MAX: not told. */
static uint64_t part_named(struct replay *r, size_t begin)
{
	struct turn_began began = {.step = {begin}, .n = 1};
	struct growth g;
	struct largest_part part = {.growth = &g, .q = replay_same(r)};
	struct largest l = {.part = &part, .n = 1, .most = GROWTH_WHOLE - 1};
	size_t turn = SIZE_MAX;
	struct replay *whole = replay_completed(r, &began, &turn);
	uint64_t named = UINT64_MAX;

	if (!whole)
		return named;
	growth_init_alone(&g, whole, 0, turn);
	if (!largest_fits(&l, GROWTH_WHOLE, 1))
		named = largest_find(&l, 1) * 1000000 / GROWTH_WHOLE;
	growth_release(&g);
	replay_free(whole);
	return named;
}

/* Batches that are not all as large: what is named gets through the turn that failed, and 3 % more does not. */
static void smaller__batches_may_differ(void **state)
{
	unsigned later = 0, told = 0, ran = 0, exact = 0;

	(void)state;
	for (int round = 0; round < 4000; round++) {
		struct uneven u = make_uneven();
		struct program p;
		uint32_t begun;
		int got = train_uneven(&p, &u, 1000000, &begun);

		if (got > 0 && got < u.turns) {
			struct replay *r = program_replay(&p);
			uint64_t part = part_named(r, step_of_request(r, begun));

			replay_free(r);
			later++;
			if (part < UINT64_MAX) {
				told++;
				ran += part == 0 || gets_through(&u, got, part);
				exact += !gets_through(&u, got, part + 30000);
			}
		}
		program_end(&p);
	}
	print_message("of %u, %u were named; of these %u ran, and for %u 3 %% more did not\n", later, told, ran, exact);
	assert_true(later > 300);
	assert_true(told * 100 >= later * 85);
	assert_true(ran * 100 >= told * 97);	/* where the allocator splits its blocks differs a little */
	assert_true(exact * 100 >= told * 97);
}

/* In its first turn, nothing is known of the rest of it. */
static void smaller__is_not_known_of_a_first_turn(void **state)
{
	struct model m = {.layer = {1 * MIB, 2 * MIB}, .n = 2, .parameters = 10 * MIB, .total = 400 * MIB};
	struct replay_question q;
	struct smaller s;
	struct trained t;
	struct replay *r;

	(void)state;
	train(&t, &m, 200);
	assert_int_equal(t.turns, 0);
	r = program_replay(&t.p);
	q = replay_same(r);
	smaller_find(&s, r, &q);
	assert_false(s.known);
	replay_free(r);
	program_end(&t.p);
}

static void chunks__are_not_larger_than_what_fits(void **state)
{
	(void)state;
	for (uint64_t batch = 2; batch < 80; batch++)
		for (uint64_t largest = 1; largest < batch; largest++) {
			struct smaller s = {.known = true, .batch = batch, .largest = largest};
			uint64_t n = smaller_chunks(&s);

			assert_true((batch + n - 1) / n <= largest);
			assert_true(n == 1 || (batch + n - 2) / (n - 1) > largest);
		}
}

static void any_events__end(void **state)
{
	(void)state;
	for (int round = 0; round < 200; round++) {
		struct allocator_block *live[8] = {NULL};
		struct replay *r, *whole;
		struct program p;
		size_t turn;

		program_begin(&p, "2.11.0", "", 300 * MIB);
		for (int i = 0; i < 60; i++) {
			struct allocator_block **b = &live[roll(8)];

			program_at(&p, roll(4));
			if (*b)
				program_free(&p, *b);
			*b = program_alloc(&p, 1 + roll(60) * MIB, 0);
		}
		r = program_replay(&p);
		whole = replay_completed(r, &(struct turn_began){.n = 0}, &turn);
		replay_free(whole);
		replay_free(r);
		program_end(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(smaller__runs_and_hardly_more_does),
		cmocka_unit_test(smaller__batches_may_differ),
		cmocka_unit_test(smaller__is_not_known_of_a_first_turn),
		cmocka_unit_test(chunks__are_not_larger_than_what_fits),
		cmocka_unit_test(any_events__end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
