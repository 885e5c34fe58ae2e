/* SPDX-License-Identifier: Apache-2.0
 * Memory and events of one process in another.
 *
 * The exporting process puts the block into a file in memory and keeps it open; the handle names process and descriptor, so that
 * nothing is left behind when a process is killed. Small blocks share their page of 2 MiB: all of it becomes shared, and the handle
 * says where in it the block is. */
#include "sim/cuda/sim.h"
#include "sim/cuda/sim_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BLOCK ((size_t)2 << 20)
#define PAGE  ((size_t)4096)
#define MAGIC 0x6370692d6d697375ull

struct ipc_handle {
	uint64_t magic;
	int pid, fd;
	int device, event;
	uint64_t file_bytes, offset, bytes;
};
_Static_assert(sizeof(struct ipc_handle) <= sizeof(struct sim_ipc), "a handle has 64 bytes");

/* Files of pages that small blocks share: they stay. */
struct shared_page {
	struct shared_page *next;
	sim_addr start;
	int fd;
};
static struct shared_page *shared_pages;	/* under sim_mem_lock */

/* Copies what is in memory; pages that were never touched stay holes. */
static bool pages_copy(int fd, sim_addr start, size_t bytes)
{
	unsigned char present[512];

	for (size_t at = 0; at < bytes; at += sizeof(present) * PAGE) {
		size_t n = bytes - at < sizeof(present) * PAGE ? bytes - at : sizeof(present) * PAGE;

		if (mincore((void *)(uintptr_t)(start + at), n, present))
			return false;
		for (size_t i = 0; i < n / PAGE; i++)
			if (present[i] & 1 && pwrite(fd, (void *)(uintptr_t)(start + at + i * PAGE), PAGE,
						     (off_t)(at + i * PAGE)) != (ssize_t)PAGE)
				return false;
	}
	return true;
}

static int range_share(sim_addr start, size_t bytes)
{
	int fd = memfd_create("cuwhy-sim-ipc", MFD_CLOEXEC);

	if (fd >= 0 && !sim_file_resize(fd, (off_t)bytes) && pages_copy(fd, start, bytes) &&
	    mmap((void *)(uintptr_t)start, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd,
		 0) != MAP_FAILED)
		return fd;
	if (fd >= 0)
		close(fd);
	return -1;
}

static struct shared_page *page_share(sim_addr start)
{
	struct shared_page *p;

	for (p = shared_pages; p; p = p->next)
		if (p->start == start)
			return p;
	p = calloc(1, sizeof(*p));
	if (!p)
		return NULL;
	p->start = start;
	p->fd = range_share(start, BLOCK);
	if (p->fd < 0) {
		free(p);
		return NULL;
	}
	p->next = shared_pages;
	shared_pages = p;
	return p;
}

static bool block_share(struct sim_mem *mem, struct ipc_handle *h)
{
	if (mem->charged > BLOCK / 2) {
		size_t bytes = (mem->charged + BLOCK - 1) & ~(BLOCK - 1);

		if (mem->shared <= 0)
			mem->shared = range_share(mem->start, bytes);
		h->fd = mem->shared;
		h->file_bytes = bytes;
		return mem->shared > 0;
	} else {
		sim_addr start = mem->start & ~(sim_addr)(BLOCK - 1);
		struct shared_page *p = page_share(start);

		h->fd = p ? p->fd : -1;
		h->file_bytes = BLOCK;
		h->offset = mem->start - start;
		return p != NULL;
	}
}

int sim_cuIpcGetMemHandle(void *handle, sim_addr address)
{
	struct ipc_handle h = {.magic = MAGIC, .pid = getpid()};
	struct sim_mem *mem;
	int code = SIM_INVALID_VALUE;

	if (!handle)
		return SIM_INVALID_VALUE;
	sim_ctx_drain(sim_ctx_current());	/* nothing may write while its pages are exchanged */
	pthread_mutex_lock(&sim_mem_lock);
	mem = sim_mem_find(address);
	if (mem && mem->kind == SIM_MEM_DEVICE && !mem->pool && !mem->foreign) {
		h.device = mem->device;
		h.bytes = mem->bytes;
		code = block_share(mem, &h) ? 0 : SIM_OPERATING_SYSTEM;
	}
	pthread_mutex_unlock(&sim_mem_lock);
	memset(handle, 0, sizeof(struct sim_ipc));
	if (!code)
		memcpy(handle, &h, sizeof(h));
	return code;
}

