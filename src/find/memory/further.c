/* SPDX-License-Identifier: Apache-2.0
 * How much more would the program have asked for? (further.h)
 */
#include "find/memory/further.h"

#include "find/memory/turns.h"

/* How many turns before the failure's is the block, of loop `at`, in the same turns of the loops around it? 0: none. */
static uint32_t turns_back(const struct turn *block, size_t n, const struct turn *now, size_t n_now, size_t at)
{
	size_t k = 0;

	while (k < n && block[k].number != now[at].number)
		k++;
	if (k == n || n - k != n_now - at || block[k].turn >= now[at].turn)
		return 0;
	for (size_t i = 1; i < n - k; i++)
		if (block[k + i].number != now[at + i].number || block[k + i].turn != now[at + i].turn)
			return 0;
	return now[at].turn - block[k].turn;
}

/* Live bytes of the turn before, or of the one before that, whichever is less: some of the last turn's is about to be replaced. */
static void find_added(struct further *x, const struct trace *t, const struct moment *m, const struct turn *now,
		       size_t n_now, size_t at)
{
	uint64_t last = 0, before = 0, all = 0;
	struct turn turn[CW_LOOP_TURNS];

	for (size_t i = 0; i < m->torch.n; i++) {
		uint32_t back = turns_back(turn, turns_of_piece(t, &m->torch.list[i], turn), now, n_now, at);

		all += back ? m->torch.list[i].size : 0;
		last += back == 1 ? m->torch.list[i].size : 0;
		before += back == 2 ? m->torch.list[i].size : 0;
	}
	x->turns = now[at].turn - 1;
	x->turn = x->turns > 1 && before < last ? before : last;
	x->added = x->turn < all / x->turns ? x->turn * x->turns : all;
}

void further_find(struct further *x, const struct trace *t, const struct moment *m, const struct cw_failure *f,
		  uint64_t allocated, uint64_t request)
{
	const struct cw_memory_now *now = m->device < CW_MAX_DEVICES ? &trace_header(t)->memory[m->device] : NULL;
	struct turn turn[CW_LOOP_TURNS];
	size_t n = turns_of_failure(t, f, turn);

	*x = (struct further){.most_ever =
				      !now || now->peak_ticks > m->when || allocated + request > now->peak_allocated};
	for (size_t i = 0; i < n; i++) {
		struct further at = *x;

		if (turn[i].turn < 2 || (x->turn && turn[i].turn < 3))	/* what a first turn adds may be made once */
			continue;
		find_added(&at, t, m, turn, n, i);
		at.loop = turn[i].loop;
		if (!x->turn || at.added > x->added)
			*x = at;
	}
}
