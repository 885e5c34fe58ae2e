/* SPDX-License-Identifier: Apache-2.0
 * What the recorder itself reads in a GPU core dump.
 */
#ifndef CUWHY_REC_DUMP_H
#define CUWHY_REC_DUMP_H

#include <stdbool.h>
#include <stdint.h>

/* The CUDA error for the fault in a dump, 0 = not determined by it. False: the dump is not complete. */
bool dump_code(const char *path, uint32_t *code);

/* Is this a kernel's error, for which a dump will follow? */
bool dump_follows(uint32_t code);

#endif
