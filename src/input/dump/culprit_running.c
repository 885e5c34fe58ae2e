/* SPDX-License-Identifier: Apache-2.0
 * Where the threads of a kernel stand that has not failed: the few distinct places, with their counts.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "input/dump/culprit_priv.h"
#include "formats/image.h"
#include "base/banned.h"

void places_count(struct hunt *h, const struct thread *t)
{
	uint64_t pc = dump_get(&t->lane, DUMP_LANE_PC);
	struct culprit *c = h->c;
	size_t i = 0;

	while (i < c->n_places && c->places[i].pc != pc)
		i++;
	if (i == CULPRIT_PLACES_MAX) {
		c->n_elsewhere++;
		return;
	}
	if (i == c->n_places)
		c->places[c->n_places++] = (struct culprit_place){.pc = pc};
	c->places[i].threads++;
}

static int by_threads(const void *a, const void *b)
{
	const struct culprit_place *x = a, *y = b;

	if (x->threads != y->threads)
		return x->threads < y->threads ? 1 : -1;
	return x->pc < y->pc ? -1 : x->pc > y->pc;
}

void places_finish(struct hunt *h)
{
	struct culprit *c = h->c;
	struct image_function f;
	size_t i;

	if (c->n_places)
		qsort(c->places, c->n_places, sizeof(c->places[0]), by_threads);
	for (i = 0; i < c->n_places; i++) {
		if (image_find(h->image, c->places[i].pc, &f)) {
			c->places[i].function = xstrdup(f.name);
			c->places[i].offset = c->places[i].pc - f.start;
		} else if (c->places[i].pc >= c->entry) {
			c->places[i].offset = c->places[i].pc - c->entry;
		}
	}
}
