/* SPDX-License-Identifier: Apache-2.0
 * Facts about what every turn of the program's loop leaves behind, when memory ran out for it, and where it would have.
 */
#ifndef CUWHY_OBSERVE_GROWTH_H
#define CUWHY_OBSERVE_GROWTH_H

#include "case/case.h"
#include "find/memory/per_turn.h"

/* `r`: the requests up to the failure. Whether they can be played back on another card, they know: those of a snapshot cannot. */
void observe_growth(struct casefile *c, const struct replay *r, const struct per_turn_known *known);

#endif
