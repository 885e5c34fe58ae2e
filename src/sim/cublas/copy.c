/* SPDX-License-Identifier: Apache-2.0
 * Copies of vectors and matrices between host and device.
 */
#include "sim/cublas/cublas.h"

enum { MEMORY_HOST = 1, MEMORY_DEVICE = 2 };	/* CUmemorytype */

struct block {
	int rows, cols;
	size_t element;
	const void *from;
	size_t from_pitch;
	void *to;
	size_t to_pitch;
	bool to_device;
};

static int copy_block(const struct block *b, struct sim_stream *stream, bool wait)
{
	struct sim_copy2d copy = {
		.src_type = b->to_device ? MEMORY_HOST : MEMORY_DEVICE,
		.dst_type = b->to_device ? MEMORY_DEVICE : MEMORY_HOST,
		.src_pitch = b->from_pitch,
		.dst_pitch = b->to_pitch,
		.width = (size_t)b->rows * b->element,
		.height = (size_t)b->cols,
	};
	int code;

	if (!b->rows || !b->cols)
		return BLAS_SUCCESS;
	if (b->to_device) {
		copy.src_host = b->from;
		copy.dst_device = (sim_addr)(uintptr_t)b->to;
	} else {
		copy.src_device = (sim_addr)(uintptr_t)b->from;
		copy.dst_host = b->to;
	}
	code = cuMemcpy2DAsync_v2(&copy, stream);
	if (code == 0 && wait)
		code = cuStreamSynchronize(stream);
	return code ? BLAS_MAPPING_ERROR : BLAS_SUCCESS;
}

static int copy_matrix(int rows, int cols, int element, const void *from, int from_ld, void *to, int to_ld,
		       bool to_device, struct sim_stream *stream, bool wait)
{
	if (rows < 0 || cols < 0 || element <= 0 || from_ld <= 0 || to_ld <= 0)
		return BLAS_INVALID_VALUE;
	return copy_block(&(struct block){rows, cols, (size_t)element, from, (size_t)from_ld * (size_t)element, to,
					  (size_t)to_ld * (size_t)element, to_device},
			  stream, wait);
}

/* A vector is a matrix of one row. */
static int copy_vector(int n, int element, const void *from, int from_step, void *to, int to_step, bool to_device,
		       struct sim_stream *stream, bool wait)
{
	return copy_matrix(1, n > 0 ? n : 0, element, from, from_step, to, to_step, to_device, stream, wait);
}

#define COPIES(direction, to_device)                                                                                  \
	STANDIN(int, cublas##direction##Vector, (int n, int element, const void *x, int incx, void *y, int incy))     \
	{                                                                                                             \
		return copy_vector(n, element, x, incx, y, incy, to_device, NULL, true);                              \
	}                                                                                                             \
	STANDIN(int, cublas##direction##VectorAsync,                                                                  \
		(int n, int element, const void *x, int incx, void *y, int incy, struct sim_stream *stream))          \
	{                                                                                                             \
		return copy_vector(n, element, x, incx, y, incy, to_device, stream, false);                           \
	}                                                                                                             \
	STANDIN(int, cublas##direction##Matrix,                                                                       \
		(int rows, int cols, int element, const void *a, int lda, void *b, int ldb))                          \
	{                                                                                                             \
		return copy_matrix(rows, cols, element, a, lda, b, ldb, to_device, NULL, true);                       \
	}                                                                                                             \
	STANDIN(int, cublas##direction##MatrixAsync,                                                                  \
		(int rows, int cols, int element, const void *a, int lda, void *b, int ldb, struct sim_stream *stream)) \
	{                                                                                                             \
		return copy_matrix(rows, cols, element, a, lda, b, ldb, to_device, stream, false);                    \
	}

COPIES(Set, true)
COPIES(Get, false)
