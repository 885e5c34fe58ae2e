/* SPDX-License-Identifier: Apache-2.0
 * Launches: every limit is checked, with the error codes and texts of the real driver. */
#include "sim/cuda/sim_contents.h"

#include <string.h>

struct launch {
	struct sim_func *f;
	const unsigned int *grid, *block;
	unsigned int shared;
	struct sim_stream *stream;
	void **params, **extra;
	bool cooperative;
	const unsigned int *cluster;	/* NULL when not requested */
};

/* Texts, including their spelling, and the order of the checks were measured on R580. */
static __attribute__((noinline, cold)) int refuse_block(const unsigned int *b)
{
	if (!b[0] || !b[1] || !b[2])
		sim_log("Block dimensions (%u,%u,%u) include one or more zero values. All "
			"dimensions must be nonzero", b[0], b[1], b[2]);
	else
		sim_log("One or more of block dimensions of (%u,%u,%u) exceeds correspsonding "
			"maximum value of (%d,%d,%d)",
			b[0], b[1], b[2], SIM_BLOCK_XY_MAX, SIM_BLOCK_XY_MAX, SIM_BLOCK_Z_MAX);
	return SIM_INVALID_VALUE;
}

static int check_block(const struct launch *l)
{
	const unsigned int *b = l->block;
	unsigned int threads;

	/* Zero minus one is a large number: one comparison detects both mistakes. */
	if (SIM_UNLIKELY(b[0] - 1 >= SIM_BLOCK_XY_MAX || b[1] - 1 >= SIM_BLOCK_XY_MAX ||
			 b[2] - 1 >= SIM_BLOCK_Z_MAX))
		return refuse_block(b);
	threads = b[0] * b[1] * b[2];
	if (SIM_UNLIKELY(threads > SIM_BLOCK_THREADS_MAX)) {
		sim_log("Requested block size of %u threads exceeds device maximum %d", threads,
			SIM_BLOCK_THREADS_MAX);
		return SIM_INVALID_VALUE;
	}
	if (SIM_UNLIKELY(l->f->bounds && threads > (unsigned int)l->f->bounds)) {
		sim_log("Requested block size of %u threads exceeds maximum set at compilation of "
			"%d", threads, l->f->bounds);
		return SIM_INVALID_VALUE;
	}
	return 0;
}

static int check_grid(const struct launch *l)
{
	static const unsigned int max[] = {SIM_GRID_X_MAX, SIM_GRID_YZ_MAX, SIM_GRID_YZ_MAX};

	for (int i = 0; i < 3; i++) {
		if (SIM_LIKELY(l->grid[i] - 1 < max[i]))
			continue;
		if (!l->grid[i])
			sim_log("Grid Dimension %c must be nonzero", 'X' + i);
		else
			sim_log("Grid Dimension %c of %u exceeds maximum value of %u", 'X' + i,
				l->grid[i], max[i]);
		return SIM_INVALID_VALUE;
	}
	return 0;
}

/* The limit in the driver's text is not the one it compares with: it leaves out static memory,
 * and after an opt-in it is the device's limit. */
static int check_shared(const struct launch *l)
{
	int max = atomic_load_explicit(&l->f->dynamic_max, memory_order_relaxed);
	int named = SIM_SHARED_DEFAULT;

	if (SIM_LIKELY(l->shared <= (unsigned int)max))
		return 0;
	if (max + l->f->shared > SIM_SHARED_DEFAULT)
		named = sim_device_current()->model->shared_optin;
	sim_log("Requested dynamic shared memory size of %u bytes exceeds maximum dynamic shared "
		"memory size of %d bytes", l->shared, named);
	return SIM_INVALID_VALUE;
}

static int check_threads(const struct launch *l)
{
	unsigned int threads = l->block[0] * l->block[1] * l->block[2];

	if (SIM_LIKELY(threads <= (unsigned int)l->f->threads))
		return 0;
	return SIM_LAUNCH_OUT_OF_RESOURCES;
}

