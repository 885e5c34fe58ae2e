/* SPDX-License-Identifier: Apache-2.0
 * The pieces of memory of one moment: from the tables of a recording, or from a memory trace.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "input/recording/history.h"
#include "input/recording/ledger_priv.h"

void moment_init(struct moment *m, struct trace *t, uint64_t when, int device)
{
	size_t n = 0;

	*m = (struct moment){ .when = when, .device = device };
	pieces_of_torch(&m->torch, t, when);
	for (size_t i = 0; i < m->torch.n; i++)
		if (m->torch.list[i].device == device)
			m->torch.list[n++] = m->torch.list[i];
	m->torch.n = n;
	pieces_of_driver_at(&m->driver, t, when);
}

static int by_address(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

/* `device` -1 = of every one. */
static void copy(struct pieces *to, const struct held_book *from, int device)
{
	to->list = xcalloc(from->n + 1, sizeof(*to->list));
	to->n = 0;
	for (size_t i = 0; i < from->n; i++)
		if (device < 0 || from->list[i].piece.device == device)
			to->list[to->n++] = from->list[i].piece;
	qsort(to->list, to->n, sizeof(*to->list), by_address);
}

void moment_from(struct moment *m, const struct history *h, int device)
{
	*m = (struct moment){ .when = h->ticks, .device = device };
	copy(&m->torch, &h->torch, device);
	copy(&m->driver, &h->driver, -1);
}

void moment_free(struct moment *m)
{
	pieces_free(&m->torch);
	pieces_free(&m->driver);
}
