/* SPDX-License-Identifier: Apache-2.0
 * What the program copies to the GPU: most indices, labels, masks and lengths come that way, in small copies.
 *
 * A ring of copies and a ring of their contents, under one lock that is held for the few microseconds of a memcpy. Another thread that
 * finds it taken for long does not wait: its copy is counted as lost, and readers see from the recorded calls that there was one.
 */
#include <string.h>

#include "rec.h"

#define MEGABYTES_WHOLE	64u		/* a recording of this size has rings of the usual size, a smaller one smaller ones */

enum { MEMORY_TYPE = 2, IS_MANAGED = 8 };			/* CU_POINTER_ATTRIBUTE_… */
enum { PAGEABLE = 0, HOST = 1, DEVICE = 2, ARRAY = 3 };		/* CUmemorytype */

_Atomic(bool) copies_wanted;

static struct {
	struct spin lock;
	struct cw_copies *ring;		/* NULL: none yet, or no room for it */
	uint32_t generation;		/* of the process image that has it */
	_Atomic(bool) not_of_pinned;
	_Atomic uint64_t missed;
	_Atomic(uint64_t) shared;	/* as in cw_copies */
} copies;
LOCK_LISTED(copies, copies.lock);

void copies_start(void)
{
	atomic_store_explicit(&copies_wanted, !rec_getenv("CUWHY_NO_VALUES"), memory_order_relaxed);
}

void copies_not_of_pinned(void)
{
	atomic_store(&copies.not_of_pinned, true);
}

void copies_shared(void)
{
	uint64_t never = 0;

	if (!atomic_compare_exchange_strong(&copies.shared, &never, rec_ticks()) || !spin_try(&copies.lock))
		return;
	if (copies.generation == rec.generation && copies.ring)
		copies.ring->shared = atomic_load(&copies.shared);
	spin_done(&copies.lock);
}

/* A program that copies nothing needs no room for it. */
static struct cw_copies *ring_now(void)
{
	struct cw_copies *r;
	uint32_t part = 1;
	size_t len;

	if (likely(copies.generation == rec.generation))
		return copies.ring;
	copies.generation = rec.generation;
	atomic_store(&copies.missed, 0);
	while (part < 16 && rec.h->cap * part < (uint64_t)MEGABYTES_WHOLE << 20)
		part *= 2;
	len = sizeof(*r) + CW_COPIES / part * sizeof(struct cw_copy) + CW_COPIES_BYTES / part;
	copies.ring = r = chunk_new(CW_CHUNK_COPIES, (uint32_t)len, 0);
	if (!r)
		return NULL;
	chunk_warm(r, len);
	r->n_bytes = CW_COPIES_BYTES / part;
	r->shared = atomic_load(&copies.shared);
	shared_set(&r->n_slots, CW_COPIES / part);
	return r;
}

/* What the driver takes an address for, without the error that it logs for memory that is not its own. The processor cannot read a
 * GPU's memory, which a program may name as the source all the same, and reading managed memory would move it, or a device's registers change it. */
enum memory_at memory_at(uint64_t address)
{
	CUresult (*ask)(unsigned, int *, void **, uint64_t) = door(ENTRY_cuPointerGetAttributes);
	unsigned type = PAGEABLE, managed = 0;
	int attribute[2] = {MEMORY_TYPE, IS_MANAGED};
	void *to[2] = {&type, &managed};

	if (!ask || ask(2, attribute, to, address) != 0 || managed || type == ARRAY)
		return MEMORY_ELSEWHERE;
	if (type == HOST)
		return atomic_load_explicit(&copies.not_of_pinned, memory_order_relaxed) ? MEMORY_ELSEWHERE
											 : MEMORY_PINNED;
	return type == DEVICE ? MEMORY_OF_GPU : MEMORY_OF_HOST;
}

/* Pinned memory may be gone: another thread that has seen the copy arrive need not wait for the call to return. */
static bool read_part(void *to, const void *from, uint32_t n, bool pinned)
{
	if (pinned)
		return !n || rec_read_memory(to, from, n);
	memcpy(to, from, n);
	return true;
}

static bool write_contents(struct cw_copies *r, const void *from, uint32_t n, bool pinned)
{
	uint8_t *ring = (uint8_t *)((struct cw_copy *)(r + 1) + r->n_slots);
	uint32_t at_byte = (uint32_t)(r->written & (r->n_bytes - 1)),
		 end = r->n_bytes - at_byte < n ? r->n_bytes - at_byte : n;

	shared_set(&r->written, r->written + n);	/* before: what this overwrites is no longer there */
	atomic_thread_fence(memory_order_release);
	return read_part(ring + at_byte, from, end, pinned) &&
	       read_part(ring, (const uint8_t *)from + end, n - end, pinned);
}

static void keep(struct cw_copies *r, const struct copied *c, uint32_t flags)
{
	struct cw_copy *s = (struct cw_copy *)(r + 1) + (r->head & (r->n_slots - 1));

	__atomic_store_n(&s->seq, 0, __ATOMIC_RELAXED);
	atomic_signal_fence(memory_order_release);
	r->head++;
	s->ticks = rec_ticks();
	s->to = c->to;
	s->from = c->from;
	s->bytes = c->bytes;
	s->stream = c->stream;
	s->contents = r->written;
	s->kept = (uint32_t)(c->bytes <= CW_COPIES_WHOLE ? c->bytes : CW_COPIES_PREFIX);
	s->stack = stack_before() & ~CW_FREED_AFTER;
	s->tid = rec_self->tid;
	s->flags = flags | (c->in_stream ? CW_COPY_IN_STREAM : 0);
	s->device = thread_device(rec_self);
	if (!write_contents(r, (const void *)(uintptr_t)c->from, s->kept, flags & CW_COPY_PINNED))
		s->kept = 0;
	shared_set(&r->lost, atomic_load_explicit(&copies.missed, memory_order_relaxed));
	shared_set(&s->seq, r->head);
}

void copies_keep(const struct copied *c)
{
	enum memory_at source;
	struct cw_copies *r;

	/* a copy that becomes part of a graph copies what is there when the graph runs */
	if (!c->bytes || (unlikely(atomic_load(&rec.captures)) && capture_of(c->stream)))
		return;
	source = memory_at(c->from);
	if (source != MEMORY_OF_HOST && source != MEMORY_PINNED)
		return;
	if (!c->to_gpu && memory_at(c->to) != MEMORY_OF_GPU)
		return;
	if (!spin_try(&copies.lock)) {
		atomic_fetch_add_explicit(&copies.missed, 1, memory_order_relaxed);
		return;
	}
	r = ring_now();
	if (r)
		keep(r, c, source == MEMORY_PINNED ? CW_COPY_PINNED : 0);
	spin_done(&copies.lock);
}
