/* SPDX-License-Identifier: Apache-2.0
 * Matches facts against the knowledge base (see rules.h).
 */
#include "verdict/rules/rules.h"
#include "base/mem.h"
#include "case/knowledge.h"
#include "verdict/rules/expr.h"
#include "verdict/rules/fired.h"
#include "verdict/rules/like_causes.h"
#include "verdict/rules/message_causes.h"
#include "verdict/rules/template.h"

#include <stdlib.h>
#include <ctype.h>
#include <string.h>

/* The most certain rule that matches, the first of equals. Sets `*unsure` if one could not be decided. */
static const struct when *best_when(const struct cause *c, const struct casefile *f, bool *unsure)
{
	const struct when *best = NULL;

	*unsure = false;
	for (const struct when *w = AT(c->when); w; w = AT(w->next)) {
		struct value v = expr_eval(AT(w->expr), f);

		if (!v.known) {
			*unsure |= value_applies(v);
			continue;
		}
		if (v.number == 0 || !knowledge_use(KNOWLEDGE_RULE, AT(c->id), AT(w->id)))
			continue;
		rule_fired(c, w);
		if (!best || w->sure > best->sure)
			best = w;
	}
	return best;
}

static void match_tell(struct match *m, const struct when *w, const struct casefile *f, struct pool *pool)
{
	const char *because = template_expand(AT(w->because), f, pool);
	const char *joint = w->grade == GRADE_AGAINST ? "; but " : "; ";

	if (because)
		m->because = m->because ? pool_printf(pool, "%s%s%s", m->because, joint, because) : because;
}

bool match_weigh(struct match *m, const struct casefile *f, struct pool *pool)
{
	int sure = (int)m->sure;

	for (const struct when *w = AT(m->cause->evidence); w; w = AT(w->next)) {
		struct value v = expr_eval(AT(w->expr), f);

		if (!v.known || v.number == 0 || !knowledge_use(KNOWLEDGE_RULE, AT(m->cause->id), AT(w->id)))
			continue;
		rule_fired(m->cause, w);
		if (w->grade == GRADE_EXCLUDED)
			return false;
		m->weight += w->grade == GRADE_FOR ? 1 : -1;
		sure -= w->grade == GRADE_AGAINST;
		match_tell(m, w, f, pool);
	}
	if (m->weight > 0 && sure < KB_LIKELY)
		sure++;
	m->sure = sure < KB_POSSIBLE ? KB_POSSIBLE : (enum sureness)sure;
	return true;
}

static const struct order_place *place_of_match(const struct match *m)
{
	return m->when && m->when->place.alone ? &m->when->place : &m->cause->place;
}

bool order_is_over(const struct match *a, const struct match *b)
{
	const struct order_place *x = place_of_match(a), *y = place_of_match(b);
	const uint32_t *below = AT(x->below);

	return below && (below[y->number / 32] >> (y->number % 32) & 1);
}

/* Does another match, at least as certain, explain this one away? One that is only possible does not. */
static bool explained_away(const struct matches *m, const struct match *x)
{
	for (size_t i = 0; i < m->n; i++) {
		const struct match *by = &m->list[i];

		if (by->sure < x->sure || by->sure == KB_POSSIBLE)
			continue;
		for (const struct over *o = AT(by->cause->explains); o; o = AT(o->next))
			if (AT(o->place) == &x->cause->place)
				return true;
	}
	return false;
}

static void drop_explained(struct matches *m, struct pool *pool)
{
	struct match *kept = pool_alloc(pool, m->room * sizeof(*kept));
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++)
		if (!explained_away(m, &m->list[i]))
			kept[n++] = m->list[i];
	m->list = kept;
	m->n = n;
}

static bool match_equals(const struct match *x, const struct match *y)
{
	return x->sure == y->sure && x->weight == y->weight;
}

static int by_evidence_and_id(const void *a, const void *b)
{
	const struct match *x = a, *y = b;

	if (x->sure != y->sure)
		return x->sure > y->sure ? -1 : 1;
	if (x->weight != y->weight)
		return x->weight > y->weight ? -1 : 1;
	return strcmp(AT(x->cause->id), AT(y->cause->id));
}

/* Is one of the equal matches from `first` on over this one? */
static bool has_one_over(const struct matches *m, size_t first, size_t which)
{
	for (size_t i = first; i < m->n && match_equals(&m->list[i], &m->list[which]); i++)
		if (i != which && order_is_over(&m->list[i], &m->list[which]))
			return true;
	return false;
}

/* The most certain first, then the one with more evidence. Of equal ones, one that no other comes before (`over`); if several are
 * left, the first by id. */
