/* SPDX-License-Identifier: Apache-2.0
 * Entry points returned by cuGetProcAddress, as the CUDA runtime requests them. expect:
 * cause=launch-config-empty-input certainty=certain,likely exit=1 kernel=nop build: -lcuda
 */
#include "cu.h"

typedef CUresult launch_fn(CUfunction, unsigned int, unsigned int, unsigned int, unsigned int,
			   unsigned int, unsigned int, unsigned int, CUstream, void **, void **);

int main(void)
{
	CUcontext context;
	CUmodule module;
	CUfunction nop;
	launch_fn *launch = NULL;
	int status = -1;

	CU_TRY(cuInit(0));
	CU_TRY(cuDevicePrimaryCtxRetain(&context, 0));
	CU_TRY(cuCtxSetCurrent(context));
	CU_TRY(cuModuleLoadData(&module, CU_IMAGE));
	CU_TRY(cuModuleGetFunction(&nop, module, "nop"));
	CU_TRY(cuGetProcAddress_v2("cuLaunchKernel", (void **)&launch, 12000, 0, &status));
	if (!launch || status)
		return 6;
	CU_TRY(launch(nop, 0, 1, 1, 32, 1, 1, 0, NULL, NULL, NULL));
	return 0;
}
