/* SPDX-License-Identifier: Apache-2.0
 * Managed memory: it is always on the host, so advice is checked and otherwise ignored, and there is nothing to move. */
#include "sim/cuda/sim.h"

#include <string.h>

enum { ADVICE_MAX = 6, HOST = 2, DEVICE = 1 };

static bool is_managed(sim_addr address, size_t bytes)
{
	int kind = sim_mem_kind_of(address);

	return bytes && kind == SIM_MEM_MANAGED && sim_mem_covers(address, bytes);
}

static bool location_ok(struct sim_location l)
{
	return l.type == DEVICE ? l.id >= 0 && l.id < sim.device_count : l.type >= HOST && l.type <= 4;
}

/* The older forms have the number of a device, or -1 for the host. */
static struct sim_location location_of(int device)
{
	return (struct sim_location){device == -1 ? HOST : DEVICE, device == -1 ? 0 : device};
}

int sim_cuMemPrefetchAsync_v2(sim_addr address, size_t bytes, struct sim_location location, unsigned int flags,
			      struct sim_stream *stream)
{
	if (!sim_stream_resolve(stream))
		return SIM_INVALID_HANDLE;
	if (!location_ok(location))
		return SIM_INVALID_DEVICE;
	return flags || !is_managed(address, bytes) ? SIM_INVALID_VALUE : 0;
}

int sim_cuMemPrefetchAsync(sim_addr address, size_t bytes, int device, struct sim_stream *stream)
{
	return sim_cuMemPrefetchAsync_v2(address, bytes, location_of(device), 0, stream);
}

int sim_cuMemAdvise_v2(sim_addr address, size_t bytes, int advice, struct sim_location location)
{
	if (advice < 1 || advice > ADVICE_MAX || !is_managed(address, bytes))
		return SIM_INVALID_VALUE;
	return advice > 2 && !location_ok(location) ? SIM_INVALID_DEVICE : 0;
}

int sim_cuMemAdvise(sim_addr address, size_t bytes, int advice, int device)
{
	return sim_cuMemAdvise_v2(address, bytes, advice, location_of(device));
}

/* None of it was ever advised or prefetched. */
int sim_cuMemRangeGetAttribute(void *value, size_t size, int attribute, sim_addr address, size_t bytes)
{
	static const int nowhere = -2;		/* CU_DEVICE_INVALID */

	if (!value || attribute < 1 || attribute > 8 || size < sizeof(int) || !is_managed(address, bytes))
		return SIM_INVALID_VALUE;
	memset(value, 0, size);
	if (attribute == 2 || attribute == 3 || attribute == 4)
		for (size_t at = 0; at + sizeof(int) <= size; at += sizeof(int))
			memcpy((char *)value + at, &nowhere, sizeof(int));
	return 0;
}

int sim_cuStreamAttachMemAsync(struct sim_stream *stream, sim_addr address, size_t bytes, unsigned int flags)
{
	if (!sim_stream_resolve(stream))
		return SIM_INVALID_HANDLE;
	if ((flags != 1 && flags != 2 && flags != 4) || sim_mem_kind_of(address) != SIM_MEM_MANAGED)
		return SIM_INVALID_VALUE;
	return bytes && !sim_mem_covers(address, bytes) ? SIM_INVALID_VALUE : 0;
}
