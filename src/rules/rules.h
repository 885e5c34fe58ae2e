/* SPDX-License-Identifier: Apache-2.0
 * Matches the facts of one failure against the knowledge base: which causes match, how certainly, and
 * which could not be checked.
 */
#ifndef CUWHY_RULES_H
#define CUWHY_RULES_H

#include "rules/kb.h"

struct match {
	const struct cause *cause;
	enum sureness sure;
	const struct when *when;	/* the rule that matched */
	const char *because;	/* NULL if the rule gives no reason, or a fact in it is unknown */
};

struct matches {
	struct match *list;		/* best first: by certainty, then by the order of the cause files (order.h), then by id */
	size_t n;
	const struct cause **unchecked;	/* might match, but a fact is missing */
	size_t n_unchecked;
};

void rules_match(struct matches *m, const struct kb *kb, const struct casefile *f, struct pool *pool);

/* The same, for causes that belong to a check of the doctor. */
void rules_match_checks(struct matches *m, const struct kb *kb, const struct casefile *f, struct pool *pool);

/* Calls `say` for each sentence of a cause that is true for these facts. */
typedef void advice_fn(void *arg, const char *text, const char *command);
void advice_each(const struct advice *list, const struct casefile *f, struct pool *pool,
		 advice_fn *say, void *arg);

/* The line above the report: the first headline that is true and whose facts are known, else the title
 * with its first letter in lower case. */
const char *cause_headline(const struct cause *c, const struct casefile *f, struct pool *pool);

#endif
