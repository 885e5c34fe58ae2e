/* SPDX-License-Identifier: Apache-2.0
 * PyTorch's segments at one moment: which of the driver's allocations they are, how much of each is free, and what keeps it from
 * going back to the driver.
 */
#ifndef CUWHY_SEGMENTS_H
#define CUWHY_SEGMENTS_H

#include "case/ledger.h"
#include "find/memory/kinds.h"

/* Divides the driver's pieces into segments of PyTorch and others, and finds the free
 * blocks in the segments. */
void segments_find(struct ledger_segments *s, struct moment *m, struct kinds *k, uint64_t reserved, struct pool *pool);

/* Before PyTorch gives up, it returns every segment without tensors to the driver, except those of private pools, whose owners (CUDA
 * graphs, MemPool) still live. So those that are left are theirs, and so are segments with tensors that were allocated during a
 * capture. */
void segments_keep(struct ledger_segments *s, const struct moment *m, struct kinds *k);

#endif
