/* SPDX-License-Identifier: Apache-2.0
 * A program that ran out of memory, as it would have gone on.
 *
 * What a step needs that failed in its first turn is not known. In a later one it is what the turns before needed.
 *
 * And a program that was ended while its loop turned, as it would have gone on: what the last turns have left behind, and more turns like the
 * last one.
 */
#ifndef CUWHY_REPLAY_TURN_H
#define CUWHY_REPLAY_TURN_H

#include <stdbool.h>

#include "cuwhy/format.h"
#include "find/memory/replay.h"

/* Where the turn began in which it ran out of memory: of each loop around the failure, the first step of this turn that is known. */
struct turn_began {
	size_t step[CW_LOOP_TURNS];
	size_t n;			/* 0: not known */
};

/* The recording with the request that failed, and whole turns of the loop after it, which must have turned before. `turn` is the step with which
 * the last recorded turn begins. Where the batches differ, what is still to come has the sizes of the turn that failed (turn_sizes.h). NULL: it
 * ran out of memory more than once, that turn was not found, or the sizes cannot be told. Free it with replay_free. */
struct replay *replay_completed(const struct replay *r, const struct turn_began *began, size_t *turn);

/* What the last turns of the loop have left behind: each of them asked for the same in the same order, of other sizes perhaps. */
struct turns_left {
	size_t turns;			/* that were alike; 0: the end of the recording is in no loop that is known */
	size_t requests;		/* in each */
	uint64_t in_use;		/* bytes asked for and not freed, after the last one */
	uint64_t bytes;			/* by which one turn adds to the memory in use; several took this on average, unless steady */
	bool steady;			/* each of them added as much, or as much more than the one before */
	uint64_t more;			/* steady: by which a turn adds more than the one before; 0: the growth is linear */
	uint32_t stack;			/* who asked for the most of it; 0: nothing is left behind */
	bool failed;			/* in the next turn: the request that failed is the one that came next in the turn before */
};
void replay_turns_left(const struct replay *r, struct turns_left *l);

/* The recording and so many more turns, or a few more, like the last. Sizes that grew from turn to turn go on to grow. If the turns were not steady,
 * the later half of them comes again and again. What follows the last request is not in it.
 * `first`: the step with which the first of these turns begins; each has `each` requests. NULL: no turns are known. */
struct replay *replay_repeated(const struct replay *r, const struct turns_left *l, size_t turns, size_t *first,
			       size_t *each);

#endif
