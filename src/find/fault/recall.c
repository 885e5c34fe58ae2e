/* SPDX-License-Identifier: Apache-2.0
 * Recalls the contents of GPU memory (see recall.h).
 *
 * What a block contained at a launch is what was written to it last before that, since it was allocated: by a copy whose contents were kept,
 * by a fill, or by one of the few kernels that are known to copy (recall_launch.c), whose source is recalled in turn. Any other write, or one
 * that may be, makes the contents unknown. What may have written without our seeing it makes them unsure.
 */
#include "find/fault/recall.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "find/fault/recall_write.h"
#include "find/memory/pieces.h"
#include "read/recording/copies.h"
#include "read/recording/trace.h"

#define DEPTH_MAX	8	/* copies of copies */
#define BLOCKS_MAX	64	/* whose writes are kept */
#define UNIT		512	/* bytes: PyTorch's blocks are as large, or several times that */
#define READ_MAX	64	/* bytes at a time */

enum write_kind { WRITE_UNKNOWN, WRITE_COPY, WRITE_MOVE, WRITE_SET, WRITE_MADE };

struct write {
	enum write_kind kind;
	uint64_t ticks, to, end;
	uint64_t from;		/* MOVE */
	uint64_t stream;	/* in whose order it was done: calls without one may also return before */
	uint32_t value;		/* SET: a pattern of `unit` bytes */
	unsigned unit;
	uint32_t stack;
	bool perhaps;		/* a kernel has a pointer to it, and may only read */
	const struct cw_copy *copy;
	const struct cw_launch *launch;
	struct made made;
};

struct block {
	uint64_t addr, size, when;
	struct piece piece;
	bool known;
	struct write *write;	/* newest first */
	size_t n, cap;
	uint64_t unsure;	/* when something unseen may have written last */
};

struct recall {
	struct trace *t;
	const struct cw_launch *launch;
	uint64_t when;
	const struct cw_copy **copies;
	size_t n_copies;
	uint64_t complete;	/* since when all launches and calls are there */
	bool shared;		/* another process may have written */
	struct block block[BLOCKS_MAX];
	size_t n_blocks, next_block;
	struct recalled *origin;	/* is filled, or NULL */
};

/* The oldest entry of each ring that has begun again: before it, some are missing. */
static void find_complete(struct recall *r, enum cw_chunk_kind kind, uint32_t size, size_t ticks_at)
{
	const struct cw_ring *ring;

	for (size_t i = 0; (ring = trace_ring(r->t, kind, size, i)) != NULL; i++) {
		const uint8_t *slot = (const uint8_t *)(ring + 1) + (ring->head & (ring->n_slots - 1)) * size;
		uint64_t ticks;

		if (ring->head < ring->n_slots)
			continue;
		memcpy(&ticks, slot + ticks_at, sizeof(ticks));
		if (ticks > r->complete)
			r->complete = ticks;
	}
}

struct recall *recall_open(struct trace *t)
{
	struct recall *r = xcalloc(1, sizeof(*r));
	const struct cw_header *h = trace_header(t);

	r->t = t;
	r->n_copies = trace_copies(t, &r->copies);
	r->shared = trace_memory_shared(t);
	find_complete(r, CW_CHUNK_LAUNCHES, sizeof(struct cw_launch), offsetof(struct cw_launch, ticks));
	find_complete(r, CW_CHUNK_CALLS, sizeof(struct cw_call), offsetof(struct cw_call, ticks));
	if (h->lost_threads || h->lost_blocks || h->blocks_inexact_since_ns || h->inexact_since_ns)
		r->complete = UINT64_MAX;
	return r;
}

void recall_close(struct recall *r)
{
	if (!r)
		return;
	for (size_t i = 0; i < r->n_blocks; i++)
		free(r->block[i].write);
	free(r->copies);
	free(r);
}

void recall_launch(struct recall *r, const struct cw_launch *l, uint64_t when)
{
	for (size_t i = 0; i < r->n_blocks; i++)
		free(r->block[i].write);
	r->n_blocks = 0;
	r->launch = l;
	r->when = when;
}

