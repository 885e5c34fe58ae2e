/* SPDX-License-Identifier: Apache-2.0
 * How much more would the program have asked for? (further.h)
 */
#include "find/memory/further.h"

#include "find/memory/turns.h"

/* Is the block of the turn of loop `at` that was `back` turns before the failure, in the same turns of the loops around it? */
static bool is_of_turn(const struct turn *block, size_t n, const struct turn *now, size_t n_now, size_t at, uint32_t back)
{
	size_t k = 0;

	while (k < n && block[k].number != now[at].number)
		k++;
	if (k == n || n - k != n_now - at || block[k].turn + back != now[at].turn)
		return false;
	for (size_t i = 1; i < n - k; i++)
		if (block[k + i].number != now[at + i].number || block[k + i].turn != now[at + i].turn)
			return false;
	return true;
}

/* Live bytes of the turn before, or of the one before that, whichever is less: some of the last turn's is about to be replaced. */
static uint64_t turn_adds(const struct trace *t, const struct moment *m, const struct turn *now, size_t n_now, size_t at)
{
	uint64_t last = 0, before = 0;
	struct turn turn[CW_LOOP_TURNS];

	for (size_t i = 0; i < m->torch.n; i++) {
		size_t n = turns_of_piece(t, &m->torch.list[i], turn);

		if (is_of_turn(turn, n, now, n_now, at, 1))
			last += m->torch.list[i].size;
		else if (is_of_turn(turn, n, now, n_now, at, 2))
			before += m->torch.list[i].size;
	}
	return now[at].turn > 2 && before < last ? before : last;
}

void further_find(struct further *x, const struct trace *t, const struct moment *m, const struct cw_failure *f,
		  uint64_t allocated, uint64_t request)
{
	const struct cw_memory_now *now = m->device < CW_MAX_DEVICES ? &trace_header(t)->memory[m->device] : NULL;
	struct turn turn[CW_LOOP_TURNS];
	size_t n = turns_of_failure(t, f, turn);

	*x = (struct further){.most_ever =
				      !now || now->peak_ticks > m->when || allocated + request > now->peak_allocated};
	for (size_t i = 0; i < n && !x->turn; i++) {
		if (turn[i].turn < 2)
			continue;
		x->turn = turn_adds(t, m, turn, n, i);
		x->loop = turn[i].loop;
	}
}
