/* SPDX-License-Identifier: Apache-2.0
 * Addresses of device memory: one reserved range per device, of which only touched pages use RAM.
 *
 * The whole range is mapped once, without reservation, so that a 141 GB card fits on a small
 * machine and a million blocks do not need a million mappings. */
#include "sim/cuda/sim.h"

#include <stdlib.h>
#include <sys/mman.h>

enum { SMALL_MAX = 1 << 20, CLASS_MIN = 9, CLASS_MAX = 20 };

#define BLOCK ((size_t)2 << 20)
#define HEAP_AT 0x7d0000000000ull	/* far from anything else in the address space */
#define HEAP_STEP 0x10000000000ull	/* from one device to the next */

struct extent {
	struct extent *next;
	sim_addr start;
	size_t bytes;
};

struct sim_heap {
	sim_addr base, end, bottom;		/* `bottom`: nothing below was ever used */
	struct extent *free;			/* by address, neighbors merged */
	struct extent *small[CLASS_MAX + 1];	/* freed small blocks, by power of two */
};

static struct sim_heap *heap_new(const struct sim_device *dev)
{
	/* Twice the memory: addresses may be fragmented while memory is not, as on a real GPU. */
	size_t bytes = (2 * dev->total + 64 * BLOCK) & ~(BLOCK - 1);
	sim_addr at = HEAP_AT + (sim_addr)(dev - sim.devices) * HEAP_STEP;
	struct sim_heap *heap = calloc(1, sizeof(*heap));
	struct extent *all = calloc(1, sizeof(*all));
	void *base = MAP_FAILED;

	if (heap && all)
		base = mmap((void *)(uintptr_t)at, bytes + BLOCK, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED) {
		free(heap);
		free(all);
		return NULL;
	}
	madvise(base, bytes + BLOCK, MADV_DONTDUMP);
	madvise(base, bytes + BLOCK, MADV_DONTFORK);
	heap->base = ((sim_addr)(uintptr_t)base + BLOCK - 1) & ~(sim_addr)(BLOCK - 1);
	heap->end = heap->bottom = heap->base + bytes;
	all->start = heap->base;
	all->bytes = bytes;
	heap->free = all;
	return heap;
}

/* From the highest address down, as the driver gives them out. The order matters: of free blocks of the same size, PyTorch takes
 * the lowest one, so with ascending addresses it reserved another amount than on an H200 (GPT with fused AdamW: 9.8 % less). */
static sim_addr large_take(struct sim_heap *heap, size_t bytes)
{
	struct extent **found = NULL, *e;
	sim_addr start;

	for (struct extent **link = &heap->free; *link; link = &(*link)->next)
		if ((*link)->bytes >= bytes)
			found = link;
	if (!found)
		return 0;
	e = *found;
	e->bytes -= bytes;
	start = e->start + e->bytes;
	if (start < heap->bottom)
		heap->bottom = start;
	if (!e->bytes) {
		*found = e->next;
		free(e);
	}
	return start;
}

static void large_give(struct sim_heap *heap, sim_addr start, size_t bytes)
{
	struct extent *before = NULL, *after = heap->free, *e;

	while (after && after->start < start) {
		before = after;
		after = after->next;
	}
	if (before && before->start + before->bytes == start) {
		before->bytes += bytes;
		e = before;
	} else {
		e = calloc(1, sizeof(*e));
		if (!e)
			return;		/* only the addresses are lost */
		e->start = start;
		e->bytes = bytes;
		e->next = after;
		*(before ? &before->next : &heap->free) = e;
	}
	if (after && e->start + e->bytes == after->start) {
		e->bytes += after->bytes;
		e->next = after->next;
		free(after);
	}
}

/* Its pages may still be sealed from their last owner. */
static sim_addr block_take(struct sim_heap *heap, size_t bytes)
{
	sim_addr start = large_take(heap, bytes);

	if (start && mprotect((void *)(uintptr_t)start, bytes, PROT_READ | PROT_WRITE)) {
		large_give(heap, start, bytes);
		return 0;
	}
	return start;
}

static int class_of(size_t bytes)
{
	int class = CLASS_MIN;

	while (((size_t)1 << class) < bytes)
		class++;
	return class;
}

static sim_addr small_take(struct sim_heap *heap, int class)
{
	size_t size = (size_t)1 << class;
	struct extent *e = heap->small[class];
	sim_addr start;

	if (!e) {
		e = calloc(1, sizeof(*e));
		start = e ? block_take(heap, BLOCK) : 0;
		if (!start) {
			free(e);
			return 0;
		}
		e->start = start;
		e->bytes = BLOCK;
		heap->small[class] = e;
	}
	start = e->start;
	e->start += size;
	e->bytes -= size;
	if (!e->bytes) {
		heap->small[class] = e->next;
		free(e);
	}
	return start;
}

/* Both are called with sim_mem_lock held. The memory of a new block is zero. */
sim_addr sim_heap_take(struct sim_device *dev, size_t bytes)
{
	if (!dev->heap)
		dev->heap = heap_new(dev);
	if (!dev->heap)
		return 0;
	if (bytes <= SMALL_MAX)
		return small_take(dev->heap, class_of(bytes));
	bytes = (bytes + BLOCK - 1) & ~(BLOCK - 1);
	return block_take(dev->heap, bytes);
}

/* Sealed memory faults even for the host. Small blocks share pages, so only large ones can be
 * sealed; kernels look up blocks and detect either kind. */
void sim_heap_give(struct sim_device *dev, sim_addr address, size_t bytes, bool seal)
{
	struct extent *e;

	if (bytes > SMALL_MAX) {
		bytes = (bytes + BLOCK - 1) & ~(BLOCK - 1);
		madvise((void *)(uintptr_t)address, bytes, MADV_DONTNEED);
		if (seal)
			mprotect((void *)(uintptr_t)address, bytes, PROT_NONE);
		large_give(dev->heap, address, bytes);
		return;
	}
	e = calloc(1, sizeof(*e));
	if (!e)
		return;
	e->start = address;
	e->bytes = (size_t)1 << class_of(bytes);
	e->next = dev->heap->small[class_of(bytes)];
	dev->heap->small[class_of(bytes)] = e;
}

size_t sim_heap_resident(const struct sim_device *dev)
{
	unsigned char present[4096];
	size_t pages = 0, step = sizeof(present) * 4096;

	for (sim_addr at = dev->heap ? dev->heap->bottom : 0; dev->heap && at < dev->heap->end; at += step) {
		size_t n = dev->heap->end - at < step ? (size_t)(dev->heap->end - at) : step;

		if (mincore((void *)(uintptr_t)at, n, present))
			continue;
		for (size_t i = 0; i < n / 4096; i++)
			pages += present[i] & 1;
	}
	return pages * 4096;
}
