/* SPDX-License-Identifier: Apache-2.0
 * What a program that ran out of memory would have gone on with (see replay_turn.h).
 *
 * The requests just before the failure are looked for earlier in the recording: where as many as possible came in the same order,
 * the loop had got as far as now, one or several turns ago. What it did from there on, up to the failure, is a whole turn.
 */
#include "find/memory/replay_turn.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "find/memory/replay_steps.h"

#define NONE  SIZE_MAX
#define TURNS 3		/* in the first ones, what is left of the turns before still moves; `cuwhy fit` waits for as many */

struct turning {
	const struct replay *r;
	size_t oom;			/* the step that failed */
	size_t *made;			/* per step that frees: the step that allocated; NONE: before the first */
	bool *freed;			/* per step that allocates */
	size_t *seq, n;			/* the steps that allocate what comes again in every turn */
	size_t *at;			/* per step: its place in `seq`, NONE: not in it */
	size_t then;			/* in `seq`: where the loop had got as far as at the failure */
	size_t same;			/* so many before both are the same */
	struct step *out;
	size_t n_out, cap_out;
	uint32_t blocks;
	uint32_t *again;		/* per step that allocates: its block in the turn to come, plus one; 0: none */
	bool *gone;			/* per step that allocates: what was live at the failure is freed in the turn to come */
	uint32_t asked;			/* the block that the failed step asks for */
};

static bool same_request(const struct step *a, const struct step *b)
{
	return a->stack == b->stack && a->purpose == b->purpose && step_asked(a) == step_asked(b);
}

/* Only one request failed: a program that tried again has done something else since. */
static size_t find_oom(const struct replay *r)
{
	size_t at = NONE, n = 0;

	for (size_t i = 0; i < r->n; i++)
		if (r->step[i].kind == STEP_OOM) {
			at = i;
			n++;
		}
	return n == 1 ? at : NONE;
}

/* Made in the first turn alone. */
static bool is_once(const struct turning *w, size_t i)
{
	const struct step *s = &w->r->step[i];

	return !w->freed[i] && (s->purpose == KIND_OPTIMIZER || s->purpose == KIND_WORKSPACES);
}

static void read_blocks(struct turning *w)
{
	const struct replay *r = w->r;
	size_t *maker = xcalloc((size_t)r->blocks + 1, sizeof(*maker));

	for (size_t i = 0; i < w->oom; i++) {
		const struct step *s = &r->step[i];

		w->made[i] = w->at[i] = NONE;
		if (s->kind == STEP_ALLOC) {
			maker[s->block] = i + 1;
		} else if ((s->kind == STEP_FREE || s->kind == STEP_FREE_LATER) && maker[s->block]) {
			w->made[i] = maker[s->block] - 1;
			w->freed[w->made[i]] = true;
			maker[s->block] = 0;
		}
	}
	for (size_t i = 0; i < w->oom; i++)
		if (r->step[i].kind == STEP_ALLOC && !is_once(w, i)) {
			w->at[i] = w->n;
			w->seq[w->n++] = i;
		}
	free(maker);
}

/* How many requests before the last ones and before place `then` are the same, for every place: the Z function, from the end. */
static size_t *same_before(const struct turning *w)
{
	size_t *same = xcalloc(w->n + 1, sizeof(*same)), left = 0, right = 0;
#define REQUEST(k) (&w->r->step[w->seq[w->n - 1 - (k)]])

	for (size_t k = 1; k < w->n; k++) {
		size_t z = k < right && same[k - left] < right - k ? same[k - left] : k < right ? right - k : 0;

		while (k + z < w->n && same_request(REQUEST(z), REQUEST(k + z)))
			z++;
		same[k] = z;
		if (k + z > right) {
			left = k;
			right = k + z;
		}
	}
#undef REQUEST
	return same;
}

static bool find_turn(struct turning *w)
{
	const struct step *failed = &w->r->step[w->oom];
	size_t *same = same_before(w);

	w->then = NONE;
	for (size_t k = 1; k < w->n; k++) {	/* the latest of equals */
		const struct step *s = &w->r->step[w->seq[w->n - k]];

		if (step_asked(s) == step_size(failed) && same[k] > w->same) {
			w->then = w->n - k;
			w->same = same[k];
		}
	}
	free(same);
	return w->then != NONE;
}