static int check_cluster(const struct launch *l)
{
	unsigned int max = (unsigned int)sim_device_current()->model->cluster_max;
	const unsigned int *c = l->cluster, *g = l->grid;
	unsigned int blocks;

	if ((!c || (!c[0] && !c[1] && !c[2])) && l->f->cluster_fixed[0])
		c = l->f->cluster_fixed;

	if (!c || (!c[0] && !c[1] && !c[2]))
		return l->f->cluster_must ? SIM_INVALID_CLUSTER_SIZE : 0;
	blocks = c[0] * c[1] * c[2];
	if (!blocks)
		sim_log("Cluster dimensions must all be zero or must all be > 0: (%u,%u,%u)", c[0],
			c[1], c[2]);
	else if (g[0] % c[0] || g[1] % c[1] || g[2] % c[2])
		sim_log("Cluster dimensions of (%u,%u,%u) blocks does not evenly divide Grid "
			"dimensions of (%u,%u,%u)", c[0], c[1], c[2], g[0], g[1], g[2]);
	else if (blocks > SIM_CLUSTER_PORTABLE && !atomic_load(&l->f->cluster_any))
		sim_log("Requested cluster size of %u blocks exceeds portable size %d and "
			"non-portable sizes are not enabled on the function",
			blocks, SIM_CLUSTER_PORTABLE);
	else if (blocks <= max)
		return 0;
	return SIM_INVALID_CLUSTER_SIZE;
}

static int check_cooperative(const struct launch *l)
{
	unsigned int threads = l->block[0] * l->block[1] * l->block[2];
	uint64_t blocks = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2];
	int fit = sim_func_occupancy(l->f, threads, l->shared) * sim_device_current()->model->sms;

	if (blocks <= (uint64_t)fit)
		return 0;
	sim_log("Requested cooperative grid dimensions (%u,%u,%u) exceed occupancy limit for this "
		"kernel on this device of %d blocks", l->grid[0], l->grid[1], l->grid[2], fit);
	return SIM_COOPERATIVE_TOO_LARGE;
}

static int check_launch(const struct launch *l)
{
	int code = check_block(l);

	if (!code)
		code = check_grid(l);
	if (!code)
		code = check_shared(l);
	if (!code)
		code = check_threads(l);
	if (!code && SIM_UNLIKELY(l->cluster || l->f->cluster_must || l->f->cluster_fixed[0]))
		code = check_cluster(l);
	if (!code && SIM_UNLIKELY(l->cooperative))
		code = check_cooperative(l);
	return code;
}

/* `extra` is (1, buffer), (2, pointer to its size), 0. Measured: a buffer that is too short is
 * accepted, one that is too long is 701. */
static int params_from_extra(struct sim_op *op, void **extra, const struct sim_func *f)
{
	const void *buffer = NULL;
	size_t size = 0;

	for (; (uintptr_t)extra[0]; extra += 2) {
		if ((uintptr_t)extra[0] == 1)
			buffer = extra[1];
		else if ((uintptr_t)extra[0] == 2)
			size = *(size_t *)extra[1];
		else
			return SIM_INVALID_VALUE;
	}
	if (f->any_params)
		return 0;
	if (size > f->param_bytes)
		return SIM_LAUNCH_OUT_OF_RESOURCES;
	if (f->real)
		return 0;		/* it does nothing: nobody reads them */
	memset(op->params, 0, f->param_bytes);
	if (buffer)
		memcpy(op->params, buffer, size);
	return 0;
}

static int params_copy(struct sim_op *op, const struct sim_func *f, void **params, void **extra)
{
	if (SIM_UNLIKELY(params && extra)) {
		sim_log("Specified kernel arguments in both kernelParams and extra");
		return SIM_INVALID_VALUE;
	}
	op->param_bytes = f->real ? 0 : f->param_bytes;
	if (extra)
		return params_from_extra(op, extra, f);
	if (SIM_UNLIKELY(!params && f->param_count)) {
		sim_log("CUDA kernel %s has %u parameters but none provided at launch", f->name,
			f->param_count);
		return SIM_INVALID_VALUE;
	}
	for (unsigned int i = 0; !f->real && i < f->param_count; i++)
		memcpy(op->params + f->params[i].offset, params[i], f->params[i].size);
	return 0;
}

/* Written without a locked instruction, for speed: threads that launch at the same time may get
 * the same number, and readers of dumps must not rely on exact numbers anyway. */
uint64_t sim_grid_number(struct sim_ctx *ctx)
{
	uint64_t number = atomic_load_explicit(&ctx->grids, memory_order_relaxed) + 1;

	atomic_store_explicit(&ctx->grids, number, memory_order_relaxed);
	return number;
}

static bool is_loaded(const struct sim_func *f, int device)
{
	return atomic_load_explicit(&f->loaded[device], memory_order_relaxed) == sim.devices[device].epoch;
}

