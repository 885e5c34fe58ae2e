/* SPDX-License-Identifier: Apache-2.0
 * The language of the .def files: one row per family of functions, one function per letter (S, D, C, Z) that it has.
 *
 *   SDCZ(name, suffix, (parameters), valid, work)
 *
 * makes cublasSname<suffix>, cublasDname<suffix>, …. `valid` is what the documentation demands: if it is not met, the status is
 * INVALID_VALUE. Without `work` the call returns at once, as in BLAS: a matrix without rows is no error. Scalars and matrices
 * are pointers, so the four functions of a family have the same parameters. A null pointer to a matrix would be an illegal
 * address in the original's kernel; as ours touch nothing, it is reported as an invalid value.
 */
#ifndef CUWHY_SIM_CUBLAS_ROUTINE_H
#define CUWHY_SIM_CUBLAS_ROUTINE_H

#include "sim/cublas/cublas.h"

/* parameters */
#define HANDLE		 struct cublas_handle *handle
#define IN		 const void *
#define OUT		 void *
#define ANY(type, name)	 __attribute__((unused)) type name

/* conditions */
#define IS_OP(x)	 ((unsigned int)(x) <= OP_C)
#define IS_UPLO(x)	 ((unsigned int)(x) <= 1)
#define IS_SIDE(x)	 ((unsigned int)(x) <= 1)
#define IS_DIAG(x)	 ((unsigned int)(x) <= 1)
#define IS_SIZE(x)	 ((x) >= 0)
#define IS_LD(ld, rows)	 ((ld) >= ((rows) > 1 ? (rows) : 1))
#define IS_STEP(x)	 ((x) != 0)
#define GIVEN(p)	 ((p) != NULL)
#define IF_ANY(n, p)	 ((n) <= 0 || (p) != NULL)

/* of a product of matrices, by its parameters' names */
#define GEMM_SHAPE                                                                                   \
	IS_OP(transa) && IS_OP(transb) && IS_SIZE(m) && IS_SIZE(n) && IS_SIZE(k) &&                  \
		IS_LD(lda, transa == OP_N ? m : k) && IS_LD(ldb, transb == OP_N ? k : n) &&          \
		IS_LD(ldc, m) && GIVEN(alpha) && GIVEN(beta)
#define GEMM_POINTERS (!m || !n || (GIVEN(c) && (!k || (GIVEN(a) && GIVEN(b)))))

#define ROUTINE(function, kernel_name, params, valid, work, after)               \
	STANDIN(int, function, params)                                           \
	{                                                                        \
		STANDIN_KERNEL(kernel, kernel_name);                             \
		int status = BLAS_SUCCESS;                                       \
		if (!handle)                                                     \
			return BLAS_NOT_INITIALIZED;                             \
		if (!(valid))                                                    \
			return BLAS_INVALID_VALUE;                               \
		if (work)                                                        \
			status = cublas_launch(handle, &kernel);                 \
		return status ? status : (after);                                \
	}

#define NAMED(function, name, type, params, valid, work) \
	ROUTINE(cublas##function, "cublas_" #name "_" #type, params, valid, work, BLAS_SUCCESS)

#define SD(name, suffix, params, valid, work)                   \
	NAMED(S##name##suffix, name, f32, params, valid, work)  \
	NAMED(D##name##suffix, name, f64, params, valid, work)
#define CZ(name, suffix, params, valid, work)                   \
	NAMED(C##name##suffix, name, c64, params, valid, work)  \
	NAMED(Z##name##suffix, name, c128, params, valid, work)
#define H(name, suffix, params, valid, work) \
	NAMED(H##name##suffix, name, f16, params, valid, work)
#define SDCZ(name, suffix, params, valid, work) \
	SD(name, suffix, params, valid, work)   \
	CZ(name, suffix, params, valid, work)

#endif
