/* SPDX-License-Identifier: Apache-2.0
 * Handles and descriptors.
 */
#include "sim/cusparse/sparse.h"

#include <stdlib.h>

int sparse_make(struct sparse_object **out, const struct sparse_object *init)
{
	if (!out)
		return SPARSE_INVALID_VALUE;
	*out = malloc(sizeof(**out));
	if (!*out)
		return SPARSE_ALLOC_FAILED;
	**out = *init;
	return 0;
}

/* Descriptors are destroyed through pointers to const. */
int sparse_free(const struct sparse_object *object, enum sparse_kind kind)
{
	struct sparse_object *mine = (struct sparse_object *)(uintptr_t)object;

	if (!sparse_is(object, kind))
		return kind == SPARSE_HANDLE ? SPARSE_NOT_INITIALIZED : SPARSE_INVALID_VALUE;
	mine->kind = 0;
	free(mine);
	return 0;
}

int sparse_launch(const struct sparse_object *handle, struct standin_kernel *kernel)
{
	if (!sparse_is(handle, SPARSE_HANDLE))
		return SPARSE_NOT_INITIALIZED;
	return standin_launch(kernel, handle->stream) ? SPARSE_EXECUTION_FAILED : 0;
}

/* cudaDataType, bytes, and the compute capability (times ten) that it needs. */
static const struct type {
	int type, bytes, needs;
} types[] = {
	{0, 4, 0},	/* float */
	{1, 8, 0},	/* double */
	{2, 2, 53},	/* half */
	{3, 1, 61},	/* int8 */
	{4, 8, 0},	/* complex float */
	{5, 16, 0},	/* complex double */
	{6, 4, 53},	/* complex half */
	{10, 4, 0},	/* int32 */
	{14, 2, 80},	/* bfloat16 */
	{15, 4, 80},	/* complex bfloat16 */
};

static const struct type *find_type(int type)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (types[i].type == type)
			return &types[i];
	return NULL;
}

size_t sparse_value_bytes(int type)
{
	const struct type *t = find_type(type);

	return t ? (size_t)t->bytes : 0;
}

int sparse_check_type(int type)
{
	const struct type *t = find_type(type);
	int device, major, minor;

	if (!t)
		return SPARSE_NOT_SUPPORTED;
	if (cuCtxGetDevice(&device) || cuDeviceComputeCapability(&major, &minor, device))
		return SPARSE_INTERNAL_ERROR;
	return major * 10 + minor >= t->needs ? 0 : SPARSE_ARCH_MISMATCH;
}

STANDIN(const char *, cusparseGetErrorString, (int code))
{
	static const char *const texts[] = {
		[0] = "success",
		[SPARSE_NOT_INITIALIZED] = "initialization error",
		[SPARSE_ALLOC_FAILED] = "insufficient resources",
		[SPARSE_INVALID_VALUE] = "invalid value",
		[SPARSE_ARCH_MISMATCH] = "architecture mismatch",
		[SPARSE_MAPPING_ERROR] = "mapping error",
		[SPARSE_EXECUTION_FAILED] = "execution failed",
		[SPARSE_INTERNAL_ERROR] = "internal error",
		[SPARSE_MATRIX_TYPE_NOT_SUPPORTED] = "matrix type not supported",
		[SPARSE_ZERO_PIVOT] = "zero pivot",
		[SPARSE_NOT_SUPPORTED] = "operation not supported",
		[SPARSE_INSUFFICIENT_RESOURCES] = "insufficient resources",
	};

	if (code < 0 || (size_t)code >= sizeof(texts) / sizeof(texts[0]))
		return "unrecognized error code";
	return texts[code];
}

STANDIN(int, cusparseCreate, (struct sparse_object * *handle))
{
	return sparse_make(handle, &(struct sparse_object){.kind = SPARSE_HANDLE});
}

STANDIN(int, cusparseDestroy, (const struct sparse_object *handle))
{
	return sparse_free(handle, SPARSE_HANDLE);
}

STANDIN(int, cusparseSetStream, (struct sparse_object * handle, struct sim_stream *stream))
{
	if (!sparse_is(handle, SPARSE_HANDLE))
		return SPARSE_NOT_INITIALIZED;
	handle->stream = stream;
	return 0;
}

