/* SPDX-License-Identifier: Apache-2.0
 * Functions with 64-bit sizes, whose types are arguments: cusolverDnX….
 */
#include "sim/cusolver/solver.h"

#define OBJECT const struct solver_object

/* cudaDataType: float, double and their complex numbers; 0 for any other. */
static size_t element_bytes(int type)
{
	switch (type) {
	case 0: return 4;
	case 1: return 8;
	case 4: return 8;
	case 5: return 16;
	default: return 0;
	}
}

/* What is checked in each of them. */
struct call {
	OBJECT *handle;
	OBJECT *params;
	bool modes_ok;		/* of fill, job, side */
	int type;		/* of the matrix; also of the computation */
	int compute;
	struct solver_matrix a, b;
	struct solver_size size;
};

static int check(const struct call *c)
{
	int code = solver_check(c->handle, SOLVER_HANDLE);

	/* without parameters, the defaults are meant */
	if (code == 0 && c->params)
		code = solver_check(c->params, SOLVER_PARAMS);
	if (code == 0 && (!c->modes_ok || !element_bytes(c->type) || c->compute != c->type || c->size.batch < 0))
		code = SOLVER_INVALID_VALUE;
	if (code == 0)
		code = solver_check_matrix(&c->a);
	if (code || (!c->b.rows && !c->b.columns && !c->b.ld))
		return code;
	return solver_check_matrix(&c->b);
}

/* Everything is done on the device, as far as it is known. */
static int answer_size(const struct call *c, size_t *device, size_t *host)
{
	struct call sized = *c;
	int code;

	/* PyTorch asks before it has the matrix: null is allowed here */
	sized.a.data = sized.b.data = c;
	code = check(&sized);
	if (code || !device || !host)
		return code ? code : SOLVER_INVALID_VALUE;
	*device = (size_t)solver_work(&c->size) * element_bytes(c->type);
	*host = 0;
	return 0;
}

static int compute(const struct call *c, const void *work, size_t bytes, struct standin_kernel *kernel, int *info)
{
	int code = check(c);
	int64_t infos = c->size.batch > 0 ? c->size.batch : 1;

	if (code)
		return code;
	if (!info || !work || bytes < (size_t)solver_work(&c->size) * element_bytes(c->type))
		return SOLVER_INVALID_VALUE;
	return solver_finish(c->handle, kernel, info, infos);
}

static bool is_mode(int mode)
{
	return mode == 0 || mode == 1;
}

#define GEQRF_CALL                                                                                             \
	{.handle = handle, .params = params, .modes_ok = type_tau == type, .type = type, .compute = compute_type, \
	 .a = {m, n, a, lda}, .size = {.routine = GEQRF, .m = m, .n = n}}

STANDIN(int, cusolverDnXgeqrf_bufferSize,
	(OBJECT * handle, OBJECT *params, int64_t m, int64_t n, int type, const void *a, int64_t lda, int type_tau,
	 const void *tau, int compute_type, size_t *device, size_t *host))
{
	struct call c = GEQRF_CALL;

	(void)tau;
	return answer_size(&c, device, host);
}

STANDIN(int, cusolverDnXgeqrf,
	(OBJECT * handle, OBJECT *params, int64_t m, int64_t n, int type, void *a, int64_t lda, int type_tau, void *tau,
	 int compute_type, void *work, size_t bytes, void *host, size_t host_bytes, int *info))
{
	STANDIN_KERNEL(kernel, "cusolverDnXgeqrf");
	struct call c = GEQRF_CALL;

	(void)tau;
	(void)host;
	(void)host_bytes;
	return compute(&c, work, bytes, &kernel, info);
}

#define POTRF_CALL                                                                                                   \
	{.handle = handle, .params = params, .modes_ok = is_mode(uplo), .type = type, .compute = compute_type,       \
		.a = {n, n, a, lda}, .size = {.routine = POTRF, .m = n, .n = n} \
	}

