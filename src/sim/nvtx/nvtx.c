/* SPDX-License-Identifier: Apache-2.0
 * Stand-in for NVTX: ranges and marks that no tool reads. Without a tool the original does nothing either, but here the depth of
 * ranges is counted, as a tool would.
 */
#include "sim/common/standin.h"

static __thread int depth;

/* Returns the depth of the range that begins, counted from 0. */
STANDIN(int, nvtxRangePushA, (const char *message))
{
	(void)message;
	return depth++;
}

/* Returns the depth of the range that ends, or a negative number without one. */
STANDIN(int, nvtxRangePop, (void))
{
	return depth > 0 ? --depth : -1;
}

STANDIN(void, nvtxMarkA, (const char *message))
{
	(void)message;
}

/* Ranges between threads have a number instead of a depth. */
STANDIN(uint64_t, nvtxRangeStartA, (const char *message))
{
	static _Atomic uint64_t last;

	(void)message;
	return atomic_fetch_add(&last, 1) + 1;
}

STANDIN(void, nvtxRangeEnd, (uint64_t range))
{
	(void)range;
}
