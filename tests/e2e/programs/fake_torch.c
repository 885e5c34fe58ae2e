/* SPDX-License-Identifier: Apache-2.0
 * Stands in for PyTorch's libraries: the exported functions that the recorder watches, with their real names,
 * and an autograd node with its layout in memory. forward() creates a node on the calling thread; backward()
 * runs it on a thread of its own, without Python frames, as PyTorch's engine does. block_made() and
 * block_freed() report blocks as PyTorch's allocator does. */
#include <pthread.h>
#include <setjmp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

struct type_info { const void *vtable; const char *name; };
static const struct type_info mul_backward = {NULL, "N5torch8autograd9generated12MulBackward0E"};
static const void *const vtable[] = {NULL, &mul_backward, NULL};

/* A node owned by shared pointers has one to itself; one that counts its references, as newer releases have it, does not. */
struct numbers { uint64_t sequence, topological, has_parent, thread; };
union node {
	const void *const *vtable;
	struct { const void *const *vtable; const void *self, *owner; struct numbers n; } shared;
	struct { const void *const *vtable; uint64_t references; struct numbers n; } counted;
};

static __thread uint64_t next_sequence;
static __thread uint64_t thread_number;
static uint64_t threads;

uint64_t _ZN2at15sequence_number17get_and_incrementEv(void);
uint64_t _ZN2at15sequence_number17get_and_incrementEv(void)
{
	return next_sequence++;
}

uint64_t _ZN2at14RecordFunction15currentThreadIdEv(void);
uint64_t _ZN2at14RecordFunction15currentThreadIdEv(void)
{
	if (!thread_number)
		thread_number = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED);
	return thread_number;
}

void _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb(int code, const char *file, const char *function,
							   unsigned line, bool dsa);
void _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb(int code, const char *file, const char *function,
							   unsigned line, bool dsa)
{
	(void)file, (void)function, (void)line, (void)dsa;
	if (code)
		fprintf(stderr, "checked: %d\n", code);
}

struct device { int8_t type, index; };
static uint64_t reports;

void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *block, int64_t size, size_t allocated, size_t reserved,
							   struct device d);
void _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE(void *block, int64_t size, size_t allocated, size_t reserved,
							   struct device d)
{
	(void)block, (void)size, (void)allocated, (void)reserved, (void)d;
	__atomic_add_fetch(&reports, 1, __ATOMIC_RELAXED);
}

/* As in older releases: the totals are signed. */
void _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(void *block, int64_t size, int64_t allocated,
							   int64_t reserved, struct device d);
void _ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE(void *block, int64_t size, int64_t allocated,
							   int64_t reserved, struct device d)
{
	(void)block, (void)size, (void)allocated, (void)reserved, (void)d;
	__atomic_add_fetch(&reports, 1, __ATOMIC_RELAXED);
}

#define EVALUATE _ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeERNS0_11InputBufferERKS2_INS0_10ReadyQueueEE
typedef int launcher(void);
void EVALUATE(void *engine, void *task, void *node, void *inputs, const void *queue);
void EVALUATE(void *engine, void *task, void *node, void *inputs, const void *queue)
{
	(void)engine, (void)task, (void)node, (void)queue;
	_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_jb(((launcher *)inputs)(),
							      "aten/src/ATen/native/cuda/Pool.cu", "pool", 7, true);
}

static union node made[16];
static int n_made, counted;
static launcher *launch_now;

void count_references(void);
void count_references(void)
{
	counted = 1;
}

static int node_new(uint64_t sequence, uint64_t thread)
{
	union node *node = &made[n_made];

	node->vtable = vtable + 2;
	if (counted)
		node->counted.references = 0x100000003;
	else
		node->shared.self = node;
	*(counted ? &node->counted.n : &node->shared.n) = (struct numbers){.sequence = sequence, .thread = thread};
	return n_made++;
}

int forward(void);
int forward(void)
{
	return node_new(_ZN2at15sequence_number17get_and_incrementEv(), _ZN2at14RecordFunction15currentThreadIdEv());
}

/* The node that accumulates a gradient: no line created it. */
int accumulate(void);
int accumulate(void)
{
	return node_new(UINT64_MAX, 0);
}

/* Its totals: what is in blocks, and what the Python side says is reserved. */
static size_t allocated[128], reserved[128];

void reserve(uint64_t bytes, int index);
void reserve(uint64_t bytes, int index)
{
	reserved[index] = bytes;
}

void block_made(uint64_t address, uint64_t size, int type, int index);
void block_made(uint64_t address, uint64_t size, int type, int index)
{
	size_t now = type == 1 ? __atomic_add_fetch(&allocated[index], size, __ATOMIC_RELAXED) : 0;

	_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)address, (int64_t)size, now, reserved[index],
							      (struct device){(int8_t)type, (int8_t)index});
}

/* PyTorch's allocator runs out of memory; the program raises what it likes. */
void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(int64_t size, size_t now, size_t held, struct device d);
void _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE(int64_t size, size_t now, size_t held, struct device d)
{
	(void)size, (void)now, (void)held, (void)d;
}

/* cuBLAS is told which block is its workspace. */
int cublasSetWorkspace_v2(void *handle, void *workspace, size_t size);
int cublasSetWorkspace_v2(void *handle, void *workspace, size_t size)
{
	(void)handle, (void)workspace;
	return size ? 0 : 7;
}

int cublasLtMatmul(const uint64_t *handle, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,
		   uint64_t h, uint64_t i, uint64_t j, uint64_t k, uint64_t l, uint64_t m, void *workspace, size_t size,
		   uint64_t stream);
