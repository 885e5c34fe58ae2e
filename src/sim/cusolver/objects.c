/* SPDX-License-Identifier: Apache-2.0
 * Handles and parameters, and what every call has in common.
 */
#include "sim/cusolver/solver.h"

#include <stdlib.h>

int solver_check(const struct solver_object *object, enum solver_kind kind)
{
	if (object && object->kind == kind)
		return 0;
	return kind == SOLVER_HANDLE ? SOLVER_NOT_INITIALIZED : SOLVER_INVALID_VALUE;
}

int solver_check_matrix(const struct solver_matrix *m)
{
	if (m->rows < 0 || m->columns < 0 || m->ld < (m->rows > 1 ? m->rows : 1))
		return SOLVER_INVALID_VALUE;
	return m->data || !m->rows || !m->columns ? 0 : SOLVER_INVALID_VALUE;
}

int solver_finish(const struct solver_object *handle, struct standin_kernel *kernel, int *info, int64_t count)
{
	if (standin_launch(kernel, handle->stream))
		return SOLVER_EXECUTION_FAILED;
	if (count == 0)
		return 0;
	return cuMemsetD32Async((sim_addr)(uintptr_t)info, 0, (size_t)count, handle->stream) ? SOLVER_EXECUTION_FAILED
											     : 0;
}

static int make(struct solver_object **out, enum solver_kind kind)
{
	if (!out)
		return SOLVER_INVALID_VALUE;
	*out = calloc(1, sizeof(**out));
	if (!*out)
		return SOLVER_ALLOC_FAILED;
	(*out)->kind = kind;
	return 0;
}

static int destroy(struct solver_object *object, enum solver_kind kind)
{
	int code = solver_check(object, kind);

	if (code)
		return code;
	object->kind = 0;	/* a second call is refused, as far as the memory is not used again */
	free(object);
	return 0;
}

#define SOLVER_OBJECT(create, end, kind)                                          \
	STANDIN(int, create, (struct solver_object * *out)) { return make(out, kind); } \
	STANDIN(int, end, (struct solver_object * object)) { return destroy(object, kind); }

/* What a handle takes on the device is not modeled: it is not documented, and was not measured. */
SOLVER_OBJECT(cusolverDnCreate, cusolverDnDestroy, SOLVER_HANDLE)
SOLVER_OBJECT(cusolverDnCreateParams, cusolverDnDestroyParams, SOLVER_PARAMS)
SOLVER_OBJECT(cusolverDnCreateGesvdjInfo, cusolverDnDestroyGesvdjInfo, SOLVER_GESVDJ)
SOLVER_OBJECT(cusolverDnCreateSyevjInfo, cusolverDnDestroySyevjInfo, SOLVER_SYEVJ)

STANDIN(int, cusolverDnSetStream, (struct solver_object * handle, struct sim_stream *stream))
{
	int code = solver_check(handle, SOLVER_HANDLE);

	if (code == 0)
		handle->stream = stream;
	return code;
}

STANDIN(int, cusolverDnXgesvdjSetTolerance, (struct solver_object * info, double tolerance))
{
	int code = solver_check(info, SOLVER_GESVDJ);

	return code ? code : tolerance < 0 ? SOLVER_INVALID_VALUE : 0;
}

STANDIN(int, cusolverDnXgesvdjSetMaxSweeps, (struct solver_object * info, int sweeps))
{
	int code = solver_check(info, SOLVER_GESVDJ);

	return code ? code : sweeps < 0 ? SOLVER_INVALID_VALUE : 0;
}

STANDIN(int, cusolverDnXgesvdjSetSortEig, (struct solver_object * info, int sort))
{
	(void)sort;
	return solver_check(info, SOLVER_GESVDJ);
}

STANDIN(int, cusolverDnXsyevjSetSortEig, (struct solver_object * info, int sort))
{
	(void)sort;
	return solver_check(info, SOLVER_SYEVJ);
}
