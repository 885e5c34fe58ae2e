/* SPDX-License-Identifier: Apache-2.0
 * What the user of a framework calls the size of a batch (kb/batch_options.def).
 */
#ifndef CUWHY_BATCH_OPTIONS_H
#define CUWHY_BATCH_OPTIONS_H

#include "case/case.h"

struct cw_failure;
struct trace;

/* After the facts about the largest batch that fits. */
void observe_batch_options(struct casefile *c, struct trace *t, const struct cw_failure *f);

#endif