static void add_write(struct block *b, struct write w)
{
	if (w.to < b->addr + b->size && w.end > b->addr) {
		b->write = xgrow(b->write, b->n, &b->cap, sizeof(*b->write));
		b->write[b->n++] = w;
	}
}

/* The call of a copy is recorded just before its contents are. */
static const struct cw_copy *copy_of_call(const struct recall *r, const struct cw_call *c, uint64_t next)
{
	for (size_t i = 0; i < r->n_copies; i++) {
		const struct cw_copy *k = r->copies[i];

		if (k->ticks >= c->ticks && k->ticks < next && k->tid == c->tid && k->to == c->arg[0] &&
		    k->from == c->arg[1] && k->bytes == c->arg[2])
			return k;
	}
	return NULL;
}

static uint64_t next_alike(const struct cw_call *const *list, size_t i, size_t n)
{
	const struct cw_call *c = list[i];

	for (size_t k = i + 1; k < n; k++)
		if (list[k]->tid == c->tid && list[k]->api == c->api &&
		    !memcmp(list[k]->arg, c->arg, 3 * sizeof(c->arg[0])))
			return list[k]->ticks;
	return UINT64_MAX;
}

/* What kb/cuda_api.def says of a call's arguments: "to:d from:p bytes:z stream:h". */
static int argument(const struct cw_call *c, const char *name)
{
	const char *at = api_args(c->api);
	size_t n = strlen(name);

	for (int i = 0; at && *at; i++) {
		if (!strncmp(at, name, n))
			return i;
		at = strchr(at, ' ');
		at = at ? at + 1 : NULL;
	}
	return -1;
}

static unsigned unit_of(const struct cw_call *c)
{
	const char *name = api_name(c->api);

	return strstr(name, "D32") ? 4 : strstr(name, "D16") ? 2 : 1;
}

static uint64_t argument_or(const struct cw_call *c, const char *name, uint64_t otherwise)
{
	int i = argument(c, name);

	return i >= 0 && i < 6 ? c->arg[i] : otherwise;
}

/* What the call wrote; WRITE_UNKNOWN and no bytes: nothing. */
static struct write write_of_call(const struct cw_call *c)
{
	struct write w = {.kind = WRITE_UNKNOWN,
			  .ticks = c->ticks,
			  .stack = c->stack,
			  .stream = stream_of(argument_or(c, "stream:", 0), c->tid)};
	uint64_t count = argument_or(c, "count:", 0), bytes = argument_or(c, "bytes:", 0);

	if (argument(c, "to:d") != 0 || argument(c, "address:d") == 0)
		return w;
	w.to = c->arg[0];
	w.from = argument_or(c, "from:", 0);
	if (argument(c, "pitch:") >= 0) {
		bytes = argument_or(c, "pitch:", 0) * argument_or(c, "height:", 0);
	} else if (argument(c, "value:") >= 0) {
		w.kind = WRITE_SET;
		w.unit = unit_of(c);
		w.value = (uint32_t)argument_or(c, "value:", 0);
		bytes = count * w.unit;
	} else if (argument(c, "from:d") >= 0) {
		w.kind = WRITE_MOVE;
	}
	w.end = bytes <= UINT64_MAX - w.to ? w.to + bytes : UINT64_MAX;
	return w;
}

static void add_calls(struct recall *r, struct block *b)
{
	const struct cw_call *const *list;
	size_t n = trace_calls(r->t, &list);
	struct write w;

	for (size_t i = 0; i < n; i++) {
		if (list[i]->result || list[i]->ticks <= b->piece.ticks || list[i]->ticks >= b->when)
			continue;
		w = write_of_call(list[i]);
		if (argument(list[i], "copy:p") == 0 && list[i]->ticks > b->unsure)
			b->unsure = list[i]->ticks;
		if (w.to >= b->addr + b->size || w.end <= b->addr || copy_of_call(r, list[i], next_alike(list, i, n)))
			continue;	/* copies whose contents were kept come from their own table */
		add_write(b, w);
	}
	for (size_t i = 0; i < r->n_copies; i++) {
		const struct cw_copy *c = r->copies[i];

		if (c->ticks > b->piece.ticks && c->ticks < b->when)
			add_write(b, (struct write){.kind = WRITE_COPY, .ticks = c->ticks, .to = c->to, .end = c->to + c->bytes,
						    .copy = c, .stack = c->stack, .stream = stream_of(c->stream, c->tid)});
	}
}

