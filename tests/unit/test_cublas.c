/* SPDX-License-Identifier: Apache-2.0
 * Tests of the stand-ins for cuBLAS and cuBLASLt: statuses of good and bad calls, and the memory of a handle.
 */
#include "sim_child.h"

#include "sim/common/blas_abi.h"

struct lt_result {			/* cublasLtMatmulHeuristicResult_t */
	uint64_t algo[8];
	size_t workspace;
	int status;
	float waves;
	int reserved[4];
};

#define GEMM_ARGS \
	void *, int, int, int, int, int, const void *, const void *, int, const void *, int, const void *, void *, int
#define EX_ARGS                                                                                                               \
	void *, int, int, int, int, int, const void *, const void *, int, int, const void *, int, int, const void *, \
		void *, int, int, int, int
#define LT_MATRICES const void *, const void *, const void *, const void *

/* F(library, name, parameters) */
#define FUNCTIONS(F)                                                                                                          \
	F(cublas, cublasCreate_v2, (void **))                                                                                 \
	F(cublas, cublasDestroy_v2, (void *))                                                                                 \
	F(cublas, cublasSetPointerMode_v2, (void *, int))                                                                     \
	F(cublas, cublasSetWorkspace_v2, (void *, void *, size_t))                                                            \
	F(cublas, cublasSetMathMode, (void *, int))                                                                           \
	F(cublas, cublasHgemm, (GEMM_ARGS))                                                                                   \
	F(cublas, cublasSgemm_v2, (GEMM_ARGS))                                                                                \
	F(cublas, cublasGemmEx, (EX_ARGS))                                                                                    \
	F(cublas, cublasSdot_v2, (void *, int, const void *, int, const void *, int, void *))                                 \
	F(cublas, cublasSgemv_v2,                                                                                             \
	  (void *, int, int, int, const void *, const void *, int, const void *, int, const void *, void *, int))             \
	F(cublas, cublasStrsm_v2, (void *, int, int, int, int, int, int, const void *, const void *, int, void *, int)) \
	F(cublas, cublasSgetrfBatched, (void *, int, const void *, int, int *, int *, int))                                   \
	F(cublas, cublasSgelsBatched,                                                                                         \
	  (void *, int, int, int, int, const void *, int, const void *, int, int *, int *, int))                              \
	F(cublas, cublasSetMatrix, (int, int, int, const void *, int, void *, int))                                           \
	F(cublas, cublasGetMatrix, (int, int, int, const void *, int, void *, int))                                           \
	F(lt, cublasLtMatmulDescCreate, (void **, int, int))                                                                  \
	F(lt, cublasLtMatmulDescSetAttribute, (void *, int, const void *, size_t))                                            \
	F(lt, cublasLtMatrixLayoutCreate, (void **, int, uint64_t, uint64_t, int64_t))                                        \
	F(lt, cublasLtMatrixLayoutSetAttribute, (void *, int, const void *, size_t))                                          \
	F(lt, cublasLtMatmulPreferenceCreate, (void **))                                                                      \
	F(lt, cublasLtMatmulAlgoConfigSetAttribute, (void *, int, const void *, size_t))                                      \
	F(lt, cublasLtMatmulAlgoCheck, (void *, void *, LT_MATRICES, const void *, void *))                                   \
	F(lt, cublasLtMatmulAlgoGetHeuristic, (void *, void *, LT_MATRICES, void *, int, void *, int *))                      \
	F(lt, cublasLtMatmul,                                                                                                 \
	  (void *, void *, const void *, const void *, void *, const void *, void *, const void *, const void *, \
	   void *, void *, void *, const void *, void *, size_t, void *))

#define DECLARE(library, name, params) static int(*name) params;
FUNCTIONS(DECLARE)

static void *open_beside_driver(const char *name)
{
	const char *driver = getenv("SIM_LIB");
	char path[4096];
	void *library;

	driver = driver ? driver : "build/sim/libcuda.so.1";
	snprintf(path, sizeof(path), "%.*s%s", (int)(strrchr(driver, '/') + 1 - driver), driver, name);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(library);
	return library;
}

