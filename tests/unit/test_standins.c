/* SPDX-License-Identifier: Apache-2.0
 * Tests of the stand-ins for NVIDIA's smaller libraries: for each, a call that succeeds and calls that are refused with its code. */
#include "standin_load.h"

#include <sys/mman.h>
#include <unistd.h>

#define AT(address) ((void *)(uintptr_t)(address))

static sim_addr device_bytes(size_t bytes)
{
	sim_addr at;

	OK(cu.cuMemAlloc_v2(&at, bytes));
	return at;
}

/* Paged optimizers prefetch their states. The function has other parameters in CUDA 12 and 13. */
SIM_TEST(cudart__managed_memory_is_prefetched_in_both_versions, "tiny")
{
	enum { INVALID_VALUE = 1, INVALID_DEVICE = 101, GLOBAL = 1, BYTES = 1 << 20 };
	struct location { int type, id; } gpu = {1, 0}, nowhere = {1, 7};
	void *lib = standin_open("libcudart.so.13"), *older = standin_open("libcudart.so.12"), *at;
	char own[16];

	sim_start();
	{
		FUNCTION(lib, cudaMallocManaged, (void **, size_t, unsigned int));
		FUNCTION(lib, cudaMemPrefetchAsync, (const void *, size_t, struct location, unsigned int, void *));
		FUNCTION(lib, cudaMemAdvise, (const void *, size_t, int, struct location));

		OK(cudaMallocManaged(&at, BYTES, GLOBAL));
		OK(cudaMemPrefetchAsync(at, BYTES, gpu, 0, NULL));
		EXPECT(cudaMemPrefetchAsync(at, BYTES, nowhere, 0, NULL), INVALID_DEVICE);
		EXPECT(cudaMemPrefetchAsync(own, sizeof(own), gpu, 0, NULL), INVALID_VALUE);
		OK(cudaMemAdvise(at, BYTES, 3, gpu));
	}
	{
		FUNCTION(older, cudaMemPrefetchAsync, (const void *, size_t, int, void *));
		FUNCTION(older, cudaMemPrefetchAsync_v2, (const void *, size_t, struct location, unsigned int, void *));

		OK(cudaMemPrefetchAsync(at, BYTES, 0, NULL));
		OK(cudaMemPrefetchAsync(at, BYTES, -1, NULL));
		EXPECT(cudaMemPrefetchAsync(at, BYTES, 7, NULL), INVALID_DEVICE);
		OK(cudaMemPrefetchAsync_v2(at, BYTES, gpu, 0, NULL));
	}
}

enum { R_32F = 0, R_16F = 2, C_32F = 4, C_16F = 6 };

SIM_TEST(cufft__a_plan_is_checked_and_executed, "tiny")
{
	void *lib = standin_open("libcufft.so.12"), *data;
	long long n[] = {64, 100}, odd[] = {100};
	size_t work = 1;
	int plan;

	FUNCTION(lib, cufftCreate, (int *));
	FUNCTION(lib, cufftDestroy, (int));
	FUNCTION(lib, cufftSetAutoAllocation, (int, int));
	FUNCTION(lib, cufftSetWorkArea, (int, void *));
	FUNCTION(lib, cufftXtExec, (int, void *, void *, int));
	FUNCTION(lib, cufftXtMakePlanMany,
		 (int, int, long long *, long long *, long long, long long, int, long long *, long long, long long, int,
		  long long, size_t *, int));
	sim_start();
	data = AT(device_bytes(1 << 20));
	OK(cufftCreate(&plan));
	OK(cufftSetAutoAllocation(plan, 0));
	EXPECT(cufftXtExec(plan, data, data, -1), 1);	/* not made yet */
	EXPECT(cufftXtMakePlanMany(plan, 2, n, NULL, 1, 1, C_32F, NULL, 1, 1, R_16F, 2, &work, C_32F), 3);
	EXPECT(cufftXtMakePlanMany(plan, 2, n, NULL, 1, 1, C_32F, NULL, 1, 1, C_32F, 0, &work, C_32F), 8);
	EXPECT(cufftXtMakePlanMany(plan, 1, odd, NULL, 1, 1, C_16F, NULL, 1, 1, C_16F, 1, &work, C_16F), 16);
	OK(cufftXtMakePlanMany(plan, 2, n, NULL, 1, 1, C_32F, NULL, 1, 1, C_32F, 2, &work, C_32F));
	CHECK(work >= 64 * 100 * 2 * 8);
	EXPECT(cufftXtExec(plan, data, data, -1), 13);	/* without its work area */
	OK(cufftSetWorkArea(plan, data));
	EXPECT(cufftXtExec(plan, NULL, data, -1), 4);
	EXPECT(cufftXtExec(plan, data, data, 0), 4);
	OK(cufftXtExec(plan, data, data, -1));
	OK(cu.cuCtxSynchronize());
	OK(cufftDestroy(plan));
	EXPECT(cufftDestroy(plan), 1);
}

