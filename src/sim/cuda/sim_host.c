/* SPDX-License-Identifier: Apache-2.0
 * Memory that the host can access, too: pinned, registered, managed; and queries about an
 * address. */
#include "sim/cuda/sim.h"
#include "sim/cuda/sim_cards.h"

#include <string.h>
#include <sys/mman.h>

#define PAGE ((size_t)4096)

static size_t whole_pages(size_t bytes)
{
	return (bytes + PAGE - 1) & ~(PAGE - 1);
}

/* Pinned pages cannot be swapped out: all processes together can have as much as there is RAM. None is touched here. */
static bool pin(enum sim_mem_kind kind, size_t length)
{
	bool ok;

	if (kind != SIM_MEM_HOST)
		return true;
	pthread_mutex_lock(&sim_mem_lock);
	ok = sim_cards_take(CARD_HOST, length, sim.config.ram);
	pthread_mutex_unlock(&sim_mem_lock);
	return ok;
}

static void unpin_locked(enum sim_mem_kind kind, size_t length)
{
	if (kind == SIM_MEM_HOST)
		sim_cards_give(CARD_HOST, length);
}

static int pages_add(void **address, size_t bytes, enum sim_mem_kind kind, unsigned int flags)
{
	size_t length = whole_pages(bytes);
	struct sim_mem *mem;
	void *at = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (at == MAP_FAILED)
		return SIM_OUT_OF_MEMORY;
	mem = sim_mem_add((sim_addr)(uintptr_t)at, bytes, kind);
	if (!mem) {
		munmap(at, length);
		return SIM_OUT_OF_MEMORY;
	}
	mem->flags = flags;
	*address = at;
	return 0;
}

static int host_alloc(void **address, size_t bytes, enum sim_mem_kind kind, unsigned int flags)
{
	size_t length = whole_pages(bytes);
	int code = sim_capture_check_unsafe();

	if (code)
		return code;
	if (!address)
		return SIM_INVALID_VALUE;
	if (!bytes) {			/* measured: no error, and no memory */
		*address = NULL;
		return 0;
	}
	if (length < bytes || !pin(kind, length))
		return SIM_OUT_OF_MEMORY;
	code = pages_add(address, bytes, kind, flags);
	if (code) {
		pthread_mutex_lock(&sim_mem_lock);
		unpin_locked(kind, length);
		pthread_mutex_unlock(&sim_mem_lock);
	}
	return code;
}

int sim_cuMemAllocHost_v2(void **address, size_t bytes)
{
	return host_alloc(address, bytes, SIM_MEM_HOST, 0);
}

int sim_cuMemHostAlloc(void **address, size_t bytes, unsigned int flags)
{
	if (flags > 7)
		return SIM_INVALID_VALUE;
	return host_alloc(address, bytes, SIM_MEM_HOST, flags);
}

int sim_cuMemAllocManaged(sim_addr *address, size_t bytes, unsigned int flags)
{
	void *at = NULL;
	int code;

	if (!flags)
		sim_log("Parameter flags cannot be 0");
	if (!address || (flags != 1 && flags != 2))
		return SIM_INVALID_VALUE;
	code = host_alloc(&at, bytes, SIM_MEM_MANAGED, flags);
	if (!code)
		*address = (sim_addr)(uintptr_t)at;
	return code;
}

/* Also frees managed memory, for cuMemFree. */
int sim_cuMemFreeHost(void *address)
{
	struct sim_mem *mem;
	int code = sim_capture_check_unsafe();

	if (code || !address)
		return code;
	code = SIM_INVALID_VALUE;
	sim_ctx_drain(sim_ctx_current());
	pthread_mutex_lock(&sim_mem_lock);
	mem = sim_mem_find((sim_addr)(uintptr_t)address);
	if (mem && mem->start == (sim_addr)(uintptr_t)address &&
	    (mem->kind == SIM_MEM_HOST || mem->kind == SIM_MEM_MANAGED)) {
		munmap(address, whole_pages(mem->bytes));
		unpin_locked(mem->kind, whole_pages(mem->bytes));
		sim_mem_remove(mem);
		code = 0;
	}
	pthread_mutex_unlock(&sim_mem_lock);
	return code;
}

int sim_cuMemHostRegister_v2(void *address, size_t bytes, unsigned int flags)
{
	int code = sim_capture_check_unsafe();
	struct sim_mem *mem;

	if (code)
		return code;
	if (!address || !bytes || flags > 15)
		return SIM_INVALID_VALUE;
	mem = sim_mem_add((sim_addr)(uintptr_t)address, bytes, SIM_MEM_REGISTERED);
	if (!mem)
		return SIM_ALREADY_REGISTERED;
	mem->flags = flags;
	return 0;
}

