/* SPDX-License-Identifier: Apache-2.0
 * Kernels and variables of the program: what the compiler's start-up code registers, loaded when it is first used.
 */
#include "sim/cudart/cudart.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

struct image {
	const void *data;		/* what the driver takes */
	struct sim_library *library;
	int code;			/* why it cannot be loaded, or 0 */
};

/* A function or a variable of the host program that stands for one of the device. */
struct symbol {
	const void *host;
	const char *name;
	struct image *image;
	_Atomic(struct sim_func *) kernel;
	struct symbol *next;
};

enum { BUCKETS = 1 << 16 };	/* PyTorch registers about 50,000 kernels */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct symbol *table[BUCKETS];

static size_t bucket(const void *host)
{
	uintptr_t at = (uintptr_t)host >> 4;

	return (at ^ at >> 16) % BUCKETS;
}

static void add_symbol(void **handle, const void *host, const char *name)
{
	struct symbol *s = calloc(1, sizeof(*s));

	if (!s)
		return;
	s->host = host;
	s->name = name;
	s->image = (struct image *)handle;
	pthread_mutex_lock(&lock);
	s->next = table[bucket(host)];
	table[bucket(host)] = s;
	pthread_mutex_unlock(&lock);
}

/* Entries are never removed while the program runs, so a reader needs the lock only for the head of the list. */
static struct symbol *find_symbol(const void *host)
{
	struct symbol *s;

	pthread_mutex_lock(&lock);
	s = table[bucket(host)];
	pthread_mutex_unlock(&lock);
	while (s && s->host != host)
		s = s->next;
	return s;
}

static int load_image(struct image *image)
{
	pthread_mutex_lock(&lock);
	if (!image->library && !image->code)
		image->code = cuLibraryLoadData(&image->library, image->data, NULL, NULL, 0, NULL, NULL, 0);
	pthread_mutex_unlock(&lock);
	return image->code;
}

static int load_kernel(struct symbol *s, struct sim_func **kernel)
{
	int code = load_image(s->image);

	if (code == 0)
		code = cuLibraryGetKernel(kernel, s->image->library, s->name);
	if (code == 0)
		atomic_store(&s->kernel, *kernel);
	return code == SIM_NOT_FOUND ? RT_INVALID_DEVICE_FUNCTION : code;
}

int rt_kernel(const void *function, struct sim_func **kernel)
{
	struct symbol *s = find_symbol(function);
	const char *name;

	if (s) {
		*kernel = atomic_load(&s->kernel);
		return *kernel ? 0 : load_kernel(s, kernel);
	}
	*kernel = (struct sim_func *)(uintptr_t)function;
	return cuKernelGetName(&name, *kernel) == 0 ? 0 : RT_INVALID_DEVICE_FUNCTION;
}

int rt_variable(const void *host, sim_addr *address, size_t *bytes)
{
	struct symbol *s = find_symbol(host);
	int code = s ? load_image(s->image) : RT_INVALID_SYMBOL;

	return code ? code : cuLibraryGetGlobal(address, bytes, s->image->library, s->name);
}

STANDIN(void **, __cudaRegisterFatBinary, (void *wrapper))
{
	struct image *image = calloc(1, sizeof(*image));

	if (image)
		image->data = wrapper;
	return (void **)image;
}

STANDIN(void, __cudaRegisterFatBinaryEnd, (void **handle))
{
	(void)handle;
}

/* At the end of the process, or when a library is unloaded: its symbols are forgotten. */
STANDIN(void, __cudaUnregisterFatBinary, (void **handle))
{
	struct image *image = (struct image *)handle;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < BUCKETS; i++)
		for (struct symbol *s = table[i]; s; s = s->next)
			if (s->image == image)
				s->host = NULL;
	pthread_mutex_unlock(&lock);
}

STANDIN(char, __cudaInitModule, (void **handle))
{
	(void)handle;
	return 1;
}

STANDIN(void, __cudaRegisterFunction,
	(void **handle, const char *host, char *device_fun, const char *name, int thread_limit, void *tid, void *bid,
	 void *block, void *grid, int *warp))
{
	(void)device_fun, (void)thread_limit, (void)tid, (void)bid, (void)block, (void)grid, (void)warp;
	add_symbol(handle, host, name);
}

