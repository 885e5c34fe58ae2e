/* SPDX-License-Identifier: Apache-2.0
 * Memory pools, events between processes, and the rarer functions of graphs.
 */
#include "sim/cudart/cudart.h"

RUNTIME(cudaMemPoolGetAttribute, (void *pool, int attribute, void *value))
{
	RT_WITH_DRIVER(cuMemPoolGetAttribute(pool, attribute, value));
}

RUNTIME(cudaMemPoolSetAttribute, (void *pool, int attribute, void *value))
{
	RT_WITH_DRIVER(cuMemPoolSetAttribute(pool, attribute, value));
}

RUNTIME(cudaMemPoolSetAccess, (void *pool, const struct sim_access *access, size_t count))
{
	RT_WITH_DRIVER(cuMemPoolSetAccess(pool, access, count));
}

RUNTIME(cudaMemPoolCreate, (void **pool, const struct sim_pool_props *props))
{
	RT_WITH_DRIVER(cuMemPoolCreate(pool, props));
}

RUNTIME(cudaMemPoolDestroy, (void *pool))
{
	RT_WITH_DRIVER(cuMemPoolDestroy(pool));
}

RUNTIME(cudaDeviceSetMemPool, (int device, void *pool))
{
	RT_WITH_DRIVER(cuDeviceSetMemPool(device, pool));
}

RUNTIME(cudaMemPoolTrimTo, (void *pool, size_t keep))
{
	RT_WITH_DRIVER(cuMemPoolTrimTo(pool, keep));
}

RUNTIME(cudaDeviceGetGraphMemAttribute, (int device, int attribute, void *value))
{
	RT_WITH_DRIVER(cuDeviceGetGraphMemAttribute(device, attribute, value));
}

RUNTIME(cudaDeviceSetGraphMemAttribute, (int device, int attribute, void *value))
{
	RT_WITH_DRIVER(cuDeviceSetGraphMemAttribute(device, attribute, value));
}

RUNTIME(cudaIpcGetEventHandle, (void *handle, struct sim_event *event))
{
	RT_WITH_CONTEXT(cuIpcGetEventHandle(handle, event));
}

RUNTIME(cudaIpcOpenEventHandle, (struct sim_event * *event, struct sim_ipc handle))
{
	RT_WITH_CONTEXT(cuIpcOpenEventHandle(event, handle));
}

/* CUDA 13 gave the name of the older form to the one with edge data. */
#if SONAME_MAJOR < 13
RUNTIME(cudaGraphNodeGetDependencies, (void *node, void **dependencies, size_t *count))
{
	RT_WITH_DRIVER(cuGraphNodeGetDependencies(node, dependencies, count));
}

RUNTIME(cudaStreamUpdateCaptureDependencies,
	(struct sim_stream * stream, void **dependencies, size_t count, unsigned int flags))
{
	RT_WITH_CONTEXT(cuStreamUpdateCaptureDependencies(stream, dependencies, count, flags));
}
#else
RUNTIME(cudaGraphNodeGetDependencies, (void *node, void **dependencies, void *data, size_t *count))
{
	RT_WITH_DRIVER(cuGraphNodeGetDependencies_v2(node, dependencies, data, count));
}

RUNTIME(cudaStreamUpdateCaptureDependencies,
	(struct sim_stream * stream, void **dependencies, const void *data, size_t count, unsigned int flags))
{
	RT_WITH_CONTEXT(cuStreamUpdateCaptureDependencies_v2(stream, dependencies, data, count, flags));
}
#endif

RUNTIME(cudaGraphDebugDotPrint, (struct sim_graph * graph, const char *path, unsigned int flags))
{
	RT_WITH_DRIVER(cuGraphDebugDotPrint(graph, path, flags));
}

RUNTIME(cudaUserObjectCreate,
	(void **object, void *data, sim_host_fn destroy, unsigned int references, unsigned int flags))
{
	RT_WITH_DRIVER(cuUserObjectCreate(object, data, destroy, references, flags));
}

RUNTIME(cudaUserObjectRelease, (void *object, unsigned int count))
{
	RT_WITH_DRIVER(cuUserObjectRelease(object, count));
}

RUNTIME(cudaGraphRetainUserObject, (struct sim_graph * graph, void *object, unsigned int count, unsigned int flags))
{
	RT_WITH_DRIVER(cuGraphRetainUserObject(graph, object, count, flags));
}
