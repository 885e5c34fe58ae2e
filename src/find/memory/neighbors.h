/* SPDX-License-Identifier: Apache-2.0
 * What memory is near an address, and what was there.
 */
#ifndef CUWHY_NEIGHBORS_H
#define CUWHY_NEIGHBORS_H

#include "find/memory/pieces.h"

#define NEIGHBORS_DRIVER 3 /* allocations on each side of an address */
#define NEIGHBORS_TORCH	 4
#define NEIGHBORS_MAX	 (2 * (NEIGHBORS_DRIVER + NEIGHBORS_TORCH) + 4) /* those that contain it; what was freed there */

struct neighbors {
	struct piece list[NEIGHBORS_MAX]; /* the driver's, PyTorch's, then those that had been freed */
	size_t n, n_live;
};

/* At `when`, in ticks. Address ranges without memory do not count. */
void neighbors_find(struct neighbors *n, struct trace *t, uint64_t address, uint64_t when);

#endif