STANDIN(void, __cudaRegisterVar,
	(void **handle, char *host, char *device_address, const char *name, int external, size_t bytes, int constant,
	 int global))
{
	(void)device_address, (void)external, (void)bytes, (void)constant, (void)global;
	add_symbol(handle, host, name);
}

STANDIN(void, __cudaRegisterManagedVar,
	(void **handle, void **host, char *device_address, const char *name, int external, size_t bytes, int constant,
	 int global))
{
	(void)device_address, (void)external, (void)bytes, (void)constant, (void)global;
	add_symbol(handle, (const void *)host, name);
}

RUNTIME(__cudaGetKernel, (struct sim_func * *kernel, const void *function))
{
	int code = rt_context();

	return rt_done(code ? code : rt_kernel(function, kernel));
}

RUNTIME(cudaGetSymbolAddress, (void **address, const void *symbol))
{
	size_t bytes;
	sim_addr at = 0;
	int code = rt_context();

	if (code == 0)
		code = rt_variable(symbol, &at, &bytes);
	if (code == 0)
		*address = (void *)(uintptr_t)at;
	return rt_done(code);
}

RUNTIME(cudaGetSymbolSize, (size_t * bytes, const void *symbol))
{
	sim_addr at;
	int code = rt_context();

	return rt_done(code ? code : rt_variable(symbol, &at, bytes));
}

static int copy_symbol(const void *symbol, size_t offset, size_t count, sim_addr *address)
{
	size_t bytes = 0;
	int code = rt_context();

	if (code == 0)
		code = rt_variable(symbol, address, &bytes);
	if (code == 0 && (offset > bytes || count > bytes - offset))
		code = SIM_INVALID_VALUE;
	*address += offset;
	return code;
}

RUNTIME(cudaMemcpyToSymbol, (const void *symbol, const void *from, size_t count, size_t offset, int kind))
{
	sim_addr at = 0;
	int code = copy_symbol(symbol, offset, count, &at);

	(void)kind;
	return rt_done(code ? code : cuMemcpy(at, (uintptr_t)from, count));
}

RUNTIME(cudaMemcpyFromSymbol, (void *to, const void *symbol, size_t count, size_t offset, int kind))
{
	sim_addr at = 0;
	int code = copy_symbol(symbol, offset, count, &at);

	(void)kind;
	return rt_done(code ? code : cuMemcpy((uintptr_t)to, at, count));
}

RUNTIME(cudaMemcpyToSymbolAsync,
	(const void *symbol, const void *from, size_t count, size_t offset, int kind, struct sim_stream *stream))
{
	sim_addr at = 0;
	int code = copy_symbol(symbol, offset, count, &at);

	(void)kind;
	return rt_done(code ? code : cuMemcpyAsync(at, (uintptr_t)from, count, stream));
}

RUNTIME(cudaMemcpyFromSymbolAsync,
	(void *to, const void *symbol, size_t count, size_t offset, int kind, struct sim_stream *stream))
{
	sim_addr at = 0;
	int code = copy_symbol(symbol, offset, count, &at);

	(void)kind;
	return rt_done(code ? code : cuMemcpyAsync((uintptr_t)to, at, count, stream));
}

RUNTIME(cudaGetFuncBySymbol, (struct sim_func * *function, const void *symbol))
{
	struct sim_func *kernel;
	int code = rt_context();

	if (code == 0)
		code = rt_kernel(symbol, &kernel);
	return rt_done(code ? code : cuKernelGetFunction(function, kernel));
}

RUNTIME(cudaFuncGetName, (const char **name, const void *function))
{
	struct sim_func *kernel;
	int code = rt_context();

	if (code == 0)
		code = rt_kernel(function, &kernel);
	return rt_done(code ? code : cuKernelGetName(name, kernel));
}

/* cudaFuncAttributes */
struct func_attributes {
	size_t shared, constant, local;
	int max_threads, registers, ptx_version, binary_version, cache_mode_ca, max_dynamic_shared, carveout;
	int cluster_must_be_set, cluster_width, cluster_height, cluster_depth, cluster_policy, cluster_non_portable;
	int reserved[16];
};

