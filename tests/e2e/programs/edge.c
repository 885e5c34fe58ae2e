/* SPDX-License-Identifier: Apache-2.0
 * Every variable that the driver writes ends where the program's memory ends: nobody may read beyond it. */
#include "../cases/cu.h"

#include <string.h>
#include <sys/mman.h>

enum { PAGE = 4096 };

CUresult cuDriverGetVersion(int *version);
CUresult cuDeviceGetCount(int *count);
CUresult cuDeviceGetAttribute(int *value, int attribute, int device);
CUresult cuDeviceCanAccessPeer(int *can, int device, int peer);
CUresult cuCtxGetDevice(int *device);
CUresult cuStreamCreate(CUstream *stream, unsigned int flags);
CUresult cuStreamBeginCapture_v2(CUstream stream, int mode);
CUresult cuStreamEndCapture(CUstream stream, void **graph);
CUresult cuGraphInstantiateWithFlags(void **exec, void *graph, unsigned long long flags);
CUresult cuMemAllocPitch_v2(CUdeviceptr *address, size_t *pitch, size_t width, size_t height, unsigned int element);
CUresult cuMemAllocManaged(CUdeviceptr *address, size_t bytes, unsigned int flags);
CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned int flags);
CUresult cuMemAddressReserve(CUdeviceptr *address, size_t bytes, size_t alignment, CUdeviceptr hint,
			     unsigned long long flags);
CUresult cuMemCreate(unsigned long long *handle, size_t bytes, const void *properties, unsigned long long flags);
CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total);

/* The last bytes before a page that nobody may touch. */
static void *last(size_t bytes)
{
	char *p = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED || mprotect(p + PAGE, PAGE, PROT_NONE))
		exit(8);
	return p + PAGE - bytes;
}

#define LAST(type) ((type *)last(sizeof(type)))

static void ints(void)
{
	int *device = LAST(int);

	CU_TRY(cuInit(0));
	CU_TRY(cuDriverGetVersion(LAST(int)));
	CU_TRY(cuDeviceGetCount(LAST(int)));
	CU_TRY(cuDeviceGet(device, 0));
	CU_TRY(cuDeviceGetAttribute(LAST(int), 1, *device));
	cuDeviceCanAccessPeer(LAST(int), 0, 0);
}

static CUmodule words(void)
{
	CUcontext *context = LAST(CUcontext);
	CUmodule *module = LAST(CUmodule);

	CU_TRY(cuDevicePrimaryCtxRetain(context, 0));
	CU_TRY(cuCtxSetCurrent(*context));
	CU_TRY(cuCtxGetDevice(LAST(int)));
	CU_TRY(cuModuleLoadData(module, CU_IMAGE));
	return *module;
}

static void graphs(CUfunction nop)
{
	CUstream *stream = LAST(CUstream);
	void **graph = LAST(void *);

	CU_TRY(cuStreamCreate(stream, 1));
	CU_TRY(cuStreamBeginCapture_v2(*stream, 0));
	CU_TRY(cuLaunchKernel(nop, 1, 1, 1, 1, 1, 1, 0, *stream, NULL, NULL));
	CU_TRY(cuStreamEndCapture(*stream, graph));
	CU_TRY(cuGraphInstantiateWithFlags(LAST(void *), *graph, 0));
}

static void memory(void)
{
	int properties[12] = {1, 0, 1, 0};	/* pinned memory on device 0 */

	CU_TRY(cuMemAlloc_v2(LAST(CUdeviceptr), 64));
	CU_TRY(cuMemAllocPitch_v2(LAST(CUdeviceptr), LAST(size_t), 64, 2, 4));
	CU_TRY(cuMemAllocManaged(LAST(CUdeviceptr), 64, 1));
	CU_TRY(cuMemHostAlloc(LAST(void *), 64, 0));
	CU_TRY(cuMemAddressReserve(LAST(CUdeviceptr), 2 << 20, 0, 0, 0));
	CU_TRY(cuMemCreate(LAST(unsigned long long), 2 << 20, properties, 0));
	CU_TRY(cuMemGetInfo_v2(LAST(size_t), LAST(size_t)));
}

int main(void)
{
	CUfunction *nop = LAST(CUfunction);

	ints();
	CU_TRY(cuModuleGetFunction(nop, words(), "nop"));
	graphs(*nop);
	memory();
	puts("unharmed");
	return 0;
}
