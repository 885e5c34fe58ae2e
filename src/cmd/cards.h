/* SPDX-License-Identifier: Apache-2.0
 * The cards that `cuwhy fit` and `cuwhy memory --what-if` know: those that can be simulated (src/sim/cuda/sim_models.def).
 */
#ifndef CUWHY_CARDS_H
#define CUWHY_CARDS_H

#include <stddef.h>
#include <stdint.h>

struct err;

struct card_model {
	const char *id, *name;		/* "a100-40gb", and as the driver names it; NULL: any card with that much memory */
	uint64_t memory;		/* bytes, as cuMemGetInfo reports the total */
	uint64_t context;		/* of that, what a CUDA context takes, with the first kernel */
};

/* All but the one for tests; each card once, the smallest first. */
size_t cards_all(const struct card_model **list);

/* NULL with `e` filled: there is none of that name. */
const struct card_model *card_find(const char *id, struct err *e);

/* By the driver's name for it; NULL: it is not in the table. */
const struct card_model *card_named(const char *name);

#endif
