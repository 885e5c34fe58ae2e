/* SPDX-License-Identifier: Apache-2.0
 * What is older than the history of a snapshot: PyTorch keeps the newest events, and of older ones only the blocks that are alive.
 */
#ifndef CUWHY_SNAP_OLD_H
#define CUWHY_SNAP_OLD_H

#include "case/case.h"

struct cw_failure;
struct trace;

/* `t`: of snap_recording. */
void snap_old_observe(struct casefile *c, struct trace *t, const struct cw_failure *f);

#endif
