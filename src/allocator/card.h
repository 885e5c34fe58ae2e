/* SPDX-License-Identifier: Apache-2.0
 * A card that answers the allocator's calls from its free bytes: what would have happened on another one.
 *
 * Addresses are given out from the highest down, as the driver does (measured on an H200), or from the lowest up: where PyTorch
 * chooses by address, the answer may depend on it, so what holds for both is known and the rest is not.
 */
#ifndef CUWHY_CARD_H
#define CUWHY_CARD_H

#include "allocator/allocator.h"

struct card_range {
	uint64_t addr, size;
};

struct card {
	uint64_t free;			/* bytes; others may change it between two requests */
	bool ascending;
	struct card_range *range;	/* addresses that are not in use, by address */
	size_t n, cap;
	uint64_t reserved;		/* where the next reservation begins */
};

void card_init(struct card *card, uint64_t free, bool ascending);
void card_release(struct card *card);

/* Memory that is in use already, at these addresses; false: there is not as much. */
bool card_adopt(struct card *card, uint64_t addr, uint64_t size);

/* The card must stay where it is for as long as the allocator lives. */
struct allocator_driver card_driver(struct card *card);

#endif
