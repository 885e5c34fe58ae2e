/* SPDX-License-Identifier: Apache-2.0
 * What a loop of a Python function calls, read from its bytecode. No variable changes in `while time.monotonic() < end`, and yet it ends: what
 * changes is what the call returns.
 */
#ifndef CUWHY_PYLOOP_H
#define CUWHY_PYLOOP_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pool.h"

struct pyproc;

/* The function runs, and was met only at instructions from `low` to `high` (bytes of its code). What may end the loop around them although no
 * variable changes: "it calls monotonic in this loop, which may return something else each time". NULL: nothing, all that it calls are the
 * functions of kb/python_pure.def. */
const char *pyloop_may_end(struct pyproc *p, uint64_t code, int64_t low, int64_t high, struct pool *pool);

/* Is there no loop around these instructions? Then what takes so long is a call. False also if the code cannot be read. */
bool pyloop_is_none(struct pyproc *p, uint64_t code, int64_t low, int64_t high);

#endif