static uint64_t word_of(const struct cw_launch *l, size_t at)
{
	uint64_t v;

	memcpy(&v, l->params + at, sizeof(v));
	return v;
}

static size_t words_of(const struct cw_launch *l)
{
	return (l->n_param < CW_PARAM_BYTES ? l->n_param : CW_PARAM_BYTES) / sizeof(uint64_t) * sizeof(uint64_t);
}

/* Does the launch in question read the block through this parameter, and through no other? Then so does every launch of its kernel. */
static bool reads_alike(const struct recall *r, const struct block *b, const struct cw_launch *l, size_t at)
{
	const struct cw_launch *own = r->launch;

	if (!own || own->func != l->func)
		return false;
	for (size_t i = 0; i < words_of(own); i += sizeof(uint64_t))
		if ((word_of(own, i) - b->addr < b->size) != (i == at))
			return false;
	return at < words_of(own);
}

static bool all_params(const struct recall *r, const struct cw_launch *l)
{
	const struct cw_function *f = l->func ? trace_function(r->t, l->func) : NULL;

	return f && f->n_params != CW_UNKNOWN && f->param_bytes <= l->n_param;
}

/* At `ticks`: a launch that was captured runs when its graph does. */
static void add_launch(struct recall *r, struct block *b, const struct cw_launch *l, uint64_t ticks)
{
	struct made m;

	if (!all_params(r, l) && ticks > b->unsure)
		b->unsure = ticks;
	for (size_t i = 0; i < words_of(l); i += sizeof(uint64_t)) {
		struct write w = {.kind = WRITE_UNKNOWN, .ticks = ticks, .to = b->addr, .end = b->addr + b->size,
				  .stack = l->stack ? l->stack : l->forward_stack,
				  .stream = stream_of(l->stream, l->tid),
				  .launch = l};
		enum touch touch;

		if (word_of(l, i) - b->addr >= b->size || reads_alike(r, b, l, i))
			continue;
		touch = launch_touches(r->t, l, (unsigned)i, &m);
		w.perhaps = touch == TOUCH_MAYBE;
		if (touch == TOUCH_WRITES && m.bytes) {
			w.to = m.to;
			w.end = m.bytes <= UINT64_MAX - m.to ? m.to + m.bytes : UINT64_MAX;
			w.kind = m.how ? WRITE_MADE : WRITE_UNKNOWN;
			w.made = m;
		}
		if (touch != TOUCH_READS)
			add_write(b, w);
	}
}

static void add_launches(struct recall *r, struct block *b)
{
	const struct cw_launch *const *list;
	size_t n = trace_launches(r->t, &list);
	uint64_t graph = r->launch && r->launch->flags & CW_LAUNCH_CAPTURED ? b->when - 1 : 0;

	for (size_t i = 0; i < n; i++) {
		const struct cw_launch *l = list[i];

		if (l == r->launch || l->flags & CW_LAUNCH_CAPTURED || l->result || l->ticks <= b->piece.ticks ||
		    l->ticks >= b->when)
			continue;
		if (l->flags & CW_LAUNCH_GRAPH)
			graph = l->ticks;
		else
			add_launch(r, b, l, l->ticks);
	}
	/* which of the captured launches, and how often, is not known: a graph may copy, too */
	if (graph > b->unsure)
		b->unsure = graph;
	for (size_t i = 0; graph && i < n; i++)
		if (list[i]->flags & CW_LAUNCH_CAPTURED && list[i] != r->launch)
			add_launch(r, b, list[i], graph);
}

static int newest_first(const void *a, const void *b)
{
	const struct write *x = a, *y = b;

	return x->ticks > y->ticks ? -1 : x->ticks < y->ticks;
}

/* Managed memory, pinned memory and that of another process are written by others than copies and kernels. */
static bool is_gpus_own(const struct piece *p)
{
	return p->kind == CW_MEM_DEVICE || p->kind == CW_MEM_ASYNC || p->kind == CW_MEM_VMM;
}

