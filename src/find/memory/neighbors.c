/* SPDX-License-Identifier: Apache-2.0
 * Finds what is near an address (see neighbors.h).
 */
#include "find/memory/neighbors.h"

#include "read/recording/trace.h"

/* Those that contain the address, and `each` on both sides. */
static void add_near(struct neighbors *n, const struct pieces *p, uint64_t address, size_t each)
{
	size_t above = 0;

	while (above < p->n && p->list[above].addr <= address)
		above++;
	for (size_t i = above > each + 1 ? above - each - 1 : 0; i < above + each && i < p->n; i++)
		if (p->list[i].kind != CW_MEM_RESERVED)
			n->list[n->n++] = p->list[i];
}

void neighbors_find(struct neighbors *n, struct trace *t, uint64_t address, uint64_t when)
{
	struct pieces torch, driver;

	*n = (struct neighbors){.n = 0};
	pieces_of_torch(&torch, t, when);
	pieces_of_driver(&driver, t);
	add_near(n, &driver, address, NEIGHBORS_DRIVER);
	add_near(n, &torch, address, NEIGHBORS_TORCH);
	n->n_live = n->n;
	pieces_free(&torch);
	pieces_free(&driver);
	n->n += piece_freed_by_torch(t, address, when, &n->list[n->n]);
	n->n += piece_freed_by_driver(t, address, when, &n->list[n->n]);
}
