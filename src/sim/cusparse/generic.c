/* SPDX-License-Identifier: Apache-2.0
 * The generic interface: products and triangular solves of matrices with descriptors.
 */
#include "sim/cusparse/sparse.h"

#define OBJECT const struct sparse_object

enum { SMALL_BUFFER = 8 };	/* what a product without preprocessing is given, so that the pointer is not null */

static int64_t op_rows(OBJECT *m, int op)
{
	return op ? m->columns : m->rows;
}

static int64_t op_columns(OBJECT *m, int op)
{
	return op ? m->rows : m->columns;
}

/* The scalars and operations, and a type for the computation that this GPU has. */
static int check_call(OBJECT *handle, int op_a, int op_b, const void *alpha, const void *beta, int compute_type)
{
	int code = sparse_is(handle, SPARSE_HANDLE) ? 0 : SPARSE_NOT_INITIALIZED;

	if (code)
		return code;
	if (op_a < 0 || op_a > 2 || op_b < 0 || op_b > 2 || !alpha || !beta)
		return SPARSE_INVALID_VALUE;
	return sparse_check_type(compute_type);
}

static size_t nonzero_bytes(OBJECT *m)
{
	return sparse_value_bytes(m->value_type) + m->index_bytes;
}

/* A product with the transpose of a CSR matrix works on a copy by columns. */
static size_t product_buffer(OBJECT *a, int op)
{
	if (!op || a->kind != SPARSE_CSR)
		return SMALL_BUFFER;
	return (size_t)a->nonzeros * nonzero_bytes(a) + ((size_t)a->columns + 1) * a->index_bytes;
}

static int answer(size_t bytes, size_t *out)
{
	if (!out)
		return SPARSE_INVALID_VALUE;
	*out = bytes;
	return 0;
}

static int check_spmv(OBJECT *a, OBJECT *x, OBJECT *y, int op)
{
	if (!sparse_is_sparse(a) || !sparse_is(x, SPARSE_VECTOR) || !sparse_is(y, SPARSE_VECTOR))
		return SPARSE_INVALID_VALUE;
	if (op_columns(a, op) != x->rows || op_rows(a, op) != y->rows)
		return SPARSE_INVALID_VALUE;
	return sparse_check_type(a->value_type);
}

STANDIN(int, cusparseSpMV_bufferSize,
	(OBJECT * handle, int op, const void *alpha, OBJECT *a, OBJECT *x, const void *beta, OBJECT *y,
	 int compute_type, int algorithm, size_t *bytes))
{
	int code = check_call(handle, op, 0, alpha, beta, compute_type);

	(void)algorithm;
	if (code == 0)
		code = check_spmv(a, x, y, op);
	return code ? code : answer(product_buffer(a, op), bytes);
}

STANDIN(int, cusparseSpMV,
	(OBJECT * handle, int op, const void *alpha, OBJECT *a, OBJECT *x, const void *beta, OBJECT *y,
	 int compute_type, int algorithm, void *buffer))
{
	STANDIN_KERNEL(kernel, "cusparse_spmv");
	int code = check_call(handle, op, 0, alpha, beta, compute_type);

	(void)algorithm;
	(void)buffer;
	if (code == 0)
		code = check_spmv(a, x, y, op);
	return code ? code : sparse_launch(handle, &kernel);
}

static int check_spmm(OBJECT *a, OBJECT *b, OBJECT *c, int op_a, int op_b)
{
	if (!sparse_is_sparse(a) || !sparse_is(b, SPARSE_DENSE) || !sparse_is(c, SPARSE_DENSE))
		return SPARSE_INVALID_VALUE;
	if (op_columns(a, op_a) != op_rows(b, op_b) || op_rows(a, op_a) != c->rows || op_columns(b, op_b) != c->columns)
		return SPARSE_INVALID_VALUE;
	/* a batch of one is used for all others */
	if ((b->batch != 1 && b->batch != c->batch) || (a->batch != 1 && a->batch != c->batch) ||
	    a->value_type != b->value_type)
		return SPARSE_INVALID_VALUE;
	return sparse_check_type(a->value_type);
}

STANDIN(int, cusparseSpMM_bufferSize,
	(OBJECT * handle, int op_a, int op_b, const void *alpha, OBJECT *a, OBJECT *b, const void *beta, OBJECT *c,
	 int compute_type, int algorithm, size_t *bytes))
{
	int code = check_call(handle, op_a, op_b, alpha, beta, compute_type);

	(void)algorithm;
	if (code == 0)
		code = check_spmm(a, b, c, op_a, op_b);
	return code ? code : answer(product_buffer(a, op_a), bytes);
}

STANDIN(int, cusparseSpMM,
	(OBJECT * handle, int op_a, int op_b, const void *alpha, OBJECT *a, OBJECT *b, const void *beta, OBJECT *c,
	 int compute_type, int algorithm, void *buffer))
{
	STANDIN_KERNEL(kernel, "cusparse_spmm");
	int code = check_call(handle, op_a, op_b, alpha, beta, compute_type);

	(void)algorithm;
	(void)buffer;
	if (code == 0)
		code = check_spmm(a, b, c, op_a, op_b);
	return code ? code : sparse_launch(handle, &kernel);
}