STANDIN(int, cusolverDnXpotrf_bufferSize,
	(OBJECT * handle, OBJECT *params, int uplo, int64_t n, int type, const void *a, int64_t lda, int compute_type,
	 size_t *device, size_t *host))
{
	struct call c = POTRF_CALL;

	return answer_size(&c, device, host);
}

STANDIN(int, cusolverDnXpotrf,
	(OBJECT * handle, OBJECT *params, int uplo, int64_t n, int type, void *a, int64_t lda, int compute_type,
	 void *work, size_t bytes, void *host, size_t host_bytes, int *info))
{
	STANDIN_KERNEL(kernel, "cusolverDnXpotrf");
	struct call c = POTRF_CALL;

	(void)host;
	(void)host_bytes;
	return compute(&c, work, bytes, &kernel, info);
}

STANDIN(int, cusolverDnXpotrs,
	(OBJECT * handle, OBJECT *params, int uplo, int64_t n, int64_t nrhs, int type, const void *a, int64_t lda,
	 int type_b, void *b, int64_t ldb, int *info))
{
	STANDIN_KERNEL(kernel, "cusolverDnXpotrs");
	struct call c = {.handle = handle,
			 .params = params,
			 .modes_ok = is_mode(uplo) && type_b == type,
			 .type = type,
			 .compute = type,
			 .a = {n, n, a, lda}, .b = {n, nrhs, b, ldb}};
	int code = check(&c);

	if (code || !info)
		return code ? code : SOLVER_INVALID_VALUE;
	return solver_finish(handle, &kernel, info, 1);
}

#define SYTRS_CALL                                                                                                 \
	{.handle = handle, .modes_ok = is_mode(uplo) && type_b == type, .type = type, .compute = type, \
		.a = {n, n, a, lda}, .b = {n, nrhs, b, ldb}, .size = {.routine = SYTRF, .m = n, .n = n} \
	}

STANDIN(int, cusolverDnXsytrs_bufferSize,
	(OBJECT * handle, int uplo, int64_t n, int64_t nrhs, int type, const void *a, int64_t lda,
	 const int64_t *pivots, int type_b, void *b, int64_t ldb, size_t *device, size_t *host))
{
	struct call c = SYTRS_CALL;

	(void)pivots;
	return answer_size(&c, device, host);
}

STANDIN(int, cusolverDnXsytrs,
	(OBJECT * handle, int uplo, int64_t n, int64_t nrhs, int type, const void *a, int64_t lda, const int64_t *pivots,
	 int type_b, void *b, int64_t ldb, void *work, size_t bytes, void *host, size_t host_bytes, int *info))
{
	STANDIN_KERNEL(kernel, "cusolverDnXsytrs");
	struct call c = SYTRS_CALL;

	(void)pivots;
	(void)host;
	(void)host_bytes;
	return compute(&c, work, bytes, &kernel, info);
}

/* Eigenvalues of a symmetric matrix are real. */
static int real_type(int type)
{
	return type == 4 ? 0 : type == 5 ? 1 : type;
}

#define SYEV_CALL(routine_, batch_)                                                                                        \
	{ \
		.handle = handle, .params = params, \
		.modes_ok = is_mode(job) && is_mode(uplo) && type_w == real_type(type), .type = type, \
		.compute = compute_type, .a = {n, n, a, lda}, .size = { \
			.routine = routine_, \
			.m = n, \
			.n = n, \
			.vectors = job, \
			.batch = batch_ \
		} \
	}

STANDIN(int, cusolverDnXsyevd_bufferSize,
	(OBJECT * handle, OBJECT *params, int job, int uplo, int64_t n, int type, const void *a, int64_t lda,
	 int type_w, const void *w, int compute_type, size_t *device, size_t *host))
{
	struct call c = SYEV_CALL(SYEVD, 1);

	(void)w;
	return answer_size(&c, device, host);
}

