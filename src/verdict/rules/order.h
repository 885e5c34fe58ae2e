/* SPDX-License-Identifier: Apache-2.0
 * Which of two causes comes first when both match with equal certainty: the `over:` lines of the
 * cause files.
 *
 * A cause, or a single rule, is over others. This is a transitive partial order. A rule that has its own `over:`, or is
 * named in one, has its own place in the order: its cause's place does not apply to it.
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
	struct order_place *place;	/* the place that it names */
};

/* The place of a cause or of a rule in the order. */
struct order_place {
	const char *name;
	struct over *over;
	bool alone;		/* of a rule: it has its own place, not its cause's */
	size_t number;
	uint64_t *below;	/* a bit for each place that this one is over, by number */
	bool open;		/* while the order is being checked */
};

/* Resolves the names. -EINVAL, with the reason, for an unknown name or a cycle. */
int order_resolve(struct kb *kb, struct err *e);

/* Does the first one come first when both matches are equally certain? */
bool order_is_over(const struct match *a, const struct match *b);

#endif
