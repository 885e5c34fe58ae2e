/* SPDX-License-Identifier: Apache-2.0
 * Stand-in for cuSPARSE. Codes, types and modes are those of the public API.
 *
 * Nothing is computed, so what depends on the data is unknown: a sparse product (SpGEMM) has 0 nonzeros here.
 * Buffer sizes are a model, not a measurement: cuSPARSE documents what its buffers hold, but no sizes.
 */
#ifndef CUWHY_SIM_CUSPARSE_H
#define CUWHY_SIM_CUSPARSE_H

#include "sim/common/standin.h"

enum sparse_code {
	SPARSE_NOT_INITIALIZED = 1,
	SPARSE_ALLOC_FAILED = 2,
	SPARSE_INVALID_VALUE = 3,
	SPARSE_ARCH_MISMATCH = 4,
	SPARSE_MAPPING_ERROR = 5,
	SPARSE_EXECUTION_FAILED = 6,
	SPARSE_INTERNAL_ERROR = 7,
	SPARSE_MATRIX_TYPE_NOT_SUPPORTED = 8,
	SPARSE_ZERO_PIVOT = 9,
	SPARSE_NOT_SUPPORTED = 10,
	SPARSE_INSUFFICIENT_RESOURCES = 11,
};

/* Everything that the library creates begins with what it is. */
enum sparse_kind {
	SPARSE_HANDLE = 0x59a7,
	SPARSE_CSR,
	SPARSE_COO,
	SPARSE_DENSE,
	SPARSE_VECTOR,
	SPARSE_LEGACY,		/* cusparseMatDescr_t */
	SPARSE_BSRSV,
	SPARSE_BSRSM,
	SPARSE_SPGEMM,
	SPARSE_SPSV,
	SPARSE_SPSM,
};

struct sparse_object {
	enum sparse_kind kind;
	struct sim_stream *stream;	/* of a handle */
	bool device_scalars;		/* of a handle: pointer mode */
	int64_t rows, columns, nonzeros;	/* of matrices; a vector has one column */
	int64_t ld;			/* of a dense matrix */
	int order;			/* of a dense matrix: 1 by columns, 2 by rows */
	int batch;
	int value_type;			/* cudaDataType */
	size_t index_bytes;		/* of a sparse matrix */
	const void *data;
};

/* Makes one in *out. */
int sparse_make(struct sparse_object **out, const struct sparse_object *init);
/* Frees it, if it is of this kind. */
int sparse_free(const struct sparse_object *object, enum sparse_kind kind);

static inline bool sparse_is(const struct sparse_object *object, enum sparse_kind kind)
{
	return object && object->kind == kind;
}

static inline bool sparse_is_sparse(const struct sparse_object *object)
{
	return sparse_is(object, SPARSE_CSR) || sparse_is(object, SPARSE_COO);
}

/* Bytes of a value; 0 for a type that cuSPARSE does not have. */
size_t sparse_value_bytes(int type);
/* 0, or the code for a type that this GPU, or cuSPARSE, has not. */
int sparse_check_type(int type);

int sparse_launch(const struct sparse_object *handle, struct standin_kernel *kernel);

#endif