STANDIN(int, cusparseSetPointerMode, (struct sparse_object * handle, int mode))
{
	if (!sparse_is(handle, SPARSE_HANDLE))
		return SPARSE_NOT_INITIALIZED;
	if (mode != 0 && mode != 1)
		return SPARSE_INVALID_VALUE;
	handle->device_scalars = mode;
	return 0;
}

/* cusparseIndexType_t: 1 is 16 bits, 2 is 32, 3 is 64. */
static size_t index_bytes(int type)
{
	return type >= 1 && type <= 3 ? (size_t)1 << type : 0;
}

static int check_sparse(int64_t rows, int64_t columns, int64_t nonzeros, const void *const *arrays)
{
	if (rows < 0 || columns < 0 || nonzeros < 0)
		return SPARSE_INVALID_VALUE;
	if (rows && columns && nonzeros > rows * columns)
		return SPARSE_INVALID_VALUE;
	/* offsets, indices, values: the last two have no elements without nonzeros */
	if (nonzeros && (!arrays[0] || !arrays[1] || !arrays[2]))
		return SPARSE_INVALID_VALUE;
	return 0;
}

STANDIN(int, cusparseCreateCsr,
	(struct sparse_object * *out, int64_t rows, int64_t columns, int64_t nonzeros, void *offsets, void *indices,
	 void *values, int offset_type, int index_type, int base, int value_type))
{
	struct sparse_object m = {.kind = SPARSE_CSR, .rows = rows, .columns = columns, .nonzeros = nonzeros, .batch = 1,
				  .value_type = value_type, .index_bytes = index_bytes(index_type), .data = values};
	int code = check_sparse(rows, columns, nonzeros, (const void *const[]){offsets, indices, values});

	if (code || !m.index_bytes || !index_bytes(offset_type) || (base != 0 && base != 1) ||
	    !sparse_value_bytes(value_type))
		return SPARSE_INVALID_VALUE;
	return sparse_make(out, &m);
}

STANDIN(int, cusparseCreateCoo,
	(struct sparse_object * *out, int64_t rows, int64_t columns, int64_t nonzeros, void *row_indices, void *indices,
	 void *values, int index_type, int base, int value_type))
{
	struct sparse_object m = {.kind = SPARSE_COO, .rows = rows, .columns = columns, .nonzeros = nonzeros, .batch = 1,
				  .value_type = value_type, .index_bytes = index_bytes(index_type), .data = values};
	int code = check_sparse(rows, columns, nonzeros, (const void *const[]){row_indices, indices, values});

	if (code || !m.index_bytes || (base != 0 && base != 1) || !sparse_value_bytes(value_type))
		return SPARSE_INVALID_VALUE;
	return sparse_make(out, &m);
}

STANDIN(int, cusparseDestroySpMat, (const struct sparse_object *m))
{
	return sparse_free(m, sparse_is(m, SPARSE_COO) ? SPARSE_COO : SPARSE_CSR);
}

STANDIN(int, cusparseCreateDnMat,
	(struct sparse_object * *out, int64_t rows, int64_t columns, int64_t ld, void *values, int type, int order))
{
	struct sparse_object m = {.kind = SPARSE_DENSE, .rows = rows, .columns = columns, .ld = ld, .order = order, .batch = 1,
				  .value_type = type, .data = values};

	if (rows < 0 || columns < 0 || (order != 1 && order != 2) || ld < (order == 1 ? rows : columns))
		return SPARSE_INVALID_VALUE;
	if ((rows && columns && !values) || !sparse_value_bytes(type))
		return SPARSE_INVALID_VALUE;
	return sparse_make(out, &m);
}

STANDIN(int, cusparseDestroyDnMat, (const struct sparse_object *m))
{
	return sparse_free(m, SPARSE_DENSE);
}

STANDIN(int, cusparseCreateDnVec, (struct sparse_object * *out, int64_t size, void *values, int type))
{
	struct sparse_object v = {
		.kind = SPARSE_VECTOR, .rows = size, .columns = 1, .batch = 1, .value_type = type, .data = values};

	if (size < 0 || (size && !values) || !sparse_value_bytes(type))
		return SPARSE_INVALID_VALUE;
	return sparse_make(out, &v);
}

