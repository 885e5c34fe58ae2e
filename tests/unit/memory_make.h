/* SPDX-License-Identifier: Apache-2.0
 * For tests: the memory of a recorded process, block by block. Segments lie one after the other; blocks are put into the
 * newest.
 */
#ifndef CUWHY_MEMORY_MAKE_H
#define CUWHY_MEMORY_MAKE_H

#include "judge.h"

#define MM_BLOCKS 1024
#define MM_ALLOCATIONS 256
#define MM_SITES 128
#define MM_FREED 1024	/* power of two */
#define MM_NODES 1024	/* power of two */
#define MIB (1ull << 20)
#define GIB (1ull << 30)

struct mm {
	struct tb b;
	struct cw_allocation *block, *allocation;
	struct cw_site *site;
	struct cw_ring *freed, *nodes;
	uint32_t n_blocks, n_allocations, n_sites, c10;
	uint64_t next_segment, at;	/* addresses */
	uint64_t allocated, reserved, driver;
};

static inline void mm_init(struct mm *m)
{
	*m = (struct mm){.next_segment = 0x700000000000ull};
	tb_init(&m->b);
	m->block = (void *)(m->b.data + tb_chunk(&m->b, CW_CHUNK_BLOCKS, MM_BLOCKS * sizeof(*m->block)));
	m->allocation =
		(void *)(m->b.data + tb_chunk(&m->b, CW_CHUNK_ALLOCATIONS, MM_ALLOCATIONS * sizeof(*m->allocation)));
	m->site = (void *)(m->b.data + tb_chunk(&m->b, CW_CHUNK_SITES, MM_SITES * sizeof(*m->site)));
	m->freed = (void *)(m->b.data +
			    tb_chunk(&m->b, CW_CHUNK_FREED, sizeof(*m->freed) + MM_FREED * sizeof(struct cw_freed)));
	*m->freed = (struct cw_ring){.slot_size = sizeof(struct cw_freed), .n_slots = MM_FREED};
	m->nodes = (void *)(m->b.data +
			    tb_chunk(&m->b, CW_CHUNK_NODES, sizeof(*m->nodes) + MM_NODES * sizeof(struct cw_node)));
	*m->nodes = (struct cw_ring){.tid = 1, .slot_size = sizeof(struct cw_node), .n_slots = MM_NODES};
	m->c10 = tb_string(&m->b, "/venv/lib/python3.12/site-packages/torch/lib/libc10_cuda.so");
	for (int i = 0; i < 16; i++)
		m->b.h->device[0].uuid[i] = (uint8_t)(i + 1);
}

static inline uint32_t mm_site(struct mm *m, uint32_t stack, uint32_t forward, uint16_t kind, uint32_t flags)
{
	for (uint32_t i = 1; i <= m->n_sites; i++)
		if (m->site[i].stack == stack && m->site[i].forward_stack == forward && m->site[i].kind == kind &&
		    m->site[i].flags == flags)
			return i;
	if (m->n_sites + 1 >= MM_SITES)
		abort();
	m->site[++m->n_sites] = (struct cw_site){
		.stack = stack, .forward_stack = forward, .kind = kind, .flags = flags, .first_ticks = m->b.ticks};
	return m->n_sites;
}

/* A driver allocation; `library` 0 = not known. */
static inline uint64_t mm_allocate(struct mm *m, uint64_t size, uint32_t library, uint32_t stack, uint16_t kind)
{
	uint64_t addr = m->next_segment;

	if (m->n_allocations >= MM_ALLOCATIONS)
		abort();
	m->allocation[m->n_allocations++] = (struct cw_allocation){ .addr = addr, .size = size, .ticks = ++m->b.ticks,
								    .stack = stack, .kind = kind, .library = library,
								   .device = kind == CW_MEM_PINNED ? -1 : 0};
	m->next_segment += (size + 2 * MIB) / (2 * MIB) * (2 * MIB) + 2 * MIB;
	m->driver += kind == CW_MEM_PINNED ? 0 : size;
	return addr;
}

static inline void mm_segment(struct mm *m, uint64_t size)
{
	m->at = mm_allocate(m, size, m->c10, 0, CW_MEM_DEVICE);
	m->reserved += size;
}

static inline void mm_gap(struct mm *m, uint64_t size)
{
	m->at += size;
}

static inline struct cw_allocation *mm_block(struct mm *m, uint64_t size, uint32_t stack, uint32_t forward, uint32_t flags)
{
	uint32_t s = mm_site(m, stack, forward, CW_MEM_TORCH, flags);
	struct cw_allocation *a = &m->block[m->n_blocks++];

	if (m->n_blocks > MM_BLOCKS)
		abort();
	m->b.ticks += 1000;
	*a = (struct cw_allocation){ .addr = m->at, .size = size, .ticks = m->b.ticks, .stack = stack,
				    .kind = CW_MEM_TORCH,
				    .extra = forward,
				    .site = s};
	m->at += size;
	m->allocated += size;
	m->site[s].live += size;
	m->site[s].live_count++;
	m->site[s].total += size;
	m->site[s].total_count++;
	m->site[s].last_ticks = m->b.ticks;
	return a;
}

/* A block that was allocated and freed. */
static inline void mm_passed(struct mm *m, uint64_t size, uint32_t stack, uint32_t forward)
{
	uint32_t s = mm_site(m, stack, forward, CW_MEM_TORCH, forward ? CW_SITE_BACKWARD : 0);
	struct cw_freed *f = (struct cw_freed *)(m->freed + 1) + (m->freed->head & (MM_FREED - 1));

	*f = (struct cw_freed){ .addr = m->at, .size = size, .made_ticks = ++m->b.ticks, .stack = stack,
			       .forward_stack = forward,
			       .kind = CW_MEM_TORCH};
	f->ticks = ++m->b.ticks;
	f->seq = ++m->freed->head;
	m->site[s].total += size;
	m->site[s].total_count++;
	m->b.h->n_blocks_freed++;
}

static inline struct cw_node *mm_node(struct mm *m, uint32_t stack, bool run)
{
	struct cw_node *n = (struct cw_node *)(m->nodes + 1) + (m->nodes->head & (MM_NODES - 1));

	*n = (struct cw_node){(uint32_t)m->nodes->head++, stack | (run ? CW_NODE_HAS_RUN : 0)};
	m->b.h->n_nodes++;
	m->b.h->n_nodes_run += run;
	return n;
}

/* PyTorch runs out of memory: it holds what was allocated so far. */
static inline struct cw_failure *mm_oom(struct mm *m, uint64_t request, uint64_t left, uint32_t stack)
{
	struct cw_failure *f = tb_fail(&m->b, CW_SRC_DRIVER, 2, stack);

	f->api = 120;
	f->request_bytes = request;
	f = tb_fail(&m->b, CW_SRC_TORCH_OOM, 2, stack);
	f->request_bytes = request;
	f->torch_allocated = m->allocated;
	f->torch_reserved = m->reserved;
	f->live_device_bytes = m->driver;
	f->memory_known = 1;
	f->free_bytes = left;
	f->total_bytes = m->b.h->device[0].total_bytes;
	tb_fail_text(&m->b, CW_SRC_PYTHON, stack, "OutOfMemoryError", "CUDA out of memory. Tried to allocate ...");
	m->b.h->memory[0] = (struct cw_memory_now){ .allocated = m->allocated, .reserved = m->reserved,
						   .peak_allocated = m->allocated,
						   .peak_reserved = m->reserved,
						   .driver = m->driver,
						   .driver_peak = m->driver,
						   .peak_ticks = m->b.ticks,
						   .n_oom = 1};
	return f;
}

#endif
