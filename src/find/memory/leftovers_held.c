/* SPDX-License-Identifier: Apache-2.0
 * What a stack of lines held from turn to turn: does it keep a window over the last turns, or more after each of them?
 *
 * A window frees its oldest entry for each new one, and stays as large as it is. A cache whose entries are extended (torch.cat) frees an
 * entry for a larger one: the number of blocks stays, and the bytes rise.
 */
#include "find/memory/leftovers_parts.h"

#include <stdlib.h>

#include "base/mem.h"

#define RISES 3			/* fewer may be chance */

/* A block of these lines, live or freed. */
struct life { uint64_t made, freed, size; const struct path *path; };

static int by_made(const void *a, const void *b)
{
	const struct life *x = a, *y = b;

	return x->made < y->made ? -1 : x->made > y->made;
}

static int by_freed(const void *a, const void *b)
{
	const struct life *x = a, *y = b;

	return x->freed < y->freed ? -1 : x->freed > y->freed;
}

/* All blocks that the lines have allocated, oldest first. */
static struct life *lives_of(const struct search *s, const struct entry *e, size_t n, size_t *all)
{
	struct life *life = xcalloc(n + s->n_went + 1, sizeof(*life));

	*all = 0;
	for (size_t i = 0; i < n; i++)
		life[(*all)++] = (struct life){e[i].ticks, UINT64_MAX, s->m->torch.list[e[i].block].size, &e[i].path};
	for (size_t i = 0; i < s->n_went; i++)
		if (s->went[i].lines == e->lines && s->went[i].graph == e->graph) {
			const struct cw_freed *f = s->freed[s->went[i].block];

			life[(*all)++] = (struct life){s->went[i].ticks, f->ticks, f->size, &s->went[i].path};
		}
	xsort(life, *all, sizeof(*life), by_made);
	return life;
}

/* Was it freed after two later turns had allocated theirs? */
static bool is_dropped(const struct life *life, size_t n, size_t i)
{
	const struct path *turn = life[i].path;
	size_t later = 0;

	for (size_t k = i + 1; k < n && life[k].made <= life[i].freed && later < 2; k++) {
		later += path_order(turn, life[k].path) < 0;
		turn = path_order(turn, life[k].path) < 0 ? life[k].path : turn;
	}
	return later == 2;
}

/* When the lines freed a block of an earlier turn for the first time, while they went on; UINT64_MAX: never. */
static uint64_t first_drop(const struct life *life, size_t n)
{
	uint64_t first = UINT64_MAX;

	for (size_t i = 0; i < n; i++)
		if (life[i].freed < first && is_dropped(life, n, i))
			first = life[i].freed;
	return first;
}

/* If there are many more blocks now than when the first was dropped, it is a queue that grows. */
static bool is_window(const struct life *life, size_t n, size_t live, uint64_t first)
{
	size_t there = 0;

	for (size_t i = 0; i < n; i++)
		there += life[i].made <= first && life[i].freed >= first;
	return first != UINT64_MAX && live <= 2 * there;
}

/* Bytes are compared where a turn allocates its first block: what the turn before replaced has been freed by then. A fall that the sizes
 * of blocks leave open (LEFT_UNSPLIT) is none if all rises together are more than that. */
static size_t rises_since(const struct life *life, size_t n, size_t live, uint64_t since)
{
	struct life *gone = xcalloc(n + 1, sizeof(*gone));
	uint64_t held = 0, before = 0, first = 0, open = 0;
	size_t up = 0, turns = 0, freed = 0;
	bool down = false, fell = false;

	for (size_t i = 0; i < n; i++)
		gone[i] = life[i];
	xsort(gone, n, sizeof(*gone), by_freed);
	for (size_t i = 0; i < n && !down; held += life[i++].size) {
		for (; freed < n && gone[freed].freed <= life[i].made; freed++)
			held -= gone[freed].size;
		if (i && life[i].made >= since && path_order(life[i - 1].path, life[i].path) != 0) {
			first = turns ? first : held;
			up += turns && held > before;
			fell |= turns && held < before;
			down = turns && held + open < before;
			before = held;
			open = 0;
			turns++;
		}
		open += life[i].size > LEFT_UNSPLIT ? LEFT_UNSPLIT : 0;
	}
	free(gone);
	fell &= before < first + live * LEFT_UNSPLIT;
	return down || fell || up < RISES || 2 * up < turns ? 0 : up;
}

struct held_by_line held_by_line(const struct search *s, const struct entry *e, size_t n)
{
	size_t all;
	struct life *life = lives_of(s, e, n, &all);
	uint64_t drop = first_drop(life, all), since = drop == UINT64_MAX ? 0 : drop;
	struct held_by_line held = {.window = is_window(life, all, n, drop),
				    .rises = rises_since(life, all, n, since > s->frees_since ? since : s->frees_since)};

	free(life);
	return held;
}