STANDIN(int, cusparseDestroyDnVec, (const struct sparse_object *v))
{
	return sparse_free(v, SPARSE_VECTOR);
}

STANDIN(int, cusparseCsrSetPointers, (struct sparse_object * m, void *offsets, void *indices, void *values))
{
	if (!sparse_is(m, SPARSE_CSR) || !offsets || (m->nonzeros && (!indices || !values)))
		return SPARSE_INVALID_VALUE;
	m->data = values;
	return 0;
}

STANDIN(int, cusparseCsrSetStridedBatch,
	(struct sparse_object * m, int batch, int64_t offsets_stride, int64_t values_stride))
{
	if (!sparse_is(m, SPARSE_CSR) || batch < 1 || offsets_stride < 0 || values_stride < 0)
		return SPARSE_INVALID_VALUE;
	m->batch = batch;
	return 0;
}

STANDIN(int, cusparseDnMatSetStridedBatch, (struct sparse_object * m, int batch, int64_t stride))
{
	if (!sparse_is(m, SPARSE_DENSE) || batch < 1 || stride < 0)
		return SPARSE_INVALID_VALUE;
	m->batch = batch;
	return 0;
}

STANDIN(int, cusparseSpMatGetSize, (const struct sparse_object *m, int64_t *rows, int64_t *columns, int64_t *nonzeros))
{
	if (!sparse_is_sparse(m) || !rows || !columns || !nonzeros)
		return SPARSE_INVALID_VALUE;
	*rows = m->rows;
	*columns = m->columns;
	*nonzeros = m->nonzeros;
	return 0;
}

/* Which triangle, and whether its diagonal is one. */
STANDIN(int, cusparseSpMatSetAttribute, (struct sparse_object * m, int attribute, const void *value, size_t bytes))
{
	if (!sparse_is_sparse(m) || (attribute != 0 && attribute != 1) || !value || bytes != sizeof(int))
		return SPARSE_INVALID_VALUE;
	return 0;
}

#define SPARSE_DESCRIPTOR(create, destroy, kind_)                                                                           \
	STANDIN(int, create, (struct sparse_object * *out)) \
	{ \
		return sparse_make(out, &(struct sparse_object){.kind = (kind_)}); \
	} \
	STANDIN(int, destroy, (const struct sparse_object *object)) { return sparse_free(object, kind_); }

SPARSE_DESCRIPTOR(cusparseSpGEMM_createDescr, cusparseSpGEMM_destroyDescr, SPARSE_SPGEMM)
SPARSE_DESCRIPTOR(cusparseSpSV_createDescr, cusparseSpSV_destroyDescr, SPARSE_SPSV)
SPARSE_DESCRIPTOR(cusparseSpSM_createDescr, cusparseSpSM_destroyDescr, SPARSE_SPSM)
SPARSE_DESCRIPTOR(cusparseCreateMatDescr, cusparseDestroyMatDescr, SPARSE_LEGACY)
SPARSE_DESCRIPTOR(cusparseCreateBsrsv2Info, cusparseDestroyBsrsv2Info, SPARSE_BSRSV)
SPARSE_DESCRIPTOR(cusparseCreateBsrsm2Info, cusparseDestroyBsrsm2Info, SPARSE_BSRSM)

static int set_legacy(const struct sparse_object *descriptor, int value, int largest)
{
	return sparse_is(descriptor, SPARSE_LEGACY) && value >= 0 && value <= largest ? 0 : SPARSE_INVALID_VALUE;
}

STANDIN(int, cusparseSetMatType, (struct sparse_object * d, int type))
{
	return set_legacy(d, type, 3);
}

STANDIN(int, cusparseSetMatFillMode, (struct sparse_object * d, int mode))
{
	return set_legacy(d, mode, 1);
}

STANDIN(int, cusparseSetMatDiagType, (struct sparse_object * d, int type))
{
	return set_legacy(d, type, 1);
}

STANDIN(int, cusparseSetMatIndexBase, (struct sparse_object * d, int base))
{
	return set_legacy(d, base, 1);
}
