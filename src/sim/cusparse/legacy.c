/* SPDX-License-Identifier: Apache-2.0
 * Functions with a matrix as three arrays: blocks (BSR), sums of two matrices, sorting, conversion. Indices have 32 bits.
 */
#include "sim/cusparse/sparse.h"

#include <limits.h>

#define OBJECT const struct sparse_object

/* The arrays of a block matrix; columns is 0 in the solves, whose matrix is square. */
struct blocks {
	OBJECT *descriptor;
	int direction, op;
	int rows, columns, nonzeros, size;
	const void *values, *offsets, *indices;
};

static int check_blocks(OBJECT *handle, const struct blocks *b)
{
	if (!sparse_is(handle, SPARSE_HANDLE))
		return SPARSE_NOT_INITIALIZED;
	if (!sparse_is(b->descriptor, SPARSE_LEGACY) || b->rows < 0 || b->columns < 0 || b->nonzeros < 0 || b->size < 1)
		return SPARSE_INVALID_VALUE;
	if ((b->direction != 0 && b->direction != 1) || b->op < 0 || b->op > 2)
		return SPARSE_INVALID_VALUE;
	return b->offsets && (!b->nonzeros || (b->values && b->indices)) ? 0 : SPARSE_INVALID_VALUE;
}

static int launch_blocks(OBJECT *handle, const struct blocks *b, struct standin_kernel *kernel)
{
	int code = check_blocks(handle, b);

	return code ? code : sparse_launch(handle, kernel);
}

/* The solves: a model of a buffer with the dependencies of each block row and the inverted diagonal blocks. */
static int solve_size(OBJECT *handle, const struct blocks *b, size_t value_bytes, int *bytes)
{
	int code = check_blocks(handle, b);
	size_t size = (size_t)b->rows * (size_t)b->size * (size_t)b->size * value_bytes +
		      ((size_t)b->nonzeros + (size_t)b->rows + 1) * sizeof(int);

	if (code || !bytes || size > INT_MAX)
		return code ? code : SPARSE_INVALID_VALUE;
	*bytes = (int)size;
	return 0;
}

static int solve_step(OBJECT *handle, const struct blocks *b, OBJECT *info, enum sparse_kind kind, const void *buffer,
		      struct standin_kernel *kernel)
{
	if (sparse_is(handle, SPARSE_HANDLE) && (!sparse_is(info, kind) || !buffer))
		return SPARSE_INVALID_VALUE;
	return launch_blocks(handle, b, kernel);
}

/* No pivot is zero as far as is known. */
static int no_zero_pivot(OBJECT *handle, OBJECT *info, enum sparse_kind kind, int *position)
{
	if (!sparse_is(handle, SPARSE_HANDLE))
		return SPARSE_NOT_INITIALIZED;
	if (!sparse_is(info, kind) || !position)
		return SPARSE_INVALID_VALUE;
	if (handle->device_scalars)
		return cuMemsetD32Async((sim_addr)(uintptr_t)position, UINT_MAX, 1, handle->stream) ? SPARSE_EXECUTION_FAILED : 0;
	*position = -1;
	return 0;
}

STANDIN(int, cusparseXbsrsv2_zeroPivot, (OBJECT * handle, OBJECT *info, int *position))
{
	return no_zero_pivot(handle, info, SPARSE_BSRSV, position);
}

STANDIN(int, cusparseXbsrsm2_zeroPivot, (OBJECT * handle, OBJECT *info, int *position))
{
	return no_zero_pivot(handle, info, SPARSE_BSRSM, position);
}

struct sum {
	OBJECT *a, *b, *c;
	int rows, columns, nonzeros_a, nonzeros_b;
};

static int check_sum(OBJECT *handle, const struct sum *s)
{
	if (!sparse_is(handle, SPARSE_HANDLE))
		return SPARSE_NOT_INITIALIZED;
	if (!sparse_is(s->a, SPARSE_LEGACY) || !sparse_is(s->b, SPARSE_LEGACY) || !sparse_is(s->c, SPARSE_LEGACY))
		return SPARSE_INVALID_VALUE;
	return s->rows < 0 || s->columns < 0 || s->nonzeros_a < 0 || s->nonzeros_b < 0 ? SPARSE_INVALID_VALUE : 0;
}

static int sum_size(OBJECT *handle, const struct sum *s, size_t *bytes)
{
	int code = check_sum(handle, s);

	if (code || !bytes)
		return code ? code : SPARSE_INVALID_VALUE;
	*bytes = ((size_t)s->rows + 1) * sizeof(int);
	return 0;
}

