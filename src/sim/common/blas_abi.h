/* SPDX-License-Identifier: Apache-2.0
 * Numbers of the public API of cuBLAS and cuBLASLt.
 */
#ifndef CUWHY_SIM_BLAS_ABI_H
#define CUWHY_SIM_BLAS_ABI_H

enum blas_status {
#define BLAS_STATUS(number, name, text) BLAS_##name = number,
#include "sim/common/blas_status.def"
#undef BLAS_STATUS
};

enum blas_operation { OP_N, OP_T, OP_C };
enum blas_property { PROPERTY_MAJOR, PROPERTY_MINOR, PROPERTY_PATCH };

/* cudaDataType_t, as far as products of matrices take it */
enum blas_type {
	R_32F = 0,
	R_64F = 1,
	R_16F = 2,
	R_8I = 3,
	C_32F = 4,
	C_64F = 5,
	C_8I = 7,
	R_32I = 10,
	R_16BF = 14,
	R_8F_E4M3 = 28,
	R_8F_E5M2 = 29,
	R_4F_E2M1 = 33,
};

/* cublasComputeType_t */
enum blas_compute {
	COMPUTE_16F = 64,
	COMPUTE_16F_PEDANTIC = 65,
	COMPUTE_32F = 68,
	COMPUTE_32F_PEDANTIC = 69,
	COMPUTE_64F = 70,
	COMPUTE_64F_PEDANTIC = 71,
	COMPUTE_32I = 72,
	COMPUTE_32I_PEDANTIC = 73,
	COMPUTE_32F_FAST_16F = 74,
	COMPUTE_32F_FAST_16BF = 75,
	COMPUTE_32F_FAST_TF32 = 77,
	COMPUTE_32F_EMULATED = 78,
	COMPUTE_64F_EMULATED = 79,
};

#endif
