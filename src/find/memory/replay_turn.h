/* SPDX-License-Identifier: Apache-2.0
 * A program that ran out of memory, as it would have gone on.
 *
 * What a step needs that failed in its first turn is not known. In a later one it is what the turns before needed.
 */
#ifndef CUWHY_REPLAY_TURN_H
#define CUWHY_REPLAY_TURN_H

#include "find/memory/replay.h"

/* The recording with the request that failed, and whole turns of the loop after it, which must have turned before. `turn` is the step with which
 * the last recorded turn begins. NULL: it ran out of memory more than once, or that turn was not found. Free it with replay_free. */
struct replay *replay_completed(const struct replay *r, size_t *turn);

#endif
