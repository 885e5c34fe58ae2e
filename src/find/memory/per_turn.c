/* SPDX-License-Identifier: Apache-2.0
 * What every turn of a program's loop adds to its memory (see per_turn.h).
 *
 * How much is a fact of the allocations: the turns were alike, and after each of them more was in use. Which line it is follows from what earlier
 * turns left behind, as at a failure; here, the failure is the end of the recording,
 * if none was recorded.
 */
#include "find/memory/per_turn.h"

#include "find/failure/place.h"
#include "find/memory/leftovers.h"
#include "find/memory/replay_steps.h"
#include "read/recording/trace.h"

#define STEPS_MOST ((uint64_t)4 << 20)	/* that are played: some seconds */

/* The recording was ended between two turns, by a thread that has a stack no more: what it launched last tells the turn. */
static struct cw_failure end_as_failure(struct trace *t, int device)
{
	const struct cw_launch *const *launch;
	size_t n = trace_launches(t, &launch);
	struct cw_failure f = {.ticks = UINT64_MAX, .device = device};

	if (n)
		f.forward_stack = launch[n - 1]->stack;
	return f;
}

/* Where memory ran out for the last time, or else the end. */
static struct cw_failure failure_or_end(struct trace *t, int device)
{
	const struct cw_failure *const *list;

	for (size_t n = trace_failures(t, &list); n > 0; n--)
		if (list[n - 1]->source == CW_SRC_TORCH_OOM && list[n - 1]->device == device)
			return *list[n - 1];
	return end_as_failure(t, device);
}

static void find_line(struct per_turn *p, const struct leftovers *x)
{
	p->proven = x->known && (x->graphs.bytes || x->tensors.bytes || x->grown.turns);
	p->graphs = x->known && x->graphs.bytes > x->tensors.bytes;
	if (p->graphs)
		p->line = x->last.file ? x->last : x->graphs.most;
	else if (x->known && x->tensors.bytes)
		p->line = x->tensors.most;
}

void per_turn_of(struct per_turn *p, const struct replay *r, const struct per_turn_known *known)
{
	uint64_t turns;

	*p = (struct per_turn){.graphs = false};
	replay_turns_left(r, &p->left);
	if (!p->left.bytes)
		return;
	find_line(p, known->left);
	if (!p->line.file)
		place_of_stack(known->trace, p->left.stack, &p->line);
	per_turn_count(&p->loop, r, &p->left, known, &turns);
}

#define AVERAGED 3		/* turns, at least */

void per_turn_irregular(struct per_turn *p, const struct replay *r, const struct per_turn_known *known)
{
	uint64_t turns, bytes;

	find_line(p, known->left);
	bytes = per_turn_count(&p->loop, r, &p->left, known, &turns);
	p->loop.rate = 1;
	if (p->line.file && p->loop.turn && turns >= AVERAGED)
		p->left = (struct turns_left){.turns = turns, .bytes = bytes / turns, .failed = true};
}

void per_turn_find(struct per_turn *p, const struct replay *r, struct trace *t, int device)
{
	struct cw_failure f = failure_or_end(t, device);
	struct leftovers x;
	struct pool pool = {0};
	struct moment m;
	struct kinds k;

	moment_init(&m, t, f.ticks, device);
	kinds_init(&k, t, &m, failure_in_backward(t, &f), &pool);
	leftovers_find(&x, t, &m, &k, &f, &pool);
	per_turn_of(p, r, &(struct per_turn_known){t, &m, &f, &x});
	moment_free(&m);
	pool_release(&pool);
}

uint64_t per_turn_bytes(const struct per_turn *p)
{
	return p->loop.rate > 0 ? (uint64_t)((double)p->left.bytes / p->loop.rate) : p->left.bytes;
}

/* Requests of the added turns before the step that failed. */
static uint64_t requests_before(const struct replay *r, size_t first, uint64_t step)
{
	uint64_t requests = 0;

	for (size_t i = first; i + 1 < step && i < r->n; i++)
		requests += r->step[i].kind == STEP_ALLOC;
	return requests;
}

/* In the first turn that is like the others, nothing is left behind yet; in the second one, what stays may still be made. */
bool per_turn_is_why(const struct replay *r, const struct turns_left *left, const struct replay_answer *a)
{
	uint64_t all = requests_before(r, 0, r->n + 1), before = requests_before(r, 0, a->failure.step);

	return left->bytes && !a->fits && before + left->requests * (left->turns - 2) >= all;
}

static uint64_t turns_by_bytes(const struct replay *r, const struct replay_question *q, const struct turns_left *left)
{
	uint64_t room = replay_room(r, q), peak = replay_facts(r)->peak_allocated;

	return room > peak ? (room - peak) / left->bytes : 0;
}

void per_turn_ends(struct per_turn_end *end, const struct replay *r, const struct replay_question *q,
		   const struct turns_left *left)
{
	uint64_t most = left->turns ? STEPS_MOST * left->turns / (r->n + 1) : 0;

	*end = (struct per_turn_end){.turns = turns_by_bytes(r, q, left)};
	for (uint64_t try = end->turns + 2; try <= most; try *= 2) {	/* growth that is not steady may take longer */
		struct replay_answer a = {.fits = false};
		size_t first, each;
		struct replay *more = replay_repeated(r, left, try, &first, &each);

		if (!more)
			return;
		replay_ask(more, q, &a);
		if (!a.fits) {
			uint64_t n = requests_before(more, first, a.failure.step);

			*end = (struct per_turn_end){n / each, n % each, true};
		}
		replay_free(more);
		if (end->played)
			return;
	}
}

uint64_t per_turn_fails_at(const struct per_turn *p, const struct per_turn_end *end)
{
	double turns = (double)end->turns + (double)end->requests / (double)p->left.requests;

	return p->loop.turn && p->loop.rate > 0 ? p->loop.turn + (uint64_t)(turns * p->loop.rate) : 0;
}

/* All but what was left needs as much on any card; what was left takes the rest, with the gaps that it leaves. */
uint64_t per_turn_fails_at_rate(const struct per_turn *p, const struct replay *r, const struct replay_question *q)
{
	struct replay_question same = replay_same(r);
	double left = (double)(p->left.bytes * p->left.turns), peak = (double)replay_facts(r)->peak_allocated,
	       base = peak > left ? peak - left : 0, room = (double)replay_room(r, &same) - base;

	if (room <= 0)
		return 0;
	return p->loop.since + (uint64_t)((double)p->left.turns * ((double)replay_room(r, q) - base) / room);
}
