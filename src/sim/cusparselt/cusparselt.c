/* SPDX-License-Identifier: Apache-2.0
 * Stand-in for cuSPARSELt: products with matrices in which two of four elements are zero. Codes are cuSPARSE's.
 *
 * Its objects are opaque structures of the caller's, of several hundred bytes at least; here each holds a small record.
 */
#include "sim/common/standin.h"

#include <string.h>

enum lt_code {
	LT_NOT_INITIALIZED = 1,
	LT_INVALID_VALUE = 3,
	LT_ARCH_MISMATCH = 4,
	LT_EXECUTION_FAILED = 6,
	LT_INTERNAL_ERROR = 7,
	LT_NOT_SUPPORTED = 10,
};

enum lt_kind { LT_HANDLE = 0x24a1, LT_DENSE, LT_STRUCTURED, LT_MATMUL, LT_SELECTION, LT_PLAN };

struct lt_object {
	enum lt_kind kind;
	int64_t rows, columns, ld;	/* of matrices */
	int type, order;
	int config, split, split_mode;	/* of a selection: algorithm, parts of the sum and how they are added */
	int64_t result_elements;	/* of a product and what is made of it */
};
_Static_assert(sizeof(struct lt_object) <= 128, "must fit into the caller's opaque structures");

static bool is(const struct lt_object *object, enum lt_kind kind)
{
	return object && object->kind == kind;
}

static bool is_matrix(const struct lt_object *object)
{
	return is(object, LT_DENSE) || is(object, LT_STRUCTURED);
}

/* Sparse tensor cores exist since compute capability 8.0. */
STANDIN(int, cusparseLtInit, (struct lt_object * handle))
{
	int device, major, minor;

	if (!handle)
		return LT_INVALID_VALUE;
	if (cuCtxGetDevice(&device) || cuDeviceComputeCapability(&major, &minor, device))
		return LT_INTERNAL_ERROR;
	if (major < 8)
		return LT_ARCH_MISMATCH;
	*handle = (struct lt_object){.kind = LT_HANDLE};
	return 0;
}

/* cudaDataType, bytes of an element, sizes must be multiples of this, bits of metadata per element of the full matrix. */
static const struct type {
	int type, bytes, multiple, meta_bits;
} types[] = {
	{0, 4, 8, 2},	/* float: one of two elements is zero */
	{2, 2, 16, 1},	/* half */
	{14, 2, 16, 1},	/* bfloat16 */
	{3, 1, 32, 1},	/* int8 */
	{28, 1, 32, 1},	/* float8 e4m3 */
	{29, 1, 32, 1},	/* float8 e5m2 */
	{10, 4, 1, 0},	/* int32: results only */
};

static const struct type *find_type(int type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].type == type)
			return &types[i];
	return NULL;
}

static int init_matrix(const struct lt_object *handle, struct lt_object *out, const struct lt_object *init,
		       uint32_t alignment)
{
	const struct type *t = find_type(init->type);

	if (!is(handle, LT_HANDLE))
		return LT_NOT_INITIALIZED;
	if (!out || init->rows < 1 || init->columns < 1 || (init->order != 1 && init->order != 2) || alignment % 16 ||
	    !alignment)
		return LT_INVALID_VALUE;
	if (init->ld < (init->order == 1 ? init->rows : init->columns))
		return LT_INVALID_VALUE;
	if (!t || init->rows % t->multiple || init->columns % t->multiple || init->ld % t->multiple)
		return LT_NOT_SUPPORTED;
	*out = *init;
	return 0;
}

STANDIN(int, cusparseLtDenseDescriptorInit,
	(const struct lt_object *handle, struct lt_object *out, int64_t rows, int64_t columns, int64_t ld,
	 uint32_t alignment, int type, int order))
{
	struct lt_object m = {.kind = LT_DENSE, .rows = rows, .columns = columns, .ld = ld, .type = type, .order = order};

	return init_matrix(handle, out, &m, alignment);
}

STANDIN(int, cusparseLtStructuredDescriptorInit,
	(const struct lt_object *handle, struct lt_object *out, int64_t rows, int64_t columns, int64_t ld,
	 uint32_t alignment, int type, int order, int sparsity))
{
	struct lt_object m = {
		.kind = LT_STRUCTURED, .rows = rows, .columns = columns, .ld = ld, .type = type, .order = order};

	/* half of the elements is the only choice */
	return is(handle, LT_HANDLE) && sparsity != 0 ? LT_INVALID_VALUE : init_matrix(handle, out, &m, alignment);
}

