/* SPDX-License-Identifier: Apache-2.0
 * Would a request have fit? Segments and blocks made by hand, and at random against a plain map of 512-byte cells.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "dice.h"
#include "find/memory/room.h"

#define MIB	(1ull << 20)
#define BASE	(1ull << 40)

struct made {
	struct ledger_segment segment[8];
	struct piece block[64];
	struct ledger_segments segments;
	struct pieces blocks;
	struct room room;
};

static void begin(struct made *m, uint64_t free, uint64_t request)
{
	memset(m, 0, sizeof(*m));
	m->segments.list = m->segment;
	m->blocks.list = m->block;
	m->room = (struct room){&m->segments, &m->blocks, free, request};
}

static void add_segment(struct made *m, uint64_t size)
{
	m->segment[m->segments.n] = (struct ledger_segment){
		.addr = BASE + m->segments.n * (1ull << 32), .size = size, .first = m->blocks.n};
	m->segments.n++;
}

static void add_block(struct made *m, uint64_t offset, uint64_t size)
{
	struct ledger_segment *s = &m->segment[m->segments.n - 1];

	m->block[m->blocks.n++] = (struct piece){.addr = s->addr + offset, .size = size};
	s->n++;
}

static void room__a_full_card_has_none(void **state)
{
	struct made m;

	(void)state;
	begin(&m, 5 * MIB, 16 * MIB);
	add_segment(&m, 100 * MIB);
	add_block(&m, 0, 100 * MIB);
	assert_int_equal(room_without(&m.room, NULL, 0), -(int64_t)(11 * MIB));
	assert_int_equal(room_packed(&m.room), -(int64_t)(11 * MIB));
	assert_int_equal(room_without(&m.room, NULL, 12 * MIB), MIB);
}

static void room__a_block_taken_away_leaves_a_piece_or_its_segment(void **state)
{
	bool first[3] = {true}, both[3] = {true, true};
	struct made m;

	(void)state;
	begin(&m, 0, 16 * MIB);
	add_segment(&m, 40 * MIB);
	add_block(&m, 0, 15 * MIB);
	add_block(&m, 15 * MIB, 25 * MIB);
	add_segment(&m, 30 * MIB);
	add_block(&m, 0, 30 * MIB);
	assert_int_equal(room_without(&m.room, NULL, 0), -(int64_t)(16 * MIB));
	assert_int_equal(room_without(&m.room, first, 0), -(int64_t)MIB);	/* a piece of 15 MiB */
	assert_int_equal(room_without(&m.room, both, 0), 24 * MIB);		/* the whole segment */
}

static void room__gaps_are_packed(void **state)
{
	struct made m;

	(void)state;
	begin(&m, 0, 30 * MIB);
	add_segment(&m, 64 * MIB);
	add_block(&m, 16 * MIB, 16 * MIB);
	add_block(&m, 48 * MIB, 16 * MIB);
	assert_true(room_without(&m.room, NULL, 0) < 0);
	assert_int_equal(room_packed(&m.room), 2 * MIB);
}

static void room__small_and_large_requests_have_segments_of_their_own(void **state)
{
	struct made m;

	(void)state;
	begin(&m, MIB, 4096);
	add_segment(&m, 20 * MIB);
	add_block(&m, 0, 2 * MIB);		/* 18 MiB free, but not for small blocks */
	assert_int_equal(room_without(&m.room, NULL, 0), -(int64_t)MIB);
	add_segment(&m, 2 * MIB);
	add_block(&m, 0, MIB);
	assert_int_equal(room_without(&m.room, NULL, 0), MIB - 4096);
	m.room.request = 3 * MIB;		/* and not the other way around */
	assert_int_equal(room_without(&m.room, NULL, 0), 15 * MIB);
}

#define CELLS 256u	/* of 64 KiB: a segment of 16 MiB */

/* One segment in cells; returns the longest run without a block, and whether it is all of them. */
static unsigned longest_run(const bool *taken, bool *whole)
{
	unsigned best = 0, run = 0;

	for (unsigned i = 0; i < CELLS; i++) {
		run = taken[i] ? 0 : run + 1;
		best = run > best ? run : best;
	}
	*whole = best == CELLS;
	return best;
}

static void room__it_agrees_with_counting_cells(void **state)
{
	(void)state;
	for (int round = 0; round < 5000; round++) {
		bool gone[64] = {0}, whole;
		uint64_t free = roll(40) * MIB, request = (2 + roll(30)) * MIB, fresh = free;
		int64_t best = INT64_MIN, spare;
		struct made m;

		begin(&m, free, request);
		for (uint64_t s = 1 + roll(4); s; s--) {
			bool taken[CELLS] = {0};
			unsigned at = 0, run;

			add_segment(&m, CELLS << 16);
			while (m.blocks.n < 60 && (at += (unsigned)roll(60)) < CELLS) {
				unsigned n = 1 + (unsigned)roll(CELLS - at);
				bool away = roll(2);

				gone[m.blocks.n] = away;
				add_block(&m, (uint64_t)at << 16, (uint64_t)n << 16);
				for (unsigned i = at; i < at + n; i++)
					taken[i] = !away;
				at += n;
			}
			run = longest_run(taken, &whole);
			if (whole)
				fresh += CELLS << 16;
			else if ((int64_t)((uint64_t)run << 16) - (int64_t)request > best)
				best = (int64_t)((uint64_t)run << 16) - (int64_t)request;
		}
		spare = (int64_t)fresh -
			(int64_t)(request < 10 * MIB ? 20 * MIB : (request + 2 * MIB - 1) / (2 * MIB) * 2 * MIB);
		assert_int_equal(room_without(&m.room, gone, 0), spare > best ? spare : best);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(room__a_full_card_has_none),
		cmocka_unit_test(room__a_block_taken_away_leaves_a_piece_or_its_segment),
		cmocka_unit_test(room__gaps_are_packed),
		cmocka_unit_test(room__small_and_large_requests_have_segments_of_their_own),
		cmocka_unit_test(room__it_agrees_with_counting_cells),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