SIM_TEST(cufft__the_work_area_is_taken_from_the_gpu, "tiny")
{
	void *lib = standin_open("libcufft.so.11");
	size_t before, between, after, total, work;
	long long n[] = {1 << 20};
	int plan;

	FUNCTION(lib, cufftCreate, (int *));
	FUNCTION(lib, cufftDestroy, (int));
	FUNCTION(lib, cufftXtMakePlanMany,
		 (int, int, long long *, long long *, long long, long long, int, long long *, long long, long long, int,
		  long long, size_t *, int));
	sim_start();
	OK(cu.cuMemGetInfo_v2(&before, &total));
	OK(cufftCreate(&plan));
	OK(cufftXtMakePlanMany(plan, 1, n, NULL, 1, 1, C_32F, NULL, 1, 1, C_32F, 1, &work, C_32F));
	OK(cu.cuMemGetInfo_v2(&between, &total));
	OK(cufftDestroy(plan));
	OK(cu.cuMemGetInfo_v2(&after, &total));
	CHECK(work > 0 && before - between >= work && after == before);
	OK(cufftCreate(&plan));
	EXPECT(cufftXtMakePlanMany(plan, 1, n, NULL, 1, 1, C_32F, NULL, 1, 1, C_32F, 1000, &work, C_32F), 2);
}

SIM_TEST(cusolver__sizes_are_checked_and_info_is_zero, "tiny")
{
	void *lib = standin_open("libcusolver.so.11"), *handle, *a;
	int lwork = 0, info = 1;
	sim_addr device_info;

	FUNCTION(lib, cusolverDnCreate, (void **));
	FUNCTION(lib, cusolverDnDestroy, (void *));
	FUNCTION(lib, cusolverDnDpotrf_bufferSize, (void *, int, int, void *, int, int *));
	FUNCTION(lib, cusolverDnDpotrf, (void *, int, int, void *, int, void *, int, void *));
	FUNCTION(lib, cusolverDnXpotrf_bufferSize,
		 (void *, void *, int, int64_t, int, const void *, int64_t, int, size_t *, size_t *));
	sim_start();
	a = AT(device_bytes(1 << 20));
	device_info = device_bytes(4);
	OK(cu.cuMemsetD32_v2(device_info, 7, 1));
	EXPECT(cusolverDnDpotrf_bufferSize(NULL, 0, 10, a, 10, &lwork), 1);
	OK(cusolverDnCreate(&handle));
	EXPECT(cusolverDnDpotrf_bufferSize(handle, 0, 10, a, 9, &lwork), 3);
	EXPECT(cusolverDnDpotrf_bufferSize(handle, 2, 10, a, 10, &lwork), 3);
	OK(cusolverDnDpotrf_bufferSize(handle, 0, 10, NULL, 10, &lwork));
	CHECK(lwork > 0);
	EXPECT(cusolverDnDpotrf(handle, 0, 10, a, 10, a, lwork - 1, AT(device_info)), 3);
	EXPECT(cusolverDnDpotrf(handle, 0, 10, NULL, 10, a, lwork, AT(device_info)), 3);
	OK(cusolverDnDpotrf(handle, 0, 10, a, 10, a, lwork, AT(device_info)));
	OK(cu.cuCtxSynchronize());
	OK(cu.cuMemcpyDtoH_v2(&info, device_info, 4));
	CHECK(info == 0);
	EXPECT(cusolverDnXpotrf_bufferSize(handle, NULL, 0, 10, R_16F, a, 10, R_16F, (size_t[1]){0}, (size_t[1]){0}), 3);
	OK(cusolverDnXpotrf_bufferSize(handle, NULL, 0, 10, R_32F, a, 10, R_32F, (size_t[1]){0}, (size_t[1]){0}));
	OK(cusolverDnDestroy(handle));
}

