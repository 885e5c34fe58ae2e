/* SPDX-License-Identifier: Apache-2.0
 * The driver functions that the C cases call, declared here since no NVIDIA header is needed. */
#ifndef CUWHY_TEST_CU_H
#define CUWHY_TEST_CU_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

typedef int CUresult;
typedef struct CUctx *CUcontext;
typedef struct CUmod *CUmodule;
typedef struct CUfunc *CUfunction;
typedef struct CUstr *CUstream;
typedef unsigned long long CUdeviceptr;

CUresult cuInit(unsigned int flags);
CUresult cuDeviceGet(int *device, int ordinal);
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, int device);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxSynchronize(void);
CUresult cuModuleLoadData(CUmodule *module, const void *image);
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name);
CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes);
CUresult cuMemFree_v2(CUdeviceptr address);
CUresult cuMemcpyDtoH_v2(void *to, CUdeviceptr from, size_t bytes);
CUresult cuLaunchKernel(CUfunction function, unsigned int gx, unsigned int gy, unsigned int gz,
			unsigned int bx, unsigned int by, unsigned int bz, unsigned int shared,
			CUstream stream, void **params, void **extra);
CUresult cuLaunchKernel_ptsz(CUfunction function, unsigned int gx, unsigned int gy,
			     unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz,
			     unsigned int shared, CUstream stream, void **params, void **extra);
CUresult cuGetProcAddress_v2(const char *name, void **out, int version, uint64_t flags,
			     int *status);

#define CU_IMAGE "cuwhy-sim-module 1\ntarget compute_50 ptx 7.0\nkernel nop\nkernel fill\n"

/* Exits as programs do: with one line and status 1. */
#define CU_TRY(call)                                                          \
	do {                                                                  \
		CUresult code_ = (call);                                      \
		if (code_) {                                                  \
			fprintf(stderr, "%s: error %d\n", #call, code_);      \
			exit(1);                                              \
		}                                                             \
	} while (0)

/* Starts CUDA on the first device; the kernel that does nothing. */
static inline CUfunction cu_start(void)
{
	CUcontext context;
	CUmodule module;
	CUfunction nop;

	CU_TRY(cuInit(0));
	CU_TRY(cuDevicePrimaryCtxRetain(&context, 0));
	CU_TRY(cuCtxSetCurrent(context));
	CU_TRY(cuModuleLoadData(&module, CU_IMAGE));
	CU_TRY(cuModuleGetFunction(&nop, module, "nop"));
	return nop;
}

#endif
