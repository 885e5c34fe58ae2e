/* SPDX-License-Identifier: Apache-2.0
 * Which names can be found in libcuda, and which cannot: the recorder must not change that. */
#include <dlfcn.h>
#include <stdio.h>

static const char *const names[] = { "cuInit", "cuLaunchKernel", "cuLaunchKernel_ptsz",
				    "cuLaunch",
				    "cuLaunchKernelX",
				    "cuMemAlloc_v3",
				    "cuGetProcAddress",
				    "cuGetProcAddress_v2",
				    "cuNoSuchFunction",
				    "cuInitialise",
				    "main",
				    "printf",
				    "cudaMalloc",
				    ""};

int main(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!driver)
		return 5;
	for (unsigned int i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		printf("%s %d\n", names[i], dlsym(driver, names[i]) != NULL);
	return 0;
}
