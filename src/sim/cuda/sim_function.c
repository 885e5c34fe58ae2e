/* SPDX-License-Identifier: Apache-2.0
 * Functions and kernels: names, attributes, parameters, occupancy. */
#include "sim/cuda/sim.h"

#include "formats/gpu_code.h"

struct sim_func *sim_func_get(const void *handle)
{
	struct sim_func *f = sim_pool_get(&sim.funcs, handle);

	return f ? f->func : NULL;
}

/* Maximum threads per block: registers are allocated per warp in units of 256, and warps are
 * spread evenly over the four partitions of a multiprocessor (162 registers: at most 384
 * threads, a known case with ptxas). */
static int threads_by_registers(int regs)
{
	int per_warp = (regs * SIM_WARP + 255) / 256 * 256;
	int warps = per_warp ? SIM_REGS_PER_BLOCK / per_warp / 4 * 4 : 32;

	return warps * SIM_WARP < SIM_BLOCK_THREADS_MAX ? warps * SIM_WARP : SIM_BLOCK_THREADS_MAX;
}

int sim_func_threads(const struct sim_func *f)
{
	int threads = f->max_threads ? f->max_threads : threads_by_registers(f->regs);

	return f->bounds && f->bounds < threads ? f->bounds : threads;
}

static int min_int(int a, int b)
{
	return a < b ? a : b;
}

int sim_shared_reserved(const struct sim_model *m)
{
	return m->major >= 8 ? SIM_SHARED_RESERVED : 0;
}

/* Blocks of this shape that fit on one multiprocessor at a time. */
int sim_func_occupancy(const struct sim_func *f, unsigned int threads, size_t dynamic)
{
	const struct sim_model *m = sim_device_current()->model;
	int warps = (int)((threads + SIM_WARP - 1) / SIM_WARP);
	int per_warp = (f->regs * SIM_WARP + 255) / 256 * 256;
	size_t shared = (size_t)f->shared + dynamic + (size_t)sim_shared_reserved(m);
	int blocks = m->blocks_sm;

	if (!warps || warps * SIM_WARP > sim_func_threads(f))
		return 0;
	blocks = min_int(blocks, m->threads_sm / (warps * SIM_WARP));
	if (per_warp)
		blocks = min_int(blocks, SIM_REGS_PER_BLOCK / (per_warp * ((warps + 3) / 4 * 4)));
	return shared ? min_int(blocks, (int)((size_t)m->shared_sm / ((shared + 127) / 128 * 128))) : blocks;
}

static int attribute_get(int *value, int attribute, struct sim_func *f)
{
	switch (attribute) {
	case 0: *value = sim_func_threads(f); return 0;
	case 1: *value = f->shared; return 0;
	case 2: *value = 0; return 0;
	case 3: *value = f->real ? (int)f->real->local : 0; return 0;
	case 4: *value = f->regs; return 0;
	case 5: *value = f->module->ptx_version; return 0;
	case 6: *value = f->module->binary_version; return 0;
	case 7: *value = 0; return 0;
	case 8: *value = atomic_load(&f->dynamic_max); return 0;
	case 9: *value = atomic_load(&f->carveout); return 0;
	case 10: *value = f->cluster_must || f->cluster_fixed[0]; return 0;
	case 11: *value = f->cluster_must ? f->cluster_must : (int)f->cluster_fixed[0]; return 0;
	case 12: *value = f->cluster_must ? 1 : (int)f->cluster_fixed[1]; return 0;
	case 13: *value = f->cluster_must ? 1 : (int)f->cluster_fixed[2]; return 0;
	case 14: *value = atomic_load(&f->cluster_any); return 0;
	case 15: *value = atomic_load(&f->cluster_policy); return 0;
	}
	sim_log("Invalid CUfunction_attribute value %d", attribute);
	return SIM_INVALID_VALUE;
}

static int attribute_set(struct sim_func *f, int attribute, int value, const struct sim_model *m)
{
	switch (attribute) {
	case 8:
		if (value < 0)
			sim_log("Requested dynamic shared mem size cannot be negative %d", value);
		else if (value > m->shared_optin - f->shared)
			sim_log("Requested dynamic shared memory size is larger than limit");
		if (value < 0 || value > m->shared_optin - f->shared)
			return SIM_INVALID_VALUE;
		atomic_store(&f->dynamic_max, value);
		return 0;
	case 9:
		if (value < -1 || value > 100)
			return SIM_INVALID_VALUE;
		atomic_store(&f->carveout, value);
		return 0;
	case 14:
		atomic_store(&f->cluster_any, value != 0);
		return 0;
	case 15:
		atomic_store(&f->cluster_policy, value);
		return 0;
	}
	sim_log("Invalid CUfunction_attribute value %d", attribute);
	return SIM_INVALID_VALUE;
}

static int param_info(const struct sim_func *f, size_t index, size_t *offset, size_t *size)
{
	size_t bytes = 0, at = SIZE_MAX;

	if (f->real)
		at = sim_real_param(f, index, &bytes);
	else if (index <= 64)
		at = sim_kernel_layout(f->row, (unsigned int)index, &bytes);
	if (!offset || at == SIZE_MAX)
		return SIM_INVALID_VALUE;
	*offset = at;
	if (size)
		*size = bytes;
	return 0;
}

