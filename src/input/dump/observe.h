/* SPDX-License-Identifier: Apache-2.0
 * What a GPU core dump tells.
 */
#ifndef CUWHY_OBSERVE_DUMP_H
#define CUWHY_OBSERVE_DUMP_H

#include "case/case.h"

struct culprit;

void assert_facts_of_dump(struct casefile *f, const struct culprit *c);

#endif