SIM_TEST(cusparse__shapes_must_match, "tiny")
{
	void *lib = standin_open("libcusparse.so.12"), *handle, *a, *b, *c, *data;
	float one = 1;
	size_t bytes;

	FUNCTION(lib, cusparseCreate, (void **));
	FUNCTION(lib, cusparseCreateCsr,
		 (void **, int64_t, int64_t, int64_t, void *, void *, void *, int, int, int, int));
	FUNCTION(lib, cusparseCreateDnMat, (void **, int64_t, int64_t, int64_t, void *, int, int));
	FUNCTION(lib, cusparseSpMM_bufferSize,
		 (void *, int, int, void *, void *, void *, void *, void *, int, int, size_t *));
	FUNCTION(lib, cusparseSpMM, (void *, int, int, void *, void *, void *, void *, void *, int, int, void *));
	FUNCTION(lib, cusparseDestroyDnMat, (void *));
	sim_start();
	data = AT(device_bytes(1 << 16));
	OK(cusparseCreate(&handle));
	EXPECT(cusparseCreateCsr(&a, 4, 8, 33, data, data, data, 2, 2, 0, R_32F), 3);
	EXPECT(cusparseCreateDnMat(&b, 8, 5, 4, data, R_32F, 2), 3);
	OK(cusparseCreateCsr(&a, 4, 8, 6, data, data, data, 2, 2, 0, R_32F));
	OK(cusparseCreateDnMat(&b, 8, 5, 5, data, R_32F, 2));
	OK(cusparseCreateDnMat(&c, 4, 5, 5, data, R_32F, 2));
	EXPECT(cusparseSpMM_bufferSize(NULL, 0, 0, &one, a, b, &one, c, R_32F, 0, &bytes), 1);
	EXPECT(cusparseSpMM_bufferSize(handle, 1, 0, &one, a, b, &one, c, R_32F, 0, &bytes), 3);
	OK(cusparseSpMM_bufferSize(handle, 0, 0, &one, a, b, &one, c, R_32F, 0, &bytes));
	OK(cusparseSpMM(handle, 0, 0, &one, a, b, &one, c, R_32F, 0, data));
	OK(cusparseDestroyDnMat(c));
	OK(cu.cuCtxSynchronize());
}

SIM_TEST(cusparselt__compression_halves_the_matrix, "tiny")
{
	void *lib = standin_open("libcusparseLt.so.0");
	static char handle[512], matrix[512];
	size_t bytes, buffer;

	FUNCTION(lib, cusparseLtInit, (void *));
	FUNCTION(lib, cusparseLtStructuredDescriptorInit,
		 (void *, void *, int64_t, int64_t, int64_t, uint32_t, int, int, int));
	FUNCTION(lib, cusparseLtSpMMACompressedSize2, (void *, void *, size_t *, size_t *));
	sim_start();
	EXPECT(cusparseLtStructuredDescriptorInit(handle, matrix, 64, 64, 64, 16, R_16F, 2, 0), 1);
	OK(cusparseLtInit(handle));
	EXPECT(cusparseLtStructuredDescriptorInit(handle, matrix, 60, 64, 64, 16, R_16F, 2, 0), 10);
	OK(cusparseLtStructuredDescriptorInit(handle, matrix, 64, 64, 64, 16, R_16F, 2, 0));
	OK(cusparseLtSpMMACompressedSize2(handle, matrix, &bytes, &buffer));
	CHECK(bytes == 64 * 64 * 2 * 9 / 16);
}

static const char source[] = "// __global__ void comment(int)\n"
			     "template <typename T> __device__ T twice(T x) { return x + x; }\n"
	"extern \"C\" __global__ void __launch_bounds__(256, 2)\n  first_kernel(float *a /* ( */, int n) { }\n"
			     "static const char *s = \"__global__ void string(\";\n"
			     "template <typename T> __global__ void second(T *a) { }\n";

