/* SPDX-License-Identifier: Apache-2.0
 * Memory that stays, guessed for recordings without turns of loops (leftovers.h is for the others): autograd graphs that pile
 * up, and lines at which live memory grows.
 */
#ifndef CUWHY_RETENTION_H
#define CUWHY_RETENTION_H

#include <stdbool.h>
#include <stdint.h>

#include "case/ledger.h"

struct retention {
	bool known;			/* nodes were seen */
	uint64_t nodes, nodes_run;
	uint64_t rounds;		/* how many forward passes' activations are there; 1 = one forward pass */
	uint64_t kept;			/* bytes of activations of passes before the current one */
	uint64_t kept_run;		/* of these: from lines whose backward does run */
	struct place last;		/* where the last node of such a graph was created */
	struct place most;		/* where most of those bytes were allocated */
};
void retention_find(struct retention *r, struct trace *t, const struct ledger *l, const struct cw_failure *f,
		    struct pool *pool);

/* The line whose tensors grow in number while others are freed; NULL when there is none. */
const struct ledger_line *growth_find(const struct ledger *l, struct trace *t, const struct retention *r);

#endif
