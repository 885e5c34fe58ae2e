/* SPDX-License-Identifier: Apache-2.0
 * What a program would have gone on with (see replay_turn.h).
 *
 * The requests just before the failure are looked for earlier in the recording: where as many as possible came in the same order,
 * the loop had got as far as now, one or several turns ago. What it did from there on, up to the failure, is a whole turn. If batches differ, only
 * the lines are the same, and what is left of the turn has other sizes.
 * At the end of a recording without a failure, the same is looked for among requests of any size.
 */
#include "find/memory/replay_turn.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "find/memory/replay_steps.h"
#include "find/memory/turn_sizes.h"

#define NONE  SIZE_MAX
#define TURNS 3		/* in the first ones, what is left of the turns before still moves; `cuwhy fit` waits for as many */

struct turning {
	const struct replay *r;
	size_t oom;			/* the step that failed, or the end */
	size_t *made;			/* per step that frees: the step that allocated; NONE: before the first */
	bool *freed;			/* per step that allocates */
	size_t *seq, n;			/* the steps that allocate what comes again in every turn */
	size_t *at;			/* per step: its place in `seq`, NONE: not in it */
	size_t then;			/* in `seq`: where the loop had got as far as at the failure */
	size_t same;			/* so many before both are the same */
	struct turn_sizes sizes;	/* if the turn then had another batch */
	bool other;			/* it had */
	bool differed;			/* and so had the one before that: what was told of one from the other could have been wrong */
	size_t begin;			/* in `seq`: where the turn that failed began; NONE: not known */
	size_t next;			/* in `out`: where the turn after it begins */
	struct step *out;
	size_t n_out, cap_out;
	uint32_t blocks;
	uint32_t *again;		/* per step that allocates: its block in the turn to come, plus one; 0: none */
	bool *gone;			/* per step that allocates: what was live at the failure is freed in the turn to come */
	uint32_t asked;			/* the block that the failed step asks for */
	size_t period;			/* requests in a turn, counted from the end */
	size_t span;			/* requests that come again: those of the last turn, or of as many as differ */
	uint32_t *more;			/* blocks of the turns that are added, plus one; by place in `seq` behind its end; 0: freed */
};

static bool same_line(const struct step *a, const struct step *b)
{
	return a->stack == b->stack && a->purpose == b->purpose;
}