SIM_TEST(nvrtc__kernels_of_the_source_can_be_launched, "tiny")
{
	void *lib = standin_open("libnvrtc.so.13"), *program = NULL;
	const char *const options[] = {"--gpu-architecture=sm_86"}, *const old[] = {"--gpu-architecture=sm_60"};
	struct sim_module *module;
	struct sim_func *f;
	const char *lowered;
	char image[4096];
	size_t bytes;

	FUNCTION(lib, nvrtcCreateProgram,
		 (void **, const char *, const char *, int, const char *const *, const char *const *));
	FUNCTION(lib, nvrtcAddNameExpression, (void *, const char *));
	FUNCTION(lib, nvrtcCompileProgram, (void *, int, const char *const *));
	FUNCTION(lib, nvrtcGetCUBINSize, (void *, size_t *));
	FUNCTION(lib, nvrtcGetCUBIN, (void *, char *));
	FUNCTION(lib, nvrtcGetLoweredName, (void *, const char *, const char **));
	FUNCTION(lib, nvrtcDestroyProgram, (void **));
	sim_start();
	OK(nvrtcCreateProgram(&program, source, NULL, 0, NULL, NULL));
	OK(nvrtcAddNameExpression(program, "second<float>"));
	EXPECT(nvrtcGetLoweredName(program, "second<float>", &lowered), 9);
	EXPECT(nvrtcCompileProgram(program, 1, old), 5);
	OK(nvrtcCompileProgram(program, 1, options));
	OK(nvrtcGetCUBINSize(program, &bytes));
	CHECK(bytes <= sizeof(image));
	OK(nvrtcGetCUBIN(program, image));
	CHECK(!strstr(image, "comment") && !strstr(image, "string"));
	OK(cu.cuModuleLoadData(&module, image));
	OK(cu.cuModuleGetFunction(&f, module, "first_kernel"));
	OK(cu.cuLaunchKernel(f, 1, 1, 1, 256, 1, 1, 0, NULL, NULL, NULL));
	EXPECT(cu.cuLaunchKernel(f, 1, 1, 1, 512, 1, 1, 0, NULL, NULL, NULL), 1);	/* its launch bounds */
	OK(nvrtcGetLoweredName(program, "second<float>", &lowered));
	OK(cu.cuModuleGetFunction(&f, module, lowered));
	OK(nvrtcDestroyProgram(&program));
	EXPECT(nvrtcDestroyProgram(&program), 4);
}

SIM_TEST(nvrtc__a_source_without_a_kernel_does_not_compile, "tiny")
{
	void *lib = standin_open("libnvrtc.so.12"), *program = NULL;
	size_t bytes = 0;

	FUNCTION(lib, nvrtcCreateProgram,
		 (void **, const char *, const char *, int, const char *const *, const char *const *));
	FUNCTION(lib, nvrtcCompileProgram, (void *, int, const char *const *));
	FUNCTION(lib, nvrtcGetProgramLogSize, (void *, size_t *));
	OK(nvrtcCreateProgram(&program, "int x;", NULL, 0, NULL, NULL));
	EXPECT(nvrtcCompileProgram(program, 0, NULL), 6);
	OK(nvrtcGetProgramLogSize(program, &bytes));
	CHECK(bytes > 1);
}

SIM_TEST(cupti__one_subscriber_and_no_records, "tiny")
{
	void *lib = standin_open("libcupti.so.13"), *subscriber, *second, *record;
	uint8_t buffer[64];
	uint64_t id = 0;

	FUNCTION(lib, cuptiSubscribe, (void **, void *, void *));
	FUNCTION(lib, cuptiUnsubscribe, (void *));
	FUNCTION(lib, cuptiActivityEnable, (int));
	FUNCTION(lib, cuptiActivityGetNextRecord, (uint8_t *, size_t, void **));
	FUNCTION(lib, cuptiActivityPushExternalCorrelationId, (unsigned int, uint64_t));
	FUNCTION(lib, cuptiActivityPopExternalCorrelationId, (unsigned int, uint64_t *));
	OK(cuptiSubscribe(&subscriber, buffer, NULL));
	EXPECT(cuptiSubscribe(&second, buffer, NULL), 39);
	OK(cuptiActivityEnable(3));
	EXPECT(cuptiActivityGetNextRecord(buffer, sizeof(buffer), &record), 12);
	OK(cuptiActivityPushExternalCorrelationId(2, 77));
	OK(cuptiActivityPopExternalCorrelationId(2, &id));
	CHECK(id == 77);
	EXPECT(cuptiActivityPopExternalCorrelationId(2, &id), 18);
	OK(cuptiUnsubscribe(subscriber));
	EXPECT(cuptiUnsubscribe(subscriber), 1);
}

