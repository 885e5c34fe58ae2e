/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy memory --pid`: which objects of a running program keep its tensors alive.
 */
#ifndef CUWHY_MEMORY_PID_H
#define CUWHY_MEMORY_PID_H

#include <stdbool.h>

int memory_of_pid(const char *pid, bool json, bool watch);

#endif
