/* SPDX-License-Identifier: Apache-2.0
 * Managed memory, which optimizers with paged states use. It stays on the host (src/sim/cuda/sim_managed.c).
 */
#include "sim/cudart/cudart.h"

RUNTIME(cudaMallocManaged, (void **out, size_t bytes, unsigned int flags))
{
	sim_addr at = 0;
	int code = rt_context();

	if (code == 0 && !out)
		code = SIM_INVALID_VALUE;
	if (code == 0)
		code = cuMemAllocManaged(&at, bytes, flags);
	if (code == 0)
		*out = (void *)(uintptr_t)at;
	return rt_done(code);
}

/* CUDA 12 has the number of a device, or -1 for the host, and a second form with a location; CUDA 13 gave the first name to that one. */
#if SONAME_MAJOR < 13
RUNTIME(cudaMemPrefetchAsync, (const void *pointer, size_t bytes, int device, struct sim_stream *stream))
{
	RT_WITH_CONTEXT(cuMemPrefetchAsync((uintptr_t)pointer, bytes, device, stream));
}

RUNTIME(cudaMemAdvise, (const void *pointer, size_t bytes, int advice, int device))
{
	RT_WITH_CONTEXT(cuMemAdvise((uintptr_t)pointer, bytes, advice, device));
}

#define PREFETCH cudaMemPrefetchAsync_v2
#define ADVISE	 cudaMemAdvise_v2
#else
#define PREFETCH cudaMemPrefetchAsync
#define ADVISE	 cudaMemAdvise
#endif

RUNTIME(PREFETCH, (const void *pointer, size_t bytes, struct sim_location location, unsigned int flags,
		   struct sim_stream *stream))
{
	RT_WITH_CONTEXT(cuMemPrefetchAsync_v2((uintptr_t)pointer, bytes, location, flags, stream));
}

RUNTIME(ADVISE, (const void *pointer, size_t bytes, int advice, struct sim_location location))
{
	RT_WITH_CONTEXT(cuMemAdvise_v2((uintptr_t)pointer, bytes, advice, location));
}

RUNTIME(cudaMemRangeGetAttribute, (void *value, size_t size, int attribute, const void *pointer, size_t bytes))
{
	RT_WITH_CONTEXT(cuMemRangeGetAttribute(value, size, attribute, (uintptr_t)pointer, bytes));
}

RUNTIME(cudaStreamAttachMemAsync, (struct sim_stream * stream, void *pointer, size_t bytes, unsigned int flags))
{
	RT_WITH_CONTEXT(cuStreamAttachMemAsync(stream, (uintptr_t)pointer, bytes, flags));
}