/* PyTorch's block, else an allocation of the driver's that PyTorch has no part in. */
static bool piece_then(struct recall *r, uint64_t address, uint64_t when, struct piece *to)
{
	return piece_of_torch_at(r->t, address, when, to) ||
	       (piece_of_driver_at(r->t, address, when, to) && is_gpus_own(to) &&
		!torch_had_blocks(r->t, to->addr, to->addr + to->size));
}

/* A place for another one: those without known memory make room. The others stay, because their writes may be in use. */
static struct block *block_new(struct recall *r)
{
	if (r->n_blocks < BLOCKS_MAX)
		return &r->block[r->n_blocks++];
	for (size_t i = 0; i < BLOCKS_MAX; i++) {
		size_t k = (r->next_block + i) % BLOCKS_MAX;

		if (!r->block[k].known) {
			r->next_block = k + 1;
			return &r->block[k];
		}
	}
	return NULL;
}

static struct block *block_then(struct recall *r, uint64_t address, uint64_t when)
{
	struct block *b;

	for (size_t i = 0; i < r->n_blocks; i++)
		if (r->block[i].when == when && address - r->block[i].addr < r->block[i].size)
			return &r->block[i];
	b = block_new(r);
	if (!b)
		return NULL;
	*b = (struct block){.addr = address & ~(uint64_t)(UNIT - 1), .size = UNIT, .when = when};
	b->known = piece_then(r, address, when, &b->piece);
	if (!b->known)
		return b;
	b->addr = b->piece.addr;
	b->size = b->piece.size;
	add_calls(r, b);
	add_launches(r, b);
	xsort(b->write, b->n, sizeof(*b->write), newest_first);
	return b;
}

static bool recall_bytes(struct recall *r, uint64_t address, void *to, size_t n, uint64_t when, unsigned depth);

static bool fill_bytes(const struct made *m, uint64_t address, uint8_t *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = m->fill[(address + i - m->to) % m->of.bytes];
	return true;
}

static bool element_bytes(struct recall *r, const struct write *w, uint64_t index, uint8_t raw[8], unsigned depth)
{
	const struct made *m = &w->made;
	struct number number = {.real = false};

	if (m->how == MADE_RANGE) {
		number.whole = (int64_t)((uint64_t)m->first + index * (uint64_t)m->add);
		return number_write(m->of, &number, raw);
	}
	if (!recall_bytes(r, m->from + index * m->in.bytes, raw, m->in.bytes, w->ticks, depth + 1) ||
	    !number_read(m->in, raw, &number))
		return false;
	if (m->how == MADE_SHIFT)
		number.whole = (int64_t)((uint64_t)number.whole + (uint64_t)m->add);
	return number_write(m->of, &number, raw);
}

static bool made_bytes(struct recall *r, const struct write *w, uint64_t address, uint8_t *to, size_t n, unsigned depth)
{
	const struct made *m = &w->made;
	uint8_t raw[8];

	if (m->how == MADE_FILL)
		return fill_bytes(m, address, to, n);
	if (m->how == MADE_SAME)
		return recall_bytes(r, m->from + (address - m->to), to, n, w->ticks, depth + 1);
	for (size_t i = 0; i < n;) {
		uint64_t offset = address + i - m->to, index = offset / m->of.bytes, within = offset % m->of.bytes;

		if (!element_bytes(r, w, index, raw, depth))
			return false;
		for (; i < n && within < m->of.bytes; i++, within++)
			to[i] = raw[within];
	}
	return true;
}

static bool set_bytes(const struct write *w, uint64_t address, uint8_t *to, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = (uint8_t)(w->value >> 8 * ((address + i - w->to) % w->unit));
	return true;
}

static uint32_t stack_of(const struct piece *p)
{
	return p->stack ? p->stack : p->forward_stack;
}

static bool written_bytes(struct recall *r, const struct block *b, const struct write *w, uint64_t address, uint8_t *to,
			  size_t n, unsigned depth)
{
	struct recalled *o = r->origin;

	if (o && !o->made)
		o->made = w->perhaps ? stack_of(&b->piece) : w->stack;
	switch (w->kind) {
	case WRITE_COPY:
		if (o)
			o->copied = w->stack;
		if (w->copy->flags & CW_COPY_PINNED && o)
			o->sure = false;
		return trace_copied(r->t, w->copy, address - w->to, to, n);
	case WRITE_MOVE:
		return recall_bytes(r, w->from + (address - w->to), to, n, w->ticks, depth + 1);
	case WRITE_SET:
		return set_bytes(w, address, to, n);
	case WRITE_MADE:
		return made_bytes(r, w, address, to, n, depth);
	default:
		return false;
	}
}

