/* SPDX-License-Identifier: Apache-2.0
 * What is not modeled.
 */
#include "sim/cusparse/sparse.h"

#define STANDIN_OTHER(name) STANDIN_REFUSED(name, SPARSE_NOT_SUPPORTED)
#include "sim/cusparse/others.def"