/* Its addresses become ordinary memory again. Called with sim_mem_lock held. */
void sim_ipc_forget(struct sim_mem *mem)
{
	size_t bytes = (mem->charged + BLOCK - 1) & ~(BLOCK - 1);

	if (mem->shared <= 0)
		return;
	mmap((void *)(uintptr_t)mem->start, bytes, PROT_READ | PROT_WRITE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	close(mem->shared);
	mem->shared = 0;
}

static int file_open(const struct ipc_handle *h)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", h->pid, h->fd);
	return open(path, O_RDWR | O_CLOEXEC);
}

/* The memory is the other process's: it is not taken from the card a second time. */
static int block_map(const struct ipc_handle *h, int fd, sim_addr *address)
{
	struct sim_device *dev = sim_device_current();
	sim_addr at;
	struct sim_mem *mem = NULL;

	pthread_mutex_lock(&sim_mem_lock);
	at = sim_heap_take(dev, (size_t)h->file_bytes);
	if (at && mmap((void *)(uintptr_t)at, (size_t)h->file_bytes, PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd, 0) == MAP_FAILED)
		at = 0;
	pthread_mutex_unlock(&sim_mem_lock);
	if (at)
		mem = sim_mem_add(at + h->offset, (size_t)h->bytes, SIM_MEM_DEVICE);
	if (!mem)
		return SIM_OUT_OF_MEMORY;
	mem->foreign = true;
	mem->charged = (size_t)h->file_bytes;
	mem->device = (int)(dev - sim.devices);
	*address = mem->start;
	return 0;
}

int sim_cuIpcOpenMemHandle_v2(sim_addr *address, struct sim_ipc handle, unsigned int flags)
{
	struct ipc_handle h;
	int fd, code;

	memcpy(&h, &handle, sizeof(h));
	if (!address || flags > 1 || h.magic != MAGIC || h.event || !h.bytes || h.file_bytes % BLOCK ||
	    h.offset > h.file_bytes || h.bytes > h.file_bytes - h.offset)
		return SIM_INVALID_VALUE;
	if (h.pid == getpid())
		return SIM_INVALID_CONTEXT;
	fd = file_open(&h);
	if (fd < 0)
		return errno == ENOENT ? SIM_INVALID_VALUE : SIM_OPERATING_SYSTEM;
	code = block_map(&h, fd, address);
	close(fd);
	return code;
}

int sim_cuIpcCloseMemHandle(sim_addr address)
{
	struct sim_mem *mem;
	int code = SIM_INVALID_VALUE;

	sim_ctx_drain(sim_ctx_current());
	pthread_mutex_lock(&sim_mem_lock);
	mem = sim_mem_find(address);
	if (mem && mem->start == address && mem->foreign) {
		sim_addr start = address & ~(sim_addr)(BLOCK - 1);

		mmap((void *)(uintptr_t)start, mem->charged, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
		sim_heap_give(&sim.devices[mem->device], start, mem->charged, true);
		sim_mem_remove(mem);
		code = 0;
	}
	pthread_mutex_unlock(&sim_mem_lock);
	return code;
}

int sim_cuIpcGetEventHandle(void *handle, struct sim_event *event)
{
	struct ipc_handle h = {.magic = MAGIC, .pid = getpid(), .event = 1};
	struct sim_event *e = sim_pool_get(&sim.events, event);

	if (!e)
		return SIM_INVALID_HANDLE;
	if (!handle || (e->flags & 6) != 6)	/* made for other processes, and without times */
		return SIM_INVALID_VALUE;
	memset(handle, 0, sizeof(struct sim_ipc));
	memcpy(handle, &h, sizeof(h));
	return 0;
}

int sim_cuIpcOpenEventHandle(struct sim_event **event, struct sim_ipc handle)
{
	struct ipc_handle h;

	memcpy(&h, &handle, sizeof(h));
	if (!event || h.magic != MAGIC || !h.event)
		return SIM_INVALID_VALUE;
	if (h.pid == getpid())
		return SIM_INVALID_CONTEXT;
	return sim_cuEventCreate(event, 6);
}
