/* SPDX-License-Identifier: Apache-2.0
 * An asynchronous error says that an earlier kernel failed, not which. What is left without more evidence: the
 * launches since the last successful synchronization, by the lines they came from.
 */
#ifndef CUWHY_SUSPECTS_H
#define CUWHY_SUSPECTS_H

#include <stddef.h>
#include <stdint.h>

#include "case/line.h"

struct asserting;
struct trace;
struct cw_failure;
struct cw_launch;
struct pool;

#define SUSPECTS_MAX 64

struct suspect {		/* one line */
	struct place place;	/* file NULL: launches without a line */
	uint32_t func;		/* its newest kernel */
	uint32_t launches;
};

struct suspects {
	struct suspect line[SUSPECTS_MAX];	/* newest first */
	size_t n;		/* lines */
	size_t launches;	/* total, including those from lines beyond the table */
	size_t cleared;		/* launches whose kernels do not fit the assertion that was printed */
};

/* Every launch that may have caused what `noticed` reports, newest first. */
typedef void suspect_fn(void *arg, const struct cw_launch *l);
typedef void launches_fn(struct trace *t, const struct cw_failure *noticed, suspect_fn *each, void *arg);
launches_fn suspects_each;

/* Every launch before it, even if its stream was synchronized since. */
launches_fn launches_each;

/* Those of them whose kernels fit the assertion that the driver printed best; all, if it printed none or their names do not say. */
size_t suspects_asserting(struct trace *t, const struct cw_failure *noticed, const struct asserting *a,
			  struct pool *pool, suspect_fn *each, void *arg);

/* The same by lines. */
void suspects_find(struct suspects *s, struct trace *t, const struct cw_failure *noticed, const struct asserting *a,
		   struct pool *pool);

#endif
