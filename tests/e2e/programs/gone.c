/* SPDX-License-Identifier: Apache-2.0
 * A thread begins a copy to or from pinned memory, another one waits for it and unmaps that memory, and the first one waits, too. */
#include "../cases/cu.h"

#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096, NON_BLOCKING = 1 };

CUresult cuMemHostRegister_v2(void *address, size_t bytes, unsigned int flags);
CUresult cuMemHostUnregister(void *address);
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream);
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
CUresult cuStreamCreate(CUstream *stream, unsigned int flags);
CUresult cuStreamSynchronize(CUstream stream);
CUresult cuCtxGetCurrent(CUcontext *context);

static void *page;
static CUcontext context;
static CUstream stream;

static void *wait_and_unmap(void *unused)
{
	CU_TRY(cuCtxSetCurrent(context));
	CU_TRY(cuStreamSynchronize(stream));
	CU_TRY(cuMemHostUnregister(page));
	munmap(page, PAGE);
	return unused;
}

int main(int argc, char **argv)
{
	CUdeviceptr data;
	pthread_t other;

	cu_start();
	CU_TRY(cuCtxGetCurrent(&context));
	CU_TRY(cuStreamCreate(&stream, NON_BLOCKING));
	CU_TRY(cuMemAlloc_v2(&data, PAGE));
	page = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CU_TRY(cuMemHostRegister_v2(page, PAGE, 0));
	if (argc > 1 && !strcmp(argv[1], "in"))
		CU_TRY(cuMemcpyHtoDAsync_v2(data, page, sizeof(int), stream));
	else
		CU_TRY(cuMemcpyDtoHAsync_v2(page, data, sizeof(int), stream));
	pthread_create(&other, NULL, wait_and_unmap, NULL);
	pthread_join(other, NULL);
	CU_TRY(cuStreamSynchronize(stream));
	puts("fine");
	return 0;
}
