/* SPDX-License-Identifier: Apache-2.0
 * Matches the facts of one failure against the knowledge base: which causes match, how certainly, and
 * which could not be checked.
 */
#ifndef CUWHY_RULES_H
#define CUWHY_RULES_H

#include "knowledge/kb.h"

struct match {
	const struct cause *cause;
	enum sureness sure;	/* the rule's, moved by the evidence for and against the cause */
	const struct when *when;	/* the rule that matched; NULL: message_causes.h, like_causes.h */
	const char *because;	/* NULL if the rule gives no reason, or a fact in it is unknown; the evidence's reasons follow */
	int weight;		/* pieces of evidence for it, less those against it */
	bool tied;		/* nothing tells it from another one that is as certain */
	bool named;		/* by a rule or by the message, not by words alone */
};

struct matches {
	/* best first: by certainty, then by evidence, then by the order of the cause files (order.h). Where that says nothing,
	 * by id, so that the answer is always the same: such matches are tied */
	struct match *list;
	size_t n, room;		/* for all causes */
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

/* What speaks for a cause makes it one step more certain, but only a rule says certain; each thing that speaks against it
 * makes it one step less so. False: it is excluded. */
bool match_weigh(struct match *m, const struct casefile *f, struct pool *pool);

/* Does the first one come first when both matches are equally certain (struct order_place)? */
bool order_is_over(const struct match *a, const struct match *b);

/* Adds a cause that no rule matched, behind those that did, unless it is there already or excluded. */
void matches_add(struct matches *m, struct match x, const struct casefile *f, struct pool *pool);

#endif
