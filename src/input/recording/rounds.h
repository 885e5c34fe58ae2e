/* SPDX-License-Identifier: Apache-2.0
 * When the turns of the program's own loop began: a step of training, a batch of an evaluation.
 */
#ifndef CUWHY_ROUNDS_H
#define CUWHY_ROUNDS_H

#include "input/recording/trace.h"

struct rounds {
	bool known;			/* loops were recorded; n = 0: all there is, is one turn, or no loop was around the failing pass */
	uint64_t *begin;		/* ticks, newest first: of the current turn, of the one before it, ... */
	size_t n;			/* as far back as launches go */
};

void rounds_find(struct rounds *r, struct trace *t, const struct cw_failure *f);
void rounds_release(struct rounds *r);

#endif
