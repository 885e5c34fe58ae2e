/* SPDX-License-Identifier: Apache-2.0
 * The cards that `cuwhy fit` and `cuwhy memory --what-if` know, and what growth is compared with: those that can be simulated (src/sim/cuda/sim_models.def).
 */
#ifndef CUWHY_CARDS_H
#define CUWHY_CARDS_H

#include <stddef.h>
#include <stdint.h>

struct card_model {
	const char *id, *name;		/* "a100-40gb", and as the driver names it; NULL: any card with that much memory */
	uint64_t memory;		/* bytes, as cuMemGetInfo reports the total */
	uint64_t context;		/* of that, what a CUDA context takes, with the first kernel */
};

enum {
	CARDS = 0
#define SIM_MODEL(...) +1
#include "sim/cuda/sim_models.def"
#undef SIM_MODEL
};
extern const struct card_model card_models[CARDS];

/* All but the one for tests; each card once, the smallest first. */
size_t cards_all(const struct card_model **list);

/* By the driver's name for it; NULL: it is not in the table. */
const struct card_model *card_named(const char *name);

/* The smallest one with about twice as much memory, of the same kind as the one with the driver's name `recorded` if there is one; NULL: there is none. */
const struct card_model *card_twice(const char *recorded, uint64_t memory);

/* What a program that was recorded on the card with the driver's name `recorded` would need on this one. */
struct replay_question;
void card_ask(struct replay_question *q, const char *recorded, const struct card_model *card);

#endif
