/* SPDX-License-Identifier: Apache-2.0
 * Unpacks code of a fat binary. */
#ifndef CUWHY_SIM_UNPACK_H
#define CUWHY_SIM_UNPACK_H

#include <stdbool.h>

#include "formats/fatbin_entry.h"

/* Unpacks `from` into exactly `len` bytes; false: it is damaged. */
bool sim_unpack(enum fatbin_packing packing, struct bytes from, uint8_t *to, size_t len);

#endif