int sim_cuFuncGetAttribute(int *value, int attribute, struct sim_func *function)
{
	struct sim_func *f = sim_func_get(function);

	if (!value)
		return SIM_INVALID_VALUE;
	return f ? attribute_get(value, attribute, f) : SIM_INVALID_HANDLE;
}

int sim_cuFuncSetAttribute(struct sim_func *function, int attribute, int value)
{
	struct sim_func *f = sim_func_get(function);

	if (!f)
		return SIM_INVALID_HANDLE;
	return attribute_set(f, attribute, value, sim_device_current()->model);
}

int sim_cuFuncSetCacheConfig(struct sim_func *function, int config)
{
	(void)config;
	return sim_func_get(function) ? 0 : SIM_INVALID_HANDLE;
}

int sim_cuFuncSetSharedMemConfig(struct sim_func *function, int config)
{
	(void)config;
	return sim_func_get(function) ? 0 : SIM_INVALID_HANDLE;
}

int sim_cuKernelSetCacheConfig(struct sim_func *kernel, int config, int device)
{
	if (device < 0 || device >= sim.device_count)
		return SIM_INVALID_DEVICE;
	return sim_cuFuncSetCacheConfig(kernel, config);
}

int sim_cuFuncGetName(const char **name, struct sim_func *function)
{
	struct sim_func *f = sim_func_get(function);

	if (!name)
		return SIM_INVALID_VALUE;
	if (!f)
		return SIM_INVALID_HANDLE;
	*name = f->name;
	return 0;
}

int sim_cuFuncGetModule(struct sim_module **module, struct sim_func *function)
{
	struct sim_func *f = sim_func_get(function);

	if (!module)
		return SIM_INVALID_VALUE;
	if (!f)
		return SIM_INVALID_HANDLE;
	*module = f->module;
	return 0;
}

int sim_cuFuncGetParamInfo(struct sim_func *function, size_t index, size_t *offset, size_t *size)
{
	struct sim_func *f = sim_func_get(function);

	return f ? param_info(f, index, offset, size) : SIM_INVALID_HANDLE;
}

int sim_cuFuncLoad(struct sim_func *function)
{
	struct sim_func *f = sim_func_get(function);

	return f ? sim_func_load(f, sim_ctx_current()->device) : SIM_INVALID_HANDLE;
}

int sim_cuFuncIsLoaded(int *state, struct sim_func *function)
{
	struct sim_func *f = sim_func_get(function);
	int device = sim_ctx_current()->device;

	if (!state)
		return SIM_INVALID_VALUE;
	if (!f)
		return SIM_INVALID_HANDLE;
	*state = !f->real || atomic_load(&f->loaded[device]) == sim.devices[device].epoch;
	return 0;
}

int sim_cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, struct sim_func *function,
						    int threads, size_t dynamic)
{
	struct sim_func *f = sim_func_get(function);

	if (!f)
		return SIM_INVALID_HANDLE;
	if (!blocks || threads <= 0)
		return SIM_INVALID_VALUE;
	*blocks = sim_func_occupancy(f, (unsigned int)threads, dynamic);
	return 0;
}

int sim_cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, struct sim_func *function, int threads,
							     size_t dynamic, unsigned int flags)
{
	if (flags > 1)
		return SIM_INVALID_VALUE;
	return sim_cuOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, dynamic);
}

int sim_cuKernelGetFunction(struct sim_func **function, struct sim_func *kernel)
{
	struct sim_func *f = sim_func_get(kernel);

	if (!function)
		return SIM_INVALID_VALUE;
	if (!f)
		return SIM_INVALID_HANDLE;
	*function = f;
	return sim_func_load(f, sim_ctx_current()->device);
}

int sim_cuKernelGetLibrary(struct sim_library **library, struct sim_func *kernel)
{
	struct sim_func *k = sim_pool_get(&sim.funcs, kernel);

	if (!library)
		return SIM_INVALID_VALUE;
	if (!k || !k->library)
		return SIM_INVALID_HANDLE;
	*library = k->library;
	return 0;
}

int sim_cuKernelGetName(const char **name, struct sim_func *kernel)
{
	return sim_cuFuncGetName(name, kernel);
}

int sim_cuKernelGetAttribute(int *value, int attribute, struct sim_func *kernel, int device)
{
	if (device < 0 || device >= sim.device_count)
		return SIM_INVALID_DEVICE;
	return sim_cuFuncGetAttribute(value, attribute, kernel);
}

int sim_cuKernelSetAttribute(int attribute, int value, struct sim_func *kernel, int device)
{
	struct sim_func *f = sim_func_get(kernel);

	if (device < 0 || device >= sim.device_count)
		return SIM_INVALID_DEVICE;
	if (!f)
		return SIM_INVALID_HANDLE;
	return attribute_set(f, attribute, value, sim.devices[device].model);
}

int sim_cuKernelGetParamInfo(struct sim_func *kernel, size_t index, size_t *offset, size_t *size)
{
	return sim_cuFuncGetParamInfo(kernel, index, offset, size);
}
