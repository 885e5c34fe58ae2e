/* SPDX-License-Identifier: Apache-2.0
 * Holds facts against the knowledge (see rules.h).
 */
#include "rules/rules.h"
#include "rules/fired.h"

#include <stdlib.h>
#include <ctype.h>
#include <string.h>

static int rank_of(const struct cause *c, const struct when *w)
{
	return w->rank >= 0 ? w->rank : c->rank;
}

/* The surest alternative that holds. `*unsure` when one could not be decided. */
static const struct when *best_when(const struct cause *c, const struct casefile *f, bool *unsure)
{
	const struct when *best = NULL;

	*unsure = false;
	for (const struct when *w = c->when; w; w = w->next) {
		struct value v = expr_eval(w->expr, f);

		if (!v.known) {
			*unsure |= value_applies(v);
			continue;
		}
		if (v.number == 0)
			continue;
		rule_fired(c, w);
		if (!best || w->sure > best->sure || (w->sure == best->sure && rank_of(c, w) < rank_of(c, best)))
			best = w;
	}
	return best;
}

static int compare_matches(const void *a, const void *b)
{
	const struct match *x = a, *y = b;

	if (x->sure != y->sure)
		return x->sure > y->sure ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	return strcmp(x->cause->id, y->cause->id);
}

/* Is there another match, no less sure, that explains this one away? What is merely possible explains nothing away. */
static bool explained_away(const struct matches *m, const struct match *by_whom)
{
	char name[128];
	size_t len = strlen(by_whom->cause->id);

	if (len + 4 >= sizeof(name))
		return false;
	memcpy(name, ", ", 2);
	memcpy(name + 2, by_whom->cause->id, len);
	memcpy(name + 2 + len, ", ", 3);
	for (size_t i = 0; i < m->n; i++)
		if (m->list[i].cause->over && m->list[i].sure >= by_whom->sure && m->list[i].sure > KB_POSSIBLE &&
		    strstr(m->list[i].cause->over, name))
			return true;
	return false;
}

static void drop_explained(struct matches *m, struct pool *pool)
{
	struct match *kept = pool_alloc(pool, (m->n + 1) * sizeof(*kept));
	size_t n = 0;

	for (size_t i = 0; i < m->n; i++)
		if (!explained_away(m, &m->list[i]))
			kept[n++] = m->list[i];
	m->list = kept;
	m->n = n;
}

static void match(struct matches *m, const struct kb *kb, const struct casefile *f, struct pool *pool, bool checks_only)
{
	*m = (struct matches){
		.list = pool_alloc(pool, (kb->n + 1) * sizeof(*m->list)),
		.unchecked = pool_alloc(pool, (kb->n + 1) * sizeof(*m->unchecked)),
	};
	for (const struct cause *c = kb->first; c; c = c->next) {
		bool unsure;
		const struct when *w;

		if (checks_only && !c->check)
			continue;
		w = best_when(c, f, &unsure);

		if (w)
			m->list[m->n++] = (struct match){ c, w->sure, rank_of(c, w), w,
				w->because ? template_expand(w->because, f, pool) : NULL };
		else if (unsure)
			m->unchecked[m->n_unchecked++] = c;
	}
	drop_explained(m, pool);
	if (m->n)
		qsort(m->list, m->n, sizeof(*m->list), compare_matches);
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
	for (const struct advice *a = list; a; a = a->next) {
		struct value guard = a->guard ? expr_eval(a->guard, f) : value_flag(true);
		char *text = guard.known && guard.number != 0 ? template_expand(a->text, f, pool) : NULL;

		if (text)
			say(arg, text, a->command ? template_expand(a->command, f, pool) : NULL);
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

	advice_each(c->headline, f, pool, keep_first, &said);
	if (said)
		return said;
	title = pool_strdup(pool, c->title);	/* it goes on after "cuwhy:", unless it begins with CUDA, PTX and the like */
	if (!isupper((unsigned char)title[1]))
		title[0] = (char)tolower((unsigned char)title[0]);
	return title;
}
