/* SPDX-License-Identifier: Apache-2.0
 * The records of a recording as ordered lists: failures, launches, calls, allocations, blocks.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "input/recording/trace_priv.h"
#include "base/banned.h"

#define END_TEXT(array) ((array)[sizeof(array) - 1] = '\0')

void list_add(struct list *l, const void *item)
{
	l->item = xgrow(l->item, l->n, &l->cap, sizeof(*l->item));
	l->item[l->n++] = item;
}

static int order(uint64_t a, uint64_t b)
{
	return a < b ? -1 : a > b;
}

static void sort(struct list *l, int (*by)(const void *, const void *))
{
	if (l->n > 1)
		qsort(l->item, l->n, sizeof(*l->item), by);
}

/* Drops every item that `same` says equals the one before it. */
static void squeeze(struct list *l, bool (*same)(const void *a, const void *b))
{
	size_t i, n = 0;

	for (i = 0; i < l->n; i++)
		if (n == 0 || !same(l->item[n - 1], l->item[i]))
			l->item[n++] = l->item[i];
	l->n = n;
}

/* --- failures -------------------------------------------------------------------------------- */

static int by_failure(const void *a, const void *b)
{
	const struct cw_failure *x = *(const struct cw_failure *const *)a;
	const struct cw_failure *y = *(const struct cw_failure *const *)b;

	return order(x->seq, y->seq);
}

static bool same_failure(const void *a, const void *b)
{
	return ((const struct cw_failure *)a)->seq == ((const struct cw_failure *)b)->seq;
}

static void tidy_failure(struct cw_failure *f)
{
	END_TEXT(f->visible_devices);
	END_TEXT(f->what);
	END_TEXT(f->file);
	END_TEXT(f->text);
	if (f->n_args > CW_MAX_ARGS)
		f->n_args = CW_MAX_ARGS;
}

static const struct chunk *first_chunk(const struct trace *t, uint32_t kind)
{
	size_t i;

	for (i = 0; i < t->n_chunks; i++)
		if (t->chunk[i].kind == kind)
			return &t->chunk[i];
	return NULL;
}

void trace_read_failures(struct trace *t)
{
	const struct chunk *c = first_chunk(t, CW_CHUNK_FAILURES);
	size_t i, n = c ? c->len / sizeof(struct cw_failure) : 0;

	if (n > CW_MAX_FAILURES)
		n = CW_MAX_FAILURES;
	t->failure = xcalloc(n, sizeof(*t->failure));
	if (n)
		memcpy(t->failure, t->data + c->off, n * sizeof(*t->failure));
	for (i = 0; i < n; i++) {
		if (t->failure[i].seq == 0)
			continue;
		tidy_failure(&t->failure[i]);
		list_add(&t->failures, &t->failure[i]);
	}
	sort(&t->failures, by_failure);
	squeeze(&t->failures, same_failure);
}

/* --- rings ----------------------------------------------------------------------------------- */

/* Adds the whole records of a ring. A slot belongs to one index at a time: the newest below head
 * that falls on it. Any other number in it means that its writer was interrupted. */
static void add_ring(struct trace *t, const struct chunk *c, size_t record, struct list *out)
{
	const struct cw_ring *r = (const struct cw_ring *)(t->data + c->off);
	const uint8_t *slots = t->data + c->off + sizeof(*r);
	uint64_t mask, i, index, seq;

	if (c->len < sizeof(*r) || r->slot_size < record || r->slot_size % 8)
		return;
	if (r->n_slots == 0 || (r->n_slots & (r->n_slots - 1)))
		return;
	mask = r->n_slots - 1;
	for (i = 0; i < r->n_slots && (i + 1) * r->slot_size <= c->len - sizeof(*r); i++) {
		if (r->head <= i)
			break;
		index = i + ((r->head - 1 - i) & ~mask);
		memcpy(&seq, slots + i * r->slot_size, sizeof(seq));
		if (seq == index + 1)
			list_add(out, slots + i * r->slot_size);
	}
}

static void add_rings(struct trace *t, uint32_t kind, size_t record, struct list *out)
{
	size_t i;

	for (i = 0; i < t->n_chunks; i++)
		if (t->chunk[i].kind == kind)
			add_ring(t, &t->chunk[i], record, out);
}

static int by_launch(const void *a, const void *b)
{
	const struct cw_launch *x = *(const struct cw_launch *const *)a;
	const struct cw_launch *y = *(const struct cw_launch *const *)b;
	int c = order(x->ticks, y->ticks);

	c = c ? c : order(x->tid, y->tid);
	c = c ? c : order(x->seq, y->seq);
	return c ? c : order((uintptr_t)x, (uintptr_t)y);
}

