/* SPDX-License-Identifier: Apache-2.0
 * The functions of BLAS itself, by level.
 */
#include "sim/cublas/routine.h"

#define RESULT(function, name, type, bytes, params, valid) \
	ROUTINE(cublas##function, "cublas_" #name "_" #type, params, valid, n > 0, cublas_result(handle, result, bytes))

#include "sim/cublas/level1.def"
#include "sim/cublas/level2.def"
#include "sim/cublas/level3.def"
