/* SPDX-License-Identifier: Apache-2.0
 * What is not modeled.
 */
#include "sim/cudart/cudart.h"

#define STANDIN_OTHER(name) STANDIN_REFUSED(name, RT_NOT_SUPPORTED)
#include "sim/cudart/others.def"
