/* SPDX-License-Identifier: Apache-2.0
 * For tests: a program that uses PyTorch's allocator, and the events that the recorder would write of it.
 */
#ifndef CUWHY_PROGRAM_MAKE_H
#define CUWHY_PROGRAM_MAKE_H

#include "allocator/card.h"
#include "base/err.h"
#include "base/str.h"
#include "events_make.h"
#include "find/memory/replay.h"
#include "memory_make.h"

#define TOTAL	(1 * GIB)
#define OUTSIDE (64 * MIB)

struct program {
	struct mm mm;
	struct em em;
	struct trace *trace;
	uint32_t segment_site, block_site, nccl_site, page_site, range_site;
	struct { uint64_t addr, size, page; } range[64];	/* reserved for expandable segments */
	size_t ranges;
	uint32_t lines[4];		/* sites of blocks, at lines of their own */
	uint32_t parameter_site, gradient_site, state_site, convolution_site;	/* by PyTorch's own code */
	struct card card;
	struct allocator *a;
	struct allocator_driver real;
	uint64_t ticks;
};

static inline void note(struct program *p, enum cw_event kind, uint64_t addr, uint64_t size, uint32_t site)
{
	p->ticks += 64;
	em_event(&p->em, kind, 0, p->ticks, addr, size, site);
}

static inline uint64_t note_alloc(void *of, uint64_t size, uint64_t stream)
{
	struct program *p = of;
	uint64_t addr = p->real.alloc(p->real.of, size, stream);

	if (addr)
		note(p, CW_EVENT_GAVE, addr, size, p->segment_site);
	else
		em_more(&p->em, CW_MORE_REFUSED, 0, size);
	return addr;
}

static inline void note_free(void *of, uint64_t addr, uint64_t size)
{
	struct program *p = of;

	p->real.free(p->real.of, addr, size);
	note(p, CW_EVENT_TOOK, addr, 0, 0);
}

static inline uint64_t note_reserve(void *of, uint64_t size, uint64_t page, uint64_t stream)
{
	struct program *p = of;
	uint64_t addr = p->real.reserve(p->real.of, size, page, stream) - ((uint64_t)1 << 47);	/* where programs have their memory */

	assert_true(p->ranges < 64);
	p->range[p->ranges].addr = addr;
	p->range[p->ranges].page = page;
	p->range[p->ranges++].size = size;
	note(p, CW_EVENT_GAVE, addr + 1, size, p->range_site);
	return addr;
}

static inline void note_unreserve(void *of, uint64_t addr, uint64_t size)
{
	struct program *p = of;

	(void)size;
	for (size_t i = 0; i < p->ranges; i++)
		if (p->range[i].addr == addr)
			p->range[i] = p->range[--p->ranges];
	note(p, CW_EVENT_TOOK, addr + 1, 0, 0);
}

static inline uint64_t page_of(const struct program *p, uint64_t addr)
{
	for (size_t i = 0; i < p->ranges; i++)
		if (addr - p->range[i].addr < p->range[i].size)
			return p->range[i].page;
	fail();
	return 0;
}

static inline bool note_map(void *of, uint64_t addr, uint64_t size)
{
	struct program *p = of;

	if (!p->real.map(p->real.of, addr, size)) {
		em_more(&p->em, CW_MORE_REFUSED, 0, size);
		return false;
	}
	for (uint64_t done = 0; done < size; done += page_of(p, addr))
		note(p, CW_EVENT_GAVE, addr + done, page_of(p, addr), p->page_site);
	return true;
}

static inline void note_unmap(void *of, uint64_t addr, uint64_t size)
{
	struct program *p = of;

	p->real.unmap(p->real.of, addr, size);
	for (uint64_t done = 0; done < size; done += page_of(p, addr))
		note(p, CW_EVENT_TOOK, addr + done, 0, 0);
}

