/* SPDX-License-Identifier: Apache-2.0
 * Stand-in for cuFFT: plans of cufftXtMakePlanMany, as PyTorch makes them. Codes and types are those of the public API.
 */
#ifndef CUWHY_SIM_CUFFT_H
#define CUWHY_SIM_CUFFT_H

#include "sim/common/standin.h"

enum fft_code {
	FFT_INVALID_PLAN = 1,
	FFT_ALLOC_FAILED = 2,
	FFT_INVALID_TYPE = 3,
	FFT_INVALID_VALUE = 4,
	FFT_INTERNAL_ERROR = 5,
	FFT_EXEC_FAILED = 6,
	FFT_INVALID_SIZE = 8,
	FFT_NO_WORKSPACE = 13,
	FFT_NOT_SUPPORTED = 16,
};

enum { FFT_RANK_MAX = 3 };

enum fft_kind { FFT_C2C, FFT_R2C, FFT_C2R };

struct fft_shape {
	enum fft_kind kind;
	int rank;
	size_t length[FFT_RANK_MAX];
	size_t batch;
	size_t complex_bytes;	/* of one element of the transform */
};

/* Bytes of the work area. */
size_t fft_work_bytes(const struct fft_shape *shape);

#endif
