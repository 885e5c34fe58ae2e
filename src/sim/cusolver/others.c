/* SPDX-License-Identifier: Apache-2.0
 * What is not modeled.
 */
#include "sim/cusolver/solver.h"

#define STANDIN_OTHER(name) STANDIN_REFUSED(name, SOLVER_NOT_SUPPORTED)
#include "sim/cusolver/others.def"