STANDIN(int, cusolverDnXsyevd,
	(OBJECT * handle, OBJECT *params, int job, int uplo, int64_t n, int type, void *a, int64_t lda, int type_w,
	 void *w, int compute_type, void *work, size_t bytes, void *host, size_t host_bytes, int *info))
{
	STANDIN_KERNEL(kernel, "cusolverDnXsyevd");
	struct call c = SYEV_CALL(SYEVD, 1);

	(void)host;
	(void)host_bytes;
	return handle && !w ? SOLVER_INVALID_VALUE : compute(&c, work, bytes, &kernel, info);
}

STANDIN(int, cusolverDnXsyevBatched_bufferSize,
	(OBJECT * handle, OBJECT *params, int job, int uplo, int64_t n, int type, const void *a, int64_t lda,
	 int type_w, const void *w, int compute_type, size_t *device, size_t *host, int64_t batch))
{
	struct call c = SYEV_CALL(SYEVD, batch);

	(void)w;
	return answer_size(&c, device, host);
}

STANDIN(int, cusolverDnXsyevBatched,
	(OBJECT * handle, OBJECT *params, int job, int uplo, int64_t n, int type, void *a, int64_t lda, int type_w,
	 void *w, int compute_type, void *work, size_t bytes, void *host, size_t host_bytes, int *info, int64_t batch))
{
	STANDIN_KERNEL(kernel, "cusolverDnXsyevBatched");
	struct call c = SYEV_CALL(SYEVD, batch);

	(void)host;
	(void)host_bytes;
	return handle && !w ? SOLVER_INVALID_VALUE : compute(&c, work, bytes, &kernel, info);
}

/* Of any matrix: they are complex, and may be asked for as complex numbers of a real matrix. Left vectors are not implemented. */
static int complex_type(int type)
{
	return type == 0 ? 4 : type == 1 ? 5 : type;
}

#define GEEV_CALL                                                                                                                       \
	{ \
		.handle = handle, .params = params, \
		.modes_ok = is_mode(left) && is_mode(right) && (type_w == type || type_w == complex_type(type)), \
		.type = type, .compute = compute_type, .a = {n, n, a, lda}, .size = { \
			.routine = GEEV, \
			.m = n, \
			.n = n, \
			.vectors = right \
		} \
	}

STANDIN(int, cusolverDnXgeev_bufferSize,
	(OBJECT * handle, OBJECT *params, int left, int right, int64_t n, int type, const void *a, int64_t lda,
	 int type_w, const void *w, int type_vl, const void *vl, int64_t ldvl, int type_vr, const void *vr,
	 int64_t ldvr, int compute_type, size_t *device, size_t *host))
{
	struct call c = GEEV_CALL;

	(void)w, (void)type_vl, (void)vl, (void)ldvl, (void)type_vr, (void)vr, (void)ldvr;
	if (handle && left)
		return SOLVER_NOT_SUPPORTED;
	return answer_size(&c, device, host);
}

STANDIN(int, cusolverDnXgeev,
	(OBJECT * handle, OBJECT *params, int left, int right, int64_t n, int type, void *a, int64_t lda, int type_w,
	 void *w, int type_vl, void *vl, int64_t ldvl, int type_vr, void *vr, int64_t ldvr, int compute_type,
	 void *work, size_t bytes, void *host, size_t host_bytes, int *info))
{
	STANDIN_KERNEL(kernel, "cusolverDnXgeev");
	struct call c = GEEV_CALL;

	(void)type_vl, (void)vl, (void)ldvl, (void)type_vr, (void)host, (void)host_bytes;
	if (handle && left)
		return SOLVER_NOT_SUPPORTED;
	if (handle && (!w || (right && (!vr || ldvr < n))))
		return SOLVER_INVALID_VALUE;
	return compute(&c, work, bytes, &kernel, info);
}