static bool same_request(const struct step *a, const struct step *b)
{
	return same_line(a, b) && step_asked(a) == step_asked(b);
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
static size_t *same_before(const struct turning *w, bool (*equal)(const struct step *, const struct step *))
{
	size_t *same = xcalloc(w->n + 1, sizeof(*same)), left = 0, right = 0;
#define REQUEST(k) (&w->r->step[w->seq[w->n - 1 - (k)]])

	for (size_t k = 1; k < w->n; k++) {
		size_t z = k < right && same[k - left] < right - k ? same[k - left] : k < right ? right - k : 0;

		while (k + z < w->n && equal(REQUEST(z), REQUEST(k + z)))
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

/* Where the loop had got as far, with requests that are `equal` before; the latest of equals. */
static bool find_then(struct turning *w, const size_t *same, bool (*is_then)(const struct turning *, const struct step *))
{
	w->then = NONE;
	w->same = 0;
	for (size_t k = 1; k < w->n; k++)
		if (same[k] > w->same && is_then(w, &w->r->step[w->seq[w->n - k]])) {
			w->then = w->n - k;
			w->same = same[k];
		}
	return w->then != NONE;
}

static bool of_failed_size(const struct turning *w, const struct step *s)
{
	return step_asked(s) == step_size(&w->r->step[w->oom]);
}

/* What comes next is known by what came before: in backward, the failure's own line is not the one that requests have. */
static bool of_any_size(const struct turning *w, const struct step *s)
{
	(void)w;
	(void)s;
	return true;
}

/* Of the loop that has turned since `then`: an inner one began later, an outer one earlier. */
static void find_begin(struct turning *w, const struct turn_began *began)
{
	w->begin = NONE;
	for (size_t i = 0; i < began->n; i++) {
		size_t at = w->then;

		while (at < w->n && w->seq[at] < began->step[i])
			at++;
		if (at > w->then && (w->begin == NONE || at < w->begin))
			w->begin = at;
	}
}

/* Pairs of the turn of which `failed` is the next request, and of the one a turn before. */
static void learn_sizes(const struct turning *w, struct turn_sizes *s, size_t begin, size_t end, const struct step *failed)
{
	size_t period = w->n - w->then;

	*s = (struct turn_sizes){.n = 0};
	for (size_t i = begin; i < end; i++)
		turn_sizes_add(s, &w->r->step[w->seq[i - period]], &w->r->step[w->seq[i]]);
	turn_sizes_add(s, &w->r->step[w->seq[end - period]], failed);
	turn_sizes_learn(s, w->r);
}

#define ALIKE	 50		/* one part in so many */
#define GUESSED	 10		/* likewise, of lines of which nothing was seen: an output, a loss */
#define DIFFERS 0.1		/* batches of two turns do, by that part */

/* The rest of a turn, in units: told from that of the turn before. */
struct rest {
	uint64_t told, unsure, guessed;
	uint64_t was;			/* of the last whole turn */
};

/* The last two whole turns had other batches, and asked for as much there. */
static bool is_constant(const struct turning *w, size_t i)
{
	const struct step *step = w->r->step;
	size_t period = w->n - w->then;

	return w->differed && i >= period && step_asked(&step[w->seq[i]]) == step_asked(&step[w->seq[i - period]]);
}

/* Place `i` of the last whole turn in the turn to come: told from what it asked for there, or `back` requests earlier. */
static struct turn_size size_to_come(const struct turning *w, const struct turn_sizes *s, size_t i, size_t back)
{
	if (is_constant(w, i))
		return (struct turn_size){.units = step_units(step_asked(&w->r->step[w->seq[i]]))};
	return turn_sizes_of(s, w->r, w->seq[i - back]);
}

/* False: some of it cannot be told. */
static bool rest_tell(struct rest *x, const struct turning *w, const struct turn_sizes *s, size_t back)
{
	*x = (struct rest){.told = 0};
	for (size_t i = w->then + 1; i < w->begin; i++) {
		struct turn_size size = size_to_come(w, s, i, back);

		if (!size.units)
			return false;
		x->told += size.units;
		x->unsure += size.unsure;
		x->guessed += size.guessed;
		x->was += step_units(step_asked(&w->r->step[w->seq[i]]));
	}
	return true;
}

/* The last whole turn, had its sizes been told in this way from the one before: as they were? True as well if it is the first one. */
static bool was_right_before(struct turning *w)
{
	size_t period = w->n - w->then;
	struct turn_sizes s;
	struct rest x;
	bool right;

	if (w->begin < 2 * period || w->begin - period < w->n - w->same)
		return true;
	learn_sizes(w, &s, w->begin - period, w->then, &w->r->step[w->seq[w->then]]);
	w->differed = fabs(s.ratio - 1) > DIFFERS;
	right = rest_tell(&x, w, &s, period) && (x.told > x.was ? x.told - x.was : x.was - x.told) <= x.was / ALIKE;
	turn_sizes_release(&s);
	return right;
}

/* All that is to come of the turn can be told. */
static bool tell_sizes(struct turning *w)
{
	struct rest x;

	if (w->begin == NONE || w->same < w->n - w->begin)
		return false;
	learn_sizes(w, &w->sizes, w->begin, w->n, &w->r->step[w->oom]);
	w->other = true;
	return was_right_before(w) && rest_tell(&x, w, &w->sizes, 0) && x.unsure <= x.told / ALIKE &&
	       (w->differed || x.guessed <= x.told / GUESSED);
}

/* So many of the last requests are of turns of that loop: all since the first of them. */
static size_t looped(const struct turning *w, const size_t *lines)
{
	size_t k = w->n - w->then;

	return lines[k] + k;
}

/* A turn of the loop that has made `most` of the last requests, the same as now as far as this one has got: up to its beginning, or to where
 * another line asked. Within a turn, an inner loop may ask for the same again and again. */
static bool find_same_turn(struct turning *w, const struct turn_began *began, const size_t *requests,
			   const size_t *lines, size_t most)
{
	size_t k;

	if (!find_then(w, requests, of_failed_size) || looped(w, lines) < most)
		return false;
	k = w->n - w->then;
	find_begin(w, began);
	return w->same >= k || w->same == lines[k] || (w->begin != NONE && w->same >= w->n - w->begin);
}

static bool find_turn(struct turning *w, const struct turn_began *began)
{
	size_t *requests = same_before(w, same_request), *lines = same_before(w, same_line);
	bool found = find_then(w, lines, of_any_size);

	if (found && !find_same_turn(w, began, requests, lines, looped(w, lines))) {
		find_then(w, lines, of_any_size);
		find_begin(w, began);
		found = tell_sizes(w);
	}
	free(requests);
	free(lines);
	return found;
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

/* Steps from there on belong to the turn that failed. */
static size_t begin_step(const struct turning *w)
{
	return w->begin < w->n ? w->seq[w->begin] : w->oom;
}

/* It replaces what the line made a turn ago, if that is still there: as a variable does. */
static void ask_again(struct turning *w, size_t i)
{
	const struct step *s = &w->r->step[i];
	struct step *again;

	if (!w->freed[i] && (is_once(w, i) || s->purpose == KIND_PARAMETERS || s->purpose == KIND_LOADED))
		return;
	again = put(w, s);
	again->block = w->blocks;
	if (w->other && i < begin_step(w)) {
		again->units = size_to_come(w, &w->sizes, w->at[i], 0).units;
		again->slack = 0;
	}
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

		if (i == begin_step(w))
			w->next = w->n_out;
		if (s->kind == STEP_ALLOC)
			ask_again(w, i);
		else if (s->kind == STEP_FREE || s->kind == STEP_FREE_LATER)
			free_again(w, w->made[i]);
		else if (s->kind == STEP_EMPTY || s->kind == STEP_POOL)
			put(w, s);
	}
	if (begin_step(w) == w->oom)
		w->next = w->n_out;
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
	free(w->more);
	turn_sizes_release(&w->sizes);
}

/* The request, and the turn after it up to the same request, which is left to fail once more. `next`: where that turn begins. */
static struct replay *one_turn(const struct replay *r, const struct turn_began *began, size_t *turn,
			       struct turn_began *next)
{
	struct turning w = {.r = r, .oom = find_oom(r)};
	struct replay *out = NULL;
	struct step *asked;

	if (w.oom == NONE)
		return NULL;
	turning_init(&w);
	read_blocks(&w);
	if (find_turn(&w, began)) {
		*turn = w.seq[w.then];
		for (size_t i = 0; i < w.oom; i++)
			put(&w, &r->step[i]);
		asked = put(&w, &r->step[*turn]);
		asked->units = r->step[w.oom].units;
		asked->slack = 0;
		asked->block = w.asked = w.blocks++;
		go_on(&w);
		put(&w, &r->step[w.oom]);
		*next = (struct turn_began){.step = {w.next}, .n = w.begin != NONE};
		out = replay_of_steps(r, w.out, w.n_out, w.blocks);
	}
	turning_release(&w);
	return out;
}

struct replay *replay_completed(const struct replay *r, const struct turn_began *began, size_t *turn)
{
	struct turn_began at = *began;
	struct replay *last = one_turn(r, &at, turn, &at), *next;
	size_t again;

	for (int i = 1; last && i < TURNS; i++) {
		next = one_turn(last, &at, &again, &at);
		replay_free(last);
		last = next;
	}
	if (last)
		last->n--;		/* without the request that would fail */
	return last;
}

/* Two turns that are alike may be a coincidence, or the first ones, in which things are made that stay. */
#define TURNS_LEAST 3

/* The longest part of the recording in which requests came again and again, up to its end. */
static bool find_period(struct turning *w)
{
	size_t *same = same_before(w, same_line);

	for (size_t k = 1; k < w->n; k++)
		if (same[k] > w->same && same[k] / k + 1 >= TURNS_LEAST) {
			w->period = k;
			w->same = same[k];
		}
	free(same);
	return w->period > 0;
}

/* Bytes in use after each turn, the last one first. As asked for: how much larger a block is depends on what was free. */
static uint64_t *use_after_turns(const struct turning *w, size_t turns)
{
	uint64_t *use = xcalloc(turns, sizeof(*use)), now = 0;
	size_t left = turns;

	for (size_t i = 0; i < w->oom; i++) {
		if (w->r->step[i].kind == STEP_ALLOC)
			now += step_asked(&w->r->step[i]);
		else if (w->made[i] != NONE)
			now -= step_asked(&w->r->step[w->made[i]]);
		if (left && w->seq[w->n - 1 - (left - 1) * w->period] == i)
			use[--left] = now;
	}
	return use;
}

/* By how much the use rose in turn `t`, the last being 0. */
static int64_t rise(const uint64_t *use, size_t t)
{
	return (int64_t)(use[t] - use[t + 1]);
}

#define ROUNDED 2		/* units: sizes are rounded up to one, and differences of two of them may be off by one each way */

static uint32_t units_asked(const struct step *s)
{
	return s->units - s->slack;
}

/* Requests of the last turn that were for another size a turn before. */
static size_t requests_changed(const struct turning *w)
{
	size_t n = 0;

	for (size_t j = w->n - w->period; j < w->n; j++)
		n += units_asked(&w->r->step[w->seq[j]]) != units_asked(&w->r->step[w->seq[j - w->period]]);
	return n;
}

/* By how much the use after a turn may be off. */
static int64_t bytes_rounded(const struct turning *w)
{
	return (int64_t)requests_changed(w) * ROUNDED * STEP_UNIT;
}

/* Each turn added as much as the one before, or more by as much. */
static bool is_steady(const struct turning *w, const uint64_t *use, size_t half)
{
	for (size_t t = 2; t < half; t++)
		if (llabs(rise(use, t - 1) - rise(use, t) - (rise(use, 0) - rise(use, 1))) > 2 * bytes_rounded(w))
			return false;
	return rise(use, 0) > 0;
}

static uint64_t more_each_time(const struct turning *w, const uint64_t *use)
{
	int64_t more = rise(use, 0) - rise(use, 1);

	return more > 2 * bytes_rounded(w) ? (uint64_t)more : 0;
}

/* What the last turn's request `j` has added: all of it, or what it has more than the one that it replaced. */
static uint64_t added_by(const struct turning *w, size_t j)
{
	const struct step *now = &w->r->step[w->seq[j]], *before = &w->r->step[w->seq[j - w->period]];

	if (w->freed[w->seq[j]])
		return 0;
	if (!w->freed[w->seq[j - w->period]])
		return step_asked(now);
	return step_asked(now) > step_asked(before) ? step_asked(now) - step_asked(before) : 0;
}

static uint32_t stack_of_most(const struct turning *w)
{
	uint64_t most = 0;
	uint32_t stack = 0;

	for (size_t j = w->n - w->period; j < w->n; j++) {
		uint64_t bytes = 0;
		const struct step *s = &w->r->step[w->seq[j]];

		for (size_t i = j; added_by(w, j) && i < w->n; i++)	/* counted once, at the first of its requests */
			bytes += w->r->step[w->seq[i]].stack == s->stack ? added_by(w, i) : 0;
		if (bytes > most) {
			most = bytes;
			stack = s->stack;
		}
	}
	return stack;
}

/* The request that failed is the one that came next in the turn before. */
static bool failed_in_turn(const struct turning *w)
{
	const struct step *next = &w->r->step[w->seq[w->n - w->period]], *failed = &w->r->step[w->oom];

	if (w->oom == w->r->n)
		return false;
	return (failed->stack && failed->stack == next->stack) || step_size(failed) == step_asked(next);
}

static size_t first_oom(const struct replay *r)
{
	size_t i = 0;

	while (i < r->n && r->step[i].kind != STEP_OOM)
		i++;
	return i;
}

static size_t requests_after(const struct replay *r, size_t step)
{
	size_t n = 0;

	for (size_t i = step; i < r->n; i++)
		n += r->step[i].kind == STEP_ALLOC;
	return n;
}

static bool turning_until(struct turning *w, const struct replay *r, size_t end)
{
	*w = (struct turning){.r = r, .oom = end};
	turning_init(w);
	read_blocks(w);
	return find_period(w);
}

/* To the request that failed, or the end. A convolution asks for less before it gives up, and the program may get some way with that; one that
 * went on for longer has survived. */
static bool turning_at_end(struct turning *w, const struct replay *r)
{
	size_t oom = first_oom(r);
	bool turns = turning_until(w, r, oom);

	if (oom == r->n || (turns && requests_after(r, oom) <= 2 * w->period))
		return turns;
	turning_release(w);
	return turning_until(w, r, r->n);
}

/* After the last request there are frees only: with them the next turn begins, or the program ends. */
static void forget_tail(struct turning *w)
{
	for (size_t i = w->seq[w->n - 1] + 1; i < w->oom; i++)
		if (w->made[i] != NONE)
			w->freed[w->made[i]] = false;
}

void replay_turns_left(const struct replay *r, struct turns_left *l)
{
	struct turning w;

	*l = (struct turns_left){.turns = 0};
	if (turning_at_end(&w, r)) {
		size_t turns = w.same / w.period + 1, half = turns / 2 + 1;	/* the first ones may still make what stays */
		uint64_t *use = use_after_turns(&w, turns);

		l->turns = turns;
		l->requests = w.period;
		l->failed = failed_in_turn(&w);
		l->in_use = use[0];
		l->steady = is_steady(&w, use, half);
		if (l->steady) {
			l->bytes = (uint64_t)rise(use, 0);
			l->more = more_each_time(&w, use);
		} else if (use[0] > use[half - 1]) {
			l->bytes = (use[0] - use[half - 1]) / (half - 1);
		}
		forget_tail(&w);
		l->stack = l->bytes ? stack_of_most(&w) : 0;
		free(use);
	}
	turning_release(&w);
}

/* By how many units the request of place `j`, in the last turn, is larger in each turn; where several turns come again, it is as they were. */
static int64_t units_more(const struct turning *w, size_t j)
{
	const struct step *step = w->r->step;
	int64_t now = units_asked(&step[w->seq[j]]), before = units_asked(&step[w->seq[j - w->period]]),
		first = units_asked(&step[w->seq[j - 2 * w->period]]);

	return w->span == w->period && llabs((now - before) - (before - first)) <= ROUNDED ? (now - first) / 2 : 0;
}

static void repeat_request(struct turning *w, size_t j, size_t times)
{
	const struct step *s = &w->r->step[w->seq[j]];
	int64_t units = (int64_t)units_asked(s) + units_more(w, j) * (int64_t)times;
	struct step *again = put(w, s);

	again->units = units < 1 ? 1 : units > UINT32_MAX ? UINT32_MAX : (uint32_t)units;
	again->slack = 0;
	again->block = w->blocks;
	w->more[j + times * w->span - w->n] = ++w->blocks;
}

/* What was made a turn, or several, before it is freed. What was made before the turns that were alike is freed once. */
static void repeat_free(struct turning *w, size_t made, size_t times)
{
	size_t j = made == NONE ? NONE : w->at[made], at;

	if (j == NONE || j + w->same + w->period < w->n)
		return;
	at = j + times * w->span;
	if (at >= w->n) {
		if (w->more[at - w->n])
			put_free(w, w->more[at - w->n] - 1);
		w->more[at - w->n] = 0;
	} else {
		let_go(w, w->seq[at]);
	}
}

static void repeat_span(struct turning *w, size_t times)
{
	for (size_t i = w->seq[w->n - 1 - w->span] + 1; i <= w->seq[w->n - 1]; i++) {
		const struct step *s = &w->r->step[i];

		if (s->kind == STEP_ALLOC && w->at[i] != NONE)
			repeat_request(w, w->at[i], times);
		else if (s->kind == STEP_FREE || s->kind == STEP_FREE_LATER)
			repeat_free(w, w->made[i], times);
		else if (s->kind == STEP_EMPTY || s->kind == STEP_POOL)
			put(w, s);
	}
}

struct replay *replay_repeated(const struct replay *r, const struct turns_left *l, size_t turns, size_t *first,
			       size_t *each)
{
	struct replay *out = NULL;
	struct turning w;

	if (turning_at_end(&w, r)) {
		size_t times;

		w.span = l->steady ? w.period : w.period * (l->turns / 2);
		times = (turns * w.period + w.span - 1) / w.span;
		w.more = xcalloc(times * w.span + 1, sizeof(*w.more));
		forget_tail(&w);
		for (size_t i = 0; i <= w.seq[w.n - 1]; i++)
			put(&w, &r->step[i]);
		*first = w.n_out;
		*each = w.period;
		for (size_t t = 1; t <= times; t++)
			repeat_span(&w, t);
		out = replay_of_steps(r, w.out, w.n_out, w.blocks);
	}
	turning_release(&w);
	return out;
}
