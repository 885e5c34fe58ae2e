/* SPDX-License-Identifier: Apache-2.0
 * Collects the memory that a process had at one moment (see pieces.h).
 */
#include "find/memory/pieces.h"

#include <stdlib.h>

#include "base/mem.h"
#include "read/recording/trace.h"
#include "read/recording/trace_memory.h"

static void piece_add(struct pieces *p, size_t *cap, struct piece one)
{
	p->list = xgrow(p->list, p->n, cap, sizeof(*p->list));
	p->list[p->n++] = one;
}

/* Of a block of PyTorch's: 0, or the library whose workspace it is. */
static uint32_t library_of(const struct cw_allocation *a)
{
	return a->kind == CW_MEM_TORCH && a->library & CW_BLOCK_DETAIL ? 0 : a->library;
}

static struct piece of_allocation(const struct cw_allocation *a)
{
	return (struct piece){ .addr = a->addr, .size = a->size, .ticks = a->ticks, .stack = a->stack,
			      .forward_stack = a->kind == CW_MEM_TORCH ? (uint32_t)a->extra : 0,
			      .turn = a->kind == CW_MEM_TORCH ? (uint32_t)(a->extra >> 32) : 0,
			      .device = a->device,
			      .kind = a->kind,
			      .site = a->site,
			      .library = library_of(a),
			      .workspace = a->kind == CW_MEM_TORCH && library_of(a)};
}

static bool was_torch(const struct cw_freed *f)
{
	return f->kind == CW_MEM_TORCH || f->kind == CW_MEM_WORKSPACE;
}

/* Recordings before 2.6 have no turns here. */
struct piece piece_of_freed(const struct trace *t, const struct cw_freed *f)
{
	bool turns = was_torch(f) && trace_header(t)->minor >= 6;

	return (struct piece){ .addr = f->addr, .size = f->size, .ticks = f->made_ticks, .stack = f->stack,
			      .free_ticks = f->ticks,
			      .forward_stack = f->forward_stack,
			      .turn = turns ? f->turn : 0,
			      .turn_serial = turns ? f->turn_serial : 0,
			      .free_stack = freed_stack(f),
			      .freed_after = f->free_stack & CW_FREED_AFTER,
			      .device = f->device,
			      .kind = was_torch(f) ? CW_MEM_TORCH : f->kind,
			      .site = trace_freed_site(t, f),
			      .workspace = f->kind == CW_MEM_WORKSPACE};
}

