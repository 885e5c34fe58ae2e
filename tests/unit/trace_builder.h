/* SPDX-License-Identifier: Apache-2.0
 * Builds a whole recording in memory, failure by failure, for tests that judge one: a process with PyTorch on
 * one H200, to which a test adds what it is about. (trace_make.h makes the smallest ones.)
 */
#ifndef CUWHY_TRACE_BUILDER_H
#define CUWHY_TRACE_BUILDER_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuwhy/format.h"
#include "read/recording/trace.h"

#define TB_BYTES	(1 << 20)
#define TB_HEAP		(128 << 10)
#define TB_FAILURES	64
#define TB_FUNCTIONS	16
#define TB_LAUNCHES	64	/* power of two */
#define TB_CALLS	64	/* likewise */

struct tb {
	uint8_t *data;
	struct cw_header *h;
	uint32_t heap, heap_end;
	struct cw_failure *failure;
	struct cw_function *function;
	struct cw_ring *ring, *calls;
	uint32_t n_failures, n_functions;
	uint64_t ticks;
};

static inline uint32_t tb_chunk(struct tb *b, uint32_t kind, size_t len)
{
	uint32_t off = (uint32_t)((b->h->used + 63) / 64 * 64);

	if (off + len > TB_BYTES || b->h->n_chunks >= CW_MAX_CHUNKS)
		abort();
	b->h->chunk[b->h->n_chunks++] = (struct cw_chunk){.kind = kind, .off = off, .len = (uint32_t)len};
	b->h->used = off + len;
	return off;
}

static inline void tb_device(struct tb *b)
{
	static const int32_t h200[CW_DEV_COUNT] = {
		[CW_DEV_threads_per_block] = 1024, [CW_DEV_block_x] = 1024, [CW_DEV_block_y] = 1024,
		[CW_DEV_block_z] = 64, [CW_DEV_grid_x] = 2147483647, [CW_DEV_grid_y] = 65535,
		[CW_DEV_grid_z] = 65535, [CW_DEV_shared_per_block] = 49152, [CW_DEV_warp_size] = 32,
		[CW_DEV_registers_per_block] = 65536, [CW_DEV_sm_count] = 132,
		[CW_DEV_threads_per_sm] = 2048, [CW_DEV_cc_major] = 9, [CW_DEV_cc_minor] = 0,
		[CW_DEV_shared_per_sm] = 233472, [CW_DEV_registers_per_sm] = 65536,
		[CW_DEV_cooperative] = 1, [CW_DEV_shared_optin] = 232448, [CW_DEV_blocks_per_sm] = 32,
		[CW_DEV_shared_reserved] = 1024, [CW_DEV_cluster_launch] = 1,
	};
	struct cw_device *d = &b->h->device[0];

	snprintf(d->name, sizeof(d->name), "NVIDIA H200");
	d->total_bytes = 150110011392ull;
	memcpy(d->attr, h200, sizeof(h200));
}

static inline void tb_init(struct tb *b)
{
	struct cw_header *h;

	*b = (struct tb){.data = calloc(1, TB_BYTES), .ticks = 1000};
	if (!b->data)
		abort();
	h = b->h = (struct cw_header *)b->data;
	memcpy(h->magic, CW_MAGIC, sizeof(h->magic));
	h->major = CW_MAJOR;
	h->minor = CW_MINOR;
	h->header_size = sizeof(*h);
	h->cap = TB_BYTES;
	h->used = sizeof(*h);
	h->pid = 100;
	h->ppid = 99;
	h->clock0 = (struct cw_clock){0, 0};
	h->clock1 = (struct cw_clock){1000000000000ull, 1000000000000ull}; /* a tick is a nanosecond */
	h->rank = h->local_rank = h->world_size = CW_UNKNOWN;
	h->py_version = 0x030c03f0;
	h->driver_version = 13000;
	h->device_count = 1;
	memcpy(h->visible_devices_at_init, CW_NOT_SET, 2);
	memcpy(h->visible_devices_now, CW_NOT_SET, 2);
	snprintf(h->torch_path, sizeof(h->torch_path),
		 "/venv/lib/python3.12/site-packages/torch/lib/libtorch_cuda.so");
	snprintf(h->cmdline, sizeof(h->cmdline), "python train.py");
	tb_device(b);
	b->heap = tb_chunk(b, CW_CHUNK_HEAP, TB_HEAP);
	b->heap_end = b->heap + TB_HEAP;
	b->failure = (void *)(b->data + tb_chunk(b, CW_CHUNK_FAILURES, TB_FAILURES * sizeof(*b->failure)));
	b->function =
		(void *)(b->data + tb_chunk(b, CW_CHUNK_FUNCTIONS, TB_FUNCTIONS * sizeof(*b->function)));
	b->ring = (void *)(b->data + tb_chunk(b, CW_CHUNK_LAUNCHES,
					      sizeof(*b->ring) + TB_LAUNCHES * sizeof(struct cw_launch)));
	*b->ring = (struct cw_ring){.tid = 1, .slot_size = sizeof(struct cw_launch), .n_slots = TB_LAUNCHES};
	b->calls = (void *)(b->data +
			    tb_chunk(b, CW_CHUNK_CALLS, sizeof(*b->calls) + TB_CALLS * sizeof(struct cw_call)));
	*b->calls = (struct cw_ring){.tid = 1, .slot_size = sizeof(struct cw_call), .n_slots = TB_CALLS};
}

