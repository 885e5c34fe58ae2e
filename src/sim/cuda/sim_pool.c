/* SPDX-License-Identifier: Apache-2.0
 * Handles: objects of one kind in one address range that is never unmapped; the oldest is reused
 * first. */
#include "sim/cuda/sim.h"

#include <sys/mman.h>

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;

void __lsan_ignore_object(const void *block) __attribute__((weak));

void sim_keep(void *block)
{
	if (block && __lsan_ignore_object)
		__lsan_ignore_object(block);
}

static void pool_init(struct sim_pool *pool, size_t stride, size_t max)
{
	void *base = mmap(NULL, stride * max, PROT_READ | PROT_WRITE,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	pool->stride = stride;
	pool->max = base == MAP_FAILED ? 0 : max;
	atomic_store(&pool->base, base == MAP_FAILED ? NULL : base);
}

void sim_pools_init(void)
{
	pool_init(&sim.contexts, sizeof(struct sim_ctx), 4096);
	pool_init(&sim.streams, sizeof(struct sim_stream), 1 << 16);
	pool_init(&sim.events, sizeof(struct sim_event), 1 << 20);
	pool_init(&sim.modules, sizeof(struct sim_module), 1 << 18);
	pool_init(&sim.libraries, sizeof(struct sim_library), 1 << 18);
	pool_init(&sim.funcs, sizeof(struct sim_func), 1 << 20);
	pool_init(&sim.graphs, sizeof(struct sim_graph), 1 << 18);
	pool_init(&sim.execs, sizeof(struct sim_exec), 1 << 18);
	pool_init(&sim.mempools, sizeof(struct sim_mempool), 1 << 12);
	pool_init(&sim.nodes, sizeof(struct sim_node), 1 << 22);
	pool_init(&sim.objects, sizeof(struct sim_object), 1 << 20);
	pool_init(&sim.mems, sizeof(struct sim_mem_handle), 1 << 20);
}

/* The object is as its last owner left it: the caller fills it in, then sets head.alive. */
void *sim_pool_new(struct sim_pool *pool)
{
	struct sim_head *head = NULL;
	size_t used;

	pthread_mutex_lock(&pool_lock);
	used = atomic_load(&pool->used);
	/* Handles are reused as late as possible, so that a stale one is detected for a long time. */
	if (pool->free_first && (used == pool->max || used > 256)) {
		head = pool->free_first;
		pool->free_first = head->next_free;
		if (!pool->free_first)
			pool->free_last = NULL;
	} else if (used < pool->max) {
		head = (struct sim_head *)(atomic_load(&pool->base) + used * pool->stride);
		atomic_store(&pool->used, used + 1);
	}
	pthread_mutex_unlock(&pool_lock);
	return head;
}

void *sim_pool_get(struct sim_pool *pool, const void *handle)
{
	char *base = atomic_load_explicit(&pool->base, memory_order_relaxed);
	size_t offset = (size_t)((const char *)handle - base);
	struct sim_head *head;

	if (SIM_UNLIKELY(!handle || (const char *)handle < base ||
			 offset >= atomic_load_explicit(&pool->used, memory_order_acquire) * pool->stride ||
			 offset % pool->stride))
		return NULL;
	head = (struct sim_head *)(base + offset);
	return atomic_load_explicit(&head->alive, memory_order_acquire) ? head : NULL;
}

void sim_pool_drop(struct sim_pool *pool, void *object)
{
	struct sim_head *head = object;

	pthread_mutex_lock(&pool_lock);
	atomic_store(&head->alive, 0);
	head->next_free = NULL;
	if (pool->free_last)
		pool->free_last->next_free = head;
	else
		pool->free_first = head;
	pool->free_last = head;
	pthread_mutex_unlock(&pool_lock);
}