int sim_cuMemHostUnregister(void *address)
{
	struct sim_mem *mem;
	int code = SIM_NOT_REGISTERED;

	if (!address)
		return SIM_INVALID_VALUE;
	sim_ctx_drain(sim_ctx_current());
	pthread_mutex_lock(&sim_mem_lock);
	mem = sim_mem_find((sim_addr)(uintptr_t)address);
	if (mem && mem->kind == SIM_MEM_REGISTERED &&
	    mem->start == (sim_addr)(uintptr_t)address) {
		sim_mem_remove(mem);
		code = 0;
	}
	pthread_mutex_unlock(&sim_mem_lock);
	return code;
}

int sim_cuMemHostGetDevicePointer_v2(sim_addr *address, void *host, unsigned int flags)
{
	int kind = sim_mem_kind_of((sim_addr)(uintptr_t)host);

	if (!address || flags || (kind != SIM_MEM_HOST && kind != SIM_MEM_REGISTERED))
		return SIM_INVALID_VALUE;
	*address = (sim_addr)(uintptr_t)host;
	return 0;
}

int sim_cuMemHostGetFlags(unsigned int *flags, void *host)
{
	struct sim_mem *mem;
	int code = SIM_INVALID_VALUE;

	if (!flags)
		return code;
	pthread_mutex_lock(&sim_mem_lock);
	mem = sim_mem_find((sim_addr)(uintptr_t)host);
	if (mem && (mem->kind == SIM_MEM_HOST || mem->kind == SIM_MEM_REGISTERED)) {
		*flags = mem->flags;
		code = 0;
	}
	pthread_mutex_unlock(&sim_mem_lock);
	return code;
}

static bool on_host(const struct sim_mem *mem)
{
	return mem->kind == SIM_MEM_HOST || mem->kind == SIM_MEM_REGISTERED;
}

#define SET(type, what)                                                                            \
	do {                                                                                       \
		type set_value = (what);                                                           \
		memcpy(value, &set_value, sizeof(type));                                           \
	} while (0)

static int attribute_of(void *value, int attribute, const struct sim_mem *mem, sim_addr address)
{
	switch (attribute) {
	case 1: SET(struct sim_ctx *, mem->ctx); return 0;
	case 2: SET(unsigned int, on_host(mem) ? 1 : 2); return 0;
	case 3: SET(sim_addr, address); return 0;
	case 4:
		if (!on_host(mem) && mem->kind != SIM_MEM_MANAGED)
			return SIM_INVALID_VALUE;
		SET(sim_addr, address);
		return 0;
	case 6: SET(unsigned char, 0); return 0;
	case 7: SET(unsigned long long, mem->id); return 0;
	case 8: SET(unsigned int, mem->kind == SIM_MEM_MANAGED); return 0;
	case 9: SET(int, mem->device); return 0;
	case 10: SET(unsigned char, 0); return 0;
	case 11: SET(sim_addr, mem->start); return 0;
	case 12: SET(size_t, mem->bytes); return 0;
	case 13: SET(unsigned char, 1); return 0;
	case 14: SET(unsigned long long, 0); return 0;
	case 15: SET(unsigned char, 0); return 0;
	case 16: SET(int, 3); return 0;
	case 17: SET(void *, mem->pool); return 0;
	}
	return SIM_INVALID_VALUE;
}

int sim_cuPointerGetAttribute(void *value, int attribute, sim_addr address)
{
	struct sim_mem *mem;
	int code;

	if (!value)
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&sim_mem_lock);
	mem = sim_mem_find(address);
	code = mem ? attribute_of(value, attribute, mem, address) : SIM_INVALID_VALUE;
	pthread_mutex_unlock(&sim_mem_lock);
	return code;
}

/* Unlike the single-attribute variant, this one succeeds for any address; unknown attributes are zero. */
int sim_cuPointerGetAttributes(unsigned int count, int *attributes, void **values, sim_addr address)
{
	if (!count || !attributes || !values)
		return SIM_INVALID_VALUE;
	for (unsigned int i = 0; i < count; i++) {
		if (!sim_cuPointerGetAttribute(values[i], attributes[i], address))
			continue;
		if (attributes[i] == 9)
			memcpy(values[i], &(int){-2}, sizeof(int));
		else if (attributes[i] == 2 || attributes[i] == 8)
			memset(values[i], 0, sizeof(int));
		else if (attributes[i] == 6 || attributes[i] == 10 || attributes[i] == 13)
			memset(values[i], 0, 1);
		else
			memset(values[i], 0, 8);
	}
	return 0;
}
