/* SPDX-License-Identifier: Apache-2.0
 * Memory of a device for the simulated NVML, which has no driver of its own to ask, and for the recorder. */
#include "sim/sim.h"

SIM_EXPORT bool cuwhy_sim_memory(int device, size_t *total, size_t *used, size_t *peak);

/* False if there is no such device. */
bool cuwhy_sim_memory(int device, size_t *total, size_t *used, size_t *peak)
{
	if (atomic_load(&sim.state) != SIM_READY || device < 0 || device >= sim.device_count)
		return false;
	pthread_mutex_lock(&sim_mem_lock);
	*total = sim.devices[device].total;
	*used = sim.devices[device].used;
	*peak = sim.devices[device].peak;
	pthread_mutex_unlock(&sim_mem_lock);
	return true;
}