static void *blas_start(void)
{
	void *cublas = open_beside_driver("libcublas.so.13"), *lt = open_beside_driver("libcublasLt.so.13"), *handle;

#define FIND(library, name, params)                             \
	do {                                                    \
		void *found_ = dlsym(library, #name);           \
		CHECK(found_);                                  \
		memcpy(&name, &found_, sizeof(found_));         \
	} while (0);
	FUNCTIONS(FIND)
	sim_start();
	OK(cublasCreate_v2(&handle));
	return handle;
}

static sim_addr alloc_bytes(size_t bytes)
{
	sim_addr a;

	OK(cu.cuMemAlloc_v2(&a, bytes));
	return a;
}

static void *device(size_t bytes)
{
	return (void *)(uintptr_t)alloc_bytes(bytes);
}

static const float one = 1, zero;

static size_t free_bytes(void)
{
	size_t free_now, total;

	OK(cu.cuMemGetInfo_v2(&free_now, &total));
	return free_now;
}

SIM_TEST(cublas__a_handle_takes_memory_and_frees_it, "h200")
{
	void *first = blas_start(), *second;
	size_t before = free_bytes();

	(void)first;
	OK(cublasCreate_v2(&second));
	CHECK(before - free_bytes() >= 64 << 20 && before - free_bytes() <= 66 << 20);
	OK(cublasDestroy_v2(second));
	CHECK(free_bytes() == before);
	setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 1);
	OK(cublasCreate_v2(&second));
	CHECK(before - free_bytes() == 32 << 20);
	EXPECT(cublasDestroy_v2(NULL), BLAS_NOT_INITIALIZED);
}

SIM_TEST(cublas__a_handle_without_memory_is_a_failed_allocation, "tiny")
{
	void *handle = blas_start();
	size_t left = free_bytes();

	(void)handle;
	device(left - (4 << 20));
	EXPECT(cublasCreate_v2(&handle), BLAS_ALLOC_FAILED);
	EXPECT(cublasCreate_v2(NULL), BLAS_INVALID_VALUE);
}

SIM_TEST(cublas__arguments_are_checked, "tiny")
{
	void *h = blas_start(), *a = device(4096), *b = device(4096), *c = device(4096);

	OK(cublasSgemm_v2(h, 0, 0, 4, 5, 6, &one, a, 4, b, 6, &zero, c, 4));
	OK(cublasSgemm_v2(h, 1, 1, 4, 5, 6, &one, a, 6, b, 5, &zero, c, 4));
	OK(cublasHgemm(h, 0, 0, 4, 5, 6, &one, a, 4, b, 6, &zero, c, 4));
	OK(cublasSgemm_v2(h, 0, 0, 0, 5, 6, &one, NULL, 1, NULL, 6, &zero, NULL, 1));
	OK(cublasSgemm_v2(h, 0, 0, 4, 5, 0, &one, NULL, 4, NULL, 1, &zero, c, 4));
	EXPECT(cublasSgemm_v2(NULL, 0, 0, 4, 5, 6, &one, a, 4, b, 6, &zero, c, 4), BLAS_NOT_INITIALIZED);
	EXPECT(cublasSgemm_v2(h, 3, 0, 4, 5, 6, &one, a, 4, b, 6, &zero, c, 4), BLAS_INVALID_VALUE);
	EXPECT(cublasSgemm_v2(h, 0, 0, -1, 5, 6, &one, a, 4, b, 6, &zero, c, 4), BLAS_INVALID_VALUE);
	EXPECT(cublasSgemm_v2(h, 0, 0, 4, 5, 6, &one, a, 3, b, 6, &zero, c, 4), BLAS_INVALID_VALUE);
	EXPECT(cublasSgemm_v2(h, 1, 0, 4, 5, 6, &one, a, 4, b, 6, &zero, c, 4), BLAS_INVALID_VALUE);
	EXPECT(cublasSgemm_v2(h, 0, 0, 4, 5, 6, NULL, a, 4, b, 6, &zero, c, 4), BLAS_INVALID_VALUE);
	EXPECT(cublasSgemm_v2(h, 0, 0, 4, 5, 6, &one, a, 4, b, 6, &zero, NULL, 4), BLAS_INVALID_VALUE);
	OK(cublasSgemv_v2(h, 0, 4, 4, &one, a, 4, b, 1, &zero, c, 1));
	EXPECT(cublasSgemv_v2(h, 0, 4, 4, &one, a, 4, b, 0, &zero, c, 1), BLAS_INVALID_VALUE);
	OK(cublasStrsm_v2(h, 1, 0, 0, 1, 4, 8, &one, a, 8, b, 4));
	EXPECT(cublasStrsm_v2(h, 1, 0, 0, 1, 4, 8, &one, a, 4, b, 4), BLAS_INVALID_VALUE);
	EXPECT(cublasSetWorkspace_v2(h, (char *)a + 16, 1024), BLAS_INVALID_VALUE);
	EXPECT(cublasSetMathMode(h, 64), BLAS_INVALID_VALUE);
	OK(cublasSetMathMode(h, 3 | 16));
}