static int by_call(const void *a, const void *b)
{
	const struct cw_call *x = *(const struct cw_call *const *)a;
	const struct cw_call *y = *(const struct cw_call *const *)b;
	int c = order(x->ticks, y->ticks);

	c = c ? c : order(x->tid, y->tid);
	c = c ? c : order(x->seq, y->seq);
	return c ? c : order((uintptr_t)x, (uintptr_t)y);
}

/* A captured launch stands in its thread's ring and, longer, among the graphs. */
static bool same_launch(const void *a, const void *b)
{
	const struct cw_launch *x = a, *y = b;

	return x->ticks == y->ticks && x->tid == y->tid && x->func == y->func &&
	       x->stream == y->stream && (x->flags & y->flags & CW_LAUNCH_CAPTURED);
}

size_t trace_launches(struct trace *t, const struct cw_launch *const **list)
{
	if (!t->launches.built) {
		add_rings(t, CW_CHUNK_LAUNCHES, sizeof(struct cw_launch), &t->launches);
		add_rings(t, CW_CHUNK_GRAPHS, sizeof(struct cw_launch), &t->launches);
		sort(&t->launches, by_launch);
		squeeze(&t->launches, same_launch);
		t->launches.built = true;
	}
	*list = (const struct cw_launch *const *)t->launches.item;
	return t->launches.n;
}

size_t trace_calls(struct trace *t, const struct cw_call *const **list)
{
	if (!t->calls.built) {
		add_rings(t, CW_CHUNK_CALLS, sizeof(struct cw_call), &t->calls);
		sort(&t->calls, by_call);
		t->calls.built = true;
	}
	*list = (const struct cw_call *const *)t->calls.item;
	return t->calls.n;
}

/* --- allocations ----------------------------------------------------------------------------- */

static int by_address(const void *a, const void *b)
{
	const struct cw_allocation *x = *(const struct cw_allocation *const *)a;
	const struct cw_allocation *y = *(const struct cw_allocation *const *)b;
	int c = order(x->addr, y->addr);

	return c ? c : order(y->ticks, x->ticks);	/* the newest first: it is kept */
}

static bool same_address(const void *a, const void *b)
{
	return ((const struct cw_allocation *)a)->addr == ((const struct cw_allocation *)b)->addr;
}

static void add_allocations(struct trace *t, const struct chunk *c, struct list *out)
{
	const struct cw_allocation *a = (const struct cw_allocation *)(t->data + c->off);
	size_t i, n = c->len / sizeof(*a);

	for (i = 0; i < n; i++)
		if (a[i].addr && a[i].size && a[i].size <= UINT64_MAX - a[i].addr)
			list_add(out, &a[i]);
}

static void read_live(struct trace *t, uint32_t kind, struct list *out)
{
	size_t i;

	if (out->built)
		return;
	for (i = 0; i < t->n_chunks; i++)
		if (t->chunk[i].kind == kind)
			add_allocations(t, &t->chunk[i], out);
	sort(out, by_address);
	squeeze(out, same_address);
	out->built = true;
}

size_t trace_allocations(struct trace *t, const struct cw_allocation *const **list)
{
	read_live(t, CW_CHUNK_ALLOCATIONS, &t->allocations);
	*list = (const struct cw_allocation *const *)t->allocations.item;
	return t->allocations.n;
}

size_t trace_blocks(struct trace *t, const struct cw_allocation *const **list)
{
	read_live(t, CW_CHUNK_BLOCKS, &t->blocks);
	*list = (const struct cw_allocation *const *)t->blocks.item;
	return t->blocks.n;
}

static int by_free(const void *a, const void *b)
{
	const struct cw_freed *x = *(const struct cw_freed *const *)a;
	const struct cw_freed *y = *(const struct cw_freed *const *)b;
	int c = order(x->ticks, y->ticks);

	return c ? c : order(x->seq, y->seq);
}

static void drop_empty(struct list *l)
{
	size_t i, n = 0;

	for (i = 0; i < l->n; i++) {
		const struct cw_freed *f = l->item[i];

		if (f->addr && f->size && f->size <= UINT64_MAX - f->addr)
			l->item[n++] = f;
	}
	l->n = n;
}

size_t trace_freed(struct trace *t, const struct cw_freed *const **list)
{
	if (!t->freed.built) {
		add_rings(t, CW_CHUNK_FREED, sizeof(struct cw_freed), &t->freed);
		sort(&t->freed, by_free);
		drop_empty(&t->freed);
		t->freed.built = true;
	}
	*list = (const struct cw_freed *const *)t->freed.item;
	return t->freed.n;
}

size_t trace_ranges(const struct trace *t, const struct cw_range **list)
{
	const struct chunk *c = first_chunk(t, CW_CHUNK_RANGES);
	size_t i, n = c ? c->len / sizeof(**list) : 0;

	*list = c ? (const struct cw_range *)(t->data + c->off) : NULL;
	for (i = 0; i < n; i++)
		if ((*list)[i].end <= (*list)[i].start)	/* the rest of the chunk is empty */
			return i;
	return n;
}
