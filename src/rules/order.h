/* SPDX-License-Identifier: Apache-2.0
 * Which of two causes leads when both fit equally well: the `over:` lines of the cause files.
 *
 * A cause, or a single rule, is over others. That is a partial order: what is over something is also over all that this
 * is over. A rule that has an `over:` of its own, or that one names, stands in the order alone: what is said of its
 * cause does not hold for it.
 */
#ifndef CUWHY_ORDER_H
#define CUWHY_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct kb;
struct match;

/* One name of an `over:` line. */
struct over {
	struct over *next;
	const char *name;	/* "cause" or "cause/rule" */
	const char *file;	/* and line: where it is written */
	int line;
	struct order_place *place;	/* what it names */
};

/* The place of a cause or of a rule in the order. */
struct order_place {
	const char *name;
	struct over *over;
	bool alone;		/* of a rule: it does not stand where its cause does */
	size_t number;
	uint64_t *below;	/* a bit for the number of every place that this one is over */
	bool open;		/* while the order is being checked */
};

/* Ties the names to what they name. -EINVAL, with the reason, for an unknown name and for an order that goes in a circle. */
int order_resolve(struct kb *kb, struct err *e);

/* Does the first lead when both matches are equally certain? */
bool order_is_over(const struct match *a, const struct match *b);

#endif
