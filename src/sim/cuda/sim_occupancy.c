/* SPDX-License-Identifier: Apache-2.0
 * Occupancy: how many blocks and clusters of a kernel fit, and which block is best. */
#include "sim/cuda/sim.h"

#include <string.h>

int sim_cuOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, struct sim_func *function, int blocks, int threads)
{
	struct sim_func *f = sim_func_get(function);
	const struct sim_model *m = sim_device_current()->model;
	long each;

	if (!f)
		return SIM_INVALID_HANDLE;
	if (!bytes || blocks <= 0 || threads <= 0)
		return SIM_INVALID_VALUE;
	if (sim_func_occupancy(f, (unsigned int)threads, 0) < blocks)
		return SIM_INVALID_VALUE;
	each = m->shared_sm / blocks / 128 * 128 - sim_shared_reserved(m) - f->shared;
	if (each > m->shared_optin - f->shared)
		each = m->shared_optin - f->shared;
	*bytes = each > 0 ? (size_t)each : 0;
	return 0;
}

/* The block with the most threads on a multiprocessor; of several, the largest. */
int sim_cuOccupancyMaxPotentialBlockSizeWithFlags(int *grid, int *block, struct sim_func *function,
						  sim_dynamic_fn dynamic, size_t bytes, int limit, unsigned int flags)
{
	struct sim_func *f = sim_func_get(function);
	int best = 0, most = f ? sim_func_threads(f) : 0;

	if (!f)
		return SIM_INVALID_HANDLE;
	if (!grid || !block || flags > 1)
		return SIM_INVALID_VALUE;
	most = limit > 0 && limit < most ? limit : most;
	*block = *grid = 0;
	for (int threads = most; threads > 0; threads = (threads - 1) / SIM_WARP * SIM_WARP) {
		int blocks = sim_func_occupancy(f, (unsigned int)threads, dynamic ? dynamic(threads) : bytes);

		if (blocks * threads <= best)
			continue;
		best = blocks * threads;
		*block = threads;
		*grid = blocks * sim_device_current()->model->sms;
	}
	return best ? 0 : SIM_INVALID_VALUE;
}

int sim_cuOccupancyMaxPotentialBlockSize(int *grid, int *block, struct sim_func *function, sim_dynamic_fn dynamic,
					 size_t bytes, int limit)
{
	return sim_cuOccupancyMaxPotentialBlockSizeWithFlags(grid, block, function, dynamic, bytes, limit, 0);
}

static const unsigned int *cluster_of(const struct sim_func *f, const struct sim_launch_config *config)
{
	for (unsigned int i = 0; i < config->attr_count && config->attrs; i++)
		if (config->attrs[i].id == 4)
			return config->attrs[i].value.cluster;
	return f->cluster_fixed;
}

/* A cluster runs within a group of multiprocessors (GPC), of which some cannot hold a whole cluster: with 16 or 18 of them, what a
 * large cluster leaves over is lost. */
static int clusters_fit(const struct sim_func *f, const struct sim_launch_config *config, unsigned int blocks)
{
	const struct sim_model *m = sim_device_current()->model;
	int each = sim_func_occupancy(f, config->block[0] * config->block[1] * config->block[2], config->shared);
	int group = m->sms < 16 ? m->sms : 16;

	return (int)((unsigned int)(group * each) / blocks) * (m->sms / group);
}

int sim_cuOccupancyMaxActiveClusters(int *count, struct sim_func *function, const struct sim_launch_config *config)
{
	struct sim_func *f = sim_func_get(function);
	const struct sim_model *m = sim_device_current()->model;
	const unsigned int *c;
	unsigned int blocks;

	if (!f)
		return SIM_INVALID_HANDLE;
	if (!count || !config)
		return SIM_INVALID_VALUE;
	c = cluster_of(f, config);
	blocks = c[0] * c[1] * c[2];
	blocks = blocks ? blocks : 1;
	if (blocks > (unsigned int)(m->cluster_max ? m->cluster_max : 1) ||
	    (blocks > SIM_CLUSTER_PORTABLE && !atomic_load(&f->cluster_any)))
		return SIM_INVALID_CLUSTER_SIZE;
	*count = clusters_fit(f, config, blocks);
	return 0;
}

int sim_cuOccupancyMaxPotentialClusterSize(int *size, struct sim_func *function, const struct sim_launch_config *config)
{
	struct sim_func *f = sim_func_get(function);
	const struct sim_model *m = sim_device_current()->model;
	int most;

	if (!f)
		return SIM_INVALID_HANDLE;
	if (!size || !config)
		return SIM_INVALID_VALUE;
	most = m->cluster_max && !atomic_load(&f->cluster_any) ? SIM_CLUSTER_PORTABLE : m->cluster_max ? m->cluster_max : 1;
	while (most > 1 && !clusters_fit(f, config, (unsigned int)most))
		most--;
	*size = most;
	return 0;
}
