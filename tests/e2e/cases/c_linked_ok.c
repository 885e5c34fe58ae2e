/* SPDX-License-Identifier: Apache-2.0
 * The same program without the mistake, and its result is right.
 * expect-silent: exit=0
 * build: -lcuda
 */
#include "cu.h"

int main(void)
{
	CUcontext context;
	CUmodule module;
	CUfunction fill;
	CUdeviceptr data;
	float out[64], value = 2;
	int count = 64;
	void *params[] = {&data, &value, &count};

	CU_TRY(cuInit(0));
	CU_TRY(cuDevicePrimaryCtxRetain(&context, 0));
	CU_TRY(cuCtxSetCurrent(context));
	CU_TRY(cuModuleLoadData(&module, CU_IMAGE));
	CU_TRY(cuModuleGetFunction(&fill, module, "fill"));
	CU_TRY(cuMemAlloc_v2(&data, sizeof(out)));
	CU_TRY(cuLaunchKernel(fill, 1, 1, 1, 64, 1, 1, 0, NULL, params, NULL));
	CU_TRY(cuMemcpyDtoH_v2(out, data, sizeof(out)));
	CU_TRY(cuMemFree_v2(data));
	return out[63] == 2 ? 0 : 3;
}