static void order_matches(struct matches *m)
{
	xsort(m->list, m->n, sizeof(*m->list), by_evidence_and_id);
	for (size_t first = 0; first < m->n; first++) {
		size_t next = first;
		struct match x;

		while (next + 1 < m->n && has_one_over(m, first, next))
			next++;
		x = m->list[next];
		memmove(&m->list[first + 1], &m->list[first], (next - first) * sizeof(x));
		m->list[first] = x;
	}
}

/* Two causes of one failure cannot both be certain, nor both be likely: those that nothing tells from the first one are a
 * step less certain than their rules, and so is it. */
static void doubt_ties(struct matches *m)
{
	enum sureness sure = m->list[0].sure;
	bool any = false;

	for (size_t i = 1; i < m->n && match_equals(&m->list[i], &m->list[0]); i++)
		any |= m->list[i].tied = !order_is_over(&m->list[0], &m->list[i]);
	m->list[0].tied = any;
	for (size_t i = 0; any && i < m->n; i++)
		if (m->list[i].sure == sure && sure > KB_POSSIBLE)
			m->list[i].sure = sure - 1;
}

static bool is_matched(const struct matches *m, const struct cause *c)
{
	for (size_t i = 0; i < m->n; i++)
		if (m->list[i].cause == c)
			return true;
	return false;
}

static void no_longer_unchecked(struct matches *m, const struct cause *c)
{
	size_t n = 0;

	for (size_t i = 0; i < m->n_unchecked; i++)
		if (m->unchecked[i] != c)
			m->unchecked[n++] = m->unchecked[i];
	m->n_unchecked = n;
}

void matches_add(struct matches *m, struct match x, const struct casefile *f, struct pool *pool)
{
	if (!x.cause || is_matched(m, x.cause) || !match_weigh(&x, f, pool))
		return;
	m->list[m->n++] = x;
	no_longer_unchecked(m, x.cause);
}

static void match(struct matches *m, const struct kb *kb, const struct casefile *f, struct pool *pool, bool checks_only)
{
	*m = (struct matches){
		.room = kb->n + 1,
		.list = pool_alloc(pool, (kb->n + 1) * sizeof(*m->list)),
		.unchecked = pool_alloc(pool, (kb->n + 1) * sizeof(*m->unchecked)),
	};
	for (const struct cause *c = AT(kb->first); c; c = AT(c->next)) {
		bool unsure;
		const struct when *w;

		if (checks_only && !AT(c->check))
			continue;
		w = best_when(c, f, &unsure);

		if (w) {
			struct match found = {.cause = c, .sure = (enum sureness)w->sure, .when = w};

			found.because = AT(w->because) ? template_expand(AT(w->because), f, pool) : NULL;
			if (match_weigh(&found, f, pool))
				m->list[m->n++] = found;
		} else if (unsure) {
			m->unchecked[m->n_unchecked++] = c;
		}
	}
	drop_explained(m, pool);
	if (m->n)
		order_matches(m);
	/* a machine can have several faults at once; a text is about one failure */
	if (m->n && !checks_only && fact_true(f, FACT_text_is))
		doubt_ties(m);
	if (checks_only)
		return;
	message_causes(m, kb, f, pool);
	like_causes(m, kb, f, pool);
}

void rules_match(struct matches *m, const struct kb *kb, const struct casefile *f, struct pool *pool)
{
	match(m, kb, f, pool, false);
}

void rules_match_checks(struct matches *m, const struct kb *kb, const struct casefile *f, struct pool *pool)
{
	match(m, kb, f, pool, true);
}

void advice_each(const struct advice *list, const struct casefile *f, struct pool *pool,
		 advice_fn *say, void *arg)
{
	for (const struct advice *a = list; a; a = AT(a->next)) {
		struct value guard = AT(a->guard) ? expr_eval(AT(a->guard), f) : value_flag(true);
		char *text = guard.known && guard.number != 0 ? template_expand(AT(a->text), f, pool) : NULL;

		if (text)
			say(arg, text, AT(a->command) ? template_expand(AT(a->command), f, pool) : NULL);
	}
}

static void keep_first(void *arg, const char *text, const char *command)
{
	const char **to = arg;

	(void)command;
	if (!*to)
		*to = text;
}

const char *cause_headline(const struct cause *c, const struct casefile *f, struct pool *pool)
{
	const char *said = NULL;
	char *title;

	advice_each(AT(c->headline), f, pool, keep_first, &said);
	if (said)
		return said;
	title = pool_strdup(pool, AT(c->title));	/* it follows "cuwhy: ": lower case, except CUDA, PTX and so on */
	if (!isupper((unsigned char)title[1]))
		title[0] = (char)tolower((unsigned char)title[0]);
	return title;
}