SIM_TEST(cublas__types_that_do_not_go_together_are_not_supported, "tiny")
{
	void *h = blas_start(), *p = device(4096);

	OK(cublasGemmEx(h, 0, 0, 8, 8, 8, &one, p, R_16BF, 8, p, R_16BF, 8, &zero, p, R_16BF, 8, COMPUTE_32F, -1));
	OK(cublasGemmEx(h, 0, 0, 8, 8, 8, &one, p, R_8I, 8, p, R_8I, 8, &zero, p, R_32I, 8, COMPUTE_32I, -1));
	EXPECT(cublasGemmEx(h, 0, 0, 7, 8, 8, &one, p, R_8I, 7, p, R_8I, 8, &zero, p, R_32I, 8, COMPUTE_32I, -1),
	       BLAS_NOT_SUPPORTED);
	EXPECT(cublasGemmEx(h, 0, 0, 8, 8, 8, &one, p, R_16BF, 8, p, R_16F, 8, &zero, p, R_16BF, 8, COMPUTE_32F, -1),
	       BLAS_NOT_SUPPORTED);
	EXPECT(cublasGemmEx(h, 0, 0, 8, 8, 8, &one, p, R_8F_E4M3, 8, p, R_8F_E4M3, 8, &zero, p, R_16BF, 8, COMPUTE_32F,
			    -1),
	       BLAS_NOT_SUPPORTED);
}

SIM_TEST(cublas__a_result_on_the_host_is_zero, "tiny")
{
	void *h = blas_start(), *x = device(4096);
	float result = 5;

	OK(cublasSdot_v2(h, 8, x, 1, x, 1, &result));
	CHECK(result == 0);
	EXPECT(cublasSdot_v2(h, 8, x, 1, x, 1, NULL), BLAS_INVALID_VALUE);
	OK(cublasSetPointerMode_v2(h, 1));
	OK(cublasSdot_v2(h, 8, x, 1, x, 1, x));
}

SIM_TEST(cublas__factorizations_report_success, "tiny")
{
	void *h = blas_start(), *matrices = device(4096);
	int *info = device(64), host[2] = {7, 7};

	OK(cu.cuMemcpyHtoD_v2((sim_addr)(uintptr_t)info, host, sizeof(host)));
	OK(cublasSgetrfBatched(h, 4, matrices, 4, NULL, info, 2));
	OK(cu.cuMemcpyDtoH_v2(host, (sim_addr)(uintptr_t)info, sizeof(host)));
	CHECK(host[0] == 0 && host[1] == 0);
	EXPECT(cublasSgetrfBatched(h, 4, matrices, 3, NULL, info, 2), BLAS_INVALID_VALUE);
	EXPECT(cublasSgelsBatched(h, 0, 4, 5, 1, matrices, 4, matrices, 4, host, NULL, 2), BLAS_NOT_SUPPORTED);
}