/* A plain C program: no Python, no PyTorch. */
static inline void tb_plain_program(struct tb *b)
{
	b->h->py_version = 0;
	b->h->torch_path[0] = '\0';
}

static inline uint32_t tb_string(struct tb *b, const char *text)
{
	uint32_t off = b->heap, len = (uint32_t)strlen(text);

	if (off + len + 16 > b->heap_end)
		abort();
	memcpy(b->data + off, &len, sizeof(len));
	memcpy(b->data + off + 4, text, len + 1);
	b->heap = (off + 4 + len + 1 + 7) / 8 * 8;
	return off;
}

/* A stack of frames "file:line:function", innermost first, NULL last. */
static inline uint32_t tb_stack(struct tb *b, ...)
{
	struct cw_frame frame[32];
	const char *text;
	uint32_t n = 0, off;
	va_list ap;

	va_start(ap, b);
	while ((text = va_arg(ap, const char *)) != NULL && n < 32) {
		char file[256];
		const char *function = strrchr(text, ':') + 1;
		int len = (int)(function - 1 - text);

		while (text[len - 1] != ':')
			len--;
		snprintf(file, sizeof(file), "%.*s", len - 1, text);
		frame[n] = (struct cw_frame){tb_string(b, file), tb_string(b, function),
					     (uint32_t)strtoul(text + len, NULL, 10), 1};
		n++;
	}
	va_end(ap);
	off = b->heap;
	memcpy(b->data + off, &(struct cw_stack){.n = n}, sizeof(struct cw_stack));
	memcpy(b->data + off + sizeof(struct cw_stack), frame, n * sizeof(frame[0]));
	b->heap += (uint32_t)(sizeof(struct cw_stack) + n * sizeof(frame[0]));
	return off;
}

static inline uint32_t tb_function(struct tb *b, const char *mangled)
{
	uint32_t i = ++b->n_functions;

	if (i >= TB_FUNCTIONS)
		abort();
	b->function[i] = (struct cw_function){
		.handle = 0x1000 + i, .name = tb_string(b, mangled), .n_params = CW_UNKNOWN};
	return i;
}

/* A failure a little later than the previous one, on thread 1 and device 0. */
static inline struct cw_failure *tb_fail(struct tb *b, uint32_t source, uint32_t code, uint32_t stack)
{
	struct cw_failure *f = &b->failure[b->n_failures++];

	if (b->n_failures > TB_FAILURES)
		abort();
	b->ticks += 1000;
	*f = (struct cw_failure){ .seq = b->n_failures, .ticks = b->ticks, .last_ticks = b->ticks,
				 .mono_ns = b->ticks,
				 .count = 1,
				 .source = source,
				 .code = code,
				 .tid = 1,
				 .stack = stack,
				 .device = 0};
	memset(f->func_attr, 0xff, sizeof(f->func_attr));
	memcpy(f->visible_devices, CW_NOT_SET, 2);
	b->h->n_failures = b->n_failures;
	return f;
}

static inline struct cw_failure *tb_fail_text(struct tb *b, uint32_t source, uint32_t stack, const char *what,
					      const char *text)
{
	struct cw_failure *f = tb_fail(b, source, 0, stack);

	snprintf(f->what, sizeof(f->what), "%s", what);
	snprintf(f->text, sizeof(f->text), "%s", text);
	return f;
}

/* A refused cuLaunchKernel. */
static inline struct cw_failure *tb_fail_launch(struct tb *b, uint32_t code, uint32_t stack, uint32_t func,
						const uint32_t grid[3], const uint32_t block[3],
						uint32_t shared)
{
	struct cw_failure *f = tb_fail(b, CW_SRC_DRIVER, code, stack);

	f->api = 60;
	f->is_launch = 1;
	f->func = func;
	memcpy(f->grid, grid, sizeof(f->grid));
	memcpy(f->block, block, sizeof(f->block));
	f->shared = shared;
	f->func_attr[CW_FUNC_max_threads] = 1024;
	f->func_attr[CW_FUNC_static_shared] = 0;
	f->func_attr[CW_FUNC_registers] = 32;
	f->func_attr[CW_FUNC_max_dynamic_shared] = 49152;
	f->func_attr[CW_FUNC_binary_version] = 90;
	f->func_attr[CW_FUNC_ptx_version] = 90;
	f->func_attr[CW_FUNC_local_bytes] = 0;
	return f;
}

static inline struct cw_launch *tb_launch(struct tb *b, uint32_t tid, uint32_t stack)
{
	struct cw_launch *l = (struct cw_launch *)(b->ring + 1) + (b->ring->head & (TB_LAUNCHES - 1));

	b->ticks += 1000;
	*l = (struct cw_launch){ .seq = ++b->ring->head, .ticks = b->ticks, .stack = stack, .tid = tid,
				.grid = {1, 1, 1},
				.block = {32, 1, 1}};
	return l;
}

/* A driver call that succeeded. */
static inline struct cw_call *tb_call(struct tb *b, uint32_t api, uint32_t tid, uint32_t stack)
{
	struct cw_call *c = (struct cw_call *)(b->calls + 1) + (b->calls->head & (TB_CALLS - 1));

	b->ticks += 1000;
	*c = (struct cw_call){.seq = ++b->calls->head, .ticks = b->ticks, .api = api, .stack = stack, .tid = tid};
	return c;
}

/* The recording; consumes the builder. */
static inline struct trace *tb_trace(struct tb *b)
{
	struct trace *t = trace_from_bytes(b->data, TB_BYTES, NULL);

	b->data = NULL;
	if (!t)
		abort();
	return t;
}

#endif
