/* SPDX-License-Identifier: Apache-2.0
 * What is not modeled.
 */
#include "sim/nccl/nccl.h"

#define STANDIN_OTHER(name) STANDIN_REFUSED(name, NCCL_INVALID_USAGE)
#include "sim/nccl/others.def"
