/* SPDX-License-Identifier: Apache-2.0
 * Stand-in for cuBLASLt: products of matrices that are described by objects. Sizes and numbers are those of the public API.
 */
#ifndef CUWHY_SIM_CUBLASLT_H
#define CUWHY_SIM_CUBLASLT_H

#include "sim/common/blas.h"

#define LT_FIELD(number, type, field) type field;

struct lt_desc {
#define LT_DESC LT_FIELD
#include "sim/cublaslt/lt_attributes.def"
};

struct lt_layout {
#define LT_LAYOUT LT_FIELD
#include "sim/cublaslt/lt_attributes.def"
};

struct lt_preference {
#define LT_PREFERENCE LT_FIELD
#include "sim/cublaslt/lt_attributes.def"
};

/* cublasLtMatmulAlgo_t: 64 bytes of the caller's. All zeros, as PyTorch may pass, is an algorithm like any other. */
struct lt_algo {
#define LT_ALGO LT_FIELD
#include "sim/cublaslt/lt_attributes.def"
	unsigned char unused[32];
};
_Static_assert(sizeof(struct lt_algo) == 64, "cublasLtMatmulAlgo_t");

struct lt_result {			/* cublasLtMatmulHeuristicResult_t */
	struct lt_algo algo;
	size_t workspace;
	int status;
	float waves;
	int reserved[4];
};
_Static_assert(sizeof(struct lt_result) == 96, "cublasLtMatmulHeuristicResult_t");

/* A product and its four matrices. */
struct lt_problem {
	const struct lt_desc *desc;
	const struct lt_layout *a, *b, *c, *d;
};

/* Whether the GPU can compute it: a status, and the kernel if it is SUCCESS. */
int lt_check(const struct blas_head *handle, const struct lt_problem *p, struct standin_kernel **kernel);
/* The same from the types alone. */
int lt_check_types(const struct blas_head *handle, const struct blas_types *t, int scale, struct standin_kernel **kernel);

#endif
