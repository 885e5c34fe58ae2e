/* SPDX-License-Identifier: Apache-2.0
 * What is not modeled.
 */
#include "sim/common/standin.h"

enum { NOT_SUPPORTED = 27 };		/* CUPTI_ERROR_NOT_SUPPORTED */

#define STANDIN_OTHER(name) STANDIN_REFUSED(name, NOT_SUPPORTED)
#include "sim/cupti/others.def"
