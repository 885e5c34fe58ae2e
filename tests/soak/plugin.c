/* SPDX-License-Identifier: Apache-2.0
 * A library that uses CUDA and is unloaded again. */
#include <dlfcn.h>
#include <stddef.h>

int use(void);
int use(void)
{
	void *lib = dlopen("libcuda.so.1", RTLD_NOW);
	int (*alloc)(unsigned long long *, size_t), (*release)(unsigned long long);
	unsigned long long address;
	int code;

	if (!lib)
		return -1;
	*(void **)&alloc = dlsym(lib, "cuMemAlloc_v2");
	*(void **)&release = dlsym(lib, "cuMemFree_v2");
	code = alloc && release ? alloc(&address, 512) : -2;
	if (code == 0)
		code = release(address);
	dlclose(lib);
	return code;
}
