/* SPDX-License-Identifier: Apache-2.0
 * Functions with 32-bit sizes. One macro for each family defines the functions of a row of dense.def: their parameters are those of
 * the family, and what a family checks is in functions before them. Nothing here reads a matrix, so a pointer is a pointer.
 */
#include "sim/cusolver/solver.h"

#include <limits.h>

/* What the compute function of a family was given, as far as it is checked and used. */
struct call {
	const struct solver_object *handle;
	struct standin_kernel *kernel;
	struct solver_size size;
	struct solver_matrix a, b;	/* b: right-hand sides or the matrix that is multiplied; all 0 if there is none */
	const void *work;
	int64_t lwork;
	int *info;
	int64_t infos;
};

static int check_matrices(const struct call *c)
{
	struct solver_matrix b = c->b;
	int code = solver_check(c->handle, SOLVER_HANDLE);

	if (code == 0)
		code = solver_check_matrix(&c->a);
	if (code || (!b.rows && !b.columns && !b.ld))
		return code;
	return solver_check_matrix(&b);
}

/* Answers a _bufferSize call. */
static int answer_size(const struct call *c, int *lwork)
{
	struct call sized = *c;
	int code;
	int64_t work;

	/* PyTorch asks before it has the matrix: null is allowed here */
	sized.a.data = sized.b.data = c;
	code = check_matrices(&sized);
	if (code || !lwork || c->size.batch < 0)
		return code ? code : SOLVER_INVALID_VALUE;
	work = solver_work(&c->size);
	if (work > INT_MAX)	/* more than this interface can say */
		return SOLVER_INVALID_VALUE;
	*lwork = (int)work;
	return 0;
}

static int compute(const struct call *c)
{
	int code = check_matrices(c);

	if (code)
		return code;
	if (!c->info || c->infos < 0)
		return SOLVER_INVALID_VALUE;
	return solver_finish(c->handle, c->kernel, c->info, c->infos);
}

/* The same, for functions with a workspace: it must have the size that was asked for. */
static int compute_with_work(const struct call *c)
{
	if (c->handle && (c->size.batch < 0 || !c->work || c->lwork < solver_work(&c->size)))
		return SOLVER_INVALID_VALUE;
	return compute(c);
}

static bool is_mode(int mode)
{
	return mode == 0 || mode == 1;
}

#define OBJECT	   const struct solver_object
#define KERNEL(name) STANDIN_KERNEL(kernel_##name, #name)
#define SQUARE(n_, a_, ld_) {.rows = (n_), .columns = (n_), .data = (a_), .ld = (ld_)}
#define MATRIX(m_, n_, a_, ld_) {.rows = (m_), .columns = (n_), .data = (a_), .ld = (ld_)}

