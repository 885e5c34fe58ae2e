/* SPDX-License-Identifier: Apache-2.0
 * Memory of a device for the simulated NVML, which has no driver of its own to ask, and for the recorder. */
#include "sim/cuda/sim.h"
#include "sim/cuda/sim_cards.h"

SIM_EXPORT bool cuwhy_sim_memory(int device, size_t *total, size_t *used, size_t *peak);

/* `used` by this process, `peak` of all on this card. False if there is no such device. */
bool cuwhy_sim_memory(int device, size_t *total, size_t *used, size_t *peak)
{
	if (atomic_load(&sim.state) != SIM_READY || device < 0 || device >= sim.device_count)
		return false;
	pthread_mutex_lock(&sim_mem_lock);
	*total = sim.devices[device].total;
	*used = sim_cards_own(sim.devices[device].physical);
	*peak = sim_cards_peak(sim.devices[device].physical);
	pthread_mutex_unlock(&sim_mem_lock);
	return true;
}
