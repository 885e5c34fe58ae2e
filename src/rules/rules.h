/* SPDX-License-Identifier: Apache-2.0
 * Holds the facts of one failure against the knowledge: which causes fit, how surely, and which could
 * not be checked.
 */
#ifndef CUWHY_RULES_H
#define CUWHY_RULES_H

#include "rules/kb.h"

struct match {
	const struct cause *cause;
	enum sureness sure;
	const struct when *when;	/* the way it was recognised */
	const char *because;	/* NULL when the rule does not say, or a fact in it is unknown */
};

struct matches {
	struct match *list;		/* best first: by certainty, then by the order of the cause files (order.h), then by id */
	size_t n;
	const struct cause **unchecked;	/* might fit, but a fact is missing */
	size_t n_unchecked;
};

void rules_match(struct matches *m, const struct kb *kb, const struct casefile *f, struct pool *pool);

/* The same among the causes that a check of the doctor asks for. */
void rules_match_checks(struct matches *m, const struct kb *kb, const struct casefile *f, struct pool *pool);

/* The sentences of a cause that hold for these facts: calls `say` for each. */
typedef void advice_fn(void *arg, const char *text, const char *command);
void advice_each(const struct advice *list, const struct casefile *f, struct pool *pool,
		 advice_fn *say, void *arg);

/* What stands above the report: the first headline that holds and whose facts are known, else the title,
 * begun small. */
const char *cause_headline(const struct cause *c, const struct casefile *f, struct pool *pool);

#endif
