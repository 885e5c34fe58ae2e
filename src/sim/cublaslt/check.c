/* SPDX-License-Identifier: Apache-2.0
 * Which products of matrices a GPU can compute: shapes that fit each other, types, and the rules for 8-bit types.
 */
#include "sim/cublaslt/cublaslt.h"

enum order { ORDER_COL, ORDER_ROW, ORDER_LAST = 4 };	/* the others interleave 8-bit integers */

struct matmul_row {
	struct blas_types types;
	int capability;
	struct standin_kernel kernel;
};

static struct matmul_row rows[] = {
#define BLAS_GEMM(word, at, bt, ct, compute_class, oldest, library) \
	{{.a = at, .b = bt, .c = ct, .d = ct, .compute = compute_class}, oldest, {.name = "cublaslt_matmul_" #word}},
#include "sim/common/blas_gemm.def"
#undef BLAS_GEMM
};

static bool is_float8(int type)
{
	return type == R_8F_E4M3 || type == R_8F_E5M2;
}

/* C has the type of D; next to an 8-bit D, it has 16 bits. */
static bool is_addend(int c, int d)
{
	return c == d || (is_float8(d) && (c == R_16BF || c == R_16F));
}

/* The type of alpha and beta. */
static bool is_scale(const struct blas_types *t, int scale)
{
	switch (blas_compute_class(t->compute)) {
	case COMPUTE_16F:
		return scale == R_16F;
	case COMPUTE_64F:
		return scale == R_64F || (t->a == C_64F && scale == C_64F);
	case COMPUTE_32I:
		return t->d == R_8I ? scale == R_32F : scale == R_32I;
	}
	return scale == R_32F || ((t->a == C_32F || t->a == C_8I) && scale == C_32F);
}

int lt_check_types(const struct blas_head *handle, const struct blas_types *t, int scale, struct standin_kernel **kernel)
{
	int compute = blas_compute_class(t->compute);

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct blas_types *r = &rows[i].types;

		if (r->a != t->a || r->b != t->b || r->d != t->d || r->compute != compute)
			continue;
		if (!is_addend(t->c, t->d) || !is_scale(t, scale) || handle->capability < rows[i].capability)
			return BLAS_NOT_SUPPORTED;
		*kernel = &rows[i].kernel;
		return BLAS_SUCCESS;
	}
	return BLAS_NOT_SUPPORTED;
}

static bool is_layout(const struct lt_layout *l)
{
	uint64_t least = l->order == ORDER_ROW ? l->cols : l->rows;

	if (l->order < ORDER_COL || l->order > ORDER_LAST || l->batch < 1)
		return false;
	/* in the interleaved orders the leading dimension counts something else */
	return l->order > ORDER_ROW || l->ld >= (int64_t)(least ? least : 1);
}

static bool is_operation(int op)
{
	return op >= OP_N && op <= OP_C;
}

static uint64_t rows_of(const struct lt_layout *l, int op)
{
	return op == OP_N ? l->rows : l->cols;
}

static uint64_t cols_of(const struct lt_layout *l, int op)
{
	return op == OP_N ? l->cols : l->rows;
}

static bool do_shapes_fit(const struct lt_problem *p)
{
	const struct lt_desc *o = p->desc;

	return rows_of(p->a, o->transa) == p->d->rows && cols_of(p->a, o->transa) == rows_of(p->b, o->transb) &&
	       cols_of(p->b, o->transb) == p->d->cols && p->c->rows == p->d->rows && p->c->cols == p->d->cols;
}

static bool do_batches_fit(const struct lt_problem *p)
{
	return p->a->batch == p->d->batch && p->b->batch == p->d->batch && p->c->batch == p->d->batch;
}

static int check_shapes(const struct lt_problem *p)
{
	if (!is_layout(p->a) || !is_layout(p->b) || !is_layout(p->c) || !is_layout(p->d))
		return BLAS_INVALID_VALUE;
	if (!is_operation(p->desc->transa) || !is_operation(p->desc->transb))
		return BLAS_INVALID_VALUE;
	return do_shapes_fit(p) && do_batches_fit(p) ? BLAS_SUCCESS : BLAS_INVALID_VALUE;
}

enum {
	EPILOGUE_AUX = 128,		/* reads or writes a second matrix */
};

static bool is_epilogue(uint32_t epilogue)
{
	/* default, ReLU, bias, GELU, their combinations, derivatives, gradients of a bias */
	static const uint32_t known[] = {1, 2, 130, 4, 6, 134, 32, 160, 36, 164, 136, 152, 192, 208, 256, 512};

	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
		if (known[i] == epilogue)
			return true;
	}
	return false;
}

