/* SPDX-License-Identifier: Apache-2.0
 * What grows with a size, from one recording of it (see growth.h): by what each request is for.
 *
 * Where that is not sure, both are kept: taken to stay, the answer is a size that fits; taken to grow, one that may.
 */
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "find/memory/growth.h"
#include "find/memory/replay_steps.h"

/* The step, plus one, in which each block was freed last. */
static size_t *freed_last(const struct replay *r)
{
	size_t *freed = xcalloc((size_t)r->blocks + 1, sizeof(*freed));

	for (size_t i = 0; i < r->n; i++)
		if (r->step[i].kind == STEP_FREE || r->step[i].kind == STEP_FREE_LATER)
			freed[r->step[i].block] = i + 1;
	return freed;
}

/* Before the first activation: data and buffers, or what building the model took. 0: there is none, so this is inference. */
static size_t first_activation(const struct replay *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->step[i].kind == STEP_ALLOC && r->step[i].purpose == KIND_ACTIVATIONS)
			return i;
	return 0;
}

static bool same_request(const void *list, uint32_t i, const void *request)
{
	const struct step *a = &((const struct step *)list)[i], *b = request;

	return a->stack == b->stack && step_asked(a) == step_asked(b);
}

static uint64_t request_hash(const struct step *s)
{
	return map_hash((uint64_t)s->stack << 32 ^ step_asked(s));
}

/* The requests of a turn: those before it that are the same belong to turns, too. */
static struct map requests_since(const struct replay *r, size_t turn)
{
	struct map m = {0};

	for (size_t i = turn; i < r->n; i++)
		if (r->step[i].kind == STEP_ALLOC)
			map_put(&m, request_hash(&r->step[i]), same_request, r->step, &r->step[i], (uint32_t)i);
	return m;
}

/* Samples are whole elements: what no number of these for each of the size makes up does not grow with it. */
static bool divides(const struct step *s, uint64_t size)
{
	uint64_t bytes = step_asked(s);

	return !size || bytes / size * size + STEP_UNIT > bytes;
}

/* Autocast keeps copies of parameters of half their size. */
static enum growth_alone about(const struct step *s, const struct step_sizes *fixed, uint64_t size)
{
	uint32_t units = step_units(step_asked(s));

	if (step_stays(s))
		return GROWTH_STAYS;
	if (s->purpose == KIND_GRAPHS || !divides(s, size) ||
	    (s->purpose == KIND_BACKWARD && step_sizes_have(fixed, units)) ||
	    (s->purpose == KIND_ACTIVATIONS && step_sizes_have(fixed, 2 * units)))
		return GROWTH_MAY;
	return GROWTH_GROWS;
}

/* Sizes of all that is no workspace by its manners. */
static struct step_sizes sizes_of_tensors(const struct replay *r)
{
	struct step_sizes s = {xcalloc(r->n + 1, sizeof(*s.list)), 0};

	for (size_t i = 0; i < r->n; i++)
		if (r->step[i].kind == STEP_ALLOC && !step_like_workspace(r, i))
			s.list[s.n++] = step_units(step_asked(&r->step[i]));
	step_sizes_sort(&s);
	return s;
}

void growth_init_alone(struct growth *g, const struct replay *r, uint64_t size, size_t turn)
{
	struct step_sizes fixed = steps_that_stay(r), tensors = sizes_of_tensors(r);
	size_t *freed = freed_last(r), first = first_activation(r);
	struct map of_turn = requests_since(r, turn);

	*g = (struct growth){
		.largest = r, .size = {(double)(size ? size : GROWTH_WHOLE)}, .n_sizes = 1, .doubts = 1u << GROWTH_ONE};
	g->bytes = xcalloc(r->n + 1, sizeof(*g->bytes));
	g->alone = xcalloc(r->n + 1, sizeof(*g->alone));
	for (size_t i = 0; i < r->n; i++) {
		const struct step *s = &r->step[i];

		if (s->kind != STEP_ALLOC)
			continue;
		g->bytes[g->n] = (double)step_asked(s);
		g->alone[g->n] = (uint8_t)about(s, &fixed, size);
		if (s->purpose == KIND_OTHER && (i < first || freed[s->block] <= i) &&
		    map_find(&of_turn, request_hash(s), same_request, r->step, s) == MAP_NONE)
			g->alone[g->n] = GROWTH_MAY;
		if (g->alone[g->n] == GROWTH_GROWS && step_like_workspace(r, i) &&
		    !step_sizes_have(&tensors, step_units(step_asked(s))))
			g->alone[g->n] = GROWTH_MAY;
		g->n++;
	}
	free(fixed.list);
	free(tensors.list);
	free(freed);
	map_release(&of_turn);
}
