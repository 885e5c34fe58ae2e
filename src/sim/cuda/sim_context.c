/* SPDX-License-Identifier: Apache-2.0
 * Contexts: primary ones, those that programs create, and each thread's stack of current
 * contexts. */
#include "sim/cuda/sim.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_mutex_t context_lock = PTHREAD_MUTEX_INITIALIZER;

struct sim_ctx *sim_ctx_current(void)
{
	return sim_tls.depth ? sim_tls.stack[sim_tls.depth - 1] : NULL;
}

struct sim_device *sim_device_current(void)
{
	return &sim.devices[sim_ctx_current()->device];
}

/* As on a real GPU, only the first error counts. */
void sim_ctx_fail(struct sim_ctx *ctx, int code)
{
	int none = 0;

	if (!atomic_compare_exchange_strong(&ctx->sticky, &none, code))
		return;
	/* Measured: a new context on that GPU fails with the same code until the process ends. */
	atomic_store(&sim.devices[ctx->device].broken, code);
}

static void default_limits(struct sim_ctx *ctx)
{
	memset(ctx->limits, 0, sizeof(ctx->limits));
	ctx->limits[0] = 1024;			/* stack per thread */
	ctx->limits[1] = 8650752;		/* printf buffer */
	ctx->limits[2] = 8 << 20;		/* device malloc heap */
	ctx->limits[4] = 2048;			/* pending device-side launches */
	ctx->limits[5] = 64;			/* fetch granularity of the L2 cache */
}

/* Real code stays loaded until the device's last context ends. */
static void contexts_count(struct sim_device *dev, int more)
{
	pthread_mutex_lock(&sim_mem_lock);
	dev->contexts += more;
	if (!dev->contexts || !dev->epoch)
		sim_code_unload(dev);
	pthread_mutex_unlock(&sim_mem_lock);
}

static int context_new(struct sim_ctx **out, unsigned int flags, int device)
{
	struct sim_ctx *ctx;
	int broken = atomic_load(&sim.devices[device].broken);

	if (broken)
		return broken;
	if (sim_mem_charge(&sim.devices[device], sim.devices[device].overhead))
		return SIM_OUT_OF_MEMORY;
	ctx = sim_pool_new(&sim.contexts);
	if (!ctx) {
		sim_mem_uncharge(&sim.devices[device], sim.devices[device].overhead);
		return SIM_OUT_OF_MEMORY;
	}
	contexts_count(&sim.devices[device], 1);
	ctx->device = device;
	ctx->flags = flags;
	ctx->primary = false;
	atomic_store(&ctx->cache_config, 0);
	atomic_store(&ctx->sticky, 0);
	atomic_store(&ctx->stopped, false);
	atomic_store(&ctx->blocking, 0);
	atomic_store(&ctx->grids, 1);		/* the driver's own first */
	atomic_store(&ctx->peers, 0);
	ctx->settings = NULL;
	ctx->streams = NULL;
	ctx->n_left = 0;
	pthread_mutex_init(&ctx->lock, NULL);
	default_limits(ctx);
	ctx->legacy = NULL;		/* tells sim_stream_new that it is creating this one */
	ctx->legacy = sim_stream_new(ctx, 0, 0);
	atomic_store(&ctx->head.alive, 1);
	*out = ctx;
	return ctx->legacy ? 0 : SIM_OUT_OF_MEMORY;
}

static void context_end(struct sim_ctx *ctx)
{
	sim_ctx_drain(ctx);
	while (ctx->streams) {
		sim_capture_abandon(ctx->streams);
		sim_stream_drop(ctx->streams);
	}
	sim_pool_drop(&sim.streams, ctx->legacy);
	sim_mem_free_all(ctx);
	free(ctx->settings);
	ctx->settings = NULL;
	sim_mem_uncharge(&sim.devices[ctx->device], sim.devices[ctx->device].overhead);
	contexts_count(&sim.devices[ctx->device], -1);
	sim_pool_drop(&sim.contexts, ctx);
}

static bool device_ok(int device)
{
	return sim_device_named(device, "dev") != NULL;
}

static int context_push(struct sim_ctx *ctx)
{
	if (sim_tls.depth == SIM_CONTEXT_DEPTH)
		return SIM_INVALID_VALUE;
	sim_tls.stack[sim_tls.depth++] = ctx;
	return 0;
}

int sim_cuDevicePrimaryCtxRetain(struct sim_ctx **context, int device)
{
	struct sim_device *d;
	int code = 0;

	if (!device_ok(device))
		return SIM_INVALID_DEVICE;
	if (!context)
		return SIM_INVALID_VALUE;
	d = &sim.devices[device];
	pthread_mutex_lock(&context_lock);
	if (!d->primary) {
		code = context_new(&d->primary, d->primary_flags, device);
		if (!code)
			d->primary->primary = true;
		else
			d->primary = NULL;
	}
	if (!code) {
		d->primary_count++;
		*context = d->primary;
	}
	pthread_mutex_unlock(&context_lock);
	return code;
}

