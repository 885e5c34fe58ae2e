/* SPDX-License-Identifier: Apache-2.0
 * A cause without a failure: what its file says, for people. Facts are filled in from a sample machine (kb/samples.def),
 * guards are left out, and what would then be said twice is said once.
 */
#ifndef CUWHY_CAUSE_PAGE_H
#define CUWHY_CAUSE_PAGE_H

#include "knowledge/kb.h"

struct said;

/* The facts of the sample machine. */
void samples_observe(struct casefile *c);

/* What the cause is recognized by; `source` is how certain that is. */
struct said *cause_reasons(const struct cause *c, struct pool *pool);

/* Everything that its answer may advise. */
struct said *cause_fixes(const struct cause *c, struct pool *pool);

#endif