SIM_TEST(nvtx__ranges_have_a_depth, "tiny")
{
	void *lib = standin_open("libnvToolsExt.so.1");

	FUNCTION(lib, nvtxRangePushA, (const char *));
	FUNCTION(lib, nvtxRangePop, (void));
	CHECK(nvtxRangePushA("outer") == 0 && nvtxRangePushA("inner") == 1);
	CHECK(nvtxRangePop() == 1 && nvtxRangePop() == 0 && nvtxRangePop() < 0);
}

SIM_TEST(nvshmem__is_not_initialized, "tiny")
{
	void *lib = standin_open("libnvshmem_host.so.3");

	FUNCTION(lib, nvshmemid_init_status, (void));
	FUNCTION(lib, nvshmemx_get_uniqueid, (void *));
	CHECK(nvshmemid_init_status() == 0);
	CHECK(nvshmemx_get_uniqueid(NULL) != 0);
}

SIM_TEST(cufile__is_refused, "tiny")
{
	void *lib = standin_open("libcufile.so.0");
	struct {
		int code, driver;
	} (*cuFileBufRegister)(const void *, size_t, int);
	void *found = dlsym(lib, "cuFileBufRegister");

	CHECK(found);
	memcpy(&cuFileBufRegister, &found, sizeof(found));
	CHECK(cuFileBufRegister(NULL, 0, 0).code == 5007);
}

/* Functions that nobody modeled: there, and not supported. */
SIM_TEST(standins__what_is_not_modeled_fails_and_is_named_once, "tiny")
{
	static const struct {
		const char *library, *function;
		int status;
	} rows[] = {
		{"libcublas.so.12", "cublasSgemm_v2_64", 15}, {"libcublas.so.13", "cublasSgemm_v2_64", 15},
		{"libcublasLt.so.13", "cublasLtMatrixTransform", 15},
		{"libcudart.so.12", "cudaCreateTextureObject", 801},
		{"libcudart.so.13", "cudaMemcpy_ptds", 801}, {"libcudnn.so.9", "cudnnAddTensor", 3000},
		{"libcufft.so.12", "cufftExecC2C", 16}, {"libcupti.so.13", "cuptiEventGetAttribute", 27},
		{"libcurand.so.10", "curandGenerateUniform", 999}, {"libcusolver.so.12", "cusolverSpDcsrlsvqr", 9},
		{"libcusparse.so.12", "cusparseAxpby", 10}, {"libcusparseLt.so.0", "cusparseLtDestroy", 10},
		{"libnccl.so.2", "ncclCommGrow", 5}, {"libnvrtc.so.13", "nvrtcGetLTOIR", 11},
	};

	enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
	int said = memfd_create("said", 0), before = dup(STDERR_FILENO), lines = 0;
	char text[4096] = "";

	sim_start();
	CHECK(said >= 0 && before >= 0 && dup2(said, STDERR_FILENO) >= 0);
	for (size_t i = 0; i < ROWS; i++) {
		int (*call)(void);

		*(void **)&call = dlsym(standin_open(rows[i].library), rows[i].function);
		CHECK(call);
		EXPECT(call(), rows[i].status);
		EXPECT(call(), rows[i].status);
	}
	dup2(before, STDERR_FILENO);
	CHECK(pread(said, text, sizeof(text) - 1, 0) > 0);
	for (const char *at = text; (at = strchr(at, '\n')); at++)
		lines++;
	CHECK(lines == ROWS && strstr(text, "the simulated GPU has no cudnnAddTensor: the call fails"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cudart__managed_memory_is_prefetched_in_both_versions),
		cmocka_unit_test(cufft__a_plan_is_checked_and_executed),
		cmocka_unit_test(cufft__the_work_area_is_taken_from_the_gpu),
		cmocka_unit_test(cusolver__sizes_are_checked_and_info_is_zero),
		cmocka_unit_test(cusparse__shapes_must_match),
		cmocka_unit_test(cusparselt__compression_halves_the_matrix),
		cmocka_unit_test(nvrtc__kernels_of_the_source_can_be_launched),
		cmocka_unit_test(nvrtc__a_source_without_a_kernel_does_not_compile),
		cmocka_unit_test(cupti__one_subscriber_and_no_records),
		cmocka_unit_test(nvtx__ranges_have_a_depth),
		cmocka_unit_test(nvshmem__is_not_initialized),
		cmocka_unit_test(cufile__is_refused),
		cmocka_unit_test(standins__what_is_not_modeled_fails_and_is_named_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
