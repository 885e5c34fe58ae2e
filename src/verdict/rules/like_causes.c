/* SPDX-License-Identifier: Apache-2.0
 * The causes that a text is like (see like_causes.h).
 */
#include "verdict/rules/like_causes.h"

#include <math.h>
#include <string.h>

#define CANDIDATES 3	/* as many as an answer shows */
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* Of 261 reports for which the rules and the message only had possible causes, in an order: in how many the cause at each place
 * was right. Causes at later places count like the last one here. */
static const double right_at[] = {196, 26, 10};
static const struct { uint32_t code; const char *causes; } codes[] = {
#define CODE_NOTE(code, note, causes) {code, causes},
#include "kb/code_notes.def"
};

static const struct { const char *name, *causes; } statuses[] = {
#define STATUS(family, number, name, note, causes) {#name, causes},
#include "kb/code_notes.def"
};

static void add_candidate(struct matches *m, const struct kb *kb, const char *id, const char *because,
			  const struct casefile *f, struct pool *pool)
{
	if (m->n < CANDIDATES)
		matches_add(m, (struct match){.cause = kb_find(kb, id), .sure = KB_POSSIBLE, .because = because}, f,
			    pool);
}

static void add_list(struct matches *m, const struct kb *kb, const char *ids, const char *because,
		     const struct casefile *f, struct pool *pool)
{
	char *next = pool_strdup(pool, ids), *id;

	while ((id = strsep(&next, ", ")) != NULL)
		if (id[0])
			add_candidate(m, kb, id, because, f, pool);
}

/* What a code, or the status of a library, is known to come from. */
static void code_causes(struct matches *m, const struct kb *kb, const struct casefile *f, struct pool *pool)
{
	const char *status = fact_text(f, FACT_text_status);
	double code = fact_number(f, FACT_error_code, 0);

	for (size_t i = 0; i < COUNT(codes); i++)
		if (code > 0 && codes[i].code == (uint32_t)code)
			add_list(m, kb, codes[i].causes, pool_printf(pool, "CUDA error %.0f may come from it", code), f,
				 pool);
	for (size_t i = 0; i < COUNT(statuses); i++)
		if (!strcmp(statuses[i].name, status))
			add_list(m, kb, statuses[i].causes, pool_printf(pool, "%s may come from it", status), f, pool);
}

static const struct likeness *like_of(const struct casefile *f, const struct cause *c)
{
	for (size_t i = 0; i < f->n_like; i++)
		if (!strcmp(f->like[i].cause, AT(c->id)))
			return &f->like[i];
	return NULL;
}

/* How much speaks for a cause: the logarithm of its words' weight times its place's. */
static double likelihood(const struct casefile *f, const struct cause *c, size_t place)
{
	const struct likeness *like = like_of(f, c);
	size_t last = COUNT(right_at) - 1;

	/* a cause without words in common counts like the least likely one that has some */
	return (like ? like->weight : f->like[f->n_like - 1].weight) +
	       log(right_at[place < last ? place : last] / right_at[last]);
}

/* Do rules say which of the two comes first? */
static bool is_decided(const struct match *first, const struct match *second)
{
	return first->when && second->when && (first->weight > second->weight || order_is_over(first, second));
}

/* Orders those that are only possible: what rules and the message name first counts more, but the words of the text may speak for another
 * one by more. */
static void order_possible(struct matches *m, const struct casefile *f, struct pool *pool)
{
	double *value = pool_alloc(pool, (m->n + 1) * sizeof(*value));
	size_t first = 0;

	while (first < m->n && m->list[first].sure > KB_POSSIBLE)
		first++;
	for (size_t i = first; i < m->n; i++) {
		double mine = m->list[i].named ? likelihood(f, m->list[i].cause, i - first)
					       : likelihood(f, m->list[i].cause, m->n);
		struct match x = m->list[i];
		size_t at = i;

		for (; at > first && value[at - 1] < mine && !is_decided(&m->list[at - 1], &x) &&
		       (x.named || at - 1 > first);
		     at--) {
			value[at] = value[at - 1];
			m->list[at] = m->list[at - 1];
		}
		if (at < i)	/* its place is owed to words */
			x.sure = KB_POSSIBLE;
		value[at] = mine;
		m->list[at] = x;
	}
}

static void add_like(struct matches *m, const struct kb *kb, const struct likeness *like, const struct casefile *f,
		     struct pool *pool)
{
	matches_add(m, (struct match){.cause = kb_find(kb, like->cause), .sure = KB_POSSIBLE,
				   .because = pool_printf(pool, "reports of it have the same words (%s)", like->words)},
		    f, pool);
}

void like_causes(struct matches *m, const struct kb *kb, const struct casefile *f, struct pool *pool)
{
	size_t n = m->n;

	if (n ? m->list[0].sure == KB_CERTAIN : f->like_place == LIKE_BEHIND_RULES)
		return;
	if (!n && f->like_place == LIKE_BEHIND_UNKNOWN)
		add_candidate(m, kb, "unknown", NULL, f, pool);
	if (n && f->n_like && f->like_place == LIKE_FIRST) {
		for (size_t i = 0; i < n; i++)
			m->list[i].named = true;
		for (size_t i = 0; i < f->n_like && i < CANDIDATES; i++)
			add_like(m, kb, &f->like[i], f, pool);
		order_possible(m, f, pool);
	}
	for (size_t i = 0; i < f->n_like && m->n < CANDIDATES; i++)
		add_like(m, kb, &f->like[i], f, pool);
	if (f->like_place == LIKE_FIRST)
		code_causes(m, kb, f, pool);
}