static int piece_by_address(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* The tables are in order; what was freed since comes in no order. */
static void pieces_sort(struct pieces *p)
{
	for (size_t i = 1; i < p->n; i++)
		if (p->list[i].addr < p->list[i - 1].addr) {
			xsort(p->list, p->n, sizeof(*p->list), piece_by_address);
			return;
		}
}

void pieces_of_torch(struct pieces *p, struct trace *t, uint64_t when)
{
	const struct cw_allocation *const *a;
	const struct cw_freed *const *f;
	size_t n = trace_blocks(t, &a), gone = trace_freed(t, &f), cap = 0;

	*p = (struct pieces){.n = 0};
	for (size_t i = 0; i < n; i++)
		if (a[i]->ticks <= when)
			piece_add(p, &cap, of_allocation(a[i]));
	for (size_t i = 0; i < gone; i++)
		if (was_torch(f[i]) && f[i]->made_ticks <= when && f[i]->ticks > when)
			piece_add(p, &cap, piece_of_freed(t, f[i]));
	pieces_sort(p);
}

void pieces_of_driver(struct pieces *p, struct trace *t)
{
	const struct cw_allocation *const *a;
	size_t n = trace_allocations(t, &a), cap = 0;

	*p = (struct pieces){.n = 0};
	for (size_t i = 0; i < n; i++)
		if (a[i]->kind != CW_MEM_RESERVED)	/* addresses alone: nothing is there */
			piece_add(p, &cap, of_allocation(a[i]));
}

void pieces_of_driver_at(struct pieces *p, struct trace *t, uint64_t when)
{
	const struct cw_allocation *const *a;
	const struct cw_freed *const *f;
	size_t n = trace_allocations(t, &a), gone = trace_freed(t, &f), cap = 0;

	*p = (struct pieces){.n = 0};
	for (size_t i = 0; i < n; i++)
		if (a[i]->kind != CW_MEM_RESERVED && a[i]->ticks <= when)
			piece_add(p, &cap, of_allocation(a[i]));
	for (size_t i = 0; i < gone; i++)
		if (!was_torch(f[i]) && f[i]->kind != CW_MEM_RESERVED && f[i]->made_ticks <= when &&
		    f[i]->ticks > when)
			piece_add(p, &cap, piece_of_freed(t, f[i]));
	pieces_sort(p);
}

void pieces_free(struct pieces *p)
{
	free(p->list);
	p->list = NULL;
	p->n = 0;
}

static bool newest_freed(struct trace *t, bool torch, uint64_t address, uint64_t before, struct piece *found)
{
	const struct cw_freed *const *f;
	size_t n = trace_freed(t, &f);

	for (size_t i = n; i > 0; i--) {
		if (f[i - 1]->ticks >= before || was_torch(f[i - 1]) != torch)
			continue;
		*found = piece_of_freed(t, f[i - 1]);
		if (piece_holds(found, address))
			return true;
	}
	return false;
}

bool piece_freed_by_torch(struct trace *t, uint64_t address, uint64_t before, struct piece *found)
{
	return newest_freed(t, true, address, before, found);
}

/* What the call freed: an unmap has the size in its arguments, for a free the recorder noted it. */
static bool gave_back(const struct cw_call *c, struct piece *p)
{
	bool range = api_does(c->api, DOES_TAKE_RANGE);

	if (c->result || !api_does(c->api, DOES_TAKE | DOES_TAKE_RANGE))
		return false;
	*p = (struct piece){.addr = c->arg[0], .size = range ? c->arg[1] : c->out, .free_stack = c->stack, .device = -1};
	return true;
}

static bool made_it(const struct cw_call *c, uint64_t addr)
{
	return !c->result && c->out == addr && api_does(c->api, DOES_GIVE);
}

/* From the calls alone, of which the last thousands of each thread are kept: what was allocated long ago, or while not
 * recording, is in no table. */
static bool freed_by_call(struct trace *t, uint64_t address, uint64_t before, struct piece *found)
{
	const struct cw_call *const *c;
	size_t n = trace_calls(t, &c), i, m;

	for (i = n; i > 0; i--)
		if (c[i - 1]->ticks < before && gave_back(c[i - 1], found) && piece_holds(found, address))
			break;
	if (!i)
		return false;
	for (m = i - 1; m > 0 && !made_it(c[m - 1], found->addr); m--)
		;
	if (m) {
		found->stack = c[m - 1]->stack;
		found->ticks = c[m - 1]->ticks;
	}
	return true;
}

bool piece_freed_by_driver(struct trace *t, uint64_t address, uint64_t before, struct piece *found)
{
	return newest_freed(t, false, address, before, found) || freed_by_call(t, address, before, found);
}

/* The list is in order of addresses, and does not overlap. */
static const struct cw_allocation *last_of(const struct cw_allocation *const *list, size_t n, uint64_t address)
{
	size_t low = 0, high = n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list[middle]->addr <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? list[low - 1] : NULL;
}

static bool freed_then(struct trace *t, bool torch, uint64_t address, uint64_t when, struct piece *found)
{
	const struct cw_freed *const *f;
	size_t n = trace_freed(t, &f);

	for (size_t i = n; i > 0; i--) {
		const struct cw_freed *one = f[i - 1];

		if (was_torch(one) != torch || one->kind == CW_MEM_RESERVED || one->made_ticks > when ||
		    one->ticks <= when)
			continue;
		*found = piece_of_freed(t, one);
		if (piece_holds(found, address))
			return true;
	}
	return false;
}

bool piece_of_torch_at(struct trace *t, uint64_t address, uint64_t when, struct piece *found)
{
	const struct cw_allocation *const *list;
	size_t n = trace_blocks(t, &list);
	const struct cw_allocation *a = last_of(list, n, address);

	if (a && a->ticks <= when) {
		*found = of_allocation(a);
		if (piece_holds(found, address))
			return true;
	}
	return freed_then(t, true, address, when, found);
}

bool piece_of_driver_at(struct trace *t, uint64_t address, uint64_t when, struct piece *found)
{
	const struct cw_allocation *const *list;
	size_t n = trace_allocations(t, &list);

	for (size_t i = 0; i < n; i++) {	/* reserved ranges are among them, with mappings inside */
		if (list[i]->kind == CW_MEM_RESERVED || list[i]->ticks > when)
			continue;
		*found = of_allocation(list[i]);
		if (piece_holds(found, address))
			return true;
	}
	return freed_then(t, false, address, when, found);
}

bool torch_had_blocks(struct trace *t, uint64_t from, uint64_t to)
{
	const struct cw_allocation *const *list;
	const struct cw_freed *const *f;
	size_t n = trace_blocks(t, &list), gone = trace_freed(t, &f);
	const struct cw_allocation *a = last_of(list, n, to - 1);

	if (a && a->addr >= from)
		return true;
	for (size_t i = 0; i < gone; i++)
		if (was_torch(f[i]) && f[i]->addr >= from && f[i]->addr < to)
			return true;
	return false;
}

/* Pieces of one moment do not overlap: the last that begins at the address or before is the only one. */
static size_t last_up_to(const struct pieces *p, uint64_t address)
{
	size_t low = 0, high = p->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (p->list[middle].addr <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct piece *pieces_at(const struct pieces *p, uint64_t address)
{
	size_t n = last_up_to(p, address);

	return n && piece_holds(&p->list[n - 1], address) ? &p->list[n - 1] : NULL;
}

const struct piece *pieces_touching(const struct pieces *p, uint64_t from, uint64_t to)
{
	size_t n = last_up_to(p, to - 1);

	const struct piece *last = n ? &p->list[n - 1] : NULL;

	return last && last->size && (last->addr >= from || from - last->addr < last->size) ? last : NULL;
}

const struct piece *pieces_nearest(const struct pieces *p, uint64_t address)
{
	size_t n = last_up_to(p, address);
	const struct piece *below = n ? &p->list[n - 1] : NULL, *above = n < p->n ? &p->list[n] : NULL;

	if (!below || !above)
		return below ? below : above;
	return piece_distance(below, address) <= piece_distance(above, address) ? below : above;
}
