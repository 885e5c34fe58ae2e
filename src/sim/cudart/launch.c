/* SPDX-License-Identifier: Apache-2.0
 * Launches, and host functions in streams.
 */
#include "sim/cudart/cudart.h"

#include <stdlib.h>

struct call {
	struct rt_dim3 grid, block;
	size_t shared;
	struct sim_stream *stream;
};

enum { CALLS_MAX = 16 };

static __thread struct call calls[CALLS_MAX];
static __thread int n_calls;

STANDIN(unsigned int, __cudaPushCallConfiguration,
	(struct rt_dim3 grid, struct rt_dim3 block, size_t shared, void *stream))
{
	if (n_calls == CALLS_MAX)
		return 1;
	calls[n_calls++] = (struct call){grid, block, shared, stream};
	return 0;
}

RUNTIME(__cudaPopCallConfiguration, (struct rt_dim3 * grid, struct rt_dim3 *block, size_t *shared, void *stream))
{
	const struct call *c;

	if (!n_calls)
		return rt_done(RT_MISSING_CONFIGURATION);
	c = &calls[--n_calls];
	*grid = c->grid;
	*block = c->block;
	*shared = c->shared;
	*(struct sim_stream **)stream = c->stream;
	return 0;
}

/* The runtime calls a wrong grid, block or shared size a configuration. */
static int launch_code(int code)
{
	return code == SIM_INVALID_VALUE ? RT_INVALID_CONFIGURATION : code;
}

static int launch(struct sim_func *k, struct rt_dim3 g, struct rt_dim3 b, void **args, size_t shared,
		  struct sim_stream *stream)
{
	if (shared > UINT32_MAX)
		return RT_INVALID_CONFIGURATION;
	return launch_code(cuLaunchKernel(k, g.x, g.y, g.z, b.x, b.y, b.z, (unsigned int)shared, stream, args, NULL));
}

RUNTIME(__cudaLaunchKernel, (struct sim_func * kernel, struct rt_dim3 grid, struct rt_dim3 block, void **args,
			     size_t shared, struct sim_stream *stream))
{
	RT_WITH_CONTEXT(launch(kernel, grid, block, args, shared, stream));
}

RUNTIME(cudaLaunchKernel, (const void *function, struct rt_dim3 grid, struct rt_dim3 block, void **args, size_t shared,
			   struct sim_stream *stream))
{
	struct sim_func *k;
	int code = rt_context();

	if (code == 0)
		code = rt_kernel(function, &k);
	return rt_done(code ? code : launch(k, grid, block, args, shared, stream));
}

RUNTIME(cudaLaunchCooperativeKernel, (const void *function, struct rt_dim3 g, struct rt_dim3 b, void **args,
				      size_t shared, struct sim_stream *stream))
{
	struct sim_func *k;
	int code = rt_context();

	if (code == 0)
		code = rt_kernel(function, &k);
	if (code == 0)
		code = launch_code(
			cuLaunchCooperativeKernel(k, g.x, g.y, g.z, b.x, b.y, b.z, (unsigned int)shared, stream, args));
	return rt_done(code);
}

/* cudaLaunchConfig_t; its attributes are the driver's. */
struct launch_config {
	struct rt_dim3 grid, block;
	size_t shared;
	struct sim_stream *stream;
	struct sim_launch_attr *attrs;
	unsigned int attr_count;
};

RUNTIME(cudaLaunchKernelExC, (const struct launch_config *c, const void *function, void **args))
{
	struct sim_launch_config config;
	struct sim_func *k;
	int code = rt_context();

	if (code == 0)
		code = c ? rt_kernel(function, &k) : SIM_INVALID_VALUE;
	if (code)
		return rt_done(code);
	config = (struct sim_launch_config){
		.grid = {c->grid.x, c->grid.y, c->grid.z},
		.block = {c->block.x, c->block.y, c->block.z},
		.shared = (unsigned int)c->shared,
		.stream = c->stream,
		.attrs = c->attrs,
		.attr_count = c->attr_count,
	};
	return rt_done(launch_code(cuLaunchKernelEx(&config, k, args, NULL)));
}

RUNTIME(cudaLaunchHostFunc, (struct sim_stream * stream, sim_host_fn function, void *data))
{
	RT_WITH_CONTEXT(cuLaunchHostFunc(stream, function, data));
}

struct callback {
	void (*function)(struct sim_stream *stream, int code, void *data);
	struct sim_stream *stream;
	void *data;
};

static void run_callback(void *data)
{
	struct callback *c = data;

	c->function(c->stream, 0, c->data);
	free(c);
}

RUNTIME(cudaStreamAddCallback,
	(struct sim_stream * stream, void (*function)(struct sim_stream *, int, void *), void *data, unsigned int flags))
{
	struct callback *c;
	int code = rt_context();

	if (code || flags || !function)
		return rt_done(code ? code : SIM_INVALID_VALUE);
	c = malloc(sizeof(*c));
	if (!c)
		return rt_done(SIM_OUT_OF_MEMORY);
	*c = (struct callback){function, stream, data};
	code = cuLaunchHostFunc(stream, run_callback, c);
	if (code)
		free(c);
	return rt_done(code);
}
