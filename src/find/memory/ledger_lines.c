/* SPDX-License-Identifier: Apache-2.0
 * Lines of a ledger, added up by who holds the memory and where it was allocated.
 */
#include "find/memory/ledger_lines.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void add_to(struct ledger_line *to, const struct ledger_line *one)
{
	to->bytes += one->bytes;
	to->count += one->count;
	to->made += one->made;
	to->made_bytes += one->made_bytes;
	to->first_ticks = one->first_ticks < to->first_ticks ? one->first_ticks : to->first_ticks;
	to->last_ticks = one->last_ticks > to->last_ticks ? one->last_ticks : to->last_ticks;
}

/* By where it was allocated: a stack has one place, a place may have several stacks. */
static bool ledger_line_same(const void *list, uint32_t i, const void *key)
{
	const struct ledger_line *x = (const struct ledger_line *)list + i, *y = key;

	return x->part == y->part && x->kind == y->kind && x->place.stack == y->place.stack && x->library == y->library;
}

void lines_add(struct lines *l, const struct ledger_line *one)
{
	uint64_t key = ((uint64_t)one->place.stack << 8 | (uint64_t)one->part << 4 | one->kind) ^ (uintptr_t)one->library;
	uint32_t n = (uint32_t)l->n,
		 i = one->pid ? n : map_put(&l->map, map_hash(key), ledger_line_same, l->list, one, n);

	if (l->modules && one->part == PART_TENSORS)
		module_sums_add(l->modules, one->module, one->kind, one->bytes);
	if (i != n) {
		add_to(&l->list[i], one);
		return;
	}
	l->list = xgrow(l->list, l->n, &l->cap, sizeof(*l->list));
	l->list[l->n++] = *one;
}

static int compare_text(const char *a, const char *b)
{
	return strcmp(a ? a : "", b ? b : "");
}

static int same_owner(const struct ledger_line *x, const struct ledger_line *y)
{
	int c = (int)x->part - (int)y->part;

	c = c ? c : (int)x->kind - (int)y->kind;
	c = c ? c : compare_text(x->place.file, y->place.file);
	c = c ? c : (x->place.line > y->place.line) - (x->place.line < y->place.line);
	c = c ? c : compare_text(x->library, y->library);
	return c ? c : (x->pid > y->pid) - (x->pid < y->pid);
}

static int by_owner(const void *a, const void *b)
{
	return same_owner(a, b);
}

static int line_by_bytes(const void *a, const void *b)
{
	const struct ledger_line *x = a, *y = b;

	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return same_owner(x, y);
}

void lines_join(struct lines *l)
{
	size_t n = 0;

	map_release(&l->map);
	if (!l->n)
		return;
	xsort(l->list, l->n, sizeof(*l->list), by_owner);
	for (size_t i = 0; i < l->n; i++) {
		struct ledger_line one = l->list[i], *to = n ? &l->list[n - 1] : NULL;

		if (!to || same_owner(to, &one) || one.pid || one.part == PART_PROCESSES) {
			l->list[n++] = one;
			continue;
		}
		add_to(to, &one);
	}
	l->n = n;
	xsort(l->list, l->n, sizeof(*l->list), line_by_bytes);
}