int cublasLtMatmul(const uint64_t *handle, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,
		   uint64_t h, uint64_t i, uint64_t j, uint64_t k, uint64_t l, uint64_t m, void *workspace, size_t size,
		   uint64_t stream)
{
	(void)workspace, (void)size;
	return b == 2 && c == 3 && d == 4 && e == 5 && f == 6 && g == 7 && h == 8 && i == 9 && j == 10 && k == 11 &&
			       l == 12 && m == 13 && stream == 16 && !handle
		       ? 0
		       : 7;
}

int product(uint64_t address, uint64_t size);
int product(uint64_t address, uint64_t size)
{
	return cublasLtMatmul(NULL, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, (void *)address, (size_t)size, 16);
}

int workspace(uint64_t address, uint64_t size);
int workspace(uint64_t address, uint64_t size)
{
	return cublasSetWorkspace_v2(NULL, (void *)address, (size_t)size);
}

void out_of_memory(uint64_t request, int index);
void out_of_memory(uint64_t request, int index)
{
	_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE((int64_t)request, allocated[index], reserved[index],
							    (struct device){1, (int8_t)index});
}

/* A node that is never run. */
void node_made(void);
void node_made(void)
{
	_ZN2at15sequence_number17get_and_incrementEv();
}

#define DIVISIONS _ZN3c104cuda20CUDACachingAllocator19CUDAAllocatorConfig24roundup_power2_divisionsEm
size_t DIVISIONS(size_t size);
size_t DIVISIONS(size_t size)
{
	(void)size;
	return 0;
}

/* As the allocator does: the size of the request comes first, that of the block later. */
void block_asked(uint64_t address, uint64_t size, uint64_t asked);
void block_asked(uint64_t address, uint64_t size, uint64_t asked)
{
	DIVISIONS(asked);
	block_made(address, size, 1, 0);
}

void block_made_old(uint64_t address, uint64_t size);
void block_made_old(uint64_t address, uint64_t size)
{
	int64_t now = (int64_t)__atomic_add_fetch(&allocated[0], size, __ATOMIC_RELAXED);

	_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE((void *)address, (int64_t)size, now, (int64_t)reserved[0],
							      (struct device){1, 0});
}

void block_freed(uint64_t address, uint64_t size, int type, int index);
void block_freed(uint64_t address, uint64_t size, int type, int index)
{
	size_t now = type == 1 ? __atomic_sub_fetch(&allocated[index], size, __ATOMIC_RELAXED) : 0;

	_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE((void *)address, -(int64_t)size, now, reserved[index],
							      (struct device){(int8_t)type, (int8_t)index});
}

/* Many at once, so that a test of a million does not need a million calls from Python. */
void blocks_made(uint64_t address, uint64_t n);
void blocks_made(uint64_t address, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		block_made(address + i * 512, 512, 1, 0);
}

void blocks_freed(uint64_t address, uint64_t n);
void blocks_freed(uint64_t address, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++)
		block_freed(address + i * 512, 512, 1, 0);
}

uint64_t blocks_reported(void);
uint64_t blocks_reported(void)
{
	return reports;
}

/* A launcher for backward(): the engine's thread allocates. */
static uint64_t backward_block, backward_bytes = 512;
int make_block(void);
int make_block(void)
{
	block_made(backward_block, backward_bytes, 1, 0);
	return 0;
}

int make_block_here(uint64_t address);
int make_block_here(uint64_t address)
{
	block_made(address, 512, 1, 0);
	return 0;
}

void make_blocks_of(uint64_t bytes);
void make_blocks_of(uint64_t bytes)
{
	backward_bytes = bytes;
}

void make_block_at(uint64_t address);
void make_block_at(uint64_t address)
{
	backward_block = address;
}

/* One call of backward, as far as the recorder looks at it. */
static struct { uint64_t weak[2], outstanding; bool has_error, completed, keep_graph; } task;
static void *task_pointer[2] = {&task};

void retain_graph(int yes);
void retain_graph(int yes)
{
	task.keep_graph = yes;
}

static void *engine_thread(void *node)
{
	EVALUATE(NULL, task_pointer, node, (void *)launch_now, NULL);
	return NULL;
}

void backward(int which, launcher *launch);
void backward(int which, launcher *launch)
{
	pthread_t t;

	launch_now = launch;
	pthread_create(&t, NULL, engine_thread, &made[which]);
	pthread_join(t, NULL);
}

/* An exception: the frames in between are unwound, including the engine's function, and the thread continues. */
static jmp_buf handler;
static __thread uintptr_t caught_in;

static _Unwind_Reason_Code reached(int version, _Unwind_Action actions, _Unwind_Exception_Class class,
				   struct _Unwind_Exception *exception, struct _Unwind_Context *context, void *arg)
{
	(void)version, (void)actions, (void)class, (void)exception, (void)arg;
	if (_Unwind_GetCFA(context) >= caught_in)
		longjmp(handler, 1);
	return _URC_NO_REASON;
}

static int throws(void)
{
	static struct _Unwind_Exception exception;

	_Unwind_ForcedUnwind(&exception, reached, NULL);
	return 0;
}

static void *thrown_thread(void *node)
{
	caught_in = (uintptr_t)__builtin_frame_address(0);
	if (setjmp(handler) == 0)
		EVALUATE(NULL, task_pointer, node, (void *)throws, NULL);
	launch_now();
	return NULL;
}

void backward_thrown(int which, launcher *launch);
void backward_thrown(int which, launcher *launch)
{
	pthread_t t;

	launch_now = launch;
	pthread_create(&t, NULL, thrown_thread, &made[which]);
	pthread_join(t, NULL);
}
