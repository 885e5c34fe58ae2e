/* SPDX-License-Identifier: Apache-2.0
 * Device memory: what is allocated where, and how much of the card is left. */
#include "sim/cuda/sim_cards.h"
#include "sim/cuda/sim_contents.h"

#include <search.h>
#include <stdlib.h>

pthread_mutex_t sim_mem_lock = PTHREAD_MUTEX_INITIALIZER;
static void *mem_tree;			/* struct sim_mem by address, for tfind */
static unsigned long long mem_next_id = 1;

/* Ranges that overlap compare equal, so an address inside a block finds the block. */
static int mem_compare(const void *a, const void *b)
{
	const struct sim_mem *x = a, *y = b;

	if (x->start + x->bytes <= y->start)
		return -1;
	return x->start >= y->start + y->bytes;
}

struct sim_mem *sim_mem_find(sim_addr address)
{
	struct sim_mem key = {.start = address, .bytes = 1};
	struct sim_mem **found = tfind(&key, &mem_tree, mem_compare);

	return found ? *found : NULL;
}

static struct sim_mem *mem_add_locked(sim_addr start, size_t bytes, enum sim_mem_kind kind)
{
	struct sim_mem *mem = calloc(1, sizeof(*mem));
	struct sim_mem **slot;

	if (!mem)
		return NULL;
	mem->start = start;
	mem->bytes = bytes;
	mem->kind = kind;
	mem->ctx = sim_ctx_current();
	mem->device = mem->ctx ? mem->ctx->device : 0;
	mem->id = mem_next_id++;
	mem->access = true;
	slot = tsearch(mem, &mem_tree, mem_compare);
	if (!slot || *slot != mem) {
		free(mem);
		return NULL;
	}
	return mem;
}

struct sim_mem *sim_mem_add(sim_addr start, size_t bytes, enum sim_mem_kind kind)
{
	struct sim_mem *mem;

	pthread_mutex_lock(&sim_mem_lock);
	mem = mem_add_locked(start, bytes, kind);
	pthread_mutex_unlock(&sim_mem_lock);
	return mem;
}

void sim_mem_remove(struct sim_mem *mem)
{
	tdelete(mem, &mem_tree, mem_compare);
	free(mem);
}

/* Is the whole range memory that a kernel may access? Adjacent blocks count as one. */
bool sim_mem_covers(sim_addr address, size_t bytes)
{
	sim_addr end = address + bytes;
	bool ok = true;

	pthread_mutex_lock(&sim_mem_lock);
	while (ok && address < end) {
		struct sim_mem *mem = sim_mem_find(address);

		ok = mem && mem->access;
		if (ok)
			address = mem->start + mem->bytes;
	}
	pthread_mutex_unlock(&sim_mem_lock);
	return ok;
}

/* May the context's kernels access it? Memory of another GPU only after cuCtxEnablePeerAccess. */
static bool mem_open_to(const struct sim_mem *mem, struct sim_ctx *ctx)
{
	if (!mem || !mem->access)
		return false;
	return mem->kind != SIM_MEM_DEVICE || mem->device == ctx->device ||
	       atomic_load(&ctx->peers) >> mem->device & 1;
}

/* How many bytes from this address on a kernel may access, at most `bytes`. */
size_t sim_mem_reach(struct sim_ctx *ctx, sim_addr address, size_t bytes)
{
	sim_addr at = address;
	bool ok = true;

	pthread_mutex_lock(&sim_mem_lock);
	while (ok && at - address < bytes) {
		struct sim_mem *mem = sim_mem_find(at);

		ok = mem_open_to(mem, ctx);
		if (ok)
			at = mem->start + mem->bytes;
	}
	pthread_mutex_unlock(&sim_mem_lock);
	return at - address < bytes ? at - address : bytes;
}

int sim_mem_kind_of(sim_addr address)
{
	struct sim_mem *mem;
	int kind;

	pthread_mutex_lock(&sim_mem_lock);
	mem = sim_mem_find(address);
	kind = mem ? (int)mem->kind : -1;
	pthread_mutex_unlock(&sim_mem_lock);
	return kind;
}

/* How much device memory a block uses: the driver allocates multiples of 512 bytes, and large
 * blocks in pages of 2 MiB. */
size_t sim_mem_round(size_t bytes)
{
	size_t unit = bytes > 1 << 20 ? (size_t)2 << 20 : 512;

	return bytes > SIZE_MAX - unit ? SIZE_MAX : (bytes + unit - 1) & ~(unit - 1);
}

