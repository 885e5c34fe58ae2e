/* SPDX-License-Identifier: Apache-2.0
 * Who a pid from NVML is. Only the probe calls this: reading /proc/PID/cmdline blocks when that process hangs in the driver.
 */
#ifndef CUWHY_HOLDER_H
#define CUWHY_HOLDER_H

#include "probe/usage.h"

/* Is this the machine's first pid namespace, where pids are the same as NVML's? */
bool holder_pids_are_ours(void);

/* Fills state, own_user and command of the process h->pid. */
void holder_look(struct gpu_holder *h, bool pids_are_ours);

#endif
