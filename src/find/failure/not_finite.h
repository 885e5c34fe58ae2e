/* SPDX-License-Identifier: Apache-2.0
 * The first NaN or infinity that a program itself copied to the host, as its loss or a norm: numbers were wrong by then.
 */
#ifndef CUWHY_NOT_FINITE_H
#define CUWHY_NOT_FINITE_H

#include "base/pool.h"
#include "find/failure/place.h"

struct not_finite {
	const char *value;		/* "NaN" */
	const char *kernel;		/* one that was given its address, the first if that is known; NULL = none is */
	const char *turn;		/* "iteration 57 of the loop at train.py:8"; NULL = in no loop */
	uint32_t times;			/* how often that line read one */
	struct place read, made, last;
	bool copied, computed;		/* `made` is known: where it was copied from the host, or where that kernel was launched */
	bool used;			/* `last` is: where the last one was that was given its address */
};

/* False: there is none, or it is not known where. */
bool not_finite_first(struct trace *t, struct not_finite *to, struct pool *pool);

/* "NaN at train.py:31, in iteration 57 of the loop at train.py:20; computed at train.py:28" */
const char *not_finite_words(const struct trace *t, const struct not_finite *x, struct pool *pool);

#endif