#define DEFINE_getrf(name)                                                                                                 \
	STANDIN(int, name##_bufferSize, (OBJECT * handle, int m, int n, void *a, int lda, int *lwork))                     \
	{                                                                                                                  \
		struct call c = { \
			.handle = handle, .size = {.routine = GETRF, .m = m, .n = n}, .a = MATRIX(m, n, a, lda)}; \
		return answer_size(&c, lwork);                                                                             \
	}                                                                                                                  \
	STANDIN(int, name, (OBJECT * handle, int m, int n, void *a, int lda, void *work, int *pivots, int *info))          \
	{                                                                                                                  \
		KERNEL(name);                                                                                              \
		struct call c = {.handle = handle, .kernel = &kernel_##name, .a = MATRIX(m, n, a, lda), .info = info, .infos = 1}; \
		(void)pivots; /* null: without pivoting */                                                                 \
		return handle && !work ? SOLVER_INVALID_VALUE : compute(&c);                                               \
	}

#define DEFINE_getrs(name)                                                                                                           \
	STANDIN(int, name, \
		(OBJECT * handle, int op, int n, int nrhs, const void *a, int lda, const int *pivots, void *b, \
		 int ldb, int *info)) \
	{                                                                                                                            \
		KERNEL(name);                                                                                                        \
		struct call c = {.handle = handle, \
				 .kernel = &kernel_##name, \
				 .a = SQUARE(n, a, lda), \
				 .b = MATRIX(n, nrhs, b, ldb), \
				 .info = info, \
				 .infos = 1}; \
		(void)pivots;                                                                                                        \
		return handle && (op < 0 || op > 2) ? SOLVER_INVALID_VALUE : compute(&c);                                            \
	}

#define DEFINE_geqrf(name)                                                                                                            \
	STANDIN(int, name##_bufferSize, (OBJECT * handle, int m, int n, void *a, int lda, int *lwork))                                \
	{                                                                                                                             \
		struct call c = { \
			.handle = handle, .size = {.routine = GEQRF, .m = m, .n = n}, .a = MATRIX(m, n, a, lda)}; \
		return answer_size(&c, lwork);                                                                                        \
	}                                                                                                                             \
	STANDIN(int, name, \
		(OBJECT * handle, int m, int n, void *a, int lda, void *tau, void *work, int lwork, int *info)) \
	{                                                                                                                             \
		KERNEL(name);                                                                                                         \
		struct call c = {.handle = handle, \
				 .kernel = &kernel_##name, \
				 .size = {.routine = GEQRF, .m = m, .n = n}, \
				 .a = MATRIX(m, n, a, lda), \
				 .work = work, \
				 .lwork = lwork, \
				 .info = info, \
				 .infos = 1}; \
		return handle && !tau ? SOLVER_INVALID_VALUE : compute_with_work(&c);                                                 \
	}

/* The first n columns of Q from k reflectors: k <= n <= m. */
#define DEFINE_orgqr(name)                                                                                                                  \
	STANDIN(int, name##_bufferSize, \
		(OBJECT * handle, int m, int n, int k, const void *a, int lda, const void *tau, int *lwork)) \
	{                                                                                                                                   \
		struct call c = { \
			.handle = handle, .size = {.routine = ORGQR, .m = m, .n = n}, .a = MATRIX(m, n, a, lda)}; \
		(void)tau;                                                                                                                  \
		return handle && (n > m || k > n || k < 0) ? SOLVER_INVALID_VALUE : answer_size(&c, lwork);                                 \
	}                                                                                                                                   \
	STANDIN(int, name, \
		(OBJECT * handle, int m, int n, int k, void *a, int lda, const void *tau, void *work, int lwork, \
		 int *info)) \
	{                                                                                                                                   \
		KERNEL(name);                                                                                                               \
		struct call c = {.handle = handle, \
				 .kernel = &kernel_##name, \
				 .size = {.routine = ORGQR, .m = m, .n = n}, \
				 .a = MATRIX(m, n, a, lda), \
				 .work = work, \
				 .lwork = lwork, \
				 .info = info, \
				 .infos = 1}; \
		return handle && (n > m || k > n || k < 0 || !tau) ? SOLVER_INVALID_VALUE : compute_with_work(&c);                          \
	}

/* Q is of order m on the left (side 0) and n on the right; k reflectors. */
#define DEFINE_ormqr(name)                                                                                                               \
	STANDIN(int, name##_bufferSize, \
		(OBJECT * handle, int side, int op, int m, int n, int k, const void *a, int lda, const void *tau, \
		 const void *b, int ldb, int *lwork)) \
	{                                                                                                                                \
		struct call c = {.handle = handle, \
				 .size = {.routine = ORMQR, .m = m, .n = n}, \
				 .a = MATRIX(side ? n : m, k, a, lda), \
				 .b = MATRIX(m, n, b, ldb)}; \
		(void)tau;                                                                                                               \
		return handle && (!is_mode(side) || op < 0 || op > 2) ? SOLVER_INVALID_VALUE : answer_size(&c, lwork);                   \
	}                                                                                                                                \
	STANDIN(int, name, \
		(OBJECT * handle, int side, int op, int m, int n, int k, const void *a, int lda, const void *tau, \
		 void *b, int ldb, void *work, int lwork, int *info)) \
	{                                                                                                                                \
		KERNEL(name);                                                                                                            \
		struct call c = {.handle = handle, \
				 .kernel = &kernel_##name, \
				 .size = {.routine = ORMQR, .m = m, .n = n}, \
				 .a = MATRIX(side ? n : m, k, a, lda), \
				 .b = MATRIX(m, n, b, ldb), \
				 .work = work, \
				 .lwork = lwork, \
				 .info = info, \
				 .infos = 1}; \
		return handle && (!is_mode(side) || op < 0 || op > 2 || !tau) ? SOLVER_INVALID_VALUE \
									      : compute_with_work(&c); \
	}

#define DEFINE_potrf(name)                                                                                                   \
	STANDIN(int, name##_bufferSize, (OBJECT * handle, int uplo, int n, void *a, int lda, int *lwork))                    \
	{                                                                                                                    \
		struct call c = {.handle = handle, .size = {.routine = POTRF, .m = n, .n = n}, .a = SQUARE(n, a, lda)};                           \
		return handle && !is_mode(uplo) ? SOLVER_INVALID_VALUE : answer_size(&c, lwork);                             \
	}                                                                                                                    \
	STANDIN(int, name, (OBJECT * handle, int uplo, int n, void *a, int lda, void *work, int lwork, int *info))           \
	{                                                                                                                    \
		KERNEL(name);                                                                                                \
		struct call c = {.handle = handle, \
				 .kernel = &kernel_##name, \
				 .size = {.routine = POTRF, .m = n, .n = n}, \
				 .a = SQUARE(n, a, lda), \
				 .work = work, .lwork = lwork, .info = info, .infos = 1};                                    \
		return handle && !is_mode(uplo) ? SOLVER_INVALID_VALUE : compute_with_work(&c);                              \
	}

#define DEFINE_potrs(name)                                                                                                           \
	STANDIN(int, name, \
		(OBJECT * handle, int uplo, int n, int nrhs, const void *a, int lda, void *b, int ldb, int *info)) \
	{                                                                                                                            \
		KERNEL(name);                                                                                                        \
		struct call c = {.handle = handle, \
				 .kernel = &kernel_##name, \
				 .a = SQUARE(n, a, lda), \
				 .b = MATRIX(n, nrhs, b, ldb), \
				 .info = info, \
				 .infos = 1}; \
		return handle && !is_mode(uplo) ? SOLVER_INVALID_VALUE : compute(&c);                                                \
	}

/* a: an array of pointers on the device. */
#define DEFINE_potrfBatched(name)                                                                                            \
	STANDIN(int, name, (OBJECT * handle, int uplo, int n, void **a, int lda, int *info, int batch))                      \
	{                                                                                                                    \
		KERNEL(name);                                                                                                \
		struct call c = {.handle = handle, .kernel = &kernel_##name, .a = SQUARE(n, a, lda), .info = info, .infos = batch}; \
		return handle && !is_mode(uplo) ? SOLVER_INVALID_VALUE : compute(&c);                                        \
	}

/* One right-hand side for each matrix, and one info for all of them. */
#define DEFINE_potrsBatched(name)                                                                                                    \
	STANDIN(int, name, (OBJECT * handle, int uplo, int n, int nrhs, void **a, int lda, void **b, int ldb, int *info, int batch)) \
	{                                                                                                                            \
		KERNEL(name);                                                                                                        \
		struct call c = {.handle = handle, \
				 .kernel = &kernel_##name, \
				 .a = SQUARE(n, a, lda), \
				 .b = MATRIX(n, nrhs, b, ldb), \
				 .info = info, \
				 .infos = 1}; \
		if (handle && nrhs != 1)                                                                                             \
			return SOLVER_NOT_SUPPORTED;                                                                                 \
		return handle && (!is_mode(uplo) || batch < 0) ? SOLVER_INVALID_VALUE : compute(&c);                                 \
	}

#define DEFINE_sytrf(name)                                                                                                          \
	STANDIN(int, name##_bufferSize, (OBJECT * handle, int n, void *a, int lda, int *lwork))                                     \
	{                                                                                                                           \
		struct call c = {.handle = handle, .size = {.routine = SYTRF, .m = n, .n = n}, .a = SQUARE(n, a, lda)};                                  \
		return answer_size(&c, lwork);                                                                                      \
	}                                                                                                                           \
	STANDIN(int, name, \
		(OBJECT * handle, int uplo, int n, void *a, int lda, int *pivots, void *work, int lwork, int *info)) \
	{                                                                                                                           \
		KERNEL(name);                                                                                                       \
		struct call c = {.handle = handle, \
				 .kernel = &kernel_##name, \
				 .size = {.routine = SYTRF, .m = n, .n = n}, \
				 .a = SQUARE(n, a, lda), \
				 .work = work, \
				 .lwork = lwork, \
				 .info = info, \
				 .infos = 1}; \
		(void)pivots;                                                                                                       \
		return handle && !is_mode(uplo) ? SOLVER_INVALID_VALUE : compute_with_work(&c);                                     \
	}

#define DEFINE_syevd(name)                                                                                                               \
	STANDIN(int, name##_bufferSize, \
		(OBJECT * handle, int job, int uplo, int n, const void *a, int lda, const void *values, int *lwork)) \
	{                                                                                                                                \
		struct call c = {.handle = handle, \
				 .size = {.routine = SYEVD, .m = n, .n = n, .vectors = job}, \
				 .a = SQUARE(n, a, lda)}; \
		(void)values;                                                                                                            \
		return handle && !(is_mode(job) && is_mode(uplo)) ? SOLVER_INVALID_VALUE : answer_size(&c, lwork);                       \
	}                                                                                                                                \
	STANDIN(int, name, \
		(OBJECT * handle, int job, int uplo, int n, void *a, int lda, void *values, void *work, int lwork, \
		 int *info)) \
	{                                                                                                                                \
		KERNEL(name);                                                                                                            \
		struct call c = {.handle = handle, \
				 .kernel = &kernel_##name, \
				 .size = {.routine = SYEVD, .m = n, .n = n, .vectors = job}, \
				 .a = SQUARE(n, a, lda), \
				 .work = work, \
				 .lwork = lwork, \
				 .info = info, \
				 .infos = 1}; \
		return handle && !(is_mode(job) && is_mode(uplo) && values) ? SOLVER_INVALID_VALUE \
									    : compute_with_work(&c); \
	}

/* Jacobi, one matrix (batch is 1) or many; they differ in the last parameter. */
static int syevj_size(const struct call *c, int job, int uplo, OBJECT *params, int *lwork)
{
	int code = solver_check(c->handle, SOLVER_HANDLE);

	if (code == 0)
		code = solver_check(params, SOLVER_SYEVJ);
	if (code)
		return code;
	return is_mode(job) && is_mode(uplo) ? answer_size(c, lwork) : SOLVER_INVALID_VALUE;
}

static int syevj(const struct call *c, int job, int uplo, OBJECT *params, const void *values)
{
	int code = solver_check(c->handle, SOLVER_HANDLE);

	if (code == 0)
		code = solver_check(params, SOLVER_SYEVJ);
	if (code)
		return code;
	return is_mode(job) && is_mode(uplo) && values ? compute_with_work(c) : SOLVER_INVALID_VALUE;
}

#define SYEVJ_CALL(name, batch_)                                                                                                   \
	{ \
		.handle = handle, .kernel = &kernel_##name, \
		.size = {.routine = SYEVJ, .m = n, .n = n, .vectors = job, .batch = batch_}, .a = SQUARE(n, a, lda), \
		.work = work, .lwork = lwork, .info = info, .infos = batch_ \
	}

#define DEFINE_syevj(name)                                                                                                               \
	STANDIN(int, name##_bufferSize, \
		(OBJECT * handle, int job, int uplo, int n, const void *a, int lda, const void *values, int *lwork, \
		 OBJECT *params)) \
	{                                                                                                                                \
		struct call c = {.handle = handle, \
				 .size = {.routine = SYEVJ, .m = n, .n = n, .vectors = job}, \
				 .a = SQUARE(n, a, lda)}; \
		(void)values;                                                                                                            \
		return syevj_size(&c, job, uplo, params, lwork);                                                                         \
	}                                                                                                                                \
	STANDIN(int, name, \
		(OBJECT * handle, int job, int uplo, int n, void *a, int lda, void *values, void *work, int lwork, \
		 int *info, OBJECT *params)) \
	{                                                                                                                                \
		KERNEL(name);                                                                                                            \
		struct call c = SYEVJ_CALL(name, 1);                                                                                     \
		return syevj(&c, job, uplo, params, values);                                                                             \
	}

#define DEFINE_syevjBatched(name)                                                                                                        \
	STANDIN(int, name##_bufferSize, \
		(OBJECT * handle, int job, int uplo, int n, const void *a, int lda, const void *values, int *lwork, \
		 OBJECT *params, int batch)) \
	{                                                                                                                                \
		struct call c = {.handle = handle, \
				 .size = {.routine = SYEVJ, .m = n, .n = n, .vectors = job, .batch = batch}, \
				 .a = SQUARE(n, a, lda)}; \
		(void)values;                                                                                                            \
		return syevj_size(&c, job, uplo, params, lwork);                                                                         \
	}                                                                                                                                \
	STANDIN(int, name, \
		(OBJECT * handle, int job, int uplo, int n, void *a, int lda, void *values, void *work, int lwork, \
		 int *info, OBJECT *params, int batch)) \
	{                                                                                                                                \
		KERNEL(name);                                                                                                            \
		struct call c = SYEVJ_CALL(name, batch);                                                                                 \
		return syevj(&c, job, uplo, params, values);                                                                             \
	}

static bool is_svd_job(signed char job)
{
	return job == 'A' || job == 'S' || job == 'O' || job == 'N';
}

/* QR iteration; cuSOLVER has it for m >= n only. */
#define DEFINE_gesvd(name)                                                                                                               \
	STANDIN(int, name##_bufferSize, (OBJECT * handle, int m, int n, int *lwork))                                                     \
	{                                                                                                                                \
		struct call c = {.handle = handle, \
				 .size = {.routine = GESVD, .m = m, .n = n}, \
				 .a = MATRIX(m, n, handle, m > 1 ? m : 1)}; \
		return handle && m < n ? SOLVER_INVALID_VALUE : answer_size(&c, lwork);                                                  \
	}                                                                                                                                \
	STANDIN(int, name, \
		(OBJECT * handle, signed char job_u, signed char job_v, int m, int n, void *a, int lda, void *s, \
		 void *u, int ldu, void *v, int ldv, void *work, int lwork, void *rwork, int *info)) \
	{                                                                                                                                \
		KERNEL(name);                                                                                                            \
		struct call c = {.handle = handle, \
				 .kernel = &kernel_##name, \
				 .size = {.routine = GESVD, .m = m, .n = n}, \
				 .a = MATRIX(m, n, a, lda), \
				 .work = work, \
				 .lwork = lwork, \
				 .info = info, \
				 .infos = 1}; \
		(void)rwork;                                                                                                             \
		if (handle && (m < n || !is_svd_job(job_u) || !is_svd_job(job_v) || !s || \
			       (job_u != 'N' && job_u != 'O' && (!u || ldu < m)) || \
			       (job_v != 'N' && job_v != 'O' && (!v || ldv < n))))                                                       \
			return SOLVER_INVALID_VALUE;                                                                                     \
		return compute_with_work(&c);                                                                                            \
	}

/* The arguments that all other singular value functions have. */
struct svd {
	int job;
	const void *s, *u, *v;
	int64_t ldu, ldv;
};

static int check_svd(const struct call *c, const struct svd *svd)
{
	int code = solver_check(c->handle, SOLVER_HANDLE);

	if (code)
		return code;
	if (!is_mode(svd->job))
		return SOLVER_INVALID_VALUE;
	return svd->job && (svd->ldu < c->a.rows || svd->ldv < c->a.columns) ? SOLVER_INVALID_VALUE : 0;
}

static int svd_size(const struct call *c, const struct svd *svd, int *lwork)
{
	int code = check_svd(c, svd);

	return code ? code : answer_size(c, lwork);
}

static int svd_compute(const struct call *c, const struct svd *svd)
{
	int code = check_svd(c, svd);

	if (code)
		return code;
	if (!svd->s || (svd->job && (!svd->u || !svd->v)))
		return SOLVER_INVALID_VALUE;
	return compute_with_work(c);
}

#define SVD_SIZE(routine_, batch_) {.handle = handle, .size = {.routine = routine_, .m = m, .n = n, .vectors = job, .batch = batch_}, .a = MATRIX(m, n, a, lda)}
#define SVD_CALL(name, routine_, batch_)                                                                                     \
	{ \
		.handle = handle, .kernel = &kernel_##name, \
		.size = {.routine = routine_, .m = m, .n = n, .vectors = job, .batch = batch_}, \
		.a = MATRIX(m, n, a, lda), .work = work, .lwork = lwork, .info = info, .infos = batch_ \
	}
#define SVD_ARGUMENTS {job, s, u, v, ldu, ldv}

#define DEFINE_gesvdj(name)                                                                                                              \
	STANDIN(int, name##_bufferSize, \
		(OBJECT * handle, int job, int econ, int m, int n, const void *a, int lda, const void *s, \
		 const void *u, int ldu, const void *v, int ldv, int *lwork, OBJECT *params)) \
	{                                                                                                                                \
		struct call c = SVD_SIZE(GESVDJ, 1);                                                                                     \
		struct svd svd = SVD_ARGUMENTS;                                                                                          \
		return handle && (!is_mode(econ) || solver_check(params, SOLVER_GESVDJ)) ? SOLVER_INVALID_VALUE \
											 : svd_size(&c, &svd, lwork); \
	}                                                                                                                                \
	STANDIN(int, name, \
		(OBJECT * handle, int job, int econ, int m, int n, void *a, int lda, void *s, void *u, int ldu, \
		 void *v, int ldv, void *work, int lwork, int *info, OBJECT *params)) \
	{                                                                                                                                \
		KERNEL(name);                                                                                                            \
		struct call c = SVD_CALL(name, GESVDJ, 1);                                                                               \
		struct svd svd = SVD_ARGUMENTS;                                                                                          \
		return handle && (!is_mode(econ) || solver_check(params, SOLVER_GESVDJ)) ? SOLVER_INVALID_VALUE \
											 : svd_compute(&c, &svd); \
	}

/* Matrices of at most 32 rows and columns. */
enum { BATCHED_MAX = 32 };

#define DEFINE_gesvdjBatched(name)                                                                                                       \
	STANDIN(int, name##_bufferSize, \
		(OBJECT * handle, int job, int m, int n, const void *a, int lda, const void *s, const void *u, \
		 int ldu, const void *v, int ldv, int *lwork, OBJECT *params, int batch)) \
	{                                                                                                                                \
		struct call c = SVD_SIZE(GESVDJ, batch);                                                                                 \
		struct svd svd = SVD_ARGUMENTS;                                                                                          \
		bool wrong = m > BATCHED_MAX || n > BATCHED_MAX || solver_check(params, SOLVER_GESVDJ);                                  \
		return handle && wrong ? SOLVER_INVALID_VALUE : svd_size(&c, &svd, lwork);                                               \
	}                                                                                                                                \
	STANDIN(int, name, \
		(OBJECT * handle, int job, int m, int n, void *a, int lda, void *s, void *u, int ldu, void *v, \
		 int ldv, void *work, int lwork, int *info, OBJECT *params, int batch)) \
	{                                                                                                                                \
		KERNEL(name);                                                                                                            \
		struct call c = SVD_CALL(name, GESVDJ, batch);                                                                           \
		struct svd svd = SVD_ARGUMENTS;                                                                                          \
		bool wrong = m > BATCHED_MAX || n > BATCHED_MAX || solver_check(params, SOLVER_GESVDJ);                                  \
		return handle && wrong ? SOLVER_INVALID_VALUE : svd_compute(&c, &svd);                                                   \
	}

/* Approximate, for tall matrices: m >= n. The norms of the residuals are written to the host: 0 here. */
#define DEFINE_gesvda(name)                                                                                                              \
	STANDIN(int, name##_bufferSize, \
		(OBJECT * handle, int job, int rank, int m, int n, const void *a, int lda, long long stride_a, \
		 const void *s, long long stride_s, const void *u, int ldu, long long stride_u, const void *v, \
		 int ldv, long long stride_v, int *lwork, int batch)) \
	{                                                                                                                                \
		struct call c = SVD_SIZE(GESVDA, batch);                                                                                 \
		struct svd svd = SVD_ARGUMENTS;                                                                                          \
		bool wrong = \
			m < n || rank < 0 || rank > n || stride_a < 0 || stride_s < 0 || stride_u < 0 || stride_v < 0; \
		return handle && wrong ? SOLVER_INVALID_VALUE : svd_size(&c, &svd, lwork);                                               \
	}                                                                                                                                \
	STANDIN(int, name, \
		(OBJECT * handle, int job, int rank, int m, int n, const void *a, int lda, long long stride_a, \
		 void *s, long long stride_s, void *u, int ldu, long long stride_u, void *v, int ldv, \
		 long long stride_v, void *work, int lwork, int *info, double *norms, int batch)) \
	{                                                                                                                                \
		KERNEL(name);                                                                                                            \
		struct call c = SVD_CALL(name, GESVDA, batch);                                                                           \
		struct svd svd = SVD_ARGUMENTS;                                                                                          \
		bool wrong = \
			m < n || rank < 0 || rank > n || stride_a < 0 || stride_s < 0 || stride_u < 0 || stride_v < 0; \
		for (int i = 0; norms && i < batch; i++)                                                                                 \
			norms[i] = 0;                                                                                                    \
		return handle && wrong ? SOLVER_INVALID_VALUE : svd_compute(&c, &svd);                                                   \
	}

#define DENSE(family, name) DEFINE_##family(cusolverDn##name)
#include "sim/cusolver/dense.def"
#undef DENSE