/* How many elements the sum has depends on where the nonzeros are: the most that are possible is answered, so that memory for the
 * result is not underestimated. */
STANDIN(int, cusparseXcsrgeam2Nnz,
	(OBJECT * handle, int m, int n, OBJECT *a, int nonzeros_a, const int *offsets_a, const int *indices_a,
	 OBJECT *b, int nonzeros_b, const int *offsets_b, const int *indices_b, OBJECT *c, int *offsets_c,
	 int *nonzeros_c, void *work))
{
	STANDIN_KERNEL(kernel, "cusparseXcsrgeam2Nnz");
	struct sum s = {a, b, c, m, n, nonzeros_a, nonzeros_b};
	int64_t all = (int64_t)m * n, most = (int64_t)nonzeros_a + nonzeros_b;
	int code = check_sum(handle, &s);

	if (code || !nonzeros_c || !work || !offsets_a || !offsets_b || !offsets_c || (nonzeros_a && !indices_a) ||
	    (nonzeros_b && !indices_b))
		return code ? code : SPARSE_INVALID_VALUE;
	most = most < all ? most : all;
	code = sparse_launch(handle, &kernel);
	if (code)
		return code;
	if (handle->device_scalars)
		return cuMemsetD32Async((sim_addr)(uintptr_t)nonzeros_c, (unsigned int)most, 1, handle->stream)
			       ? SPARSE_EXECUTION_FAILED
			       : 0;
	*nonzeros_c = (int)most;
	return 0;
}

#define BLOCKS(rows_, columns_)                                                                                          \
	{ \
		.descriptor = a, .direction = direction, .op = op, .rows = (rows_), .columns = (columns_), \
		.nonzeros = nonzeros, .size = size, .values = values, .offsets = offsets, .indices = indices \
	}
#define MATRIX_A OBJECT *a, const void *values, const int *offsets, const int *indices, int size