SIM_TEST(cublas__a_matrix_is_copied_by_its_leading_dimension, "tiny")
{
	const int from[6] = {1, 2, 3, 4, 5, 6};
	int to[4] = {0};
	void *h = blas_start(), *a = device(4096);

	(void)h;
	OK(cublasSetMatrix(2, 2, sizeof(int), from, 3, a, 2));
	OK(cublasGetMatrix(2, 2, sizeof(int), a, 2, to, 2));
	CHECK(to[0] == 1 && to[1] == 2 && to[2] == 4 && to[3] == 5);
	EXPECT(cublasSetMatrix(2, 2, sizeof(int), from, 0, a, 2), BLAS_INVALID_VALUE);
	EXPECT(cublasSetMatrix(2, 2, sizeof(int), from, 1, a, 2), BLAS_MAPPING_ERROR);
}

SIM_TEST(cublas__a_lost_context_is_a_failed_execution, "tiny,sticky=cuLaunchKernel:1:700")
{
	void *h = blas_start(), *p = device(4096);

	OK(cublasSgemm_v2(h, 0, 0, 4, 4, 4, &one, p, 4, p, 4, &zero, p, 4));
	EXPECT(cu.cuCtxSynchronize(), 700);
	EXPECT(cublasSgemm_v2(h, 0, 0, 4, 4, 4, &one, p, 4, p, 4, &zero, p, 4), BLAS_EXECUTION_FAILED);
	EXPECT(cublasCreate_v2(&p), BLAS_ALLOC_FAILED);
}

struct product {
	void *handle, *desc, *a, *b, *d, *preference, *memory;
	struct lt_result result;
};

/* m x n, k; A is transposed, as 8-bit types demand. */
static struct product make_product(void *handle, int type, int result_type, uint64_t m, uint64_t n, uint64_t k)
{
	struct product p = {.handle = handle, .memory = device(1 << 20)};
	int transposed = OP_T;

	OK(cublasLtMatmulDescCreate(&p.desc, COMPUTE_32F, R_32F));
	OK(cublasLtMatmulDescSetAttribute(p.desc, 3, &transposed, sizeof(transposed)));
	OK(cublasLtMatrixLayoutCreate(&p.a, type, k, m, (int64_t)k));
	OK(cublasLtMatrixLayoutCreate(&p.b, type, k, n, (int64_t)k));
	OK(cublasLtMatrixLayoutCreate(&p.d, result_type, m, n, (int64_t)m));
	OK(cublasLtMatmulPreferenceCreate(&p.preference));
	return p;
}

static int choose(struct product *p)
{
	int count = -1, status;

	status = cublasLtMatmulAlgoGetHeuristic(p->handle, p->desc, p->a, p->b, p->d, p->d, p->preference, 1,
						&p->result, &count);
	CHECK(count == (status == 0));
	return status;
}

static int multiply(struct product *p, size_t workspace)
{
	return cublasLtMatmul(p->handle, p->desc, &one, p->memory, p->a, p->memory, p->b, &zero, NULL, p->d, p->memory,
			      p->d, &p->result.algo, workspace ? p->memory : NULL, workspace, NULL);
}

