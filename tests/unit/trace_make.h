/* SPDX-License-Identifier: Apache-2.0
 * Makes small recordings in memory, for tests, for the seeds of the fuzzer, and for clients of
 * `cuwhy run` that are not a recorder. Everything is in this header, so that one file is enough.
 */
#ifndef CUWHY_TRACE_MAKE_H
#define CUWHY_TRACE_MAKE_H

#include <stdlib.h>
#include <string.h>

#include "cuwhy/format.h"

#define MAKE_BYTES (64 * 1024)

struct make {
	uint8_t *data;		/* MAKE_BYTES, zeroed */
	size_t used;
};

static inline struct cw_header *make_header(struct make *m)
{
	return (struct cw_header *)m->data;
}

static inline void make_init(struct make *m)
{
	struct cw_header *h;

	m->data = calloc(1, MAKE_BYTES);
	if (!m->data)
		abort();
	m->used = (sizeof(*h) + 63) / 64 * 64;
	h = make_header(m);
	memcpy(h->magic, CW_MAGIC, sizeof(h->magic));
	h->major = CW_MAJOR;
	h->minor = CW_MINOR;
	h->header_size = sizeof(*h);
	h->cap = MAKE_BYTES;
	h->pid = 4242;
	h->ppid = 4241;
	h->clock0 = (struct cw_clock){1000, 5000};
	h->clock1 = (struct cw_clock){2000, 5500};
	h->rank = h->local_rank = h->world_size = CW_UNKNOWN;
	h->device_count = 1;
	memcpy(h->device[0].name, "test GPU", 9);
	memcpy(h->cmdline, "python train.py", 16);
}

/* A chunk in the directory; returns its offset. */
static inline uint32_t make_chunk(struct make *m, uint32_t kind, uint32_t len)
{
	struct cw_header *h = make_header(m);
	uint32_t off = (uint32_t)m->used;

	if (m->used + len > MAKE_BYTES || h->n_chunks >= CW_MAX_CHUNKS)
		abort();
	h->chunk[h->n_chunks++] = (struct cw_chunk){.kind = kind, .off = off, .len = len};
	m->used = (m->used + len + 63) / 64 * 64;
	h->used = m->used;
	return off;
}

/* A string or a stack in a heap that the caller created; advances `*at`. */
static inline uint32_t make_string(struct make *m, uint32_t *at, const char *text)
{
	uint32_t off = *at, len = (uint32_t)strlen(text);

	memcpy(m->data + off, &len, sizeof(len));
	memcpy(m->data + off + sizeof(len), text, len + 1);
	*at = (off + 4 + len + 1 + 7) / 8 * 8;
	return off;
}

static inline uint32_t make_stack(struct make *m, uint32_t *at, uint32_t file, uint32_t function,
				  uint32_t line)
{
	struct cw_stack *s = (struct cw_stack *)(m->data + *at);
	uint32_t off = *at;

	s->n = 1;
	s->frame[0] = (struct cw_frame){file, function, line, 1};
	*at += sizeof(*s) + sizeof(s->frame[0]);
	return off;
}

/* A ring of `n` slots; returns the address of the first. */
static inline void *make_ring(struct make *m, uint32_t kind, uint32_t n, uint32_t slot_size,
			      uint64_t head)
{
	uint32_t off = make_chunk(m, kind, (uint32_t)sizeof(struct cw_ring) + n * slot_size);
	struct cw_ring *r = (struct cw_ring *)(m->data + off);

	r->slot_size = slot_size;
	r->n_slots = n;
	r->head = head;
	return r + 1;
}

/* Two epochs, after the table was halved once. The first site has not changed since; the second one's history has
 * not been halved yet. */
static inline void make_epochs(struct make *m)
{
	struct cw_epochs *e = (struct cw_epochs *)(m->data + make_chunk(m, CW_CHUNK_EPOCHS, sizeof(*e)));
	uint32_t *mark = (uint32_t *)(m->data + make_chunk(m, CW_CHUNK_SITE_MARKS, 8 * sizeof(*mark)));
	struct cw_history *h = (struct cw_history *)(m->data + make_chunk(m, CW_CHUNK_HISTORIES, 2 * sizeof(*h)));

	*e = (struct cw_epochs){.n_max = CW_EPOCHS, .now = 1ull << 32 | 2, .every = 100, .second = {1}};
	e->epoch[1][0] = (struct cw_epoch){1000, 1050, 4096 + 1024, 2 << 20, 3 << 20, 3, 0};
	e->epoch[1][1] = (struct cw_epoch){1200, 1200, 6144, 2 << 20, 3 << 20, 5, 0};
	mark[1] = 2;
	mark[2] = 6;
	h[0] = (struct cw_history){.site = 2, .held = {9, 2, 4}};
}

