/* SPDX-License-Identifier: Apache-2.0
 * Memory: allocations, copies and fills.
 */
#include "sim/cudart/cudart.h"

#include <string.h>

static sim_addr address_of(const void *pointer)
{
	return (uintptr_t)pointer;
}

/* Zero bytes are a null pointer, not an error as for the driver. */
RUNTIME(cudaMalloc, (void **out, size_t bytes))
{
	sim_addr at = 0;
	int code = rt_context();

	if (code == 0 && !out)
		code = SIM_INVALID_VALUE;
	if (code == 0 && bytes)
		code = cuMemAlloc_v2(&at, bytes);
	if (code == 0)
		*out = (void *)(uintptr_t)at;
	return rt_done(code);
}

RUNTIME(cudaFree, (void *pointer))
{
	int code = rt_context();

	return rt_done(code || !pointer ? code : cuMemFree_v2(address_of(pointer)));
}

RUNTIME(cudaMallocPitch, (void **out, size_t *pitch, size_t width, size_t height))
{
	sim_addr at = 0;
	int code = rt_context();

	if (code == 0)
		code = cuMemAllocPitch_v2(&at, pitch, width, height, sizeof(int));
	if (code == 0)
		*out = (void *)(uintptr_t)at;
	return rt_done(code);
}

static int alloc_async(void **out, size_t bytes, void *pool, struct sim_stream *stream)
{
	sim_addr at = 0;
	int code = rt_context();

	if (code == 0 && bytes)
		code = pool ? cuMemAllocFromPoolAsync(&at, bytes, pool, stream) : cuMemAllocAsync(&at, bytes, stream);
	if (code == 0)
		*out = (void *)(uintptr_t)at;
	return code;
}

RUNTIME(cudaMallocAsync, (void **out, size_t bytes, struct sim_stream *stream))
{
	return rt_done(alloc_async(out, bytes, NULL, stream));
}

RUNTIME(cudaMallocFromPoolAsync, (void **out, size_t bytes, void *pool, struct sim_stream *stream))
{
	return rt_done(alloc_async(out, bytes, pool, stream));
}

RUNTIME(cudaFreeAsync, (void *pointer, struct sim_stream *stream))
{
	int code = rt_context();

	return rt_done(code || !pointer ? code : cuMemFreeAsync(address_of(pointer), stream));
}

RUNTIME(cudaMemGetInfo, (size_t * free_bytes, size_t *total))
{
	RT_WITH_CONTEXT(cuMemGetInfo_v2(free_bytes, total));
}

RUNTIME(cudaHostAlloc, (void **out, size_t bytes, unsigned int flags))
{
	RT_WITH_CONTEXT(cuMemHostAlloc(out, bytes, flags));
}

RUNTIME(cudaMallocHost, (void **out, size_t bytes))
{
	RT_WITH_CONTEXT(cuMemHostAlloc(out, bytes, 0));
}

RUNTIME(cudaFreeHost, (void *pointer))
{
	int code = rt_context();

	return rt_done(code || !pointer ? code : cuMemFreeHost(pointer));
}

RUNTIME(cudaHostRegister, (void *pointer, size_t bytes, unsigned int flags))
{
	RT_WITH_CONTEXT(cuMemHostRegister_v2(pointer, bytes, flags));
}

RUNTIME(cudaHostUnregister, (void *pointer))
{
	RT_WITH_CONTEXT(cuMemHostUnregister(pointer));
}

RUNTIME(cudaHostGetDevicePointer, (void **out, void *pointer, unsigned int flags))
{
	sim_addr at = 0;
	int code = rt_context();

	if (code == 0)
		code = cuMemHostGetDevicePointer_v2(&at, pointer, flags);
	if (code == 0)
		*out = (void *)(uintptr_t)at;
	return rt_done(code);
}

RUNTIME(cudaHostGetFlags, (unsigned int *flags, void *pointer))
{
	RT_WITH_CONTEXT(cuMemHostGetFlags(flags, pointer));
}

/* cudaPointerAttributes: CUDA 13 has more room at its end. */
struct pointer_attributes {
	int type, device;
	void *device_pointer, *host_pointer;
#if SONAME_MAJOR >= 13
	long reserved[8];
#endif
};

/* Numbers of the driver's pointer attributes, and the values of the first one. */
enum { MEMORY_TYPE = 2, DEVICE_POINTER = 3, HOST_POINTER = 4, IS_MANAGED = 8, DEVICE_ORDINAL = 9 };
enum { TYPE_HOST = 1, TYPE_DEVICE = 2 };
/* cudaMemoryType */
enum { RT_UNREGISTERED, RT_HOST, RT_DEVICE, RT_MANAGED };

