/* SPDX-License-Identifier: Apache-2.0
 * Copies from the host to a GPU, from a recording (see copies.h).
 */
#include "read/recording/copies.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "read/recording/trace.h"

struct table {
	const struct cw_copies *head;
	const struct cw_copy *slot;
	const uint8_t *contents;
};

static bool is_power(uint32_t n)
{
	return n && !(n & (n - 1));
}

static bool open_table(struct table *to, const struct trace *t)
{
	size_t len;
	const struct cw_copies *h = trace_chunk(t, CW_CHUNK_COPIES, &len);
	uint64_t need;

	if (!h || len < sizeof(*h) || !is_power(h->n_slots) || !is_power(h->n_bytes))
		return false;
	need = sizeof(*h) + (uint64_t)h->n_slots * sizeof(struct cw_copy) + h->n_bytes;
	to->head = h;
	to->slot = (const struct cw_copy *)(h + 1);
	to->contents = (const uint8_t *)(to->slot + h->n_slots);
	return len >= need;
}

static int by_time(const void *a, const void *b)
{
	const struct cw_copy *x = *(const struct cw_copy *const *)a, *y = *(const struct cw_copy *const *)b;

	return x->ticks != y->ticks ? (x->ticks < y->ticks ? -1 : 1) : x->seq < y->seq ? -1 : x->seq > y->seq;
}

size_t trace_copies(const struct trace *t, const struct cw_copy ***list)
{
	struct table table;
	size_t n = 0;

	*list = NULL;
	if (!open_table(&table, t))
		return 0;
	*list = xcalloc(table.head->n_slots, sizeof(**list));
	for (uint32_t i = 0; i < table.head->n_slots; i++) {
		const struct cw_copy *c = &table.slot[i];

		if (c->seq && (c->seq - 1) % table.head->n_slots == i && c->bytes && c->bytes <= UINT64_MAX - c->to)
			(*list)[n++] = c;
	}
	xsort(*list, n, sizeof(**list), by_time);
	return n;
}

bool trace_memory_shared(const struct trace *t)
{
	struct table table;

	return open_table(&table, t) && table.head->shared;
}

bool trace_copied(const struct trace *t, const struct cw_copy *c, uint64_t offset, void *to, size_t n)
{
	struct table table;
	uint64_t from = c->contents + offset, written;
	size_t first;

	if (offset > c->kept || n > c->kept - offset || c->kept > c->bytes || !open_table(&table, t))
		return false;
	written = table.head->written;
	/* all of it was written, and nothing over it since */
	if (c->contents > written || c->kept > written - c->contents || written - c->contents > table.head->n_bytes)
		return false;
	from %= table.head->n_bytes;
	first = table.head->n_bytes - from < n ? (size_t)(table.head->n_bytes - from) : n;
	memcpy(to, table.contents + from, first);
	memcpy((uint8_t *)to + first, table.contents, n - first);
	return true;
}
