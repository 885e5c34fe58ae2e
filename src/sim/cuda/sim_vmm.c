/* SPDX-License-Identifier: Apache-2.0
 * Virtual memory management: addresses are reserved separately from the memory mapped there. */
#include "sim/cuda/sim_contents.h"
#include "sim/cuda/sim_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define GRANULARITY ((size_t)2 << 20)

static bool multiple(size_t bytes)
{
	return bytes && bytes % GRANULARITY == 0;
}

static bool prop_ok(const struct sim_alloc_prop *prop)
{
	return prop && prop->type == 1 && prop->location.type == 1 && prop->location.id >= 0 &&
	       prop->location.id < sim.device_count;
}

int sim_cuMemGetAllocationGranularity(size_t *bytes, const struct sim_alloc_prop *prop, int option)
{
	if (!bytes || !prop_ok(prop) || option < 0 || option > 1)
		return SIM_INVALID_VALUE;
	*bytes = GRANULARITY;
	return 0;
}

int sim_cuMemAddressReserve(sim_addr *address, size_t bytes, size_t alignment, sim_addr hint,
			    unsigned long long flags)
{
	uintptr_t start, aligned;
	void *at;

	if (!address || !multiple(bytes) || flags || (alignment & (alignment - 1)))
		return SIM_INVALID_VALUE;
	if (alignment < GRANULARITY)
		alignment = GRANULARITY;
	at = mmap((void *)(uintptr_t)hint, bytes + alignment, PROT_NONE,
		  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (at == MAP_FAILED)
		return SIM_OUT_OF_MEMORY;
	start = (uintptr_t)at;
	aligned = (start + alignment - 1) & ~(uintptr_t)(alignment - 1);
	if (aligned > start)
		munmap(at, aligned - start);
	if (aligned + bytes < start + bytes + alignment)
		munmap((void *)(aligned + bytes), start + alignment - aligned);
	*address = aligned;
	return 0;
}

int sim_cuMemAddressFree(sim_addr address, size_t bytes)
{
	if (!multiple(address) || !multiple(bytes) || sim_mem_kind_of(address) >= 0)
		return SIM_INVALID_VALUE;
	return munmap((void *)(uintptr_t)address, bytes) ? SIM_INVALID_VALUE : 0;
}

/* A file, because the same memory may be mapped at two addresses. Memory for other processes has one of its own; all other memory
 * is in one file, because a program may have more of it than it may open files. */
static struct {
	int fd;				/* 0: none yet */
	off_t end;
} shelf;

/* Where no file may be that large: memory of which a second mapping can be made, too, but not by another process. */
static bool anonymous_take(struct sim_mem_handle *h, size_t bytes)
{
	void *at = mmap(NULL, bytes, PROT_NONE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	h->fd = -1;
	h->offset = 0;
	h->memory = at == MAP_FAILED ? NULL : at;
	return h->memory != NULL;
}

static bool shelf_take(struct sim_mem_handle *h, size_t bytes)
{
	bool ok;

	pthread_mutex_lock(&sim_mem_lock);
	if (!shelf.fd)
		shelf.fd = memfd_create("cuwhy-sim", MFD_CLOEXEC);
	h->fd = shelf.fd;
	h->offset = shelf.end;
	ok = shelf.fd > 0 && sim_file_resize(shelf.fd, shelf.end + (off_t)bytes) == 0;
	if (ok)
		shelf.end += (off_t)bytes;
	else if (shelf.fd < 0)
		shelf.fd = 0;
	pthread_mutex_unlock(&sim_mem_lock);
	return ok;
}

static bool file_take(struct sim_mem_handle *h, size_t bytes)
{
	h->offset = 0;
	h->fd = memfd_create("cuwhy-sim", MFD_CLOEXEC);
	if (h->fd < 0 || sim_file_resize(h->fd, (off_t)bytes) == 0)
		return h->fd >= 0;
	close(h->fd);
	return false;
}

/* Needs sim_mem_lock. */
static void handle_close(struct sim_mem_handle *h)
{
	if (h->memory)
		munmap(h->memory, h->bytes);
	else if (h->fd == shelf.fd)
		fallocate(h->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, h->offset, (off_t)h->bytes);
	else
		close(h->fd);
}

int sim_cuMemCreate(unsigned long long *handle, size_t bytes, const struct sim_alloc_prop *prop,
		    unsigned long long flags)
{
	struct sim_mem_handle *h;
	int code;

	if (!handle || flags || !prop_ok(prop) || !multiple(bytes))
		return SIM_INVALID_VALUE;
	code = sim_mem_charge(&sim.devices[prop->location.id], bytes);
	if (code)
		return code;
	h = sim_pool_new(&sim.mems);
	if (h) {
		h->device = prop->location.id;
		h->bytes = bytes;
		h->maps = 0;
		h->references = 1;
		h->imported = false;
		h->handle_types = prop->handle_types;
		h->memory = NULL;
	}
	if (!h || !((prop->handle_types ? file_take(h, bytes) : shelf_take(h, bytes)) || anonymous_take(h, bytes))) {
		sim_mem_uncharge(&sim.devices[prop->location.id], bytes);
		if (h)
			sim_pool_drop(&sim.mems, h);
		return SIM_OUT_OF_MEMORY;
	}
	atomic_store(&h->head.alive, 1);
	*handle = (unsigned long long)(uintptr_t)h;
	return 0;
}

/* The memory is freed once it is released and no longer mapped. Needs sim_mem_lock. */
static void handle_settle(struct sim_mem_handle *h)
{
	if (h->references || h->maps)
		return;
	handle_close(h);
	if (!h->imported)
		sim_mem_uncharge_locked(&sim.devices[h->device], h->bytes);
	sim_pool_drop(&sim.mems, h);
}

int sim_cuMemRelease(unsigned long long handle)
{
	struct sim_mem_handle *h = sim_pool_get(&sim.mems, (void *)(uintptr_t)handle);
	int code = SIM_INVALID_VALUE;

	pthread_mutex_lock(&sim_mem_lock);
	if (h && h->references) {
		h->references--;
		handle_settle(h);
		code = 0;
	}
	pthread_mutex_unlock(&sim_mem_lock);
	return code;
}

int sim_cuMemMap(sim_addr address, size_t bytes, size_t offset, unsigned long long handle,
		 unsigned long long flags)
{
	struct sim_mem_handle *h = sim_pool_get(&sim.mems, (void *)(uintptr_t)handle);
	struct sim_mem *mem;
	void *at;

	if (!h || flags || !multiple(bytes) || address % GRANULARITY || offset > h->bytes ||
	    bytes > h->bytes - offset)
		return SIM_INVALID_VALUE;
	mem = sim_mem_add(address, bytes, SIM_MEM_VMM);
	if (!mem)
		return SIM_INVALID_VALUE;
	if (h->memory)		/* of size 0: a second mapping of the same memory */
		at = mremap(h->memory + offset, 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)(uintptr_t)address);
	else
		at = mmap((void *)(uintptr_t)address, bytes, PROT_NONE,
			  MAP_SHARED | MAP_FIXED | MAP_NORESERVE, h->fd, h->offset + (off_t)offset);
	pthread_mutex_lock(&sim_mem_lock);
	mem->handle = h;
	mem->device = h->device;
	mem->access = false;
	h->maps++;
	pthread_mutex_unlock(&sim_mem_lock);
	return at == MAP_FAILED ? SIM_OUT_OF_MEMORY : 0;
}

int sim_cuMemUnmap(sim_addr address, size_t bytes)
{
	sim_addr end = address + bytes;
	int code = 0;

	if (!multiple(bytes))
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&sim_mem_lock);
	while (!code && address < end) {
		struct sim_mem *mem = sim_mem_find(address);

		if (!mem || mem->kind != SIM_MEM_VMM || mem->start != address) {
			code = SIM_INVALID_VALUE;
			break;
		}
		mmap((void *)(uintptr_t)address, mem->bytes, PROT_NONE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
		sim_contents_freed(mem->start, mem->bytes);
		address += mem->bytes;
		mem->handle->maps--;
		handle_settle(mem->handle);
		sim_mem_remove(mem);
	}
	pthread_mutex_unlock(&sim_mem_lock);
	return code;
}

int sim_cuMemSetAccess(sim_addr address, size_t bytes, const struct sim_access *access,
		       size_t count)
{
	sim_addr at = address, end = address + bytes;
	int code = 0;

	if (!access || !count || !multiple(bytes))
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&sim_mem_lock);
	while (!code && at < end) {
		struct sim_mem *mem = sim_mem_find(at);

		if (!mem || mem->kind != SIM_MEM_VMM) {
			code = SIM_INVALID_VALUE;
			break;
		}
		mem->access = access->flags != 0;
		at = mem->start + mem->bytes;
	}
	if (!code && mprotect((void *)(uintptr_t)address, bytes,
			      access->flags == 3 ? PROT_READ | PROT_WRITE :
			      access->flags == 1 ? PROT_READ : PROT_NONE))
		code = SIM_INVALID_VALUE;
	pthread_mutex_unlock(&sim_mem_lock);
	return code;
}

