/* SPDX-License-Identifier: Apache-2.0
 * What is not modeled.
 */
#include "sim/nvrtc/nvrtc.h"

#define STANDIN_OTHER(name) STANDIN_REFUSED(name, RTC_INTERNAL_ERROR)
#include "sim/nvrtc/others.def"
