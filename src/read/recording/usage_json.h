/* SPDX-License-Identifier: Apache-2.0
 * Who used the GPUs, as JSON: for `cuwhy memory --json`, and next to a process's part in a recording.
 */
#ifndef CUWHY_USAGE_JSON_H
#define CUWHY_USAGE_JSON_H

#include <jansson.h>

#include "probe/usage.h"

json_t *usage_to_json(const struct gpu_usage *u);

/* Owned by the caller; NULL when it is not one. Do not trust it: anyone may have written it. */
struct gpu_usage *usage_from_json(const json_t *o);

#endif
