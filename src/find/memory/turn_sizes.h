/* SPDX-License-Identifier: Apache-2.0
 * What the rest of a turn would ask for whose batch is not as large as that of the turn before.
 *
 * The requests that both turns have made by now are pairs: so large before, so large now. A later request of the same size becomes what its pair
 * became; one of the same line (in backward, that of the forward line) grows as the pairs of that line did, if these agree; any other as all pairs
 * did, if these agree, which is a guess: nothing was seen of that line.
 */
#ifndef CUWHY_TURN_SIZES_H
#define CUWHY_TURN_SIZES_H

#include "find/memory/replay_steps.h"

struct turn_pair {
	uint32_t stack;
	uint32_t before, now;		/* units */
};

struct turn_sizes {
	struct turn_pair *list;		/* by size before, then by line */
	size_t n, cap;
	struct turn_pair *line;		/* of each line, the largest that differs; `now` 0: others of the line grew otherwise */
	size_t n_lines;
	struct step_sizes fixed;	/* of what stays */
	double ratio;			/* of the largest pair that differs */
	bool one_ratio;			/* all that differ have it */
};

struct turn_size {
	uint32_t units;			/* 0: that cannot be told */
	uint32_t unsure;		/* by how much less it may be */
	uint32_t guessed;		/* by how much it was changed without a pair */
};

/* The same request of both turns. */
void turn_sizes_add(struct turn_sizes *s, const struct step *before, const struct step *now);

/* After the last pair; of that program. */
void turn_sizes_learn(struct turn_sizes *s, const struct replay *r);

/* A later request: what step `before` was in the turn before. */
struct turn_size turn_sizes_of(const struct turn_sizes *s, const struct replay *r, size_t before);

void turn_sizes_release(struct turn_sizes *s);

#endif
