/* SPDX-License-Identifier: Apache-2.0
 * Which objects of the program kept its tensors alive when it ended, from a recording.
 */
#ifndef CUWHY_KEPT_BY_H
#define CUWHY_KEPT_BY_H

#include <stdbool.h>

#include "cuwhy/format.h"

struct trace;

/* A copy in which every text ends, and is harmless. False: it was not asked, or there was no answer in time. */
bool trace_holders(const struct trace *t, struct cw_holders *to);

#endif
