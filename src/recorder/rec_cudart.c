/* SPDX-License-Identifier: Apache-2.0
 * Fourth door, first half: failures that the shared CUDA runtime reports without calling the driver (a bad
 * device number, an empty grid, a kernel it does not know, a driver that is too old or missing).
 *
 * Copies linked statically into other libraries are not seen here, but their driver calls are.
 *
 * Allocation functions are here for one reason: the memory belongs to the library that called the runtime,
 * not to the runtime that calls the driver.
 */
#include <string.h>

#include "rec_linked.h"

#define RUNTIME(X)                                                                                    \
	X(cudaSetDevice) \
	X(cudaGetDeviceCount) X(cudaLaunchKernel) X(__cudaLaunchKernel) X(cudaLaunchKernelExC) X(cudaMalloc) \
		X(cudaMallocAsync) X(cudaMallocFromPoolAsync) X(cudaMallocManaged) X(cudaMallocPitch) \
			X(cudaMallocHost) X(cudaHostAlloc) X(cudaHostRegister) X(cudaFuncGetName)

enum runtime {
#define X(name) RT_##name,
	RUNTIME(X)
#undef X
	RT_COUNT
};

static const char *const rt_name[RT_COUNT] = {
#define X(name) #name,
	RUNTIME(X)
#undef X
};

_Static_assert(RT_COUNT <= LINKED_NAMES, "room for every function");
static struct linked runtimes = LINKED("libcudart", rt_name);
LOCK_LISTED(runtimes, runtimes.adding);

static inline void *real_for(enum runtime f, const void *from)
{
	return linked_real(&runtimes, f, from);
}

bool cudart_has(const char *name)
{
	for (int i = 0; i < RT_cudaFuncGetName; i++)
		if (strcmp(rt_name[i], name) == 0)
			return true;
	return false;
}

/* A launch that fails below belongs to the library that called the runtime, not to the runtime. */
static inline void asks_now(const void *caller)
{
	if (likely(rec_self != NULL))
		rec_self->runtime_caller = caller;
}

/* If no driver call failed meanwhile, the runtime itself rejected the call. */
static uint64_t failures_so_far(void)
{
	return rec_self ? rec_self->failures : 0;
}

static bool runtime_failed(struct cw_failure *f, enum runtime rt, int code, uint64_t before)
{
	if (likely(!code) || failures_so_far() != before || code_is_sticky((uint32_t)code) || !rec_enter())
		return false;
	fail_init(f, CW_SRC_RUNTIME, (uint32_t)code);
	text_copy(f->what, sizeof(f->what), rt_name[rt], strlen(rt_name[rt]));
	return true;
}

static void end(struct cw_failure *f)
{
	fail_note(f);
	rec_leave();
}

EXPORT int cudaSetDevice(int device);
EXPORT int cudaSetDevice(int device)
{
	int (*real)(int) = real_for(RT_cudaSetDevice, __builtin_return_address(0));
	uint64_t before = failures_so_far();
	int code = real ? real(device) : (int)CU_NO_DRIVER;
	struct cw_failure f;

	if (unlikely(code) && runtime_failed(&f, RT_cudaSetDevice, code, before)) {
		f.n_args = 1;
		f.arg[0] = (uint64_t)(int64_t)device;
		end(&f);
	}
	return code;
}

EXPORT int cudaGetDeviceCount(int *count);
EXPORT int cudaGetDeviceCount(int *count)
{
	int (*real)(int *) = real_for(RT_cudaGetDeviceCount, __builtin_return_address(0));
	uint64_t before = failures_so_far();
	int code = real ? real(count) : (int)CU_NO_DRIVER;
	struct cw_failure f;

	if (unlikely(code) && runtime_failed(&f, RT_cudaGetDeviceCount, code, before))
		end(&f);
	return code;
}

struct dim { uint32_t x, y, z; };

static void launch_failed(enum runtime rt, int code, uint64_t before, uint64_t kernel, const char *name,
			  struct dim grid, struct dim block, size_t shared, uint64_t stream,
			  const void *caller)
{
	struct cw_failure f;

	if (!runtime_failed(&f, rt, code, before))
		return;
	fail_add_library(&f, caller);
	f.is_launch = 1;
	f.func = function_named(kernel, name);
	if (!name)
		function_learn(f.func, false);
	memcpy(f.grid, &grid, sizeof(f.grid));
	memcpy(f.block, &block, sizeof(f.block));
	f.shared = (uint32_t)shared;
	f.stream = stream;
	end(&f);
}