/* Work of another stream is ordered by events, which the recording does not tell apart. */
static bool is_sure(const struct recall *r, const struct block *b, const struct write *w)
{
	return !r->shared && w->ticks >= r->complete && w->ticks > b->unsure &&
	       (!r->launch || w->stream == stream_of(r->launch->stream, r->launch->tid));
}

/* Each byte is of the newest write that covers it. */
static bool recall_bytes(struct recall *r, uint64_t address, void *to, size_t n, uint64_t when, unsigned depth)
{
	struct block *b = depth < DEPTH_MAX ? block_then(r, address, when) : NULL;
	uint64_t end = address + n;

	if (!n)
		return true;
	if (!b || !b->known || end < address || end > b->addr + b->size)
		return false;
	for (size_t i = 0; i < b->n; i++) {
		const struct write *w = &b->write[i];
		uint64_t from = w->to > address ? w->to : address, until = w->end < end ? w->end : end;

		if (from >= until)
			continue;
		if (r->origin && !is_sure(r, b, w))
			r->origin->sure = false;
		return written_bytes(r, b, w, from, (uint8_t *)to + (from - address), (size_t)(until - from), depth) &&
		       recall_bytes(r, address, to, (size_t)(from - address), when, depth) &&
		       recall_bytes(r, until, (uint8_t *)to + (until - address), (size_t)(end - until), when, depth);
	}
	if (r->origin && !r->origin->made)
		r->origin->made = stack_of(&b->piece);
	return false;
}

bool recall_memory(void *recall, uint64_t address, void *to, size_t n)
{
	struct recall *r = recall;

	return n <= READ_MAX && recall_bytes(r, address, to, n, r->when, 0);
}

/* What a kernel that we do not know made: did one of the tensors that it was given come from the host? The stack of that copy; 0: none, or
 * several did. Nothing reads a block before it was written: the first kernel that has a pointer to it made it. */
static uint32_t copied_before(struct recall *r, const struct block *b, unsigned depth);

static uint32_t copied_to(struct recall *r, uint64_t address, uint64_t when, unsigned depth)
{
	const struct block *b = block_then(r, address, when);

	for (size_t i = 0; b && b->known && i < b->n; i++) {
		const struct write *w = &b->write[i];

		if (w->to > address || w->end <= address)
			continue;
		if (w->kind == WRITE_COPY)
			return w->stack;
		return w->kind == WRITE_MOVE ? copied_to(r, w->from + (address - w->to), w->ticks, depth + 1)
		       : w->launch	     ? copied_before(r, b, depth)
					     : 0;
	}
	return 0;
}

static uint32_t copied_before(struct recall *r, const struct block *b, unsigned depth)
{
	const struct cw_launch *l = b->n ? b->write[b->n - 1].launch : NULL;
	uint32_t found = 0, one;

	for (size_t i = 0; l && depth < DEPTH_MAX && i < words_of(l); i += sizeof(uint64_t)) {
		if (word_of(l, i) - b->addr < b->size || !launch_points(r->t, l, (unsigned)i))
			continue;
		one = copied_to(r, word_of(l, i), b->write[b->n - 1].ticks, depth + 1);
		if (one && found && one != found)
			return 0;
		found = one ? one : found;
	}
	return found;
}

void recall_origin(struct recall *r, uint64_t address, size_t n, struct recalled *to)
{
	uint8_t bytes[READ_MAX];
	const struct block *b;

	*to = (struct recalled){.sure = true};
	r->origin = to;
	to->contents = n <= sizeof(bytes) && recall_bytes(r, address, bytes, n, r->when, 0);
	r->origin = NULL;
	b = to->contents || to->copied ? NULL : block_then(r, address, r->when);
	if (b && b->known)
		to->copied = copied_before(r, b, 0);
}