/* Numbers of the driver's function attributes. */
enum { MAX_THREADS, SHARED, CONSTANT, LOCAL, REGISTERS, PTX, BINARY, CACHE_CA, MAX_DYNAMIC, CARVEOUT, CLUSTER_MUST };

static int attribute(struct sim_func *kernel, int which)
{
	int value = 0;

	cuKernelGetAttribute(&value, which, kernel, rt_device());
	return value;
}

RUNTIME(cudaFuncGetAttributes, (struct func_attributes * a, const void *function))
{
	struct sim_func *k;
	int code = rt_context();

	if (code == 0)
		code = a ? rt_kernel(function, &k) : SIM_INVALID_VALUE;
	if (code)
		return rt_done(code);
	*a = (struct func_attributes){
		.shared = (size_t)attribute(k, SHARED),
		.constant = (size_t)attribute(k, CONSTANT),
		.local = (size_t)attribute(k, LOCAL),
		.max_threads = attribute(k, MAX_THREADS),
		.registers = attribute(k, REGISTERS),
		.ptx_version = attribute(k, PTX),
		.binary_version = attribute(k, BINARY),
		.cache_mode_ca = attribute(k, CACHE_CA),
		.max_dynamic_shared = attribute(k, MAX_DYNAMIC),
		.carveout = attribute(k, CARVEOUT),
		.cluster_must_be_set = attribute(k, CLUSTER_MUST),
	};
	return 0;
}

RUNTIME(cudaFuncSetAttribute, (const void *function, int which, int value))
{
	struct sim_func *k;
	int code = rt_context();

	if (code == 0)
		code = rt_kernel(function, &k);
	return rt_done(code ? code : cuKernelSetAttribute(which, value, k, rt_device()));
}

RUNTIME(cudaKernelSetAttributeForDevice, (struct sim_func * kernel, int which, int value, int device))
{
	RT_WITH_CONTEXT(cuKernelSetAttribute(which, value, kernel, device));
}

RUNTIME(cudaFuncSetCacheConfig, (const void *function, int config))
{
	struct sim_func *k;
	int code = rt_context();

	(void)config;	/* a preference, which this GPU does not have */
	return rt_done(code ? code : rt_kernel(function, &k));
}

RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
	(int *blocks, const void *function, int threads, size_t dynamic, unsigned int flags))
{
	struct sim_func *k;
	int code = rt_context();

	if (code == 0)
		code = rt_kernel(function, &k);
	return rt_done(code ? code
			    : cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, k, threads, dynamic, flags));
}

RUNTIME(cudaOccupancyMaxActiveBlocksPerMultiprocessor, (int *blocks, const void *function, int threads, size_t dynamic))
{
	return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, dynamic, 0);
}

RUNTIME(cudaLibraryLoadData, (struct sim_library * *library, const void *image, int *jit, void **jit_values,
			      unsigned int jit_count, int *options, void **values, unsigned int count))
{
	RT_WITH_CONTEXT(cuLibraryLoadData(library, image, jit, jit_values, jit_count, options, values, count));
}

RUNTIME(cudaLibraryLoadFromFile, (struct sim_library * *library, const char *file, int *jit, void **jit_values,
				  unsigned int jit_count, int *options, void **values, unsigned int count))
{
	RT_WITH_CONTEXT(cuLibraryLoadFromFile(library, file, jit, jit_values, jit_count, options, values, count));
}

RUNTIME(cudaLibraryUnload, (struct sim_library * library))
{
	RT_WITH_CONTEXT(cuLibraryUnload(library));
}

RUNTIME(cudaLibraryGetKernel, (struct sim_func * *kernel, struct sim_library *library, const char *name))
{
	RT_WITH_CONTEXT(cuLibraryGetKernel(kernel, library, name));
}

RUNTIME(cudaLibraryGetKernelCount, (unsigned int *count, struct sim_library *library))
{
	RT_WITH_CONTEXT(cuLibraryGetKernelCount(count, library));
}

RUNTIME(cudaLibraryGetGlobal, (sim_addr * address, size_t *bytes, struct sim_library *library, const char *name))
{
	RT_WITH_CONTEXT(cuLibraryGetGlobal(address, bytes, library, name));
}
