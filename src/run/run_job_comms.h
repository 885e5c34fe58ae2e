/* SPDX-License-Identifier: Apache-2.0
 * NCCL's communicators of a recording, as a job folder has them.
 */
#ifndef CUWHY_RUN_JOB_COMMS_H
#define CUWHY_RUN_JOB_COMMS_H

#include "base/pool.h"

struct job_rank;
struct trace;

/* Also the last line that launched or called something, if there is no better one. */
void job_comms_of(struct job_rank *r, struct trace *t, struct pool *pool);

#endif
