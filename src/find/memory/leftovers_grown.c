/* SPDX-License-Identifier: Apache-2.0
 * What the sizes of turns and their order show: a line whose tensors grow from turn to turn, and loops that were run several
 * times.
 */
#include "find/memory/leftovers_parts.h"

#include <stdlib.h>

#include "base/mem.h"

/* The most that one stack of lines allocated at once in a turn. */
struct size_in_turn { uint64_t lines; struct path path; uint64_t size; };

static int by_size_in_turn(const void *a, const void *b)
{
	const struct size_in_turn *x = a, *y = b;
	int c = x->lines < y->lines ? -1 : x->lines > y->lines;

	c = c ? c : path_order(&x->path, &y->path);
	return c ? c : (x->size < y->size) - (x->size > y->size);
}

/* Of earlier turns, whether kept or freed: one size for each turn and stack of lines, sorted. */
static size_t sizes_in_turns(const struct search *s, const struct entry *kept, size_t n, struct size_in_turn *sizes)
{
	size_t all = 0, left = 0;

	for (size_t i = 0; i < n; i++)
		sizes[all++] = (struct size_in_turn){kept[i].lines, kept[i].path, s->m->torch.list[kept[i].block].size};
	for (size_t i = 0; i < s->n_went; i++)
		sizes[all++] = (struct size_in_turn){s->went[i].lines, s->went[i].path, s->freed[s->went[i].block]->size};
	xsort(sizes, all, sizeof(*sizes), by_size_in_turn);
	for (size_t i = 0; i < all; i++)
		if (!left || sizes[left - 1].lines != sizes[i].lines ||
		    path_order(&sizes[left - 1].path, &sizes[i].path) != 0)
			sizes[left++] = sizes[i];
	return left;
}

#define GROWN_TURNS 3		/* two sizes always differ in some direction */
#define GROWN_STEPS 3		/* up, where it also stays the same: several take turns at growing */

/* What a batch is made of, and not what an update of the model needs for a moment. */
static bool is_of_batch(struct search *s, uint64_t lines, const struct entry *kept, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (kept[i].lines == lines)
			return !is_part_of_model(kinds_of(s->k, &s->m->torch.list[kept[i].block]));
	for (size_t i = 0; i < s->n_went; i++)
		if (s->went[i].lines == lines) {
			struct piece p = piece_of_freed(s->trace, s->freed[s->went[i].block]);
			enum ledger_kind kind = kinds_of(s->k, &p);

			return kind == KIND_OTHER || kind == KIND_ACTIVATIONS;
		}
	return false;
}

/* A tensor that is extended grows by no more than another line makes in every turn. Where batches grow, no line makes as much as they
 * grow by, unless most lines make as much as ever.
 * `request`: what the line `lines` asked for when memory ran out. */
void grown_find(struct search *s, const struct entry *kept, size_t n, uint64_t lines, uint64_t request)
{
	struct size_in_turn *sizes = xcalloc(n + s->n_went + 1, sizeof(*sizes));
	size_t all = sizes_in_turns(s, kept, n, sizes), steady = 0, growing = 0;
	uint64_t by = 0, fed = 0;

	for (size_t i = 0, end; i < all; i = end) {
		bool up = true, same = true, down = false;
		uint64_t most = 0;
		size_t steps = 0;

		for (end = i + 1; end < all && sizes[end].lines == sizes[i].lines; end++) {
			up &= sizes[end].size > sizes[end - 1].size;
			steps += sizes[end].size > sizes[end - 1].size;
			down |= sizes[end].size < sizes[end - 1].size;
			most = sizes[end].size > sizes[end - 1].size + most ? sizes[end].size - sizes[end - 1].size
									    : most;
			same &= left_same_size(sizes[end].size, sizes[i].size);
		}
		if (end - i < GROWN_TURNS)
			continue;
		up |= steps >= GROWN_STEPS && !down;
		growing += up;
		steady += same;
		by = up && most > by ? most : by;
		if (same && sizes[i].size > fed && is_of_batch(s, sizes[i].lines, kept, n))
			fed = sizes[i].size;
		if (up && sizes[i].lines == lines && request >= sizes[end - 1].size && request > sizes[i].size)
			s->out->grown = (struct grown){.turns = end - i, .first = sizes[i].size};
	}
	s->out->grown.alone = steady >= growing || (by && (fed >= by || left_same_size(fed, by)));
	free(sizes);
}

/* A block and the turns of all loops that it was allocated in. `record`: of the innermost loop; if the loop is run again, it has another
 * record. */
struct in_turns { uint64_t lines, turns, size; uint32_t record; };

static int by_lines_turns_and_record(const void *a, const void *b)
{
	const struct in_turns *x = a, *y = b;

	if (x->lines != y->lines)
		return x->lines < y->lines ? -1 : 1;
	if (x->turns != y->turns)
		return x->turns < y->turns ? -1 : 1;
	return x->record < y->record ? -1 : x->record > y->record;
}

/* Repeated calls inside a library do not count: the same stack came again, but which of its callers repeated is not known. */
static uint64_t hash_turns(const struct turn *turn, size_t n)
{
	uint64_t h = 0;

	for (size_t i = 0; i < n; i++)
		if (!(turn[i].calls && turn[i].loop.library))
			h = (h ^ ((uint64_t)turn[i].number << 32 | turn[i].turn)) * 0x9e3779b97f4a7c15ull;
	return h;
}

/* For blocks of one line in the same turns of the same loops: the bytes of all runs but the one that has the most. */
static uint64_t bytes_of_other_runs(const struct in_turns *b, size_t n)
{
	uint64_t all = 0, most = 0, one = 0;

	for (size_t i = 0; i < n; i++) {
		one = i && b[i].record == b[i - 1].record ? one + b[i].size : b[i].size;
		most = one > most ? one : most;
		all += b[i].size;
	}
	return all - most;
}

/* Each run of a loop has one turn 3. If turn 3 came several times although no loop around it has turned, something that was not seen has
 * run the loop again. The same may be true of a line outside of loops that has several tensors. */
uint64_t bytes_run_again(const struct search *s)
{
	struct in_turns *b = xcalloc(s->m->torch.n + 1, sizeof(*b));
	struct turn turn[CW_LOOP_TURNS];
	uint64_t bytes = 0;
	size_t n = 0;

	for (size_t i = 0; i < s->m->torch.n; i++) {
		const struct piece *p = &s->m->torch.list[i];
		size_t turns = turns_of_piece(s->trace, p, turn);

		if (!is_part_of_model(kinds_of(s->k, p)))	/* in no loop, each is one of its own */
			b[n++] = (struct in_turns){kinds_about(s->k, p)->lines, hash_turns(turn, turns), p->size,
						   turns ? p->turn : (uint32_t)i};
	}
	xsort(b, n, sizeof(*b), by_lines_turns_and_record);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && b[end].lines == b[i].lines && b[end].turns == b[i].turns; end++)
			;
		bytes += bytes_of_other_runs(b + i, end - i);
	}
	free(b);
	return bytes;
}
