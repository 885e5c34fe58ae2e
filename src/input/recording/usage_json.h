/* SPDX-License-Identifier: Apache-2.0
 * Who held the GPUs, as JSON: for `cuwhy memory --json`, and beside the part of a process in a recording.
 */
#ifndef CUWHY_USAGE_JSON_H
#define CUWHY_USAGE_JSON_H

#include <jansson.h>

#include "probe/usage.h"

json_t *usage_to_json(const struct gpu_usage *u);

/* Owned by the caller; NULL when it is none. Anybody may have written it. */
struct gpu_usage *usage_from_json(const json_t *o);

#endif
