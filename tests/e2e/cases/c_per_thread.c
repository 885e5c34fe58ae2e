/* SPDX-License-Identifier: Apache-2.0
 * The per-thread-default-stream twin of the launch.
 * expect: cause=launch-config-block-limit certainty=certain,likely exit=1 kernel=nop
 * build: -lcuda
 */
#include "cu.h"

int main(void)
{
	CUcontext context;
	CUmodule module;
	CUfunction nop;

	CU_TRY(cuInit(0));
	CU_TRY(cuDevicePrimaryCtxRetain(&context, 0));
	CU_TRY(cuCtxSetCurrent(context));
	CU_TRY(cuModuleLoadData(&module, CU_IMAGE));
	CU_TRY(cuModuleGetFunction(&nop, module, "nop"));
	CU_TRY(cuLaunchKernel_ptsz(nop, 1, 1, 1, 5000, 1, 1, 0, NULL, NULL, NULL));
	return 0;
}
