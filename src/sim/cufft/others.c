/* SPDX-License-Identifier: Apache-2.0
 * What is not modeled.
 */
#include "sim/cufft/cufft.h"

#define STANDIN_OTHER(name) STANDIN_REFUSED(name, FFT_NOT_SUPPORTED)
#include "sim/cufft/others.def"
