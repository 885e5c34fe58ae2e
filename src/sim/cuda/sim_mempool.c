/* SPDX-License-Identifier: Apache-2.0
 * Memory pools: memory that cuMemFreeAsync gives back stays reserved until a wait finds more of it than the release threshold. */
#include "sim/cuda/sim.h"

#include <string.h>

#define GROWTH	 ((size_t)32 << 20)	/* a pool grows by this much, while the card has it */
#define PAGE	 ((size_t)2 << 20)

enum pool_attribute {
	ATTR_FOLLOW_EVENTS = 1,
	ATTR_OPPORTUNISTIC = 2,
	ATTR_INTERNAL = 3,
	ATTR_THRESHOLD = 4,
	ATTR_RESERVED = 5,
	ATTR_RESERVED_HIGH = 6,
	ATTR_USED = 7,
	ATTR_USED_HIGH = 8,
};

static struct sim_mempool *pool_new(int device)
{
	struct sim_mempool *p = sim_pool_new(&sim.mempools);
	struct sim_head head;

	if (!p)
		return NULL;
	head = p->head;
	memset(p, 0, sizeof(*p));
	p->head = head;
	p->device = device;
	for (int i = 0; i < 3; i++)
		p->reuse[i] = 1;
	atomic_store(&p->head.alive, 1);
	return p;
}

/* The pool that a device begins with. Needs sim_mem_lock. */
static struct sim_mempool *default_pool(struct sim_device *dev)
{
	if (!dev->default_pool)
		dev->default_pool = pool_new((int)(dev - sim.devices));
	return dev->default_pool;
}

static struct sim_mempool *current_pool(struct sim_device *dev)
{
	return dev->pool ? dev->pool : default_pool(dev);
}

struct sim_mempool *sim_mempool_of(struct sim_device *dev)
{
	struct sim_mempool *p;

	pthread_mutex_lock(&sim_mem_lock);
	p = current_pool(dev);
	pthread_mutex_unlock(&sim_mem_lock);
	return p;
}

int sim_mempool_take(struct sim_mempool *p, size_t bytes)
{
	struct sim_device *dev = &sim.devices[p->device];
	size_t need = p->used + bytes > p->reserved ? p->used + bytes - p->reserved : 0;
	size_t more = (need + GROWTH - 1) / GROWTH * GROWTH;

	if (need && sim_mem_charge_locked(dev, more)) {
		more = need;
		if (sim_mem_charge_locked(dev, more))
			return SIM_OUT_OF_MEMORY;
	}
	p->reserved += need ? more : 0;
	p->used += bytes;
	if (p->used > p->used_high)
		p->used_high = p->used;
	if (p->reserved > p->reserved_high)
		p->reserved_high = p->reserved;
	return 0;
}

static void pool_shrink(struct sim_mempool *p, size_t keep)
{
	keep = keep < p->used ? p->used : keep;
	keep = keep > SIZE_MAX - PAGE ? keep : (keep + PAGE - 1) / PAGE * PAGE;
	if (keep >= p->reserved)
		return;
	sim_mem_uncharge_locked(&sim.devices[p->device], p->reserved - keep);
	p->reserved = keep;
}

/* A destroyed pool gives its memory back at once. */
void sim_mempool_give(struct sim_mempool *p, size_t bytes)
{
	p->used -= bytes;
	if (!atomic_load(&p->head.alive))
		pool_shrink(p, 0);
}

/* Called by everything that waits for work of the device. */
void sim_mempools_trim(struct sim_device *dev)
{
	pthread_mutex_lock(&sim_mem_lock);
	if (dev->default_pool)
		pool_shrink(dev->default_pool, dev->default_pool->threshold);
	if (dev->pool && dev->pool != dev->default_pool)
		pool_shrink(dev->pool, dev->pool->threshold);
	pthread_mutex_unlock(&sim_mem_lock);
}

static struct sim_mempool *pool_get(void *handle)
{
	return sim_pool_get(&sim.mempools, handle);
}

static int pool_of_device(void **pool, int device, bool as_set)
{
	struct sim_device *d;

	if (device < 0 || device >= sim.device_count)
		return SIM_INVALID_DEVICE;
	if (!pool)
		return SIM_INVALID_VALUE;
	d = &sim.devices[device];
	pthread_mutex_lock(&sim_mem_lock);
	*pool = as_set ? current_pool(d) : default_pool(d);
	pthread_mutex_unlock(&sim_mem_lock);
	return *pool ? 0 : SIM_OUT_OF_MEMORY;
}

int sim_cuDeviceGetDefaultMemPool(void **pool, int device)
{
	return pool_of_device(pool, device, false);
}

int sim_cuDeviceGetMemPool(void **pool, int device)
{
	return pool_of_device(pool, device, true);
}

int sim_cuDeviceSetMemPool(int device, void *pool)
{
	struct sim_mempool *p = pool_get(pool);

	if (device < 0 || device >= sim.device_count)
		return SIM_INVALID_DEVICE;
	if (!p || p->device != device)
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&sim_mem_lock);
	sim.devices[device].pool = p;
	pthread_mutex_unlock(&sim_mem_lock);
	return 0;
}

