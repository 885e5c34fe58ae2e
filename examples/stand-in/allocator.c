/* SPDX-License-Identifier: Apache-2.0
 * For machines without PyTorch: as much of its libraries as the demo's programs need. A caching allocator that rounds, splits and
 * joins as that of PyTorch 2.11 does, and autograd nodes; both report to functions with PyTorch's names, which is what cuwhy's recorder
 * sees. Built as torch/lib/libc10_cuda.so, profiler.c as torch/lib/libc10.so. */
#include <dlfcn.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#define MIB ((size_t)1 << 20)

struct device { int8_t type, index; };
static const struct device gpu = {1, 0};

/* ---- what the recorder watches, with the names that PyTorch's libraries export ---- */

#define USAGE	  _ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE
#define OUT	  _ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE
#define DIVISIONS _ZN3c104cuda20CUDACachingAllocator19CUDAAllocatorConfig24roundup_power2_divisionsEm
#define SEQUENCE  _ZN2at15sequence_number17get_and_incrementEv
#define THREAD	  _ZN2at14RecordFunction15currentThreadIdEv
#define EVALUATE                                                                                                                                          \
	_ZN5torch8autograd6Engine17evaluate_functionERSt10shared_ptrINS0_9GraphTaskEEPNS0_4NodeERNS0_11InputBufferERKS2_INS0_10ReadyQueueEE

void USAGE(void *block, int64_t size, size_t allocated, size_t reserved, struct device d);
void OUT(int64_t size, size_t allocated, size_t reserved, struct device d);

size_t DIVISIONS(size_t size);
size_t DIVISIONS(size_t size)
{
	(void)size;
	return 0;
}

uint64_t SEQUENCE(void);
uint64_t SEQUENCE(void)
{
	static uint64_t next;

	return next++;
}

uint64_t THREAD(void);
uint64_t THREAD(void)
{
	return 1;
}

struct work { size_t bytes; uint64_t made; };

uint64_t block_new(size_t asked);
void EVALUATE(void *engine, void *task, void *node, struct work *work, const void *queue);
void EVALUATE(void *engine, void *task, void *node, struct work *work, const void *queue)
{
	(void)engine, (void)task, (void)node, (void)queue;
	work->made = block_new(work->bytes);
}

/* ---- the allocator ---- */

struct block {
	uint64_t at;
	size_t size;
	bool used;
	struct block *before, *after;	/* in the same segment */
	struct block *next;		/* of all blocks */
};
static struct block *blocks;
static size_t allocated, most_allocated, reserved;
static int (*mem_alloc)(uint64_t *, size_t), (*mem_free)(uint64_t);

