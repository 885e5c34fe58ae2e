/* SPDX-License-Identifier: Apache-2.0
 * PyTorch's segments at one moment (see segments.h).
 */
#include "find/memory/segments.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "find/memory/ledger_lines.h"
#include "read/recording/trace.h"

#define PINS_MAX 8

static bool on_device(const struct piece *p, int device)
{
	return (p->device == device || p->device < 0) &&
	       (p->kind == CW_MEM_DEVICE || p->kind == CW_MEM_VMM);
}

static const char *file_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The first block that begins at the address or later. */
static size_t first_from(const struct pieces *p, uint64_t address)
{
	size_t low = 0, high = p->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (p->list[middle].addr < address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool holds_block(const struct pieces *torch, const struct piece *p)
{
	size_t i = first_from(torch, p->addr);

	if (i < torch->n && torch->list[i].addr - p->addr < p->size)
		return true;
	return i && piece_holds(&torch->list[i - 1], p->addr);	/* mapped in pieces: a block may span several */
}

/* Segments with tensors are recognized by their blocks, empty ones by who requested them. Where that is not known,
 * PyTorch's own sum says how much is left to find. */
static void claim(struct moment *m, struct kinds *k, uint64_t reserved)
{
	uint64_t found = 0;

	for (size_t i = 0; i < m->driver.n; i++) {
		struct piece *p = &m->driver.list[i];

		if (on_device(p, m->device) &&
		    (str_starts(file_of(trace_string(k->trace, kinds_library(k, p))), "libc10_cuda") ||
		     holds_block(&m->torch, p))) {
			p->segment = true;
			found += p->size;
		}
	}
	for (size_t i = 0; i < m->driver.n; i++) {
		struct piece *p = &m->driver.list[i];

		if (on_device(p, m->device) && !p->segment && !kinds_library(k, p) && p->size % (2 << 20) == 0 &&
		    found < reserved && p->size <= reserved - found) {
			p->segment = true;
			found += p->size;
		}
	}
}

static void segment_measure(struct ledger_segment *s, const struct pieces *torch)
{
	uint64_t at = s->addr, end = s->addr + s->size, gap;

	s->first = first_from(torch, s->addr);
	for (size_t i = s->first; i < torch->n && torch->list[i].addr < end; i++) {
		const struct piece *b = &torch->list[i];

		gap = b->addr > at ? b->addr - at : 0;
		s->free += gap;
		s->largest = gap > s->largest ? gap : s->largest;
		at = b->addr + b->size > at ? b->addr + b->size : at;
		s->n++;
	}
	gap = end > at ? end - at : 0;
	s->free += gap;
	s->largest = gap > s->largest ? gap : s->largest;
}

/* One cell of the map: how much of it blocks cover. */
static char cell(const struct ledger_segment *s, const struct pieces *torch, int i)
{
	double width = (double)s->size / SEGMENT_MAP, from = width * i, to = width * (i + 1), used = 0;

	for (size_t b = s->first; b < s->first + s->n; b++) {
		double start = (double)(torch->list[b].addr - s->addr), end = start + (double)torch->list[b].size;

		start = start > from ? start : from;
		end = end < to ? end : to;
		used += end > start ? end - start : 0;
	}
	return used >= width * 0.9 ? '#' : used > 0 ? '-' : '.';
}

#define MAPS 16

static void segment_draw(struct ledger_segments *s, const struct pieces *torch)
{
	for (size_t i = 0; i < s->used && i < MAPS; i++)
		for (int c = 0; c < SEGMENT_MAP; c++)
			s->list[i].map[c] = cell(&s->list[i], torch, c);
}

/* Memory that is mapped in granules is one segment as long as the granules are adjacent. */
static void collect(struct ledger_segments *s, const struct moment *m, struct pool *pool)
{
	const struct piece *before = NULL;

	s->list = pool_alloc(pool, (m->driver.n + 1) * sizeof(*s->list));
	for (size_t i = 0; i < m->driver.n; i++) {
		const struct piece *p = &m->driver.list[i];
		struct ledger_segment *last = s->n ? &s->list[s->n - 1] : NULL;

		if (!p->segment)
			continue;
		if (last && before->kind == CW_MEM_VMM && p->kind == CW_MEM_VMM && last->addr + last->size == p->addr)
			last->size += p->size;
		else
			s->list[s->n++] = (struct ledger_segment){.addr = p->addr, .size = p->size};
		before = p;
	}
}

static int segment_by_free(const void *a, const void *b)
{
	const struct ledger_segment *x = a, *y = b;

	if (!x->n != !y->n)
		return x->n ? -1 : 1;
	if (x->free != y->free)
		return x->free > y->free ? -1 : 1;
	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static void find_pins(struct ledger_segments *s, const struct moment *m, struct kinds *k, struct pool *pool)
{
	struct lines pins = {0};

	for (size_t i = 0; i < s->used; i++) {
		if (s->list[i].free * 2 <= s->list[i].size)
			continue;
		s->pinned += s->list[i].free;
		for (size_t b = s->list[i].first; b < s->list[i].first + s->list[i].n; b++) {
			const struct piece *p = &m->torch.list[b];
			struct ledger_line one = { .part = PART_TENSORS, .kind = kinds_of(k, p), .bytes = p->size,
						  .count = 1,
						  .first_ticks = p->ticks,
						  .last_ticks = p->ticks};

			one.place = kinds_about(k, p)->place;
			lines_add(&pins, &one);
		}
	}
	lines_join(&pins);
	s->n_pins = pins.n < PINS_MAX ? pins.n : PINS_MAX;
	s->pin = pool_alloc(pool, (s->n_pins + 1) * sizeof(*s->pin));
	if (s->n_pins)
		memcpy(s->pin, pins.list, s->n_pins * sizeof(*s->pin));
	free(pins.list);
}

void segments_find(struct ledger_segments *s, struct moment *m, struct kinds *k, uint64_t reserved,
		   struct pool *pool)
{
	*s = (struct ledger_segments){.n = 0};
	claim(m, k, reserved);
	collect(s, m, pool);
	for (size_t i = 0; i < s->n; i++) {
		segment_measure(&s->list[i], &m->torch);
		if (s->list[i].n)
			s->used++;
		*(s->list[i].n ? &s->free_used : &s->free_whole) += s->list[i].free;
		if (s->list[i].largest > s->largest)
			s->largest = s->list[i].largest;
	}
	xsort(s->list, s->n, sizeof(*s->list), segment_by_free);
	segment_draw(s, &m->torch);
	find_pins(s, m, k, pool);
}

static bool is_captured(const struct ledger_segment *g, const struct moment *m, struct kinds *k)
{
	for (size_t b = g->first; b < g->first + g->n; b++)
		if (kinds_of(k, &m->torch.list[b]) == KIND_GRAPHS)
			return true;
	return false;
}

/* The driver's allocation at an address; NULL = there is none. */
static const struct piece *piece_at(const struct pieces *p, uint64_t address)
{
	size_t i = first_from(p, address);

	return i < p->n && p->list[i].addr == address ? &p->list[i] : NULL;
}

void segments_keep(struct ledger_segments *s, const struct moment *m, struct kinds *k)
{
	struct lines lines = {0};

	for (size_t i = 0; i < s->n; i++) {
		struct ledger_segment *g = &s->list[i];
		const struct piece *p = piece_at(&m->driver, g->addr);
		struct ledger_line one = {.part = PART_POOLS, .bytes = g->free, .count = 1};

		g->kept = !g->n || is_captured(g, m, k);
		if (!g->kept)
			continue;
		s->kept += g->size;
		s->kept_free += g->free;
		*(g->n ? &s->free_used : &s->free_whole) -= g->free;
		if (p)
			one.place = kinds_about(k, p)->place;
		lines_add(&lines, &one);
	}
	lines_join(&lines);
	if (lines.n)
		s->kept_line = lines.list[0];
	free(lines.list);
}