static const char *host_name(const void *function, const void *from)
{
	int (*get)(const char **, const void *) = real_for(RT_cudaFuncGetName, from);
	const char *name = NULL;

	return get && get(&name, function) == 0 && name ? name : "";
}

EXPORT int cudaLaunchKernel(const void *f, struct dim grid, struct dim block, void **args, size_t shared,
			    uint64_t stream);
EXPORT HOT int cudaLaunchKernel(const void *f, struct dim grid, struct dim block, void **args, size_t shared,
				uint64_t stream)
{
	int (*real)(const void *, struct dim, struct dim, void **, size_t, uint64_t) =
		real_for(RT_cudaLaunchKernel, __builtin_return_address(0));
	uint64_t before = failures_so_far();
	int code;

	asks_now(__builtin_return_address(0));
	code = real ? real(f, grid, block, args, shared, stream) : (int)CU_NO_DRIVER;
	asks_now(NULL);
	if (unlikely(code))
		launch_failed(RT_cudaLaunchKernel, code, before, (uintptr_t)f,
			      host_name(f, __builtin_return_address(0)), grid, block, shared, stream,
			      __builtin_return_address(0));
	return code;
}

EXPORT int __cudaLaunchKernel(void *kernel, struct dim grid, struct dim block, void **args, size_t shared,
			      uint64_t stream);
EXPORT HOT int __cudaLaunchKernel(void *kernel, struct dim grid, struct dim block, void **args, size_t shared,
				  uint64_t stream)
{
	int (*real)(void *, struct dim, struct dim, void **, size_t, uint64_t) =
		real_for(RT___cudaLaunchKernel, __builtin_return_address(0));
	uint64_t before = failures_so_far();
	int code;

	asks_now(__builtin_return_address(0));
	code = real ? real(kernel, grid, block, args, shared, stream) : (int)CU_NO_DRIVER;
	asks_now(NULL);
	if (unlikely(code))
		launch_failed(RT___cudaLaunchKernel, code, before, (uintptr_t)kernel, NULL, grid, block,
			      shared, stream, __builtin_return_address(0));
	return code;
}

struct runtime_config {			/* cudaLaunchConfig_t */
	struct dim grid, block;
	size_t shared;
	uint64_t stream;
	const void *attrs;
	unsigned n_attrs;
};

EXPORT int cudaLaunchKernelExC(const struct runtime_config *c, const void *f, void **args);
EXPORT HOT int cudaLaunchKernelExC(const struct runtime_config *c, const void *f, void **args)
{
	int (*real)(const struct runtime_config *, const void *, void **) =
		real_for(RT_cudaLaunchKernelExC, __builtin_return_address(0));
	uint64_t before = failures_so_far();
	int code;

	asks_now(__builtin_return_address(0));
	code = real ? real(c, f, args) : (int)CU_NO_DRIVER;
	asks_now(NULL);
	if (unlikely(code) && c)
		launch_failed(RT_cudaLaunchKernelExC, code, before, (uintptr_t)f,
			      host_name(f, __builtin_return_address(0)), c->grid, c->block, c->shared,
			      c->stream, __builtin_return_address(0));
	return code;
}

/* Unlike a launch, an allocation may be a thread's first call. */
static void asks_memory(const void *caller)
{
	if (unlikely(!rec_self) && !rec_asleep())
		rec_thread_start();
	asks_now(caller);
}

/* Every argument is a word. */
#define P2  uint64_t a, uint64_t b
#define P3  P2, uint64_t c
#define P4  P3, uint64_t d
#define A2  a, b
#define A3  A2, c
#define A4  A3, d
#define WRAP_MEMORY(name, n)                                                                               \
	EXPORT int name(P##n);                                                                             \
	EXPORT int name(P##n)                                                                              \
	{                                                                                                  \
		int (*real)(P##n) = real_for(RT_##name, __builtin_return_address(0));                      \
		int code;                                                                                  \
\
		asks_memory(__builtin_return_address(0));                                                  \
		code = real ? real(A##n) : (int)CU_NO_DRIVER;                                              \
		asks_now(NULL);                                                                            \
		return code;                                                                               \
	}

WRAP_MEMORY(cudaMalloc, 2)
WRAP_MEMORY(cudaMallocAsync, 3)
WRAP_MEMORY(cudaMallocFromPoolAsync, 4)
WRAP_MEMORY(cudaMallocManaged, 3)
WRAP_MEMORY(cudaMallocPitch, 4)
WRAP_MEMORY(cudaMallocHost, 2)
WRAP_MEMORY(cudaHostAlloc, 3)
WRAP_MEMORY(cudaHostRegister, 3)
