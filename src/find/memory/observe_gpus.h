/* SPDX-License-Identifier: Apache-2.0
 * Another GPU of the machine as a way out.
 */
#ifndef CUWHY_OBSERVE_GPUS_H
#define CUWHY_OBSERVE_GPUS_H

#include "case/case.h"

struct gpu_usage;
struct trace;

/* `u`: who held the GPUs when memory ran out on `device`; NULL = not checked. After the facts about other processes. */
void observe_other_gpus(struct casefile *c, const struct gpu_usage *u, const struct trace *t, int device);

#endif
