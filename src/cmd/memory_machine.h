/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy memory` without a recording: every GPU of this machine and who holds it.
 */
#ifndef CUWHY_MEMORY_MACHINE_H
#define CUWHY_MEMORY_MACHINE_H

#include <stdbool.h>
#include <stdio.h>

#include "probe/usage.h"

/* Asks and prints; returns the exit status of the command. */
int memory_of_machine(bool json);

/* The table of one sample, of now or of a recording. Commands are cut at `width` columns; 0 = they are not. */
void memory_print_usage(FILE *out, const struct gpu_usage *u, int width);

#endif
