/* SPDX-License-Identifier: Apache-2.0
 * The functions of BLAS itself, by level.
 */
#include "sim_cublas/routine.h"

#define RESULT(function, name, type, bytes, params, valid) \
	ROUTINE(cublas##function, "cublas_" #name "_" #type, params, valid, n > 0, cublas_result(handle, result, bytes))

#include "sim_cublas/level1.def"
#include "sim_cublas/level2.def"
#include "sim_cublas/level3.def"
