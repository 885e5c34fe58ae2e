/* SPDX-License-Identifier: Apache-2.0
 * The host's memory and the limits of a process as JSON: next to its part in a recording, and in `cuwhy memory --json`.
 */
#ifndef CUWHY_RAM_JSON_H
#define CUWHY_RAM_JSON_H

#include <jansson.h>

#include "probe/ram.h"

json_t *ram_to_json(const struct ram_state *r);

/* False when it is not one. Do not trust it: anyone may have written it. */
bool ram_from_json(struct ram_state *r, const json_t *o);

#endif
