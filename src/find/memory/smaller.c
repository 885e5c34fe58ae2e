/* SPDX-License-Identifier: Apache-2.0
 * How much smaller the batch must be, from one recording (see smaller.h).
 */
#include "find/memory/smaller.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "find/memory/growth.h"
#include "find/memory/largest.h"
#include "find/memory/leftovers.h"
#include "find/memory/replay_steps.h"
#include "find/memory/replay_turn.h"
#include "find/memory/turns.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"

#define PERCENT 100

/* What is played back is not what happened. Of a release that is taken for another, or a card's order of addresses, the worse was played. */
#define USELESS                                                                                                                 \
	(1u << REPLAY_UNMODELED | 1u << REPLAY_BEFORE | 1u << REPLAY_LOST | 1u << REPLAY_CONTRADICTION | \
	 1u << REPLAY_DAMAGED | 1u << REPLAY_DIFFERS | 1u << REPLAY_LIMIT)

static const struct cw_failure *failure_of(const struct replay *r)
{
	const struct cw_failure *const *list, *found = NULL;
	size_t n = trace_failures(r->trace, &list);

	for (size_t i = 0; i < n; i++)
		if (list[i]->source == CW_SRC_TORCH_OOM && list[i]->device == r->device)
			found = list[i];
	return found;
}

/* Is the block of the same turn of loop `at`, in the same turns of the loops around it? */
static bool in_same_turn(const struct turn *block, size_t n, const struct turn *now, size_t n_now, size_t at)
{
	if (n < n_now - at)
		return false;
	block += n - (n_now - at);
	for (size_t i = 0; i < n_now - at; i++)
		if (block[i].number != now[at + i].number || block[i].turn != now[at + i].turn)
			return false;
	return true;
}

/* The step in which each piece, by its index, was allocated; SIZE_MAX: it is not among them. */
static size_t *steps_of_pieces(const struct replay *r, const struct pieces *p)
{
	size_t *step = xcalloc(p->n + 1, sizeof(*step));

	for (size_t i = 0; i < p->n; i++)
		step[i] = SIZE_MAX;
	for (size_t i = 0; i < r->n; i++) {
		const struct piece *at = r->step[i].kind == STEP_ALLOC ? pieces_at(p, r->step[i].addr) : NULL;

		if (at && at->addr == r->step[i].addr)
			step[at - p->list] = i;
	}
	return step;
}

/* In backward, a thread without Python frames failed: it is in the turn in which the newest tensors were made. */
static size_t turns_at(const struct replay *r, const struct moment *m, const struct cw_failure *f, struct turn *now)
{
	size_t n = turns_of_failure(r->trace, f, now), n_newer;
	struct turn newer[CW_LOOP_TURNS];
	uint64_t newest = 0;

	if (n)
		return n;
	for (size_t i = 0; i < m->torch.n; i++) {
		n_newer = m->torch.list[i].ticks > newest ? turns_of_piece(r->trace, &m->torch.list[i], newer) : 0;
		if (n_newer) {
			newest = m->torch.list[i].ticks;
			n = n_newer;
			memcpy(now, newer, sizeof(newer));
		}
	}
	return n;
}

/* By the oldest block that is live and of this turn: inputs, as a rule. Without any, it has only begun. */
static void find_beginning(struct turn_began *began, const struct replay *r, const struct moment *m,
			   const struct cw_failure *f)
{
	size_t *step = steps_of_pieces(r, &m->torch);
	struct turn now[CW_LOOP_TURNS], turn[CW_LOOP_TURNS];
	size_t n = turns_at(r, m, f, now);

	began->n = n;
	for (size_t at = 0; at < n; at++)
		began->step[at] = r->n;
	for (size_t i = 0; i < m->torch.n; i++) {
		size_t n_turns = step[i] < r->n ? turns_of_piece(r->trace, &m->torch.list[i], turn) : 0;

		for (size_t at = 0; n_turns && at < n; at++)
			if (step[i] < began->step[at] && in_same_turn(turn, n_turns, now, n, at))
				began->step[at] = step[i];
	}
	free(step);
}

/* Does a loop go on to add memory, as one that builds a model does? Then what one turn needs says nothing of all of them. Sizes are told to a hundredth: with
 * the largest that fits, nearly all is in use, and whoever adds more than that each time fails a turn later. What the first turn leaves is made once. */
static bool goes_on_adding(const struct replay *r, const struct moment *m, const struct cw_failure *f)
{
	struct turn now[CW_LOOP_TURNS], turn[CW_LOOP_TURNS];
	size_t n = turns_at(r, m, f, now), outer = 0, at;
	uint64_t left = 0, all = 0;

	while (outer < n && now[n - 1 - outer].turn < 2)
		outer++;
	if (outer == n || now[n - 1 - outer].turn < 3)
		return false;
	at = n - 1 - outer;
	for (size_t i = 0; i < m->torch.n; i++) {
		size_t n_turns = turns_of_piece(r->trace, &m->torch.list[i], turn);
		const struct turn *same = n_turns > outer ? &turn[n_turns - 1 - outer] : NULL;

		all += m->torch.list[i].size;
		if (same && same->number == now[at].number && same->turn > 1 && same->turn < now[at].turn &&
		    (!outer || in_same_turn(turn, n_turns, now, n, at + 1)))
			left += m->torch.list[i].size;
	}
	return left * PERCENT > all * (now[at].turn - 2);
}

