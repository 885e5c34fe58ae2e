/* SPDX-License-Identifier: Apache-2.0
 * Which blocks of a snapshot autograd seems to have saved for backward, told from how long they lived.
 *
 * Without gradients, what a model makes on its way is freed before it returns, and its result stays. With gradients, much of it
 * stays until backward has run. A snapshot does not say more.
 */
#ifndef CUWHY_SNAP_SAVED_H
#define CUWHY_SNAP_SAVED_H

#include "find/memory/snap_turns.h"

enum { NOT_SAVED, SAVED, SAVED_AND_RUN };	/* the last: backward has run the graph that it is of */

/* One for each event, up to `end`; the caller frees them. */
uint8_t *snap_saved(const struct snap_turns *x, const struct snap_replay *r, size_t end);

#endif