RUNTIME(cudaPointerGetAttributes, (struct pointer_attributes * a, const void *pointer))
{
	int names[] = {MEMORY_TYPE, DEVICE_ORDINAL, DEVICE_POINTER, HOST_POINTER, IS_MANAGED};
	int type = 0, device = -2, managed = 0, code = rt_context();
	void *on_device = NULL, *on_host = NULL;
	void *values[] = {&type, &device, &on_device, &on_host, &managed};

	if (code || !a)
		return rt_done(code ? code : SIM_INVALID_VALUE);
	cuPointerGetAttributes(5, names, values, address_of(pointer));
	memset(a, 0, sizeof(*a));
	a->device = device;
	if (!type) {			/* memory that CUDA does not know is the host's own */
		a->host_pointer = (void *)(uintptr_t)pointer;
		return 0;
	}
	a->type = managed ? RT_MANAGED : type == TYPE_HOST ? RT_HOST : RT_DEVICE;
	a->device_pointer = on_device;
	a->host_pointer = on_host;
	return 0;
}

enum { KIND_MAX = 4 };		/* cudaMemcpyDefault; addresses tell the direction anyway */

static int check_copy(int kind)
{
	int code = rt_context();

	return code ? code : kind < 0 || kind > KIND_MAX ? RT_INVALID_MEMCPY_DIRECTION : 0;
}

RUNTIME(cudaMemcpy, (void *to, const void *from, size_t bytes, int kind))
{
	int code = check_copy(kind);

	return rt_done(code || !bytes ? code : cuMemcpy(address_of(to), address_of(from), bytes));
}

RUNTIME(cudaMemcpyAsync, (void *to, const void *from, size_t bytes, int kind, struct sim_stream *stream))
{
	int code = check_copy(kind);

	return rt_done(code || !bytes ? code : cuMemcpyAsync(address_of(to), address_of(from), bytes, stream));
}

enum { MEMORY_UNIFIED = 4 };	/* CU_MEMORYTYPE_UNIFIED */

static struct sim_copy2d rectangle(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
				   size_t height)
{
	return (struct sim_copy2d){
		.src_type = MEMORY_UNIFIED,
		.src_device = address_of(from),
		.src_pitch = from_pitch,
		.dst_type = MEMORY_UNIFIED,
		.dst_device = address_of(to),
		.dst_pitch = to_pitch,
		.width = width,
		.height = height,
	};
}

RUNTIME(cudaMemcpy2D,
	(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height, int kind))
{
	struct sim_copy2d copy = rectangle(to, to_pitch, from, from_pitch, width, height);
	int code = check_copy(kind);

	return rt_done(code || !width || !height ? code : cuMemcpy2D_v2(&copy));
}

RUNTIME(cudaMemcpy2DAsync, (void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
			    int kind, struct sim_stream *stream))
{
	struct sim_copy2d copy = rectangle(to, to_pitch, from, from_pitch, width, height);
	int code = check_copy(kind);

	return rt_done(code || !width || !height ? code : cuMemcpy2DAsync_v2(&copy, stream));
}

/* Addresses are unique among all GPUs: a copy between two of them is a copy. */
RUNTIME(cudaMemcpyPeer, (void *to, int to_device, const void *from, int from_device, size_t bytes))
{
	int code = rt_context();

	(void)to_device, (void)from_device;
	return rt_done(code || !bytes ? code : cuMemcpy(address_of(to), address_of(from), bytes));
}

RUNTIME(cudaMemcpyPeerAsync,
	(void *to, int to_device, const void *from, int from_device, size_t bytes, struct sim_stream *stream))
{
	int code = rt_context();

	(void)to_device, (void)from_device;
	return rt_done(code || !bytes ? code : cuMemcpyAsync(address_of(to), address_of(from), bytes, stream));
}

RUNTIME(cudaMemset, (void *to, int value, size_t bytes))
{
	int code = rt_context();

	return rt_done(code || !bytes ? code : cuMemsetD8_v2(address_of(to), (unsigned char)value, bytes));
}

RUNTIME(cudaMemsetAsync, (void *to, int value, size_t bytes, struct sim_stream *stream))
{
	int code = rt_context();

	return rt_done(code || !bytes ? code : cuMemsetD8Async(address_of(to), (unsigned char)value, bytes, stream));
}

RUNTIME(cudaMemset2D, (void *to, size_t pitch, int value, size_t width, size_t height))
{
	int code = rt_context();

	return rt_done(code || !width || !height ?
		code : cuMemsetD2D8_v2(address_of(to), pitch, (unsigned char)value, width, height));
}

RUNTIME(cudaMemset2DAsync,
	(void *to, size_t pitch, int value, size_t width, size_t height, struct sim_stream *stream))
{
	int code = rt_context();

	return rt_done(code || !width || !height ?
		code : cuMemsetD2D8Async(address_of(to), pitch, (unsigned char)value, width, height, stream));
}

RUNTIME(cudaIpcGetMemHandle, (void *handle, void *pointer))
{
	RT_WITH_CONTEXT(cuIpcGetMemHandle(handle, address_of(pointer)));
}

RUNTIME(cudaIpcOpenMemHandle, (void **out, struct sim_ipc handle, unsigned int flags))
{
	sim_addr at = 0;
	int code = rt_context();

	if (code == 0)
		code = cuIpcOpenMemHandle_v2(&at, handle, flags);
	if (code == 0)
		*out = (void *)(uintptr_t)at;
	return rt_done(code);
}

RUNTIME(cudaIpcCloseMemHandle, (void *pointer))
{
	RT_WITH_CONTEXT(cuIpcCloseMemHandle(address_of(pointer)));
}
