/* SPDX-License-Identifier: Apache-2.0
 * What is not modeled.
 */
#include "sim/cublaslt/cublaslt.h"

#define STANDIN_OTHER(name) STANDIN_REFUSED(name, BLAS_NOT_SUPPORTED)
#include "sim/cublaslt/others.def"
