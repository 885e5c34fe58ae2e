/* SPDX-License-Identifier: Apache-2.0
 * What the recorder itself reads in a GPU core dump.
 */
#ifndef CUWHY_REC_DUMP_H
#define CUWHY_REC_DUMP_H

#include <stdbool.h>
#include <stdint.h>

/* The CUDA error of the fault that a dump tells of, 0 = that depends. False: not a complete dump. */
bool dump_code(const char *path, uint32_t *code);

/* Is this the error of a kernel, of which there will be a dump? */
bool dump_follows(uint32_t code);

#endif
