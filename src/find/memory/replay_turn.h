/* SPDX-License-Identifier: Apache-2.0
 * A program that ran out of memory, as it would have gone on.
 *
 * What a step needs that failed in its first turn is not known. In a later one it is what the turns before needed.
 */
#ifndef CUWHY_REPLAY_TURN_H
#define CUWHY_REPLAY_TURN_H

#include "find/memory/replay.h"

/* The recording up to the request that failed, and with it. `turned`: the loop had turned before; then a whole turn more follows, and
 * `turn` is the step with which the last recorded one begins; SIZE_MAX: that turn was not found. NULL: it did not run out of memory, or
 * more than once. Free it with replay_free. */
struct replay *replay_completed(const struct replay *r, bool turned, size_t *turn);

#endif