STANDIN(int, cusparseLtMatDescriptorDestroy, (struct lt_object * m))
{
	if (!is_matrix(m))
		return LT_INVALID_VALUE;
	m->kind = 0;
	return 0;
}

/* Half of the elements, and the metadata: 9/16 of a matrix of half, 10/16 of one of int8, as PyTorch computes it itself
 * (torch/sparse/semi_structured.py). The buffer is a model. */
STANDIN(int, cusparseLtSpMMACompressedSize2,
	(const struct lt_object *handle, const struct lt_object *m, size_t *bytes, size_t *buffer))
{
	const struct type *t;
	size_t elements;

	if (!is(handle, LT_HANDLE))
		return LT_NOT_INITIALIZED;
	if (!is(m, LT_STRUCTURED) || !bytes || !buffer)
		return LT_INVALID_VALUE;
	t = find_type(m->type);
	elements = (size_t)m->rows * (size_t)m->columns;
	*bytes = elements / 2 * (size_t)t->bytes + elements * (size_t)t->meta_bits / 8;
	*buffer = elements / 2 * (size_t)t->bytes;
	return 0;
}

STANDIN(int, cusparseLtSpMMACompress2,
	(const struct lt_object *handle, const struct lt_object *m, int is_a, int op, const void *dense,
	 void *compressed, void *buffer, struct sim_stream *stream))
{
	STANDIN_KERNEL(kernel, "cusparseLtSpMMACompress2");

	(void)is_a;
	(void)buffer;
	if (!is(handle, LT_HANDLE))
		return LT_NOT_INITIALIZED;
	if (!is(m, LT_STRUCTURED) || op < 0 || op > 1 || !dense || !compressed)
		return LT_INVALID_VALUE;
	return standin_launch(&kernel, stream) ? LT_EXECUTION_FAILED : 0;
}

static int64_t op_rows(const struct lt_object *m, int op)
{
	return op ? m->columns : m->rows;
}

static int64_t op_columns(const struct lt_object *m, int op)
{
	return op ? m->rows : m->columns;
}

STANDIN(int, cusparseLtMatmulDescriptorInit,
	(const struct lt_object *handle, struct lt_object *out, int op_a, int op_b, const struct lt_object *a,
	 const struct lt_object *b, const struct lt_object *c, const struct lt_object *d, int compute_type))
{
	(void)compute_type;
	if (!is(handle, LT_HANDLE))
		return LT_NOT_INITIALIZED;
	if (!out || !is_matrix(a) || !is_matrix(b) || !is(c, LT_DENSE) || !is(d, LT_DENSE) || op_a < 0 || op_a > 1 ||
	    op_b < 0 || op_b > 1)
		return LT_INVALID_VALUE;
	/* exactly one of the two is structured */
	if (is(a, LT_STRUCTURED) == is(b, LT_STRUCTURED) || a->type != b->type)
		return LT_NOT_SUPPORTED;
	if (op_columns(a, op_a) != op_rows(b, op_b) || op_rows(a, op_a) != c->rows || op_columns(b, op_b) != c->columns)
		return LT_INVALID_VALUE;
	if (c->rows != d->rows || c->columns != d->columns || c->order != d->order)
		return LT_INVALID_VALUE;
	*out = (struct lt_object){.kind = LT_MATMUL, .result_elements = d->rows * d->columns};
	return 0;
}

STANDIN(int, cusparseLtMatmulDescSetAttribute,
	(const struct lt_object *handle, struct lt_object *product, int attribute, const void *value, size_t bytes))
{
	if (!is(handle, LT_HANDLE))
		return LT_NOT_INITIALIZED;
	return is(product, LT_MATMUL) && attribute >= 0 && value && bytes ? 0 : LT_INVALID_VALUE;
}

STANDIN(int, cusparseLtMatmulAlgSelectionInit,
	(const struct lt_object *handle, struct lt_object *out, const struct lt_object *product, int algorithm))
{
	if (!is(handle, LT_HANDLE))
		return LT_NOT_INITIALIZED;
	if (!out || !is(product, LT_MATMUL) || algorithm != 0)
		return LT_INVALID_VALUE;
	*out = (struct lt_object){.kind = LT_SELECTION, .split = 1, .result_elements = product->result_elements};
	return 0;
}

/* cusparseLtMatmulAlgAttribute_t */
enum { ALG_CONFIG, ALG_CONFIG_COUNT, ALG_ITERATIONS, ALG_SPLIT_K, ALG_SPLIT_K_MODE, ALG_SPLIT_K_BUFFERS };
enum { CONFIGURATIONS = 8 };	/* how many algorithms there are differs by GPU and type: a model */