static int check_epilogue(const struct lt_problem *p)
{
	const struct lt_desc *o = p->desc;

	if (!is_epilogue(o->epilogue))
		return BLAS_INVALID_VALUE;
	if ((o->epilogue & EPILOGUE_AUX) && o->aux_ld < (int64_t)p->d->rows)
		return BLAS_INVALID_VALUE;
	/* integers have neither bias nor activation, but for an 8-bit result */
	return p->d->type == R_32I && o->epilogue != 1 ? BLAS_NOT_SUPPORTED : BLAS_SUCCESS;
}

enum scale_mode { SCALE_SCALAR, SCALE_VEC16, SCALE_VEC32, SCALE_OUTER, SCALE_VEC128, SCALE_BLOCK128, SCALE_PER_BATCH };

/* By the published table: one number per matrix everywhere; rows and blocks of 128 on Hopper; blocks of 16 and 32 since Blackwell. */
static bool is_scale_mode(int mode, int type, int capability)
{
	bool blackwell = capability > PRE_BLACKWELL;

	switch (mode) {
	case SCALE_SCALAR:
		return is_float8(type);
	case SCALE_OUTER:
	case SCALE_VEC128:
	case SCALE_BLOCK128:
		return is_float8(type) && capability == 90;
	case SCALE_VEC32:
		return is_float8(type) && blackwell;
	case SCALE_VEC16:
		return type == R_4F_E2M1 && blackwell;
	case SCALE_PER_BATCH:
		return is_float8(type) && blackwell;
	}
	return false;
}

/* Tensor cores read 8-bit numbers along k, 16 bytes at a time: A transposed, B not. Blackwell takes any order. */
static int check_float8(const struct blas_head *handle, const struct lt_problem *p)
{
	enum { BYTES = 16 };
	const struct lt_desc *o = p->desc;
	bool in_order = o->transa != OP_N && o->transb == OP_N;

	if (handle->capability <= PRE_BLACKWELL && !in_order)
		return BLAS_NOT_SUPPORTED;
	if (p->d->rows % BYTES || cols_of(p->a, o->transa) % BYTES || p->a->ld % BYTES || p->b->ld % BYTES)
		return BLAS_NOT_SUPPORTED;
	if (!is_scale_mode(o->a_scale_mode, (int)p->a->type, handle->capability) ||
	    !is_scale_mode(o->b_scale_mode, (int)p->b->type, handle->capability))
		return BLAS_NOT_SUPPORTED;
	return BLAS_SUCCESS;
}

/* Integers are read four at a time. */
static int check_int8(const struct lt_problem *p)
{
	return p->a->ld % 4 || p->b->ld % 4 ? BLAS_NOT_SUPPORTED : BLAS_SUCCESS;
}

int lt_check(const struct blas_head *handle, const struct lt_problem *p, struct standin_kernel **kernel)
{
	struct blas_types types;
	int status;

	if (!p->desc || !p->a || !p->b || !p->c || !p->d)
		return BLAS_INVALID_VALUE;
	types = (struct blas_types){(int)p->a->type, (int)p->b->type, (int)p->c->type, (int)p->d->type, p->desc->compute};
	status = check_shapes(p);
	if (status == BLAS_SUCCESS)
		status = check_epilogue(p);
	if (status == BLAS_SUCCESS)
		status = lt_check_types(handle, &types, p->desc->scale, kernel);
	if (status == BLAS_SUCCESS && (is_float8(types.a) || types.a == R_4F_E2M1))
		status = check_float8(handle, p);
	if (status == BLAS_SUCCESS && types.a == R_8I)
		status = check_int8(p);
	return status;
}
