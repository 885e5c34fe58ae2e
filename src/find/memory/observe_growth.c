/* SPDX-License-Identifier: Apache-2.0
 * Facts about growth (see observe_growth.h).
 */
#include "find/memory/observe_growth.h"

#include "base/format.h"
#include "find/failure/place.h"
#include "find/memory/cards.h"
#include "read/recording/trace.h"

static const char *line_words(const struct trace *t, const struct place *p, struct pool *pool)
{
	return p->file ? pool_printf(pool, "%s:%u", file_shown(p->file, trace_header(t)->cwd), p->line) : NULL;
}

/* Its loop still turned when memory ran out, and what it leaves is not for something that is being built. Of the last few turns alone,
 * where they differ, it is not known what a turn is. */
static bool grows(const struct per_turn *p, const struct leftovers *x)
{
	if (p->loop.part && (!p->left.requests || p->loop.rate != 1 || !p->left.steady))
		return false;
	return p->left.bytes && p->proven && p->left.failed && !(p->graphs ? x->graphs.over : x->tensors.over);
}

/* On a larger card it would only have come later. */
static void observe_elsewhere(struct casefile *c, const struct replay *r, const struct per_turn *p,
			      const struct trace *t, int device)
{
	struct replay_question q = replay_same(r);
	const struct card_model *card = card_twice(trace_header(t)->device[device].name, replay_facts(r)->total);
	struct per_turn_end end = {.played = false};
	uint64_t fails_at;

	if (!card)
		return;
	card_ask(&q, trace_header(t)->device[device].name, card);
	if (p->left.requests)
		per_turn_ends(&end, r, &q, &p->left);
	fails_at = p->left.requests ? per_turn_fails_at(p, &end) : per_turn_fails_at_rate(p, r, &q);
	if (fails_at <= p->loop.turn)
		return;
	fact_set_text(c, FACT_growth_gpu, card->id);
	fact_set_number(c, FACT_growth_gpu_fails_at, (double)fails_at);
	fact_set_flag(c, FACT_growth_gpu_played, end.played);
}

/* What each turn adds: "each iteration of the loop at train.py:8 adds 393 MiB, from train.py:31". */
static const char *adds_words(const struct casefile *c, const struct per_turn *p)
{
	const char *line = fact_text_or_null(c, FACT_growth_line), *loop = fact_text_or_null(c, FACT_growth_loop),
		   *more = "";
	char bytes[32], by[32];

	format_bytes(bytes, sizeof(bytes), (double)per_turn_bytes(p));
	if (p->left.more)
		more = pool_printf(c->pool, ", and %s more each time",
				   format_bytes(by, sizeof(by), (double)p->left.more));
	return pool_printf(c->pool, "each iteration%s%s adds %s%s%s%s%s", loop ? " of the loop at " : "",
			   loop ? loop : "", p->left.steady ? "" : "about ", bytes, more,
			   !line ? "" : p->graphs ? ", with graphs kept of " : ", from ", line ? line : "");
}

/* And since when, and until when: ", since iteration 3; memory ran out in iteration 94; with the memory of a100-80gb it would be about iteration 190". */
static const char *words(const struct casefile *c, const struct per_turn *p)
{
	const char *said = adds_words(c, p), *about = p->loop.exact ? "" : "about ";
	char number[32];

	if (p->loop.since)
		said = pool_printf(c->pool, "%s, since %siteration %s", said, p->loop.since > 1 ? about : "",
				   format_thousands(number, sizeof(number), (double)p->loop.since));
	if (p->loop.turn)
		said = pool_printf(c->pool, "%s; memory ran out in %siteration %s", said, about,
				   format_thousands(number, sizeof(number), (double)p->loop.turn));
	if (fact_known(c, FACT_growth_gpu))
		said = pool_printf(c->pool, "%s; with the memory of %s it would be about iteration %s", said,
				   fact_text(c, FACT_growth_gpu),
				   format_thousands(number, sizeof(number), fact_number(c, FACT_growth_gpu_fails_at, 0)));
	return said;
}

void observe_growth(struct casefile *c, const struct replay *r, const struct per_turn_known *known)
{
	struct per_turn p;

	per_turn_of(&p, r, known);
	if (p.left.turns)
		fact_set_flag(c, FACT_growth_settled, !p.left.bytes);
	if (!p.left.turns || (p.left.bytes && (!p.left.failed || p.loop.rate <= 0)))
		per_turn_irregular(&p, r, known);
	if (!grows(&p, known->left))
		return;
	fact_set_flag(c, FACT_growth_settled, false);
	fact_set_number(c, FACT_growth_bytes, (double)per_turn_bytes(&p));
	fact_set_text(c, FACT_growth_unit, "iteration");
	fact_set_flag(c, FACT_growth_steady, p.left.steady);
	fact_set_number(c, FACT_growth_more, (double)p.left.more);
	fact_set_flag(c, FACT_growth_graphs, p.graphs);
	fact_set_text(c, FACT_growth_line, line_words(known->trace, &p.line, c->pool));
	fact_set_text(c, FACT_growth_loop, line_words(known->trace, &p.loop.place, c->pool));
	if (p.loop.since)
		fact_set_number(c, FACT_growth_since, (double)p.loop.since);
	if (p.loop.turn)
		fact_set_number(c, FACT_growth_fails_at, (double)p.loop.turn);
	if (p.loop.turn && replay_facts(r)->total)
		observe_elsewhere(c, r, &p, known->trace, known->m->device);
	fact_set_text(c, FACT_growth_words, words(c, &p));
}