int sim_cuMemPoolCreate(void **pool, const struct sim_pool_props *props)
{
	struct sim_mempool *p;

	if (!pool || !props || props->type != 1 || props->location.type != 1 || props->location.id < 0 ||
	    props->location.id >= sim.device_count)
		return SIM_INVALID_VALUE;
	p = pool_new(props->location.id);
	*pool = p;
	return p ? 0 : SIM_OUT_OF_MEMORY;
}

int sim_cuMemPoolDestroy(void *pool)
{
	struct sim_mempool *p = pool_get(pool);
	struct sim_device *d;

	if (!p)
		return SIM_INVALID_VALUE;
	d = &sim.devices[p->device];
	if (p == d->default_pool)
		return SIM_NOT_PERMITTED;
	pthread_mutex_lock(&sim_mem_lock);
	if (d->pool == p)
		d->pool = NULL;
	pool_shrink(p, 0);
	/* what is still allocated stays until it is freed, and the object with it */
	if (p->used)
		atomic_store(&p->head.alive, 0);
	else
		sim_pool_drop(&sim.mempools, p);
	pthread_mutex_unlock(&sim_mem_lock);
	return 0;
}

int sim_cuMemPoolTrimTo(void *pool, size_t keep)
{
	struct sim_mempool *p = pool_get(pool);

	if (!p)
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&sim_mem_lock);
	pool_shrink(p, keep);
	pthread_mutex_unlock(&sim_mem_lock);
	return 0;
}

static uint64_t *pool_counter(struct sim_mempool *p, int attribute)
{
	switch (attribute) {
	case ATTR_THRESHOLD: return &p->threshold;
	case ATTR_RESERVED: return &p->reserved;
	case ATTR_RESERVED_HIGH: return &p->reserved_high;
	case ATTR_USED: return &p->used;
	case ATTR_USED_HIGH: return &p->used_high;
	}
	return NULL;
}

int sim_cuMemPoolGetAttribute(void *pool, int attribute, void *value)
{
	struct sim_mempool *p = pool_get(pool);
	uint64_t *counter = p ? pool_counter(p, attribute) : NULL;

	if (!p || !value || (!counter && (attribute < ATTR_FOLLOW_EVENTS || attribute > ATTR_INTERNAL)))
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&sim_mem_lock);
	if (counter)
		memcpy(value, counter, sizeof(*counter));
	else
		memcpy(value, &p->reuse[attribute - 1], sizeof(int));
	pthread_mutex_unlock(&sim_mem_lock);
	return 0;
}

/* Of the counters only the peaks can be set, and only to 0. */
int sim_cuMemPoolSetAttribute(void *pool, int attribute, void *value)
{
	struct sim_mempool *p = pool_get(pool);
	uint64_t number = 0;
	int code = 0;

	if (!p || !value)
		return SIM_INVALID_VALUE;
	pthread_mutex_lock(&sim_mem_lock);
	if (attribute >= ATTR_FOLLOW_EVENTS && attribute <= ATTR_INTERNAL) {
		memcpy(&p->reuse[attribute - 1], value, sizeof(int));
	} else {
		memcpy(&number, value, sizeof(number));
		if (attribute == ATTR_THRESHOLD)
			p->threshold = number;
		else if (attribute == ATTR_RESERVED_HIGH && !number)
			p->reserved_high = p->reserved;
		else if (attribute == ATTR_USED_HIGH && !number)
			p->used_high = p->used;
		else
			code = SIM_INVALID_VALUE;
	}
	pthread_mutex_unlock(&sim_mem_lock);
	return code;
}

int sim_cuMemPoolSetAccess(void *pool, const struct sim_access *access, size_t count)
{
	struct sim_mempool *p = pool_get(pool);

	if (!p || (count && !access))
		return SIM_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		int id = access[i].location.id;

		if (access[i].location.type != 1 || id < 0 || id >= sim.device_count)
			return SIM_INVALID_DEVICE;
		if (id == p->device && access[i].flags != 3)
			return SIM_INVALID_VALUE;	/* its own device always has access */
		if (id != p->device && !sim_device_peers(p->device, id))
			return SIM_INVALID_DEVICE;
		p->access[id] = (unsigned char)access[i].flags;
	}
	return 0;
}

int sim_cuMemPoolGetAccess(int *flags, void *pool, const struct sim_location *location)
{
	struct sim_mempool *p = pool_get(pool);

	if (!p || !flags || !location || location->type != 1 || location->id < 0 || location->id >= sim.device_count)
		return SIM_INVALID_VALUE;
	*flags = location->id == p->device ? 3 : p->access[location->id];
	return 0;
}

int sim_cuDeviceGetGraphMemAttribute(int device, int attribute, void *value)
{
	if (device < 0 || device >= sim.device_count)
		return SIM_INVALID_DEVICE;
	if (!value || attribute < 0 || attribute > 3)
		return SIM_INVALID_VALUE;
	memset(value, 0, sizeof(uint64_t));
	return 0;
}

int sim_cuDeviceSetGraphMemAttribute(int device, int attribute, void *value)
{
	if (device < 0 || device >= sim.device_count)
		return SIM_INVALID_DEVICE;
	return value && (attribute == 1 || attribute == 3) ? 0 : SIM_INVALID_VALUE;
}

int sim_cuDeviceGraphMemTrim(int device)
{
	return device < 0 || device >= sim.device_count ? SIM_INVALID_DEVICE : 0;
}