/* Did it fail in a later turn of its loop than the first? Then what a turn needs is known. */
static bool has_turned(const struct replay *r, struct turn_began *began)
{
	const struct cw_failure *f = failure_of(r);
	struct leftovers x = {.known = false};
	struct pool pool = {0};
	struct moment m;
	struct kinds k;
	bool told;

	if (!f)
		return false;
	moment_init(&m, r->trace, f->ticks, r->device);
	kinds_init(&k, r->trace, &m, failure_in_backward(r->trace, f), &pool);
	leftovers_find(&x, r->trace, &m, &k, f, &pool);
	find_beginning(began, r, &m, f);
	told = x.known && x.in_loop && x.turned && !x.first_pass && !goes_on_adding(r, &m, f);
	moment_free(&m);
	pool_release(&pool);
	return told;
}

/* The word or value that is this number: "64" and "--batch=64", but not "lr0.64". NULL: none is, or several are. */
static const char *find_number(const char *words, int64_t number)
{
	const char *found = NULL;

	for (const char *s = words; *s; s++) {
		size_t n = strspn(s, "0123456789");

		if (n && (s == words || s[-1] == ' ' || s[-1] == '=') && (!s[n] || s[n] == ' ') &&
		    strtoll(s, NULL, 10) == number) {
			if (found)
				return NULL;
			found = s;
		}
		s += n && s[n] ? n - 1 : 0;
	}
	return found;
}

/* The first dimension of tensors on the GPU in the user's functions, if the program was given just that number. */
static uint64_t batch_of(const struct trace *t)
{
	size_t len = 0;
	const struct cw_tensor *list = trace_chunk(t, CW_CHUNK_TENSORS, &len);
	int64_t batch = 0;

	for (size_t i = 0; list && i < len / sizeof(*list); i++) {
		int64_t first = list[i].seq && list[i].n_dims ? list[i].dim[0] : 0;

		if (first < 2 || !str_starts(trace_string(t, list[i].device), "cuda") ||
		    !find_number(trace_header(t)->cmdline, first))
			continue;
		if (batch && batch != first)
			return 0;
		batch = first;
	}
	return (uint64_t)batch;
}

uint64_t smaller_whole(const struct smaller *s)
{
	return s->batch ? s->batch : GROWTH_WHOLE;
}

static void play(struct smaller *s, const struct replay *r, const struct replay_question *q, size_t turn)
{
	uint64_t size = smaller_whole(s);
	struct growth g;
	struct largest_part part = {.growth = &g, .q = *q};
	struct largest l = {.part = &part, .n = 1, .most = size - 1};

	growth_init_alone(&g, r, s->batch, turn);
	s->largest = largest_find(&l, 1);
	s->known = !((l.doubts | replay_facts(r)->doubts) & USELESS) && !largest_fits(&l, size, 1) &&	/* with all of it, it did not */
		   (s->largest || !largest_fits(&l, 1, -1));	/* that none fits is reported only if nothing that may grow could change it */
	growth_release(&g);
}

void smaller_find(struct smaller *s, const struct replay *r, const struct replay_question *q)
{
	struct turn_began began;
	size_t turn = SIZE_MAX;
	struct replay *whole;

	*s = (struct smaller){.batch = batch_of(r->trace)};
	if (!replay_facts(r)->ran_out) {
		play(s, r, q, turn);
	} else if (has_turned(r, &began) && (whole = replay_completed(r, &began, &turn)) != NULL) {
		play(s, whole, q, turn);
		replay_free(whole);
	}
}

uint64_t smaller_percent(const struct smaller *s)
{
	return PERCENT * s->largest / smaller_whole(s);
}

uint64_t smaller_chunks(const struct smaller *s)
{
	uint64_t whole = s->batch ? s->batch : PERCENT, largest = s->batch ? s->largest : smaller_percent(s), n = 1;

	while (largest && (whole + n - 1) / n > largest)
		n++;
	return n;
}

const char *smaller_words(const struct smaller *s, const struct trace *t, struct pool *pool)
{
	const char *words = trace_header(t)->cmdline, *at = s->batch ? find_number(words, (int64_t)s->batch) : NULL;

	if (!at || strlen(words) + 1 == sizeof(trace_header(t)->cmdline) || strpbrk(words, "\"'\\$`;&|<>(){}*?#!~\n"))
		return NULL;		/* cut off, or a shell would read it otherwise */
	return pool_printf(pool, "%.*s{}%s", (int)(at - words), words, at + strspn(at, "0123456789"));
}