enum { TYPE_FILE = 1 };		/* CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR */

static struct sim_mem_handle *handle_get(unsigned long long handle)
{
	return sim_pool_get(&sim.mems, (void *)(uintptr_t)handle);
}

int sim_cuMemRetainAllocationHandle(unsigned long long *handle, void *address)
{
	struct sim_mem *mem;
	int code = SIM_INVALID_VALUE;

	if (!handle)
		return code;
	pthread_mutex_lock(&sim_mem_lock);
	mem = sim_mem_find((sim_addr)(uintptr_t)address);
	if (mem && mem->kind == SIM_MEM_VMM) {
		mem->handle->references++;
		*handle = (unsigned long long)(uintptr_t)mem->handle;
		code = 0;
	}
	pthread_mutex_unlock(&sim_mem_lock);
	return code;
}

int sim_cuMemGetAllocationPropertiesFromHandle(struct sim_alloc_prop *prop, unsigned long long handle)
{
	struct sim_mem_handle *h = handle_get(handle);

	if (!h || !prop)
		return SIM_INVALID_VALUE;
	*prop = (struct sim_alloc_prop){.type = 1, .handle_types = h->handle_types, .location = {1, h->device}};
	return 0;
}

int sim_cuMemGetAccess(unsigned long long *flags, const struct sim_location *location, sim_addr address)
{
	struct sim_mem *mem;
	int code = SIM_INVALID_VALUE;

	if (!flags || !location)
		return code;
	pthread_mutex_lock(&sim_mem_lock);
	mem = sim_mem_find(address);
	if (mem && mem->kind == SIM_MEM_VMM) {
		*flags = mem->access ? 3 : 0;
		code = 0;
	}
	pthread_mutex_unlock(&sim_mem_lock);
	return code;
}

