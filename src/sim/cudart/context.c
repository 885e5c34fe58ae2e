/* SPDX-License-Identifier: Apache-2.0
 * Devices, contexts and errors of the calling thread.
 */
#include "sim/cudart/cudart.h"

#include <pthread.h>

#define VERSION	(SONAME_MAJOR * 1000)	/* of this runtime: a driver of the same major version is enough */
enum { DEVICES_MAX = 64 };

static __thread int last_error;
static __thread int thread_device;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sim_ctx *primary[DEVICES_MAX];

int rt_done(int code)
{
	/* work that is still going on is not an error */
	if (code && code != SIM_NOT_READY)
		last_error = code;
	return code;
}

static int check_driver(void)
{
	int version = 0, code = cuDriverGetVersion(&version);

	return code ? code : version < VERSION ? RT_INSUFFICIENT_DRIVER : 0;
}

int rt_init(void)
{
	static _Atomic bool ready;
	int code = 0;

	if (atomic_load_explicit(&ready, memory_order_acquire))
		return 0;
	code = check_driver();
	if (code == 0)
		code = cuInit(0);
	if (code == 0)
		atomic_store(&ready, true);
	return code;
}

static int retain_primary(int device)
{
	int code = 0;

	if (device >= DEVICES_MAX)
		return SIM_INVALID_DEVICE;
	pthread_mutex_lock(&lock);
	if (!primary[device])
		code = cuDevicePrimaryCtxRetain(&primary[device], device);
	pthread_mutex_unlock(&lock);
	return code;
}

static int enter_primary(int device)
{
	int code = retain_primary(device);

	return code ? code : cuCtxSetCurrent(primary[device]);
}

int rt_context(void)
{
	struct sim_ctx *current = NULL;
	int code = rt_init();

	/* one that the program made itself is used as it is */
	if (code == 0)
		code = cuCtxGetCurrent(&current);
	return code || current ? code : enter_primary(thread_device);
}

int rt_device(void)
{
	struct sim_ctx *current = NULL;
	int device = thread_device;

	if (rt_init() == 0 && cuCtxGetCurrent(&current) == 0 && current)
		cuCtxGetDevice(&device);
	return device;
}

RUNTIME(cudaGetLastError, (void))
{
	int code = last_error;

	last_error = 0;
	return code;
}

RUNTIME(cudaPeekAtLastError, (void))
{
	return last_error;
}

RUNTIME(cudaDriverGetVersion, (int *version))
{
	if (!version)
		return rt_done(SIM_INVALID_VALUE);
	return rt_done(cuDriverGetVersion(version));
}

RUNTIME(cudaRuntimeGetVersion, (int *version))
{
	if (!version)
		return rt_done(SIM_INVALID_VALUE);
	*version = VERSION;
	return 0;
}

RUNTIME(cudaGetDeviceCount, (int *count))
{
	int code;

	if (!count)
		return rt_done(SIM_INVALID_VALUE);
	*count = 0;
	code = rt_init();
	return rt_done(code ? code : cuDeviceGetCount(count));
}

RUNTIME(cudaGetDevice, (int *device))
{
	int code = rt_init();

	if (code || !device)
		return rt_done(code ? code : SIM_INVALID_VALUE);
	*device = rt_device();
	return 0;
}

static int check_device(int device)
{
	int count = 0, code = rt_init();

	if (code == 0)
		code = cuDeviceGetCount(&count);
	return code ? code : device < 0 || device >= count ? SIM_INVALID_DEVICE : 0;
}

/* Since CUDA 12 this makes the context, too. */
RUNTIME(cudaSetDevice, (int device))
{
	int code = check_device(device);

	if (code == 0)
		code = enter_primary(device);
	if (code == 0)
		thread_device = device;
	return rt_done(code);
}

RUNTIME(cudaDeviceReset, (void))
{
	int device = rt_device(), code = rt_init();

	if (code == 0)
		code = cuDevicePrimaryCtxReset_v2(device);
	pthread_mutex_lock(&lock);
	primary[device] = NULL;
	pthread_mutex_unlock(&lock);
	cuCtxSetCurrent(NULL);
	return rt_done(code);
}

RUNTIME(cudaDeviceSynchronize, (void))
{
	RT_WITH_CONTEXT(cuCtxSynchronize());
}

RUNTIME(cudaDeviceCanAccessPeer, (int *can, int device, int peer))
{
	RT_WITH_DRIVER(cuDeviceCanAccessPeer(can, device, peer));
}

RUNTIME(cudaDeviceGetP2PAttribute, (int *value, int attribute, int from, int to))
{
	RT_WITH_DRIVER(cuDeviceGetP2PAttribute(value, attribute, from, to));
}

RUNTIME(cudaDeviceEnablePeerAccess, (int peer, unsigned int flags))
{
	int code = rt_context();

	if (code == 0)
		code = check_device(peer);
	if (code == 0)
		code = retain_primary(peer);
	return rt_done(code ? code : cuCtxEnablePeerAccess(primary[peer], flags));
}

RUNTIME(cudaDeviceDisablePeerAccess, (int peer))
{
	int code = rt_context();

	if (code == 0)
		code = check_device(peer);
	if (code == 0)
		code = retain_primary(peer);
	return rt_done(code ? code : cuCtxDisablePeerAccess(primary[peer]));
}

RUNTIME(cudaDeviceGetPCIBusId, (char *text, int bytes, int device))
{
	RT_WITH_DRIVER(cuDeviceGetPCIBusId(text, bytes, device));
}

RUNTIME(cudaDeviceGetByPCIBusId, (int *device, const char *text))
{
	RT_WITH_DRIVER(cuDeviceGetByPCIBusId(device, text));
}

RUNTIME(cudaDeviceGetStreamPriorityRange, (int *least, int *greatest))
{
	RT_WITH_CONTEXT(cuCtxGetStreamPriorityRange(least, greatest));
}

RUNTIME(cudaDeviceSetLimit, (int limit, size_t value))
{
	RT_WITH_CONTEXT(cuCtxSetLimit(limit, value));
}

RUNTIME(cudaDeviceGetLimit, (size_t * value, int limit))
{
	RT_WITH_CONTEXT(cuCtxGetLimit(value, limit));
}

RUNTIME(cudaDeviceGetDefaultMemPool, (void **pool, int device))
{
	RT_WITH_DRIVER(cuDeviceGetDefaultMemPool(pool, device));
}

RUNTIME(cudaDeviceGetMemPool, (void **pool, int device))
{
	RT_WITH_DRIVER(cuDeviceGetMemPool(pool, device));
}

RUNTIME(cudaProfilerStart, (void))
{
	return 0;
}

RUNTIME(cudaProfilerStop, (void))
{
	return 0;
}
