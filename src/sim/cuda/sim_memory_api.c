/* SPDX-License-Identifier: Apache-2.0
 * Device memory: the functions that programs call.
 */
#include "sim/cuda/sim.h"
#include "sim/cuda/sim_cards.h"

int sim_cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
	struct sim_device *dev = sim_device_current();
	size_t gone;

	if (!free_bytes || !total)
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&sim_mem_lock);
	gone = sim_cards_used(dev->physical) + sim.config.taken;	/* hidden memory is reported as free */
	*free_bytes = gone > dev->total ? 0 : dev->total - gone;
	*total = dev->total;
	pthread_mutex_unlock(&sim_mem_lock);
	return 0;
}

int sim_cuMemAlloc_v2(sim_addr *address, size_t bytes)
{
	int code = sim_capture_check_unsafe();

	return code ? code : sim_mem_alloc(address, bytes, NULL);
}

int sim_cuMemAllocPitch_v2(sim_addr *address, size_t *pitch, size_t width, size_t height,
			   unsigned int element)
{
	size_t row = (width + 511) & ~(size_t)511;
	int code = sim_capture_check_unsafe();

	if (code)
		return code;
	if (element != 4 && element != 8 && element != 16)
		sim_log("Parameter ElementSizeBytes is invalid");
	if (!pitch || !width || !height || (element != 4 && element != 8 && element != 16) ||
	    row > SIZE_MAX / height)
		return SIM_INVALID_VALUE;
	code = sim_mem_alloc(address, row * height, NULL);
	if (!code)
		*pitch = row;
	return code;
}

/* Freeing waits for the context's work: kernels may still use the memory. */
int sim_cuMemFree_v2(sim_addr address)
{
	int kind = sim_mem_kind_of(address);
	int code = sim_capture_check_unsafe();

	if (code)
		return code;
	if (!address)
		return 0;
	if (kind == SIM_MEM_MANAGED) {
		sim_ctx_drain(sim_ctx_current());
		return sim_cuMemFreeHost((void *)(uintptr_t)address);
	}
	if (kind != SIM_MEM_DEVICE)
		return SIM_INVALID_VALUE;
	sim_ctx_drain(sim_ctx_current());
	code = sim_mem_free(address);
	return code ? code : atomic_load(&sim_ctx_current()->sticky);
}

static int alloc_async(sim_addr *address, size_t bytes, struct sim_mempool *pool, struct sim_stream *stream)
{
	if (!sim_stream_resolve(stream))
		return SIM_INVALID_HANDLE;
	if (!pool)
		return SIM_INVALID_VALUE;
	if (address && !bytes) {		/* measured: no error, and no memory */
		*address = 0;
		return 0;
	}
	return sim_mem_alloc(address, bytes, pool);
}

int sim_cuMemAllocAsync(sim_addr *address, size_t bytes, struct sim_stream *stream)
{
	return alloc_async(address, bytes, sim_mempool_of(sim_device_current()), stream);
}

int sim_cuMemAllocFromPoolAsync(sim_addr *address, size_t bytes, void *pool, struct sim_stream *stream)
{
	return alloc_async(address, bytes, sim_pool_get(&sim.mempools, pool), stream);
}

int sim_cuMemFreeAsync(sim_addr address, struct sim_stream *stream)
{
	struct sim_stream *s = sim_stream_resolve(stream);
	struct sim_op op = {.kind = SIM_OP_FREE, .u.address = address};

	if (!s)
		return SIM_INVALID_HANDLE;
	if (!address)
		return 0;
	if (sim_mem_kind_of(address) != SIM_MEM_DEVICE)
		return SIM_INVALID_VALUE;
	return sim_work_submit(s, &op, NULL);
}

int sim_cuMemGetAddressRange_v2(sim_addr *base, size_t *bytes, sim_addr address)
{
	struct sim_mem *mem;
	int code = SIM_NOT_FOUND;

	pthread_mutex_lock(&sim_mem_lock);
	mem = sim_mem_find(address);
	if (mem && mem->kind != SIM_MEM_REGISTERED) {
		if (base)
			*base = mem->start;
		if (bytes)
			*bytes = mem->bytes;
		code = 0;
	}
	pthread_mutex_unlock(&sim_mem_lock);
	return code;
}
