/* SPDX-License-Identifier: Apache-2.0
 * Stand-in for cuSOLVER's dense interface. Codes and modes are those of the public API.
 */
#ifndef CUWHY_SIM_CUSOLVER_H
#define CUWHY_SIM_CUSOLVER_H

#include "sim/common/standin.h"

enum solver_code {
	SOLVER_NOT_INITIALIZED = 1,
	SOLVER_ALLOC_FAILED = 2,
	SOLVER_INVALID_VALUE = 3,
	SOLVER_EXECUTION_FAILED = 6,
	SOLVER_INTERNAL_ERROR = 7,
	SOLVER_NOT_SUPPORTED = 9,
};

/* cusolverDnHandle_t, cusolverDnParams_t, gesvdjInfo_t and syevjInfo_t: each knows what it is. */
enum solver_kind { SOLVER_HANDLE = 0x5eed, SOLVER_PARAMS, SOLVER_GESVDJ, SOLVER_SYEVJ };

struct solver_object {
	enum solver_kind kind;
	struct sim_stream *stream;	/* of a handle */
};

/* 0, or the code for a handle that was never created. */
int solver_check(const struct solver_object *object, enum solver_kind kind);

/* A matrix of a call: a negative size, a leading dimension that is too small, or a null pointer where there are elements. */
struct solver_matrix {
	int64_t rows, columns;
	const void *data;
	int64_t ld;
};
int solver_check_matrix(const struct solver_matrix *m);

/* The end of each compute call: launches the kernel and reports success in `count` elements of `info` on the device. */
int solver_finish(const struct solver_object *handle, struct standin_kernel *kernel, int *info, int64_t count);

/* The functions that need a workspace. */
enum solver_routine { GETRF, GEQRF, ORGQR, ORMQR, POTRF, SYTRF, SYEVD, SYEVJ, GESVD, GESVDJ, GESVDA, GEEV };

struct solver_size {
	enum solver_routine routine;
	int64_t m, n;
	bool vectors;		/* of eigenvalues or singular values, too */
	int64_t batch;		/* 0 counts as 1 */
};

/* Elements of the workspace. */
int64_t solver_work(const struct solver_size *size);

#endif
