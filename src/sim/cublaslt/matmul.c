/* SPDX-License-Identifier: Apache-2.0
 * The product itself, and the choice of an algorithm.
 *
 * There is one algorithm, and it needs no workspace: PyTorch allocates the whole workspace that it allows before it asks for an
 * algorithm, and passes all of it, so what an algorithm says it needs changes nothing about memory. An algorithm that the caller
 * configures to split k needs the partial sums, as documented.
 */
#include "sim/cublaslt/cublaslt.h"

enum { ALGO_ID_MAX = 127, WORKSPACE_ALIGNMENT = 16 };

static size_t workspace_of(const struct lt_algo *algo, const struct lt_problem *p)
{
	size_t sum = p->desc->compute == COMPUTE_64F ? sizeof(double) : sizeof(float);

	if (algo->split_k <= 1)
		return 0;
	return (size_t)algo->split_k * p->d->rows * p->d->cols * (size_t)p->d->batch * sum;
}

static bool is_algo(const struct lt_algo *algo)
{
	return algo->id >= 0 && algo->id <= ALGO_ID_MAX && algo->split_k >= 0;
}

static void set_result(struct lt_result *r, const struct lt_algo *algo, const struct lt_problem *p)
{
	*r = (struct lt_result){.algo = *algo, .workspace = workspace_of(algo, p), .waves = 1};
}

STANDIN(int, cublasLtMatmulAlgoGetHeuristic,
	(const struct blas_head *handle, const struct lt_desc *desc, const struct lt_layout *a,
	 const struct lt_layout *b, const struct lt_layout *c, const struct lt_layout *d,
	 const struct lt_preference *preference, int wanted, struct lt_result *results, int *count))
{
	struct lt_problem p = {desc, a, b, c, d};
	struct standin_kernel *kernel;
	int status;

	if (!handle)
		return BLAS_NOT_INITIALIZED;
	if (!preference || wanted < 1 || !results || !count)
		return BLAS_INVALID_VALUE;
	*count = 0;
	status = lt_check(handle, &p, &kernel);
	if (status)
		return status;
	set_result(results, &(struct lt_algo){.split_k = 1}, &p);
	*count = 1;
	return BLAS_SUCCESS;
}

STANDIN(int, cublasLtMatmulAlgoGetIds,
	(const struct blas_head *handle, int compute, int scale, int a, int b, int c, int d, int wanted, int *ids,
	 int *count))
{
	struct standin_kernel *kernel;
	int status;

	if (!handle)
		return BLAS_NOT_INITIALIZED;
	if (wanted < 1 || !ids || !count)
		return BLAS_INVALID_VALUE;
	*count = 0;
	status = lt_check_types(handle, &(struct blas_types){a, b, c, d, compute}, scale, &kernel);
	if (status)
		return status;
	ids[0] = 0;
	*count = 1;
	return BLAS_SUCCESS;
}

STANDIN(int, cublasLtMatmulAlgoInit,
	(const struct blas_head *handle, int compute, int scale, int a, int b, int c, int d, int id, struct lt_algo *algo))
{
	struct standin_kernel *kernel;

	if (!handle)
		return BLAS_NOT_INITIALIZED;
	if (!algo || id < 0 || id > ALGO_ID_MAX)
		return BLAS_INVALID_VALUE;
	*algo = (struct lt_algo){.id = id, .split_k = 1};
	return lt_check_types(handle, &(struct blas_types){a, b, c, d, compute}, scale, &kernel);
}

STANDIN(int, cublasLtMatmulAlgoCheck,
	(const struct blas_head *handle, const struct lt_desc *desc, const struct lt_layout *a, const struct lt_layout *b,
	 const struct lt_layout *c, const struct lt_layout *d, const struct lt_algo *algo, struct lt_result *result))
{
	struct lt_problem p = {desc, a, b, c, d};
	struct standin_kernel *kernel;
	int status;

	if (!handle)
		return BLAS_NOT_INITIALIZED;
	if (!algo || !result || !is_algo(algo))
		return BLAS_INVALID_VALUE;
	status = lt_check(handle, &p, &kernel);
	if (status == BLAS_SUCCESS)
		set_result(result, algo, &p);
	return status;
}

/* What only the call itself knows: pointers and the workspace. Without k, A and B are not read; C is not with beta 0. */
static int check_call(const struct lt_problem *p, const void *a, const void *b, const void *d,
		      const struct lt_algo *algo, const void *workspace, size_t bytes)
{
	bool reads = p->a->rows && p->a->cols;

	if (!d || (reads && (!a || !b)))
		return BLAS_INVALID_VALUE;
	if (algo && (!is_algo(algo) || workspace_of(algo, p) > bytes))
		return BLAS_INVALID_VALUE;
	if (bytes && (!workspace || (uintptr_t)workspace % WORKSPACE_ALIGNMENT))
		return BLAS_INVALID_VALUE;
	return BLAS_SUCCESS;
}

STANDIN(int, cublasLtMatmul,
	(const struct blas_head *handle, const struct lt_desc *desc, const void *alpha, const void *a,
	 const struct lt_layout *a_layout, const void *b, const struct lt_layout *b_layout, const void *beta,
	 __attribute__((unused)) const void *c, const struct lt_layout *c_layout, void *d,
	 const struct lt_layout *d_layout, const struct lt_algo *algo, void *workspace, size_t bytes,
	 struct sim_stream *stream))
{
	struct lt_problem p = {desc, a_layout, b_layout, c_layout, d_layout};
	struct standin_kernel *kernel;
	int status;

	if (!handle)
		return BLAS_NOT_INITIALIZED;
	if (!alpha || !beta)
		return BLAS_INVALID_VALUE;
	status = lt_check(handle, &p, &kernel);
	if (status || !p.d->rows || !p.d->cols)
		return status;
	status = check_call(&p, a, b, d, algo, workspace, bytes);
	if (status)
		return status;
	return blas_enter(handle) || standin_launch_using(kernel, stream, bytes ? (uintptr_t)workspace : 0)
		       ? BLAS_EXECUTION_FAILED
		       : BLAS_SUCCESS;
}