static size_t rounded(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

static bool is_small(size_t size)
{
	return size <= MIB;
}

static size_t segment_size(size_t size)
{
	return is_small(size) ? 2 * MIB : size < 10 * MIB ? 20 * MIB : rounded(size, 2 * MIB);
}

static struct block *block_add(uint64_t at, size_t size)
{
	struct block *b = calloc(1, sizeof(*b));

	*b = (struct block){.at = at, .size = size, .next = blocks};
	return blocks = b;
}

static void block_remove(struct block *b)
{
	struct block **p = &blocks;

	while (*p != b)
		p = &(*p)->next;
	*p = b->next;
	free(b);
}

/* Small blocks live in segments of their own size. */
static bool in_small_segment(const struct block *b)
{
	size_t size = b->size;

	for (const struct block *o = b->before; o; o = o->before)
		size += o->size;
	for (const struct block *o = b->after; o; o = o->after)
		size += o->size;
	return size == 2 * MIB;
}

static struct block *block_find(size_t size)
{
	struct block *best = NULL;

	for (struct block *b = blocks; b; b = b->next)
		if (!b->used && b->size >= size && in_small_segment(b) == is_small(size) &&
		    (!best || b->size < best->size || (b->size == best->size && b->at < best->at)))
			best = b;
	return best;
}

/* Segments that hold nothing go back to the driver. */
static void cache_empty(void)
{
	for (struct block *b = blocks, *next; b; b = next) {
		next = b->next;
		if (b->used || b->before || b->after)
			continue;
		mem_free(b->at);
		reserved -= b->size;
		block_remove(b);
	}
}

static struct block *segment_new(size_t size)
{
	uint64_t at;

	if (mem_alloc(&at, size)) {
		cache_empty();
		if (mem_alloc(&at, size))
			return NULL;
	}
	reserved += size;
	return block_add(at, size);
}

static void block_split(struct block *b, size_t size)
{
	struct block *rest;

	if (is_small(size) ? b->size - size < 512 : b->size - size <= MIB)
		return;
	rest = block_add(b->at + size, b->size - size);
	rest->before = b;
	rest->after = b->after;
	if (rest->after)
		rest->after->before = rest;
	b->after = rest;
	b->size = size;
}

/* Returns 0 if there is no memory. */
uint64_t block_new(size_t asked)
{
	size_t size = rounded(asked ? asked : 1, 512);
	struct block *b;

	DIVISIONS(asked);
	b = block_find(size);
	if (!b)
		b = segment_new(segment_size(size));
	if (!b) {
		OUT((int64_t)size, allocated, reserved, gpu);
		return 0;
	}
	block_split(b, size);
	b->used = true;
	allocated += b->size;
	most_allocated = allocated > most_allocated ? allocated : most_allocated;
	USAGE((void *)b->at, (int64_t)b->size, allocated, reserved, gpu);
	return b->at;
}

static void block_join(struct block *b, struct block *behind)
{
	b->size += behind->size;
	b->after = behind->after;
	if (b->after)
		b->after->before = b;
	block_remove(behind);
}

void block_free(uint64_t at);
void block_free(uint64_t at)
{
	struct block *b = blocks;

	while (b && (b->at != at || !b->used))
		b = b->next;
	if (!b)
		return;
	b->used = false;
	allocated -= b->size;
	USAGE((void *)b->at, -(int64_t)b->size, allocated, reserved, gpu);
	if (b->after && !b->after->used)
		block_join(b, b->after);
	if (b->before && !b->before->used)
		block_join(b->before, b);
}

size_t memory_allocated(bool most);
size_t memory_allocated(bool most)
{
	return most ? most_allocated : allocated;
}

size_t memory_reserved(void);
size_t memory_reserved(void)
{
	return reserved;
}

int start(const char *driver);
int start(const char *driver)
{
	void *handle = dlopen(driver, RTLD_NOW);

	if (!handle)
		return -1;
	mem_alloc = (int (*)(uint64_t *, size_t))dlsym(handle, "cuMemAlloc_v2");
	mem_free = (int (*)(uint64_t))dlsym(handle, "cuMemFree_v2");
	return mem_alloc && mem_free ? 0 : -1;
}

/* ---- autograd ---- */

/* A node as the recorder reads it: its vtable, which leads to its name; a pointer to itself; its number and thread. */
struct type_info { const void *vtable; const char *name; };
struct node { const void *const *vtable; const void *self, *owner; uint64_t sequence, topological, has_parent, thread; };
static const struct type_info names[] = {{NULL, "N5torch8autograd9generated14AddmmBackward0E"},
					 {NULL, "N5torch8autograd14AccumulateGradE"}};
static const void *const operation[] = {NULL, &names[0], NULL}, *const accumulation[] = {NULL, &names[1], NULL};

struct node *node_new(int accumulates);
struct node *node_new(int accumulates)
{
	struct node *n = calloc(1, sizeof(*n));

	*n = (struct node){.vtable = (accumulates ? accumulation : operation) + 2, .self = n, .sequence = UINT64_MAX};
	if (!accumulates)
		n->sequence = SEQUENCE(), n->thread = THREAD();
	return n;
}

/* Runs a node, which makes a gradient of so many bytes; returns where, or 0. */
uint64_t node_run(struct node *n, size_t bytes);
uint64_t node_run(struct node *n, size_t bytes)
{
	static struct { uint64_t weak[2], outstanding; bool has_error, completed, keep_graph; } task;
	void *task_pointer[2] = {&task, NULL};
	struct work work = {.bytes = bytes};

	EVALUATE(NULL, task_pointer, n, &work, NULL);
	return work.made;
}

void node_free(struct node *n);
void node_free(struct node *n)
{
	free(n);
}
