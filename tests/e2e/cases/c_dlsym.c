/* SPDX-License-Identifier: Apache-2.0
 * Entry points found with dlopen and dlsym, as Python's ctypes and Triton do.
 * expect: cause=oom-request-too-large certainty=certain,likely exit=1
 * build: -ldl
 */
#include "cu.h"

#include <dlfcn.h>

int main(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
	CUresult (*init)(unsigned int) = NULL;
	CUresult (*retain)(CUcontext *, int) = NULL;
	CUresult (*current)(CUcontext) = NULL;
	CUresult (*take)(CUdeviceptr *, size_t) = NULL;
	CUcontext context;
	CUdeviceptr data;

	if (!driver)
		return 5;
	*(void **)&init = dlsym(driver, "cuInit");
	*(void **)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
	*(void **)&current = dlsym(driver, "cuCtxSetCurrent");
	*(void **)&take = dlsym(driver, "cuMemAlloc_v2");
	if (!init || !retain || !current || !take)
		return 6;
	CU_TRY(init(0));
	CU_TRY(retain(&context, 0));
	CU_TRY(current(context));
	CU_TRY(take(&data, (size_t)1 << 41));
	return 0;
}
