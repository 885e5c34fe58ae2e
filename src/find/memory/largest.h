/* SPDX-License-Identifier: Apache-2.0
 * The largest size that fits: what a program would ask for at a size (growth.h), played back. Every such number that cuwhy prints
 * comes from here, and was played back.
 */
#ifndef CUWHY_LARGEST_H
#define CUWHY_LARGEST_H

#include "find/memory/growth.h"
#include "find/memory/replay.h"

/* One process and GPU, and the card that is asked about. */
struct largest_part {
	const struct growth *growth;
	struct replay_question q;
};

struct largest {
	struct largest_part *part;
	size_t n;
	uint64_t most;			/* larger sizes are not tried */
	unsigned doubts;		/* bits by enum replay_doubt: those of all that was played */
};

/* `lean` 1: as if all that is unsure needed more memory; -1: less; 0: as it is likely. */
bool largest_fits(struct largest *l, uint64_t size, int lean);

/* 0: not even size 1. That more needs more memory is assumed. */
uint64_t largest_find(struct largest *l, int lean);

#endif