STANDIN(int, cusparseLtMatmulAlgSetAttribute,
	(const struct lt_object *handle, struct lt_object *s, int attribute, const void *data, size_t bytes))
{
	int value;

	if (!is(handle, LT_HANDLE))
		return LT_NOT_INITIALIZED;
	if (!is(s, LT_SELECTION) || !data || bytes != sizeof(value))
		return LT_INVALID_VALUE;
	memcpy(&value, data, sizeof(value));
	switch (attribute) {
	case ALG_CONFIG:
		if (value < 0 || value >= CONFIGURATIONS)
			return LT_INVALID_VALUE;
		s->config = value;
		return 0;
	case ALG_SPLIT_K:
		s->split = value;
		return value >= 1 || value == -1 ? 0 : LT_INVALID_VALUE;
	case ALG_SPLIT_K_MODE:
		s->split_mode = value;
		return 0;
	case ALG_ITERATIONS:
	case ALG_SPLIT_K_BUFFERS:
		return value >= 0 ? 0 : LT_INVALID_VALUE;
	default:
		return LT_INVALID_VALUE;
	}
}

STANDIN(int, cusparseLtMatmulAlgGetAttribute,
	(const struct lt_object *handle, const struct lt_object *s, int attribute, void *data, size_t bytes))
{
	int value;

	if (!is(handle, LT_HANDLE))
		return LT_NOT_INITIALIZED;
	if (!is(s, LT_SELECTION) || !data || bytes != sizeof(value))
		return LT_INVALID_VALUE;
	switch (attribute) {
	case ALG_CONFIG: value = s->config; break;
	case ALG_CONFIG_COUNT: value = CONFIGURATIONS; break;
	case ALG_ITERATIONS: value = 5; break;
	case ALG_SPLIT_K: value = s->split; break;
	case ALG_SPLIT_K_MODE: value = s->split_mode; break;
	case ALG_SPLIT_K_BUFFERS: value = 0; break;
	default: return LT_INVALID_VALUE;
	}
	memcpy(data, &value, sizeof(value));
	return 0;
}

STANDIN(int, cusparseLtMatmulPlanInit,
	(const struct lt_object *handle, struct lt_object *plan, const struct lt_object *product,
	 const struct lt_object *selection))
{
	if (!is(handle, LT_HANDLE))
		return LT_NOT_INITIALIZED;
	if (!plan || !is(product, LT_MATMUL) || !is(selection, LT_SELECTION))
		return LT_INVALID_VALUE;
	*plan = *selection;
	plan->kind = LT_PLAN;
	return 0;
}

STANDIN(int, cusparseLtMatmulPlanDestroy, (struct lt_object * plan))
{
	if (!is(plan, LT_PLAN))
		return LT_INVALID_VALUE;
	plan->kind = 0;
	return 0;
}

/* Partial sums, in float, if the sum is split; a model. */
STANDIN(int, cusparseLtMatmulGetWorkspace, (const struct lt_object *handle, const struct lt_object *plan, size_t *bytes))
{
	if (!is(handle, LT_HANDLE))
		return LT_NOT_INITIALIZED;
	if (!is(plan, LT_PLAN) || !bytes)
		return LT_INVALID_VALUE;
	*bytes = plan->split > 1 ? (size_t)plan->result_elements * sizeof(float) * (size_t)plan->split : 0;
	return 0;
}

/* A search tries all algorithms and keeps the fastest: here they are equal. */
#define LT_PRODUCT(name)                                                                                                           \
	STANDIN(int, name, \
		(const struct lt_object *handle, const struct lt_object *plan, const void *alpha, const void *a, \
		 const void *b, const void *beta, const void *c, void *d, void *work, struct sim_stream **streams, \
		 int count)) \
	{                                                                                                                          \
		STANDIN_KERNEL(kernel, #name);                                                                                     \
		(void)work;                                                                                                        \
		if (!is(handle, LT_HANDLE))                                                                                        \
			return LT_NOT_INITIALIZED;                                                                                 \
		if (!is(plan, LT_PLAN) || !alpha || !a || !b || !beta || !c || !d || count < 0 || \
		    (count > 0 && !streams)) \
			return LT_INVALID_VALUE;                                                                                   \
		return standin_launch(&kernel, count > 0 ? streams[0] : NULL) ? LT_EXECUTION_FAILED : 0;                           \
	}

LT_PRODUCT(cusparseLtMatmul)
LT_PRODUCT(cusparseLtMatmulSearch)
