/* SPDX-License-Identifier: Apache-2.0
 * Turns of Python loops: in which one a failure was seen, and in which ones live blocks were allocated.
 */
#ifndef CUWHY_TURNS_H
#define CUWHY_TURNS_H

#include "case/line.h"
#include "find/memory/pieces.h"
#include "read/recording/trace.h"

/* One loop, and a turn of it. */
struct turn {
	struct place loop;		/* where it begins; `library`: not the user's own code */
	uint32_t number;		/* the loop's index in the recording */
	uint32_t turn;			/* from 1 */
	bool exact;			/* else it counts the turns that could be told apart: about this many */
	bool calls;			/* not a loop of Python's: C code (map, hooks) that calls again from this line */
};

/* The loops around a failure, or around the allocation of a block of PyTorch's; innermost first. Their number, at most
 * CW_LOOP_TURNS; 0 = in no loop, or not known (older recordings). */
size_t turns_of_failure(const struct trace *t, const struct cw_failure *f, struct turn *out);
size_t turns_of_number(const struct trace *t, const struct cw_number *x, struct turn *out);
size_t turns_of_block(const struct trace *t, const struct cw_allocation *block, struct turn *out);

/* The same for a piece, which may be freed by now: its turns are known until their places are needed for others. */
size_t turns_of_piece(const struct trace *t, const struct piece *p, struct turn *out);

/* The same for a launch of trace_launches(). Outer loops are missing if they last turned too long ago. */
size_t turns_of_launch(const struct trace *t, const struct cw_launch *l, struct turn *out);

/* The turn of the loop to name: the innermost one of the user's own code, else of any. NULL if n is 0. */
const struct turn *turn_to_name(const struct turn *turns, size_t n);

/* "turn 3 of the loop at model.py:20, in turn 16 of the loop at train.py:8": the user's own loops, innermost first. */
const char *turns_in_words(const struct trace *t, const struct turn *turns, size_t n, struct pool *pool);

/* A site's live blocks by the turn of one loop in which they were allocated, oldest turn first. Turns of an inner loop are
 * separate if those of the loops around it are: `outer` counts the first of these. Loops of several threads are not
 * distinguished. */
struct turn_share {
	uint32_t turn;
	uint32_t outer;			/* turn of the outermost loop; the same as `turn` if that is this loop */
	uint64_t blocks, bytes;
	bool exact;
};
struct site_turns {
	struct turn_share *share;
	size_t n;
	uint64_t blocks, bytes;		/* the site's blocks that were allocated outside of this loop */
};
void site_turns_of(struct trace *t, uint32_t site, uint32_t loop, struct site_turns *out);
void site_turns_release(struct site_turns *s);

#endif
