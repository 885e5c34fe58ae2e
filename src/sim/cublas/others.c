/* SPDX-License-Identifier: Apache-2.0
 * What is not modeled.
 */
#include "sim/cublas/cublas.h"

#define STANDIN_OTHER(name) STANDIN_REFUSED(name, BLAS_NOT_SUPPORTED)
#include "sim/cublas/others.def"