/* Memory of device 0: two sites, the second of which held less at the peak; three samples; two autograd nodes, the
 * first of which has run. */
static inline void make_memory(struct make *m, uint32_t stack)
{
	struct cw_memory_now *now = &make_header(m)->memory[0];
	struct cw_timeline *l;
	struct cw_sample *sample;
	struct cw_site *s;
	struct cw_node *node;

	*now = (struct cw_memory_now){.allocated = 7168, .reserved = 2 << 20, .peak_allocated = 6144,
				      .peak_reserved = 2 << 20, .driver = 3 << 20, .driver_peak = 3 << 20,
				      .peak_ticks = 1200, .peak_generation = 3};
	s = (struct cw_site *)(m->data + make_chunk(m, CW_CHUNK_SITES, 8 * sizeof(*s)));
	s[1] = (struct cw_site){.stack = stack, .kind = CW_MEM_TORCH, .live = 4096, .live_count = 1, .peak = 4096,
				.peak_generation = 2, .at_peak = 9, .total = 4096, .total_count = 1};
	s[2] = (struct cw_site){.stack = stack, .kind = CW_MEM_TORCH, .flags = CW_SITE_BACKWARD, .live = 3072,
				.live_count = 3, .peak = 3072, .peak_generation = 3, .at_peak = 2048,
				.total = 8192, .total_count = 8};
	l = (struct cw_timeline *)(m->data + make_chunk(m, CW_CHUNK_TIMELINE, sizeof(*l) + 4 * sizeof(*sample)));
	*l = (struct cw_timeline){.n = 3, .n_max = 4, .every = 100};
	sample = (struct cw_sample *)(l + 1);
	sample[0] = (struct cw_sample){1000, 4096, 2 << 20, 3 << 20};
	sample[1] = (struct cw_sample){1200, 6144, 2 << 20, 3 << 20};
	sample[2] = (struct cw_sample){1300, 5120, 2 << 20, 3 << 20};
	make_epochs(m);
	node = make_ring(m, CW_CHUNK_NODES, 4, sizeof(*node), 6);
	node[0] = (struct cw_node){4, stack | CW_NODE_HAS_RUN};
	node[1] = (struct cw_node){5, stack};
}

/* One of everything: a refused launch of a named kernel at train.py:32, and what led to it. */
static inline void make_usual(struct make *m)
{
	uint32_t heap = make_chunk(m, CW_CHUNK_HEAP, 1024), file, function, stack, name;
	struct cw_failure *f;
	struct cw_function *fn;
	struct cw_launch *l;
	struct cw_call *c;
	struct cw_allocation *a;
	uint32_t i;

	file = make_string(m, &heap, "train.py");
	function = make_string(m, &heap, "step");
	name = make_string(m, &heap, "_Z4fillPfl");
	stack = make_stack(m, &heap, file, function, 32);
	fn = (struct cw_function *)(m->data +
				    make_chunk(m, CW_CHUNK_FUNCTIONS, 4 * sizeof(*fn)));
	fn[1] = (struct cw_function){.handle = 0x1000, .name = name, .n_params = CW_UNKNOWN};
	l = make_ring(m, CW_CHUNK_LAUNCHES, 4, sizeof(*l), 6);
	for (i = 2; i < 6; i++)
		l[i & 3] = (struct cw_launch){.seq = i + 1, .ticks = 1000 + i, .func = 1,
					      .stack = stack, .grid = {1, 1, 1},
					      .block = {32, 1, 1}, .tid = 1};
	c = make_ring(m, CW_CHUNK_CALLS, 4, sizeof(*c), 2);
	c[0] = (struct cw_call){.seq = 1, .ticks = 1001, .api = 1, .tid = 1};
	c[1] = (struct cw_call){.seq = 2, .ticks = 1002, .api = 120, .arg = {0, 4096}, .tid = 1};
	a = (struct cw_allocation *)(m->data + make_chunk(m, CW_CHUNK_ALLOCATIONS, 4 * sizeof(*a)));
	a[2] = (struct cw_allocation){.addr = 0x7000000, .size = 4096, .kind = CW_MEM_DEVICE};
	f = (struct cw_failure *)(m->data + make_chunk(m, CW_CHUNK_FAILURES, 4 * sizeof(*f)));
	f[0] = (struct cw_failure){.seq = 1, .ticks = 1100, .mono_ns = 5050, .count = 1,
				   .source = CW_SRC_DRIVER, .api = 60, .code = 1, .tid = 1,
				   .stack = stack, .func = 1, .is_launch = 1,
				   .grid = {1, 70000, 1}, .block = {32, 1, 1}, .n_args = 11};
	make_header(m)->n_failures = 1;
}

#endif