static int primary_release(int device, bool all)
{
	struct sim_ctx *ended = NULL;
	struct sim_device *d;
	int code = 0;

	if (!device_ok(device))
		return SIM_INVALID_DEVICE;
	d = &sim.devices[device];
	pthread_mutex_lock(&context_lock);
	if (!d->primary_count && !all)
		code = SIM_INVALID_CONTEXT;
	else if (d->primary_count && (all || --d->primary_count == 0)) {
		ended = d->primary;
		d->primary = NULL;
		d->primary_count = 0;
	}
	pthread_mutex_unlock(&context_lock);
	if (ended)
		context_end(ended);
	return code;
}

int sim_cuDevicePrimaryCtxRelease_v2(int device)
{
	while (atomic_load(&sim.stuck))
		pause();
	return primary_release(device, false);
}

int sim_cuDevicePrimaryCtxRelease(int device)
{
	return sim_cuDevicePrimaryCtxRelease_v2(device);
}

int sim_cuDevicePrimaryCtxReset_v2(int device)
{
	return primary_release(device, true);
}

int sim_cuDevicePrimaryCtxReset(int device)
{
	return primary_release(device, true);
}

int sim_cuDevicePrimaryCtxGetState(int device, unsigned int *flags, int *active)
{
	if (!device_ok(device))
		return SIM_INVALID_DEVICE;
	if (!flags || !active)
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&context_lock);
	*flags = sim.devices[device].primary_flags;
	*active = sim.devices[device].primary != NULL;
	pthread_mutex_unlock(&context_lock);
	return 0;
}

int sim_cuDevicePrimaryCtxSetFlags_v2(int device, unsigned int flags)
{
	if (!device_ok(device))
		return SIM_INVALID_DEVICE;
	pthread_mutex_lock(&context_lock);
	sim.devices[device].primary_flags = flags;
	pthread_mutex_unlock(&context_lock);
	return 0;
}

int sim_cuDevicePrimaryCtxSetFlags(int device, unsigned int flags)
{
	return sim_cuDevicePrimaryCtxSetFlags_v2(device, flags);
}

int sim_cuCtxCreate_v2(struct sim_ctx **context, unsigned int flags, int device)
{
	int code;

	if (!device_ok(device))
		return SIM_INVALID_DEVICE;
	if (!context)
		return SIM_INVALID_VALUE;
	code = context_new(context, flags, device);
	return code ? code : context_push(*context);
}

int sim_cuCtxCreate_v3(struct sim_ctx **context, void *affinity, int count, unsigned int flags,
		       int device)
{
	if (affinity || count)
		return SIM_NOT_SUPPORTED;
	return sim_cuCtxCreate_v2(context, flags, device);
}

int sim_cuCtxCreate_v4(struct sim_ctx **context, void *params, unsigned int flags, int device)
{
	if (params)
		return SIM_NOT_SUPPORTED;
	return sim_cuCtxCreate_v2(context, flags, device);
}

int sim_cuCtxDestroy_v2(struct sim_ctx *context)
{
	struct sim_ctx *ctx = sim_pool_get(&sim.contexts, context);

	if (!ctx || ctx->primary)
		return SIM_INVALID_CONTEXT;
	if (sim_ctx_current() == ctx)
		sim_tls.depth--;
	context_end(ctx);
	return 0;
}

int sim_cuCtxSetCurrent(struct sim_ctx *context)
{
	if (context && !sim_pool_get(&sim.contexts, context))
		return SIM_INVALID_CONTEXT;
	if (sim_tls.depth)
		sim_tls.depth--;
	return context ? context_push(context) : 0;
}

int sim_cuCtxGetCurrent(struct sim_ctx **context)
{
	if (!context)
		return SIM_INVALID_VALUE;
	*context = sim_ctx_current();
	return 0;
}

int sim_cuCtxPushCurrent_v2(struct sim_ctx *context)
{
	if (!sim_pool_get(&sim.contexts, context))
		return SIM_INVALID_CONTEXT;
	return context_push(context);
}

int sim_cuCtxPopCurrent_v2(struct sim_ctx **context)
{
	if (!sim_tls.depth) {
		sim_log("No CUDA context is current to the calling thread");
		return SIM_INVALID_CONTEXT;
	}
	sim_tls.depth--;
	if (context)
		*context = sim_tls.stack[sim_tls.depth];
	return 0;
}