/* What real code does: nothing, unless it is one of the kernels that are computed: a fill is other work, and others have work behind
 * them (in a graph there is no place for it). */
static bool real_op(const struct launch *l, struct sim_op *op, struct sim_op *behind)
{
	enum sim_known kind = sim_known_kind(l->f);

	if (kind == SIM_KNOWN_FILL || kind == SIM_KNOWN_RAMP) {
		if (sim_known_op(l->f, kind, l->params, op))
			return false;
	} else if (kind != SIM_KNOWN_NONE && !atomic_load(&l->stream->capture) &&
		   sim_numbers_op(l->f, kind, l->grid, l->params, behind)) {
		return true;
	}
	sim_contents_launched(l->f, l->params, l->extra);
	if (sim.config.pointers && atomic_load(&l->stream->capture))
		sim_pointers_keep(op, l->f, l->params);
	return false;
}

static int launch(struct launch *l, struct sim_func *handle, struct sim_stream *stream)
{
	struct sim_op op, behind;
	bool more = false;
	int code;

	l->f = sim_func_get(handle);
	l->stream = sim_stream_resolve(stream);
	if (SIM_UNLIKELY(!l->f || !l->stream))
		return SIM_INVALID_HANDLE;
	code = check_launch(l);
	if (!code && SIM_UNLIKELY(l->f->real && !is_loaded(l->f, l->stream->ctx->device)))
		code = sim_func_load(l->f, l->stream->ctx->device);
	if (SIM_UNLIKELY(code)) {
		sim_capture_spoil(l->stream);
		return code;
	}
	memset(&op, 0, offsetof(struct sim_op, params));
	op.kind = SIM_OP_KERNEL;
	op.u.kernel.row = l->f->row;
	op.u.kernel.func = l->f;
	op.u.kernel.id = sim_grid_number(l->stream->ctx);
	memcpy(op.u.kernel.grid, l->grid, sizeof(op.u.kernel.grid));
	memcpy(op.u.kernel.block, l->block, sizeof(op.u.kernel.block));
	op.u.kernel.shared = l->shared;
	code = params_copy(&op, l->f, l->params, l->extra);
	if (!code && l->f->real)
		more = real_op(l, &op, &behind);
	if (!code)
		code = sim_work_submit(l->stream, &op, NULL);
	return code || !more ? code : sim_work_submit(l->stream, &behind, NULL);
}

int sim_cuLaunchKernel(struct sim_func *function, unsigned int gx, unsigned int gy,
		       unsigned int gz, unsigned int bx, unsigned int by, unsigned int bz,
		       unsigned int shared, struct sim_stream *stream, void **params, void **extra)
{
	const unsigned int grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
	struct launch l = {.grid = grid, .block = block, .shared = shared, .params = params, .extra = extra};

	return launch(&l, function, stream);
}

int sim_cuLaunchCooperativeKernel(struct sim_func *function, unsigned int gx, unsigned int gy,
				  unsigned int gz, unsigned int bx, unsigned int by,
				  unsigned int bz, unsigned int shared, struct sim_stream *stream,
				  void **params)
{
	const unsigned int grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
	struct launch l = {.grid = grid, .block = block, .shared = shared, .params = params, .cooperative = true};

	return launch(&l, function, stream);
}

int sim_cuLaunchKernelEx(const struct sim_launch_config *config, struct sim_func *function,
			 void **params, void **extra)
{
	struct launch l = {.params = params, .extra = extra};

	if (!config)
		sim_log("launchConfig is NULL");
	if (!config || (config->attr_count && !config->attrs))
		return SIM_INVALID_VALUE;
	l.grid = config->grid;
	l.block = config->block;
	l.shared = config->shared;
	for (unsigned int i = 0; i < config->attr_count; i++) {
		if (config->attrs[i].id == 2)
			l.cooperative = config->attrs[i].value.cooperative != 0;
		else if (config->attrs[i].id == 4)
			l.cluster = config->attrs[i].value.cluster;
	}
	return launch(&l, function, config->stream);
}

int sim_cuLaunchHostFunc(struct sim_stream *stream, sim_host_fn function, void *data)
{
	struct sim_stream *s = sim_stream_resolve(stream);
	struct sim_op op = {.kind = SIM_OP_HOST, .u.host = {function, data}};

	if (!s)
		return SIM_INVALID_HANDLE;
	if (!function)
		return SIM_INVALID_VALUE;
	return sim_work_submit(s, &op, NULL);
}
