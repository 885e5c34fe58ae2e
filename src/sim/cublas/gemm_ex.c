/* SPDX-License-Identifier: Apache-2.0
 * Products of matrices of any type.
 */
#include "sim/cublas/routine.h"

enum { OLDEST = 50 };			/* compute capability that these functions need at all */

struct gemm_row {
	struct blas_types types;
	int capability;
	struct standin_kernel kernel;
};

static struct gemm_row rows[] = {
#define BLAS 1
#define LT   0
#define BLAS_GEMM(word, at, bt, ct, compute_class, oldest, library) \
	{{.a = (library) ? (at) : -1, .b = bt, .c = ct, .d = ct, .compute = compute_class}, \
	 oldest, \
	 {.name = "cublas_gemm_" #word}},
#include "sim/common/blas_gemm.def"
#undef BLAS_GEMM
#undef BLAS
#undef LT
};

static struct gemm_row *find_row(int a, int b, int c, int compute)
{
	int wanted = blas_compute_class(compute);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct blas_types *t = &rows[i].types;

		if (t->a == a && t->b == b && t->c == c && t->compute == wanted)
			return &rows[i];
	}
	return NULL;
}

/* 8-bit integers are read four at a time. */
static bool is_aligned(const void *a, int lda, const void *b, int ldb)
{
	return (uintptr_t)a % 4 == 0 && (uintptr_t)b % 4 == 0 && lda % 4 == 0 && ldb % 4 == 0;
}

static int check_types(const struct cublas_handle *h, const struct gemm_row *row)
{
	if (!row)
		return BLAS_NOT_SUPPORTED;
	if (h->head.capability < OLDEST)
		return BLAS_ARCH_MISMATCH;
	/* a type that is newer than the GPU is an unsupported combination */
	return h->head.capability < row->capability ? BLAS_NOT_SUPPORTED : BLAS_SUCCESS;
}

#define GEMM_EX(function, params, valid, work, compute_type, aligned)                                \
	STANDIN(int, function, params)                                                               \
	{                                                                                            \
		struct gemm_row *row = find_row(a_type, b_type, c_type, compute_type);               \
		int status;                                                                          \
		if (!handle)                                                                         \
			return BLAS_NOT_INITIALIZED;                                                 \
		if (!(valid))                                                                        \
			return BLAS_INVALID_VALUE;                                                   \
		status = check_types(handle, row);                                                   \
		if (status == BLAS_SUCCESS && a_type == R_8I && !(aligned))                          \
			status = BLAS_NOT_SUPPORTED;                                                 \
		return status || !(work) ? status : cublas_launch(handle, &row->kernel);             \
	}

#include "sim/cublas/gemm_ex.def"

static size_t result_bytes(int type)
{
	switch (type) {
	case R_16F:
	case R_16BF:
		return 2;
	case R_32F:
		return 4;
	case R_64F:
	case C_32F:
		return 8;
	case C_64F:
		return 16;
	}
	return 0;
}

/* The documented rows: all of one type; numbers of 16 bits are added up in 32. */
static bool is_dot(int x, int y, int result, int execution)
{
	bool narrow = x == R_16F || x == R_16BF;

	return x == y && x == result && result_bytes(x) && execution == (narrow ? R_32F : x);
}

STANDIN(int, cublasDotEx,
	(HANDLE, int n, IN x, int x_type, ANY(int, incx), IN y, int y_type, ANY(int, incy), OUT result, int result_type,
	 int execution))
{
	STANDIN_KERNEL(kernel, "cublas_dot_ex");
	int status = BLAS_SUCCESS;

	if (!handle)
		return BLAS_NOT_INITIALIZED;
	if (!result || (n > 0 && (!x || !y)))
		return BLAS_INVALID_VALUE;
	if (!is_dot(x_type, y_type, result_type, execution))
		return BLAS_NOT_SUPPORTED;
	if (n > 0)
		status = cublas_launch(handle, &kernel);
	return status ? status : cublas_result(handle, result, result_bytes(result_type));
}