static inline void program_begin(struct program *p, const char *version, const char *conf, uint64_t total)
{
	struct allocator_settings s;
	struct allocator_driver driver;

	*p = (struct program){.ticks = 64};
	mm_init(&p->mm);
	p->mm.b.h->device[0].total_bytes = total;
	str_copy(p->mm.b.h->torch_version, sizeof(p->mm.b.h->torch_version), version);
	str_copy(p->mm.b.h->alloc_conf, sizeof(p->mm.b.h->alloc_conf), conf);
	p->segment_site = mm_site(&p->mm, 0, 0, CW_MEM_DEVICE, 0);
	p->mm.site[p->segment_site].library = p->mm.c10;
	p->nccl_site = mm_site(&p->mm, 0, 0, CW_MEM_DEVICE, 8);
	p->mm.site[p->nccl_site].library = tb_string(&p->mm.b, "/x/libnccl.so.2");
	for (uint32_t i = 0; i < 4; i++) {
		char line[32];

		snprintf(line, sizeof(line), "/home/u/train.py:%u:main", 10 + i);
		p->lines[i] = mm_site(&p->mm, tb_stack(&p->mm.b, line, NULL), 0, CW_MEM_TORCH, 0);
	}
	p->parameter_site = mm_site(
		&p->mm, tb_stack(&p->mm.b, "/usr/lib/python3/site-packages/torch/nn/modules/module.py:5:_apply", NULL),
		0, CW_MEM_TORCH, 0);
	p->gradient_site = mm_site(&p->mm, 0, p->mm.site[p->lines[1]].stack, CW_MEM_TORCH, 0);
	p->mm.site[p->gradient_site].flags = CW_SITE_BACKWARD;
	p->state_site = mm_site(
		&p->mm, tb_stack(&p->mm.b, "/usr/lib/python3/site-packages/torch/optim/adam.py:5:_init_group", NULL), 0,
		CW_MEM_TORCH, 0);
	p->convolution_site = mm_site(
		&p->mm,
		tb_stack(&p->mm.b, "/usr/lib/python3/site-packages/torch/nn/modules/conv.py:5:_conv_forward", NULL), 0,
		CW_MEM_TORCH, 0);
	p->block_site = p->lines[0];
	p->page_site = mm_site(&p->mm, 0, 0, CW_MEM_VMM, 0);
	p->mm.site[p->page_site].library = p->mm.c10;
	p->range_site = mm_site(&p->mm, 0, 0, CW_MEM_RESERVED, 0);
	p->mm.site[p->range_site].library = p->mm.c10;
	p->trace = tb_trace(&p->mm.b);
	em_init(&p->em);
	em_more(&p->em, CW_MORE_FREE, 0, total - OUTSIDE);
	card_init(&p->card, total - OUTSIDE, false);
	p->real = driver = card_driver(&p->card);
	driver.of = p;
	driver.alloc = note_alloc;
	driver.free = note_free;
	driver.reserve = note_reserve;
	driver.unreserve = note_unreserve;
	driver.map = note_map;
	driver.unmap = note_unmap;
	allocator_settings_init(&s);
	if (*conf)
		assert_int_equal(allocator_settings_parse(&s, allocator_release_find(2, 11), conf, NULL), 0);
	p->a = allocator_new(allocator_release_find(2, 11), &s, &driver, total);
}

/* A line of its own, for the blocks that follow. */
static inline void program_at(struct program *p, uint32_t line)
{
	p->block_site = p->lines[line];
}

static inline struct allocator_block *program_alloc(struct program *p, uint64_t size, uint64_t stream)
{
	static const struct allocator_pool_id none;
	struct allocator_block *b = allocator_alloc(p->a, size, stream, none);
	uint64_t asked = (size + 511) / 512 * 512;

	if (!b) {
		note(p, CW_EVENT_OOM, 0, asked, 0);
		return NULL;
	}
	em_more(&p->em, CW_MORE_STREAM, 0, stream);
	if (asked != allocator_block_size(b))
		em_asked(&p->em, 0, asked);
	note(p, CW_EVENT_MADE, allocator_block_addr(b), allocator_block_size(b), p->block_site);
	return b;
}

static inline void program_free(struct program *p, struct allocator_block *b)
{
	uint64_t addr = allocator_block_addr(b);

	allocator_delete(p->a, b);
	note(p, CW_EVENT_FREED, addr, 0, 0);
}

static inline struct replay *program_replay(struct program *p)
{
	struct err e = {0};
	struct replay *r = replay_new(p->trace, p->em.data, p->em.len, 0, &e);

	if (!r)
		fail_msg("%s", e.msg);
	return r;
}

static inline void program_end(struct program *p)
{
	allocator_free(p->a);
	card_release(&p->card);
	em_release(&p->em);
	trace_free(p->trace);
}

#endif
