/* SPDX-License-Identifier: Apache-2.0
 * Stands in for the shared CUDA runtime: passes requests on to the driver. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

int cudaMalloc(uint64_t *address, size_t size);
int cudaMalloc(uint64_t *address, size_t size)
{
	int (*alloc)(uint64_t *, size_t) = (int (*)(uint64_t *, size_t))dlsym(dlopen("libcuda.so.1", RTLD_NOW),
									      "cuMemAlloc_v2");

	return alloc(address, size);
}
