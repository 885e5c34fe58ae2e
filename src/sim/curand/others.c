/* SPDX-License-Identifier: Apache-2.0
 * What is not modeled.
 */
#include "sim/common/standin.h"

enum { NOT_SUPPORTED = 999 };		/* CURAND_STATUS_INTERNAL_ERROR: it has none for what is not supported */

#define STANDIN_OTHER(name) STANDIN_REFUSED(name, NOT_SUPPORTED)
#include "sim/curand/others.def"
