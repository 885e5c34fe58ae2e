/* SPDX-License-Identifier: Apache-2.0
 * The values behind a fault, where the dump has no memory: what the program had copied to the GPU stands in for it.
 */
#ifndef CUWHY_RECALL_VALUES_H
#define CUWHY_RECALL_VALUES_H

#include <stdbool.h>

#include "find/fault/recall.h"

struct culprit;
struct fault_launch;
struct trace;

/* True: `to` is the culprit with values that were recalled; it borrows all else, and needs no free. In any case `from` says where those that
 * are known, or the place that is, come from. */
bool recall_values(struct culprit *to, struct recalled *from, struct trace *t, const struct culprit *k,
		   const struct fault_launch *m);

#endif
