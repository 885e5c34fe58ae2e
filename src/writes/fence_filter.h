/* SPDX-License-Identifier: Apache-2.0
 * The half of the fence that is a filter on system calls; see fence.h.
 */
#ifndef CUWHY_WRITES_FENCE_FILTER_H
#define CUWHY_WRITES_FENCE_FILTER_H

#include <stdbool.h>
#include <stdint.h>

struct err;

/* The calls of fence_calls.def, for this thread and what it starts. With `truncates`, also opening that would empty a file
 * without having it open for writing, which Landlock does not see before Linux 6.2. */
int fence_filter(uint64_t pass, bool truncates, struct err *e);

#endif
