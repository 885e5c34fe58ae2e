/* SPDX-License-Identifier: Apache-2.0
 * What earlier turns of the program's loops have left behind.
 *
 * A turn of a loop over batches frees what it allocated, or the next one replaces it. Lines whose tensors are still there from
 * several earlier turns, old ones and new ones alike, add to the memory in every turn. Loops over the layers of a model, which
 * are parts of one turn, do not count.
 *
 * An attempt that ran out of memory, and that the program survived, keeps its tensors as long as its exception lives, at least to
 * the end of the `except` block. These count as those of one earlier turn.
 */
#ifndef CUWHY_LEFTOVERS_H
#define CUWHY_LEFTOVERS_H

#include "find/memory/kinds.h"

struct left {
	uint64_t bytes, blocks;		/* of earlier turns */
	size_t turns;			/* of how many, at the line that has most of it */
	struct place most;		/* that line */
	uint64_t most_bytes, most_blocks;
	bool over;			/* its loop was over when memory ran out: it adds no more by itself */
	bool again;			/* that loop, or one around it, would have added more */
	bool built;			/* most of it is parts of models, or was allocated in constructors, or by a model for itself */
	bool replaced;			/* what that line held was replaced by something larger, in so many turns */
	bool *gone;			/* by index of the block: it belongs to this */
};

/* Each turn, a line replaces what it allocated in the turn before by something larger. */
struct grown {
	size_t turns;			/* that it grew in; 0: it does not */
	uint64_t first;			/* bytes, in the first of them */
	bool alone;			/* most of what the turns allocate elsewhere is as large as ever */
};

struct leftovers {
	bool known;			/* the turns of the blocks were recorded, and the loops that matter */
	bool exact;			/* the turns of those below are, too */
	bool in_loop, turned;		/* the failure is in a loop that counts, and not in its first turn */
	bool first_pass;		/* that loop is in the first turn of another one, and backward has not run yet: what it has made may be needed */
	struct left graphs;		/* of autograd, with the activations that they keep */
	bool graphs_in_training;	/* backward runs in the loop whose turns left them */
	struct place last;		/* where the newest tensors of these graphs were made: what keeps them */
	struct left tensors;		/* without a graph */
	uint64_t tried;			/* bytes of both that are left of attempts that ran out of memory */
	struct place try;		/* what the last of these had called, from where the program went on */
	struct grown grown;		/* the line at which memory ran out */
	bool rising;			/* a line that replaces what it holds by something larger does not count: others make more, too */
	uint64_t built;			/* bytes of loops that only build something: these are not left behind */
	uint64_t run_again;		/* bytes of loops that were run several times, by a loop that was not seen */
};

void leftovers_find(struct leftovers *l, struct trace *t, const struct moment *m, struct kinds *k,
		    const struct cw_failure *f, struct pool *pool);

#endif
