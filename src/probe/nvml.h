/* SPDX-License-Identifier: Apache-2.0
 * Asks NVML (libnvidia-ml.so.1, found at run time only) for every GPU and its processes. Only the probe calls this: a
 * driver may hang or crash in it.
 */
#ifndef CUWHY_NVML_H
#define CUWHY_NVML_H

#include "probe/message.h"

/* Tells what it learns as it learns it; `details`: also what struct gpu_details has. False when NVML could not be used at
 * all, which it told, too. */
bool nvml_ask(probe_tell tell, bool details);

#endif