static int check_sddmm(OBJECT *a, OBJECT *b, OBJECT *c, int op_a, int op_b)
{
	if (!sparse_is(a, SPARSE_DENSE) || !sparse_is(b, SPARSE_DENSE) || !sparse_is(c, SPARSE_CSR))
		return SPARSE_INVALID_VALUE;
	if (op_columns(a, op_a) != op_rows(b, op_b) || op_rows(a, op_a) != c->rows || op_columns(b, op_b) != c->columns)
		return SPARSE_INVALID_VALUE;
	return sparse_check_type(a->value_type);
}

STANDIN(int, cusparseSDDMM_bufferSize,
	(OBJECT * handle, int op_a, int op_b, const void *alpha, OBJECT *a, OBJECT *b, const void *beta, OBJECT *c,
	 int compute_type, int algorithm, size_t *bytes))
{
	int code = check_call(handle, op_a, op_b, alpha, beta, compute_type);

	(void)algorithm;
	if (code == 0)
		code = check_sddmm(a, b, c, op_a, op_b);
	return code ? code : answer(SMALL_BUFFER, bytes);
}

/* Both with the same parameters. */
#define SDDMM(name)                                                                                                                 \
	STANDIN(int, name, \
		(OBJECT * handle, int op_a, int op_b, const void *alpha, OBJECT *a, OBJECT *b, const void *beta, \
		 OBJECT *c, int compute_type, int algorithm, void *buffer)) \
	{                                                                                                                           \
		STANDIN_KERNEL(kernel, #name);                                                                                      \
		int code = check_call(handle, op_a, op_b, alpha, beta, compute_type);                                               \
		(void)algorithm;                                                                                                    \
		(void)buffer;                                                                                                       \
		if (code == 0)                                                                                                      \
			code = check_sddmm(a, b, c, op_a, op_b);                                                                    \
		return code ? code : sparse_launch(handle, &kernel);                                                                \
	}

SDDMM(cusparseSDDMM_preprocess)
SDDMM(cusparseSDDMM)

static int check_spgemm(OBJECT *a, OBJECT *b, OBJECT *c, int op_a, int op_b, OBJECT *descriptor)
{
	if (!sparse_is(a, SPARSE_CSR) || !sparse_is(b, SPARSE_CSR) || !sparse_is(c, SPARSE_CSR) ||
	    !sparse_is(descriptor, SPARSE_SPGEMM))
		return SPARSE_INVALID_VALUE;
	if (op_a || op_b)	/* not implemented by cuSPARSE either */
		return SPARSE_NOT_SUPPORTED;
	if (a->columns != b->rows || c->rows != a->rows || c->columns != b->columns || a->value_type != b->value_type)
		return SPARSE_INVALID_VALUE;
	return sparse_check_type(a->value_type);
}

/* Each step is called without a buffer for its size, then with one. */
#define SPGEMM_STEP(name, bytes_)                                                                                                    \
	STANDIN(int, name, \
		(OBJECT * handle, int op_a, int op_b, const void *alpha, OBJECT *a, OBJECT *b, const void *beta, \
		 struct sparse_object *c, int compute_type, int algorithm, struct sparse_object *descriptor, \
		 size_t *bytes, void *buffer)) \
	{                                                                                                                            \
		STANDIN_KERNEL(kernel, #name);                                                                                       \
		int code = check_call(handle, op_a, op_b, alpha, beta, compute_type);                                                \
		(void)algorithm;                                                                                                     \
		if (code == 0)                                                                                                       \
			code = check_spgemm(a, b, c, op_a, op_b, descriptor);                                                        \
		if (code || !buffer)                                                                                                 \
			return code ? code : answer(bytes_, bytes);                                                                  \
		return sparse_launch(handle, &kernel);                                                                               \
	}

/* First the number of products of each row, then the products and their columns. How many products there are depends on the data:
 * at least one for each nonzero of the first matrix is assumed, and the result has no nonzeros (see sparse.h). */
SPGEMM_STEP(cusparseSpGEMM_workEstimation, ((size_t)a->nonzeros + (size_t)a->rows + 1) * a->index_bytes)
SPGEMM_STEP(cusparseSpGEMM_compute, (size_t)(a->nonzeros + b->nonzeros) * nonzero_bytes(a))

STANDIN(int, cusparseSpGEMM_copy,
	(OBJECT * handle, int op_a, int op_b, const void *alpha, OBJECT *a, OBJECT *b, const void *beta, OBJECT *c,
	 int compute_type, int algorithm, OBJECT *descriptor))
{
	STANDIN_KERNEL(kernel, "cusparseSpGEMM_copy");
	int code = check_call(handle, op_a, op_b, alpha, beta, compute_type);

	(void)algorithm;
	if (code == 0)
		code = check_spgemm(a, b, c, op_a, op_b, descriptor);
	return code ? code : sparse_launch(handle, &kernel);
}

/* The dependencies of each row, and a copy of the diagonal. */
static size_t solve_buffer(OBJECT *a, int64_t right_sides)
{
	return (size_t)a->nonzeros * a->index_bytes +
	       (size_t)a->rows * (size_t)right_sides * sparse_value_bytes(a->value_type) + SMALL_BUFFER;
}

static int check_spsv(OBJECT *a, OBJECT *x, OBJECT *y, OBJECT *descriptor)
{
	if (!sparse_is_sparse(a) || !sparse_is(x, SPARSE_VECTOR) || !sparse_is(y, SPARSE_VECTOR) ||
	    !sparse_is(descriptor, SPARSE_SPSV))
		return SPARSE_INVALID_VALUE;
	if (a->rows != a->columns || x->rows != a->rows || y->rows != a->rows)
		return SPARSE_INVALID_VALUE;
	return sparse_check_type(a->value_type);
}

STANDIN(int, cusparseSpSV_bufferSize,
	(OBJECT * handle, int op, const void *alpha, OBJECT *a, OBJECT *x, OBJECT *y, int compute_type, int algorithm,
	 OBJECT *descriptor, size_t *bytes))
{
	int code = check_call(handle, op, 0, alpha, alpha, compute_type);

	(void)algorithm;
	if (code == 0)
		code = check_spsv(a, x, y, descriptor);
	return code ? code : answer(solve_buffer(a, 1), bytes);
}

STANDIN(int, cusparseSpSV_analysis,
	(OBJECT * handle, int op, const void *alpha, OBJECT *a, OBJECT *x, OBJECT *y, int compute_type, int algorithm,
	 OBJECT *descriptor, void *buffer))
{
	STANDIN_KERNEL(kernel, "cusparseSpSV_analysis");
	int code = check_call(handle, op, 0, alpha, alpha, compute_type);

	(void)algorithm;
	if (code == 0)
		code = check_spsv(a, x, y, descriptor);
	if (code == 0 && !buffer)
		code = SPARSE_INVALID_VALUE;
	return code ? code : sparse_launch(handle, &kernel);
}

STANDIN(int, cusparseSpSV_solve,
	(OBJECT * handle, int op, const void *alpha, OBJECT *a, OBJECT *x, OBJECT *y, int compute_type, int algorithm,
	 OBJECT *descriptor))
{
	STANDIN_KERNEL(kernel, "cusparseSpSV_solve");
	int code = check_call(handle, op, 0, alpha, alpha, compute_type);

	(void)algorithm;
	if (code == 0)
		code = check_spsv(a, x, y, descriptor);
	return code ? code : sparse_launch(handle, &kernel);
}

static int check_spsm(OBJECT *a, OBJECT *b, OBJECT *c, int op_b, OBJECT *descriptor)
{
	if (!sparse_is_sparse(a) || !sparse_is(b, SPARSE_DENSE) || !sparse_is(c, SPARSE_DENSE) ||
	    !sparse_is(descriptor, SPARSE_SPSM))
		return SPARSE_INVALID_VALUE;
	if (a->rows != a->columns || op_rows(b, op_b) != a->rows || c->rows != a->rows ||
	    op_columns(b, op_b) != c->columns)
		return SPARSE_INVALID_VALUE;
	return sparse_check_type(a->value_type);
}

STANDIN(int, cusparseSpSM_bufferSize,
	(OBJECT * handle, int op_a, int op_b, const void *alpha, OBJECT *a, OBJECT *b, OBJECT *c, int compute_type,
	 int algorithm, OBJECT *descriptor, size_t *bytes))
{
	int code = check_call(handle, op_a, op_b, alpha, alpha, compute_type);

	(void)algorithm;
	if (code == 0)
		code = check_spsm(a, b, c, op_b, descriptor);
	return code ? code : answer(solve_buffer(a, c->columns), bytes);
}

STANDIN(int, cusparseSpSM_analysis,
	(OBJECT * handle, int op_a, int op_b, const void *alpha, OBJECT *a, OBJECT *b, OBJECT *c, int compute_type,
	 int algorithm, OBJECT *descriptor, void *buffer))
{
	STANDIN_KERNEL(kernel, "cusparseSpSM_analysis");
	int code = check_call(handle, op_a, op_b, alpha, alpha, compute_type);

	(void)algorithm;
	if (code == 0)
		code = check_spsm(a, b, c, op_b, descriptor);
	if (code == 0 && !buffer)
		code = SPARSE_INVALID_VALUE;
	return code ? code : sparse_launch(handle, &kernel);
}

STANDIN(int, cusparseSpSM_solve,
	(OBJECT * handle, int op_a, int op_b, const void *alpha, OBJECT *a, OBJECT *b, OBJECT *c, int compute_type,
	 int algorithm, OBJECT *descriptor))
{
	STANDIN_KERNEL(kernel, "cusparseSpSM_solve");
	int code = check_call(handle, op_a, op_b, alpha, alpha, compute_type);

	(void)algorithm;
	if (code == 0)
		code = check_spsm(a, b, c, op_b, descriptor);
	return code ? code : sparse_launch(handle, &kernel);
}