int sim_mem_charge_locked(struct sim_device *dev, size_t bytes)
{
	size_t gone = sim.config.hidden + sim.config.taken;

	if (gone > dev->total || !sim_cards_take(dev->physical, bytes, dev->total - gone))
		return SIM_OUT_OF_MEMORY;
	return 0;
}

int sim_mem_charge(struct sim_device *dev, size_t bytes)
{
	int code;

	pthread_mutex_lock(&sim_mem_lock);
	code = sim_mem_charge_locked(dev, bytes);
	pthread_mutex_unlock(&sim_mem_lock);
	return code;
}

void sim_mem_uncharge_locked(struct sim_device *dev, size_t bytes)
{
	sim_cards_give(dev->physical, bytes);
}

void sim_mem_uncharge(struct sim_device *dev, size_t bytes)
{
	pthread_mutex_lock(&sim_mem_lock);
	sim_mem_uncharge_locked(dev, bytes);
	pthread_mutex_unlock(&sim_mem_lock);
}

static void block_uncharge(struct sim_device *dev, struct sim_mempool *pool, size_t charged)
{
	if (pool)
		sim_mempool_give(pool, charged);
	else
		sim_mem_uncharge_locked(dev, charged);
}

static int alloc_locked(sim_addr *address, size_t bytes, size_t charged, struct sim_mempool *pool)
{
	struct sim_device *dev = pool ? &sim.devices[pool->device] : sim_device_current();
	struct sim_mem *mem;
	sim_addr at;
	int code = pool ? sim_mempool_take(pool, charged) : sim_mem_charge_locked(dev, charged);

	if (code)
		return code;
	at = sim_heap_take(dev, charged);
	mem = at ? mem_add_locked(at, bytes, SIM_MEM_DEVICE) : NULL;
	if (!mem) {
		if (at)
			sim_heap_give(dev, at, charged, false);
		block_uncharge(dev, pool, charged);
		return SIM_OUT_OF_MEMORY;
	}
	mem->charged = charged;
	mem->device = (int)(dev - sim.devices);
	mem->pool = pool;
	*address = at;
	return 0;
}

int sim_mem_alloc(sim_addr *address, size_t bytes, struct sim_mempool *pool)
{
	int code;

	if (!bytes)
		sim_log("Requested 0 byte allocation");
	if (!address || !bytes)
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&sim_mem_lock);
	code = alloc_locked(address, bytes, sim_mem_round(bytes), pool);
	pthread_mutex_unlock(&sim_mem_lock);
	return code;
}

int sim_mem_free(sim_addr address)
{
	struct sim_mem *mem;
	int code = SIM_INVALID_VALUE;

	pthread_mutex_lock(&sim_mem_lock);
	mem = sim_mem_find(address);
	if (mem && mem->start == address && mem->kind == SIM_MEM_DEVICE && !mem->foreign) {
		struct sim_device *dev = &sim.devices[mem->device];

		sim_ipc_forget(mem);
		sim_contents_freed(mem->start, mem->bytes);
		sim_heap_give(dev, address, mem->charged, !mem->pool);
		block_uncharge(dev, mem->pool, mem->charged);
		sim_mem_remove(mem);
		code = 0;
	}
	pthread_mutex_unlock(&sim_mem_lock);
	return code;
}

struct owned {
	struct sim_ctx *ctx;
	sim_addr *list;
	size_t count, capacity;
};

static struct owned *collected;		/* for collect; under sim_mem_lock */

/* twalk_r would pass it on, but is newer than the oldest glibc that we support. */
static void collect(const void *node, VISIT visit, int depth)
{
	const struct sim_mem *mem = *(struct sim_mem *const *)node;
	struct owned *o = collected;

	(void)depth;
	if ((visit != postorder && visit != leaf) || mem->ctx != o->ctx ||
	    mem->kind != SIM_MEM_DEVICE)
		return;
	if (o->count == o->capacity) {
		size_t capacity = o->capacity ? 2 * o->capacity : 64;
		sim_addr *list = realloc(o->list, capacity * sizeof(*list));

		if (!list)
			return;
		o->list = list;
		o->capacity = capacity;
	}
	o->list[o->count++] = mem->start;
}

/* A context's device memory is freed with it. */
void sim_mem_free_all(struct sim_ctx *ctx)
{
	struct owned o = {.ctx = ctx};

	pthread_mutex_lock(&sim_mem_lock);
	collected = &o;
	twalk(mem_tree, collect);
	pthread_mutex_unlock(&sim_mem_lock);
	for (size_t i = 0; i < o.count; i++)
		sim_mem_free(o.list[i]);
	free(o.list);
}