static struct step *put(struct turning *w, const struct step *s)
{
	w->out = xgrow(w->out, w->n_out, &w->cap_out, sizeof(*w->out));
	w->out[w->n_out] = *s;
	return &w->out[w->n_out++];
}

static void put_free(struct turning *w, uint32_t block)
{
	put(w, &(struct step){.kind = STEP_FREE, .block = block});
}

/* What was live at the failure. */
static void let_go(struct turning *w, size_t made)
{
	if (!w->freed[made] && !w->gone[made])
		put_free(w, w->r->step[made].block);
	w->gone[made] = true;
}

/* It replaces what the line made a turn ago, if that is still there: as a variable does. */
static void ask_again(struct turning *w, size_t i)
{
	const struct step *s = &w->r->step[i];

	if (!w->freed[i] && (is_once(w, i) || s->purpose == KIND_PARAMETERS || s->purpose == KIND_LOADED))
		return;
	put(w, s)->block = w->blocks;
	w->again[i] = ++w->blocks;
	if (!w->freed[i])
		let_go(w, i);
}

/* The block of this turn that corresponds to it. */
static void free_again(struct turning *w, size_t made)
{
	size_t first = w->seq[w->then], place;

	if (made == NONE)
		return;
	place = w->at[made];
	if (made == first)
		put_free(w, w->asked);
	else if (made > first && w->again[made])
		put_free(w, w->again[made] - 1);
	else if (made < first && place != NONE && place + w->same >= w->then)
		let_go(w, w->seq[place + w->n - w->then]);
}

static void go_on(struct turning *w)
{
	const struct replay *r = w->r;

	for (size_t i = w->seq[w->then] + 1; i < w->oom; i++) {
		const struct step *s = &r->step[i];

		if (s->kind == STEP_ALLOC)
			ask_again(w, i);
		else if (s->kind == STEP_FREE || s->kind == STEP_FREE_LATER)
			free_again(w, w->made[i]);
		else if (s->kind == STEP_EMPTY || s->kind == STEP_POOL)
			put(w, s);
	}
}

static void turning_init(struct turning *w)
{
	size_t n = w->r->n + 1;

	w->made = xcalloc(n, sizeof(*w->made));
	w->freed = xcalloc(n, sizeof(*w->freed));
	w->seq = xcalloc(n, sizeof(*w->seq));
	w->at = xcalloc(n, sizeof(*w->at));
	w->again = xcalloc(n, sizeof(*w->again));
	w->gone = xcalloc(n, sizeof(*w->gone));
	w->blocks = w->r->blocks;
}

static void turning_release(struct turning *w)
{
	free(w->made);
	free(w->freed);
	free(w->seq);
	free(w->at);
	free(w->again);
	free(w->gone);
}

/* The request, and the turn after it up to the same request, which is left to fail once more. */
static struct replay *one_turn(const struct replay *r, size_t *turn)
{
	struct turning w = {.r = r, .oom = find_oom(r)};
	struct replay *out = NULL;
	struct step *asked;

	if (w.oom == NONE)
		return NULL;
	turning_init(&w);
	read_blocks(&w);
	if (find_turn(&w)) {
		*turn = w.seq[w.then];
		for (size_t i = 0; i < w.oom; i++)
			put(&w, &r->step[i]);
		asked = put(&w, &r->step[*turn]);
		asked->units = r->step[w.oom].units;
		asked->slack = 0;
		asked->block = w.asked = w.blocks++;
		go_on(&w);
		put(&w, &r->step[w.oom]);
		out = replay_of_steps(r, w.out, w.n_out, w.blocks);
	}
	turning_release(&w);
	return out;
}

struct replay *replay_completed(const struct replay *r, size_t *turn)
{
	struct replay *last = one_turn(r, turn), *next;
	size_t again;

	for (int i = 1; last && i < TURNS; i++) {
		next = one_turn(last, &again);
		replay_free(last);
		last = next;
	}
	if (last)
		last->n--;		/* without the request that would fail */
	return last;
}