int sim_cuMemExportToShareableHandle(void *out, unsigned long long handle, int type, unsigned long long flags)
{
	struct sim_mem_handle *h = handle_get(handle);
	int fd;

	if (!h || !out || flags)
		return SIM_INVALID_VALUE;
	if (type != TYPE_FILE)
		return SIM_NOT_SUPPORTED;
	if (!(h->handle_types & TYPE_FILE))	/* it was not made for that */
		return SIM_INVALID_VALUE;
	fd = fcntl(h->fd, F_DUPFD_CLOEXEC, 3);	/* none, if no file may be that large */
	if (fd < 0)
		return SIM_OPERATING_SYSTEM;
	memcpy(out, &fd, sizeof(fd));
	return 0;
}

/* The memory is that of the process that exported it: it is not taken from the card a second time. */
int sim_cuMemImportFromShareableHandle(unsigned long long *handle, void *from, int type)
{
	struct sim_mem_handle *h;
	int fd = (int)(intptr_t)from;
	off_t bytes;

	if (!handle)
		return SIM_INVALID_VALUE;
	if (type != TYPE_FILE)
		return SIM_NOT_SUPPORTED;
	bytes = lseek(fd, 0, SEEK_END);
	if (bytes <= 0 || !multiple((size_t)bytes))
		return SIM_INVALID_VALUE;
	h = sim_pool_new(&sim.mems);
	if (!h)
		return SIM_OUT_OF_MEMORY;
	h->fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	h->offset = 0;
	h->device = sim_ctx_current() ? sim_ctx_current()->device : 0;
	h->bytes = (size_t)bytes;
	h->memory = NULL;
	h->maps = 0;
	h->references = 1;
	h->imported = true;
	h->handle_types = TYPE_FILE;
	atomic_store(&h->head.alive, 1);
	*handle = (unsigned long long)(uintptr_t)h;
	return 0;
}
