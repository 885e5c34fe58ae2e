/* SPDX-License-Identifier: Apache-2.0
 * What the recorder's memory tables depend on, in a few lines, for tests that run them without a separate process.
 */
#ifndef REC_MAKE_H
#define REC_MAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "recorder/rec_live.h"
#include "recorder/rec_segment.h"
#include "recorder/rec_site.h"
#include "read/recording/trace_memory.h"

#define BYTES (48u << 20)

struct rec rec;
TLS struct rec_thread *rec_self;
static struct rec_thread thread;
static uint64_t clock_ns;
static uint32_t room = BYTES;
static bool traced;

const char *rec_getenv(const char *name)
{
	return traced && strcmp(name, "CUWHY_MEMORY_TRACE") == 0 ? "1" : NULL;
}

uint64_t rec_mono_ns(void)
{
	return clock_ns;
}

void rec_clock_mark(void)
{
}

uint64_t rec_ticks_in(uint64_t ns)
{
	return 2 * ns;
}

bool spin_wait(struct spin *s, uint32_t me)
{
	(void)s, (void)me;
	return false;
}

/* Warming changes no contents. */
void chunk_warm(const void *p, size_t len)
{
	(void)p;
	(void)len;
}

void chunk_warm_ahead(const void *chunk, size_t off, size_t len)
{
	(void)chunk;
	(void)off;
	(void)len;
}

void *chunk_new(enum cw_chunk_kind kind, uint32_t len, uint32_t tid)
{
	struct cw_header *h = rec.h;
	uint32_t off = (uint32_t)h->used;

	len = (len + 4095) & ~4095u;
	if (off + len > room)
		return NULL;
	h->chunk[h->n_chunks++] = (struct cw_chunk){kind, off, len, tid};
	h->used += len;
	return rec.base + off;
}

void chunk_promise(uint32_t len)
{
	(void)len;
}

/* `room` is what others may take. */
void *chunk_promised(enum cw_chunk_kind kind, uint32_t len)
{
	uint32_t before = room;
	void *chunk;

	room = BYTES;
	chunk = chunk_new(kind, len, 0);
	room = before;
	return chunk;
}

void *side_new(uint32_t len)
{
	return chunk_new(CW_CHUNK_SITE_INDEX, len, 0);
}

void chunk_rename(const void *chunk, enum cw_chunk_kind kind)
{
	for (uint32_t i = 0; i < rec.h->n_chunks; i++)
		if (rec.h->chunk[i].off == off_of(chunk))
			rec.h->chunk[i].kind = kind;
}

struct cw_ring *ring_new_with(enum cw_chunk_kind kind, uint32_t slot_size, uint32_t n_slots, uint32_t more)
{
	struct cw_ring *r = chunk_new(kind, (uint32_t)sizeof(*r) + slot_size * n_slots + more, 0);

	if (r) {
		r->slot_size = slot_size;
		r->n_slots = n_slots;
	}
	return r;
}

struct cw_ring *ring_new(enum cw_chunk_kind kind, uint32_t slot_size, uint32_t n_slots)
{
	return ring_new_with(kind, slot_size, n_slots, 0);
}

bool table_put(struct slot *table, uint32_t slots, uint64_t key, uint32_t value)
{
	for (uint32_t i = (uint32_t)(key >> 20) & (slots - 1), n = 0; n < TABLE_PROBES; n++, i = (i + 1) & (slots - 1)) {
		if (table[i].key && table[i].key != key)
			continue;
		table[i].value = value;
		table[i].key = key;
		return true;
	}
	return false;
}

/* Two files: the first half of the addresses is PyTorch's. */
static uint32_t asked_loader;

bool elf_object_at(const void *address, struct elf_object *out)
{
	bool torch = (uintptr_t)address < 0x2000;

	asked_loader++;
	*out = (struct elf_object){.start = torch ? 0x1000 : 0x2000, .end = torch ? 0x2000 : 0x3000};
	snprintf(out->name, sizeof(out->name), torch ? "/site/torch/lib/libc10_cuda.so" : "/site/libnccl.so.2");
	return true;
}

void turn_drop(uint32_t turn)
{
	(void)turn;
}
uint32_t turn_serial(uint32_t turn);
uint32_t turn_serial(uint32_t turn)
{
	(void)turn;
	return 0;
}

uint32_t intern_string(const char *text, size_t len)
{
	uint32_t off = (uint32_t)rec.h->used;
	struct cw_string *s = (struct cw_string *)(rec.base + off);

	s->len = (uint32_t)len;
	memcpy(s->text, text, len);
	rec.h->used += 4096;
	return off;
}

static uint64_t stream_now;
static uint32_t pool_now;

bool torch_block_lock(void)
{
	return true;
}

void torch_block_unlock(void)
{
}

uint64_t torch_stream(int device)
{
	(void)device;
	return stream_now;
}

uint32_t capture_newest(void)
{
	return pool_now;
}

/* What the driver says of an address: its type (CUmemorytype), 4 for managed memory. */
static unsigned (*memory_is)(uint64_t address);
static uint32_t captured_stream;	/* calls on this stream are captured; 0: none */

static CUresult pointer_attributes(unsigned n, int *attribute, void **value, uint64_t address)
{
	unsigned type = memory_is ? memory_is(address) : 0;

	for (unsigned i = 0; i < n; i++)
		*(unsigned *)value[i] = attribute[i] == 8 ? type == 4 : type;
	return 0;
}

/* The recorder's own asks the kernel. */
static bool memory_gone;

bool rec_read_memory(void *to, const void *from, size_t n)
{
	if (!memory_gone)
		memcpy(to, from, n);
	return !memory_gone;
}

_Atomic(void *) door_real[ENTRY_COUNT];

void *door_find(enum entry e)
{
	return e == ENTRY_cuPointerGetAttributes ? (void *)pointer_attributes : NULL;
}

uint32_t capture_of(uint64_t stream)
{
	return stream == captured_stream;
}

int current_device(void)
{
	return 0;
}

static struct live_table blocks = {.chunk = CW_CHUNK_BLOCKS}, driver = {.chunk = CW_CHUNK_ALLOCATIONS};

static int start(void **state)
{
	struct cw_header *h;

	(void)state;
	rec.base = aligned_alloc(4096, BYTES);	/* as mapped memory is */
	assert_non_null(rec.base);
	memset(rec.base, 0, BYTES);
	rec.h = h = (struct cw_header *)rec.base;
	memcpy(h->magic, CW_MAGIC, 8);
	h->major = CW_MAJOR;
	h->header_size = sizeof(*h);
	h->used = (sizeof(*h) + 4095) & ~4095ull;
	rec.generation++;
	rec_self = &thread;
	memset(&thread, 0, sizeof(thread));
	clock_ns = 1;
	room = BYTES;
	assert_true(site_start());
	assert_true(live_start(&blocks, 16) && live_start(&driver, 16));
	return 0;
}

static struct trace *finished(void)
{
	struct trace *t = trace_from_bytes(rec.base, BYTES, NULL);

	assert_non_null(t);
	rec.base = NULL;
	return t;
}

#endif