#define LEGACY(letter, value_bytes)                                                                                                      \
	STANDIN(int, cusparse##letter##bsrmv, \
		(OBJECT * handle, int direction, int op, int rows, int columns, int nonzeros, const void *alpha, \
		 MATRIX_A, const void *x, const void *beta, void *y)) \
	{                                                                                                                                \
		STANDIN_KERNEL(kernel, "cusparse" #letter "bsrmv");                                                                      \
		struct blocks b = BLOCKS(rows, columns);                                                                                 \
		bool wrong = !alpha || !beta || (columns > 0 && !x) || (rows > 0 && !y);                                                 \
		return handle && wrong ? SPARSE_INVALID_VALUE : launch_blocks(handle, &b, &kernel);                                      \
	}                                                                                                                                \
	STANDIN(int, cusparse##letter##bsrmm, \
		(OBJECT * handle, int direction, int op, int op_b, int rows, int n, int columns, int nonzeros, \
		 const void *alpha, MATRIX_A, const void *x, int ldx, const void *beta, void *y, int ldy)) \
	{                                                                                                                                \
		STANDIN_KERNEL(kernel, "cusparse" #letter "bsrmm");                                                                      \
		struct blocks b = BLOCKS(rows, columns);                                                                                 \
		bool wrong = !alpha || !beta || n < 0 || ldx < (op_b ? n : columns * size) || ldy < rows * size || \
			     (n > 0 && (!x || !y)); \
		return handle && wrong ? SPARSE_INVALID_VALUE : launch_blocks(handle, &b, &kernel);                                      \
	}                                                                                                                                \
	STANDIN(int, cusparse##letter##bsrsv2_bufferSize, \
		(OBJECT * handle, int direction, int op, int rows, int nonzeros, MATRIX_A, OBJECT *info, int *bytes)) \
	{                                                                                                                                \
		struct blocks b = BLOCKS(rows, rows);                                                                                    \
		return handle && !sparse_is(info, SPARSE_BSRSV) ? SPARSE_INVALID_VALUE \
								: solve_size(handle, &b, value_bytes, bytes); \
	}                                                                                                                                \
	STANDIN(int, cusparse##letter##bsrsv2_analysis, \
		(OBJECT * handle, int direction, int op, int rows, int nonzeros, MATRIX_A, OBJECT *info, int policy, \
		 void *buffer)) \
	{                                                                                                                                \
		STANDIN_KERNEL(kernel, "cusparse" #letter "bsrsv2_analysis");                                                            \
		struct blocks b = BLOCKS(rows, rows);                                                                                    \
		(void)policy;                                                                                                            \
		return solve_step(handle, &b, info, SPARSE_BSRSV, buffer, &kernel);                                                      \
	}                                                                                                                                \
	STANDIN(int, cusparse##letter##bsrsv2_solve, \
		(OBJECT * handle, int direction, int op, int rows, int nonzeros, const void *alpha, MATRIX_A, \
		 OBJECT *info, const void *x, void *y, int policy, void *buffer)) \
	{                                                                                                                                \
		STANDIN_KERNEL(kernel, "cusparse" #letter "bsrsv2_solve");                                                               \
		struct blocks b = BLOCKS(rows, rows);                                                                                    \
		(void)policy;                                                                                                            \
		return handle && !(alpha && x && y) ? SPARSE_INVALID_VALUE \
						    : solve_step(handle, &b, info, SPARSE_BSRSV, buffer, &kernel); \
	}                                                                                                                                \
	STANDIN(int, cusparse##letter##bsrsm2_bufferSize, \
		(OBJECT * handle, int direction, int op, int op_b, int rows, int n, int nonzeros, MATRIX_A, \
		 OBJECT *info, int *bytes)) \
	{                                                                                                                                \
		struct blocks b = BLOCKS(rows, rows);                                                                                    \
		bool wrong = !sparse_is(info, SPARSE_BSRSM) || n < 0 || op_b < 0 || op_b > 2;                                            \
		return handle && wrong ? SPARSE_INVALID_VALUE : solve_size(handle, &b, value_bytes, bytes);                              \
	}                                                                                                                                \
	STANDIN(int, cusparse##letter##bsrsm2_analysis, \
		(OBJECT * handle, int direction, int op, int op_b, int rows, int n, int nonzeros, MATRIX_A, \
		 OBJECT *info, int policy, void *buffer)) \
	{                                                                                                                                \
		STANDIN_KERNEL(kernel, "cusparse" #letter "bsrsm2_analysis");                                                            \
		struct blocks b = BLOCKS(rows, rows);                                                                                    \
		(void)policy;                                                                                                            \
		return handle && (n < 0 || op_b < 0) ? SPARSE_INVALID_VALUE \
						     : solve_step(handle, &b, info, SPARSE_BSRSM, buffer, &kernel); \
	}                                                                                                                                \
	STANDIN(int, cusparse##letter##bsrsm2_solve, \
		(OBJECT * handle, int direction, int op, int op_b, int rows, int n, int nonzeros, const void *alpha, \
		 MATRIX_A, OBJECT *info, const void *x, int ldx, void *y, int ldy, int policy, void *buffer)) \
	{                                                                                                                                \
		STANDIN_KERNEL(kernel, "cusparse" #letter "bsrsm2_solve");                                                               \
		struct blocks b = BLOCKS(rows, rows);                                                                                    \
		bool wrong = !alpha || n < 0 || ldx < (op_b ? n : rows * size) || ldy < (op_b ? n : rows * size) || \
			     (n > 0 && (!x || !y)); \
		(void)policy;                                                                                                            \
		return handle && wrong ? SPARSE_INVALID_VALUE \
				       : solve_step(handle, &b, info, SPARSE_BSRSM, buffer, &kernel); \
	}                                                                                                                                \
	STANDIN(int, cusparse##letter##csrgeam2_bufferSizeExt, \
		(OBJECT * handle, int m, int n, const void *alpha, OBJECT *a, int nonzeros_a, const void *values_a, \
		 const int *offsets_a, const int *indices_a, const void *beta, OBJECT *b, int nonzeros_b, \
		 const void *values_b, const int *offsets_b, const int *indices_b, OBJECT *c, const void *values_c, \
		 const int *offsets_c, const int *indices_c, size_t *bytes)) \
	{                                                                                                                                \
		struct sum s = {a, b, c, m, n, nonzeros_a, nonzeros_b};                                                                  \
		(void)alpha, (void)values_a, (void)offsets_a, (void)indices_a, (void)beta, (void)values_b, \
			(void)offsets_b; \
		(void)indices_b, (void)values_c, (void)offsets_c, (void)indices_c;                                                       \
		return sum_size(handle, &s, bytes);                                                                                      \
	}                                                                                                                                \
	STANDIN(int, cusparse##letter##csrgeam2, \
		(OBJECT * handle, int m, int n, const void *alpha, OBJECT *a, int nonzeros_a, const void *values_a, \
		 const int *offsets_a, const int *indices_a, const void *beta, OBJECT *b, int nonzeros_b, \
		 const void *values_b, const int *offsets_b, const int *indices_b, OBJECT *c, void *values_c, \
		 int *offsets_c, int *indices_c, void *work)) \
	{                                                                                                                                \
		STANDIN_KERNEL(kernel, "cusparse" #letter "csrgeam2");                                                                   \
		struct sum s = {a, b, c, m, n, nonzeros_a, nonzeros_b};                                                                  \
		int code = check_sum(handle, &s);                                                                                        \
		bool wrong = !alpha || !beta || !work || !offsets_a || !offsets_b || !offsets_c || \
			     (nonzeros_a && (!values_a || !indices_a)) || (nonzeros_b && (!values_b || !indices_b)) || \
			     ((nonzeros_a || nonzeros_b) && (!values_c || !indices_c)); \
		if (code || wrong)                                                                                                       \
			return code ? code : SPARSE_INVALID_VALUE;                                                                       \
		return sparse_launch(handle, &kernel);                                                                                   \
	}

#include "sim/cusparse/legacy.def"
#undef LEGACY

static int check_indices(OBJECT *handle, int m, int n, int nonzeros, const void *rows, const void *columns)
{
	if (!sparse_is(handle, SPARSE_HANDLE))
		return SPARSE_NOT_INITIALIZED;
	return m < 0 || n < 0 || nonzeros < 0 || (nonzeros && (!rows || !columns)) ? SPARSE_INVALID_VALUE : 0;
}

/* A radix sort by key: keys and positions, twice. */
static int sort_size(OBJECT *handle, int m, int n, int nonzeros, const void *rows, const void *columns, size_t *bytes)
{
	int code = check_indices(handle, m, n, nonzeros, rows, columns);

	if (code || !bytes)
		return code ? code : SPARSE_INVALID_VALUE;
	*bytes = (size_t)nonzeros * 4 * sizeof(int);
	return 0;
}

STANDIN(int, cusparseXcoosort_bufferSizeExt,
	(OBJECT * handle, int m, int n, int nonzeros, const int *rows, const int *columns, size_t *bytes))
{
	return sort_size(handle, m, n, nonzeros, rows, columns, bytes);
}

STANDIN(int, cusparseXcoosortByRow,
	(OBJECT * handle, int m, int n, int nonzeros, int *rows, int *columns, int *order, void *buffer))
{
	STANDIN_KERNEL(kernel, "cusparseXcoosortByRow");
	int code = check_indices(handle, m, n, nonzeros, rows, columns);

	(void)order;	/* null: not wanted */
	if (code == 0 && nonzeros && !buffer)
		code = SPARSE_INVALID_VALUE;
	return code ? code : sparse_launch(handle, &kernel);
}

STANDIN(int, cusparseXcsrsort_bufferSizeExt,
	(OBJECT * handle, int m, int n, int nonzeros, const int *offsets, const int *columns, size_t *bytes))
{
	return sort_size(handle, m, n, nonzeros, offsets, columns, bytes);
}

STANDIN(int, cusparseXcsrsort,
	(OBJECT * handle, int m, int n, int nonzeros, OBJECT *a, const int *offsets, int *columns, int *order,
	 void *buffer))
{
	STANDIN_KERNEL(kernel, "cusparseXcsrsort");
	int code = check_indices(handle, m, n, nonzeros, offsets, columns);

	(void)order;
	if (code == 0 && (!sparse_is(a, SPARSE_LEGACY) || (nonzeros && !buffer)))
		code = SPARSE_INVALID_VALUE;
	return code ? code : sparse_launch(handle, &kernel);
}

STANDIN(int, cusparseCreateIdentityPermutation, (OBJECT * handle, int n, int *order))
{
	STANDIN_KERNEL(kernel, "cusparseCreateIdentityPermutation");
	int code = check_indices(handle, 0, 0, n, order, order);

	return code ? code : sparse_launch(handle, &kernel);
}

STANDIN(int, cusparseXcoo2csr, (OBJECT * handle, const int *rows, int nonzeros, int m, int *offsets, int base))
{
	STANDIN_KERNEL(kernel, "cusparseXcoo2csr");
	int code = check_indices(handle, m, 0, nonzeros, rows, offsets);

	if (code == 0 && ((base != 0 && base != 1) || !offsets))
		code = SPARSE_INVALID_VALUE;
	return code ? code : sparse_launch(handle, &kernel);
}