SIM_TEST(cublaslt__shapes_must_fit_each_other, "tiny")
{
	void *h = blas_start();
	struct product p = make_product(h, R_16BF, R_16BF, 32, 48, 64);
	int two = 2, normal = OP_N;
	int64_t ld = 31;

	OK(choose(&p));
	OK(multiply(&p, 0));
	OK(multiply(&p, 1024));
	EXPECT(cublasLtMatmulDescSetAttribute(p.desc, 3, &ld, sizeof(ld)), BLAS_INVALID_VALUE);
	EXPECT(cublasLtMatmulDescSetAttribute(p.desc, 9, &two, sizeof(two)), BLAS_INVALID_VALUE);
	OK(cublasLtMatmulDescSetAttribute(p.desc, 3, &normal, sizeof(normal)));
	EXPECT(choose(&p), BLAS_INVALID_VALUE);
	EXPECT(multiply(&p, 0), BLAS_INVALID_VALUE);
	p = make_product(h, R_16BF, R_16BF, 32, 48, 64);
	OK(cublasLtMatrixLayoutSetAttribute(p.a, 5, &two, sizeof(two)));
	EXPECT(choose(&p), BLAS_INVALID_VALUE);
	OK(cublasLtMatrixLayoutSetAttribute(p.b, 5, &two, sizeof(two)));
	OK(cublasLtMatrixLayoutSetAttribute(p.d, 5, &two, sizeof(two)));
	OK(choose(&p));
	OK(cublasLtMatrixLayoutSetAttribute(p.d, 4, &ld, sizeof(ld)));
	EXPECT(choose(&p), BLAS_INVALID_VALUE);
	p.handle = NULL;
	EXPECT(multiply(&p, 0), BLAS_NOT_INITIALIZED);
}

SIM_TEST(cublaslt__a_split_k_needs_its_partial_sums, "tiny")
{
	struct product p = make_product(blas_start(), R_16F, R_16F, 16, 16, 64);
	int split = 4;

	OK(choose(&p));
	CHECK(p.result.workspace == 0);
	OK(cublasLtMatmulAlgoConfigSetAttribute(&p.result.algo, 2, &split, sizeof(split)));
	OK(cublasLtMatmulAlgoCheck(p.handle, p.desc, p.a, p.b, p.d, p.d, &p.result.algo, &p.result));
	CHECK(p.result.workspace == 4 * 16 * 16 * sizeof(float));
	EXPECT(multiply(&p, 1024), BLAS_INVALID_VALUE);
	OK(multiply(&p, p.result.workspace));
}

SIM_TEST(cublaslt__float8_needs_a_gpu_that_has_it, "a100")
{
	struct product p = make_product(blas_start(), R_8F_E4M3, R_16BF, 32, 48, 64);

	EXPECT(choose(&p), BLAS_NOT_SUPPORTED);
}

SIM_TEST(cublaslt__float8_has_rules_of_its_own, "h200")
{
	void *h = blas_start();
	struct product p = make_product(h, R_8F_E4M3, R_16BF, 32, 48, 64);
	int per_row = 3, blocks_of_32 = 2;

	OK(choose(&p));
	OK(multiply(&p, 0));
	OK(cublasLtMatmulDescSetAttribute(p.desc, 31, &per_row, sizeof(per_row)));
	OK(choose(&p));
	OK(cublasLtMatmulDescSetAttribute(p.desc, 31, &blocks_of_32, sizeof(blocks_of_32)));
	EXPECT(choose(&p), BLAS_NOT_SUPPORTED);
	p = make_product(h, R_8F_E4M3, R_16BF, 32, 48, 40);
	EXPECT(choose(&p), BLAS_NOT_SUPPORTED);
	p = make_product(h, R_8F_E5M2, R_16BF, 32, 48, 64);
	EXPECT(choose(&p), BLAS_NOT_SUPPORTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cublas__a_handle_takes_memory_and_frees_it),
		cmocka_unit_test(cublas__a_handle_without_memory_is_a_failed_allocation),
		cmocka_unit_test(cublas__arguments_are_checked),
		cmocka_unit_test(cublas__types_that_do_not_go_together_are_not_supported),
		cmocka_unit_test(cublas__a_result_on_the_host_is_zero),
		cmocka_unit_test(cublas__factorizations_report_success),
		cmocka_unit_test(cublas__a_matrix_is_copied_by_its_leading_dimension),
		cmocka_unit_test(cublas__a_lost_context_is_a_failed_execution),
		cmocka_unit_test(cublaslt__shapes_must_fit_each_other),
		cmocka_unit_test(cublaslt__a_split_k_needs_its_partial_sums),
		cmocka_unit_test(cublaslt__float8_needs_a_gpu_that_has_it),
		cmocka_unit_test(cublaslt__float8_has_rules_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
