/* SPDX-License-Identifier: Apache-2.0
 * Queries about a context: its device, flags, version, limits, peers; and waiting for its work.
 */
#include "sim/cuda/sim.h"

enum { LIMITS = 10 };			/* limits the driver knows, supported or not */

static int limit_check(const struct sim_ctx *ctx, int limit)
{
	if (limit < 0 || limit >= LIMITS)
		return SIM_INVALID_VALUE;
	return ctx->limits[limit] ? 0 : SIM_UNSUPPORTED_LIMIT;
}

int sim_cuCtxGetDevice(int *device)
{
	if (!device)
		return SIM_INVALID_VALUE;
	*device = sim_ctx_current()->device;
	return 0;
}

/* In the context variants of CUDA 13, NULL is the current context. */
static int context_named(struct sim_ctx *handle, struct sim_ctx **ctx)
{
	*ctx = handle ? sim_pool_get(&sim.contexts, handle) : sim_ctx_current();
	return *ctx ? 0 : SIM_INVALID_CONTEXT;
}

int sim_cuCtxGetDevice_v2(int *device, struct sim_ctx *context)
{
	struct sim_ctx *ctx;
	int code = context_named(context, &ctx);

	if (!code && !device)
		code = SIM_INVALID_VALUE;
	if (!code)
		*device = ctx->device;
	return code;
}

int sim_cuCtxGetFlags(unsigned int *flags)
{
	if (!flags)
		return SIM_INVALID_VALUE;
	*flags = sim_ctx_current()->flags;
	return 0;
}

int sim_cuCtxGetApiVersion(struct sim_ctx *context, unsigned int *version)
{
	struct sim_ctx *ctx;

	if (context_named(context, &ctx))
		return SIM_INVALID_CONTEXT;
	if (!version)
		return SIM_INVALID_VALUE;
	*version = 3020;
	return 0;
}

int sim_cuCtxGetId(struct sim_ctx *context, unsigned long long *id)
{
	struct sim_ctx *ctx;

	if (context_named(context, &ctx))
		return SIM_INVALID_CONTEXT;
	if (!id)
		return SIM_INVALID_VALUE;
	*id = (unsigned long long)(((char *)ctx - atomic_load(&sim.contexts.base)) / (ptrdiff_t)sim.contexts.stride) + 1;
	return 0;
}

int sim_cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
	if (least)
		*least = 0;
	if (greatest)
		*greatest = -5;
	return 0;
}

int sim_cuCtxSetLimit(int limit, size_t value)
{
	struct sim_ctx *ctx = sim_ctx_current();

	if (limit_check(ctx, limit))
		return limit_check(ctx, limit);
	pthread_mutex_lock(&ctx->lock);
	ctx->limits[limit] = value ? value : 1;
	pthread_mutex_unlock(&ctx->lock);
	return 0;
}

int sim_cuCtxGetLimit(size_t *value, int limit)
{
	struct sim_ctx *ctx = sim_ctx_current();

	if (!value)
		return SIM_INVALID_VALUE;
	if (limit_check(ctx, limit))
		return limit_check(ctx, limit);
	pthread_mutex_lock(&ctx->lock);
	*value = ctx->limits[limit];
	pthread_mutex_unlock(&ctx->lock);
	return 0;
}

static int context_synchronize(struct sim_ctx *ctx)
{
	int code = sim_capture_check_context(ctx);

	if (code)
		return code;
	sim_ctx_drain(ctx);
	sim_mempools_trim(&sim.devices[ctx->device]);
	return atomic_load(&ctx->sticky);
}

int sim_cuCtxSynchronize(void)
{
	return context_synchronize(sim_ctx_current());
}

int sim_cuCtxSynchronize_v2(struct sim_ctx *context)
{
	struct sim_ctx *ctx;
	int code = context_named(context, &ctx);

	return code ? code : context_synchronize(ctx);
}

int sim_cuCtxEnablePeerAccess(struct sim_ctx *peer, unsigned int flags)
{
	if (flags)
		return SIM_INVALID_VALUE;
	if (!sim_pool_get(&sim.contexts, peer) || peer == sim_ctx_current())
		return SIM_INVALID_CONTEXT;
	atomic_fetch_or(&sim_ctx_current()->peers, 1u << peer->device);
	return 0;
}

int sim_cuCtxDisablePeerAccess(struct sim_ctx *peer)
{
	if (!sim_pool_get(&sim.contexts, peer))
		return SIM_INVALID_CONTEXT;
	atomic_fetch_and(&sim_ctx_current()->peers, ~(1u << peer->device));
	return 0;
}

int sim_cuCtxSetCacheConfig(int config)
{
	if (config < 0 || config > 3)
		return SIM_INVALID_VALUE;
	atomic_store(&sim_ctx_current()->cache_config, config);
	return 0;
}

int sim_cuCtxGetCacheConfig(int *config)
{
	if (!config)
		return SIM_INVALID_VALUE;
	*config = atomic_load(&sim_ctx_current()->cache_config);
	return 0;
}

int sim_cuCtxSetSharedMemConfig(int config)
{
	return config < 0 || config > 2 ? SIM_INVALID_VALUE : 0;
}

/* Banks of four bytes, on every GPU since compute capability 5.0. */
int sim_cuCtxGetSharedMemConfig(int *config)
{
	if (!config)
		return SIM_INVALID_VALUE;
	*config = 1;
	return 0;
}

int sim_cuCtxSetFlags(unsigned int flags)
{
	sim_ctx_current()->flags = flags;
	return 0;
}

int sim_cuCtxResetPersistingL2Cache(void)
{
	return 0;
}

int sim_cuProfilerStart(void)
{
	return 0;
}

int sim_cuProfilerStop(void)
{
	return 0;
}
