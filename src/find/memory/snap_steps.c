/* SPDX-License-Identifier: Apache-2.0
 * The requests of a snapshot (see snap_steps.h).
 */
#include "find/memory/snap_steps.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/pool.h"
#include "find/memory/kinds.h"
#include "find/memory/replay_steps.h"

/* A block has the number of the event that allocated it, plus one; 0: before the first. */
static uint32_t block_of(uint32_t born)
{
	return born == SNAP_NONE ? 0 : born + 1;
}

static uint8_t purpose_of(struct kinds *k, uint32_t stack)
{
	return (uint8_t)kinds_about(k, &(struct piece){.stack = stack, .kind = CW_MEM_TORCH})->kind;
}

static void add_step(struct replay *r, const struct snap_device *d, size_t event, struct kinds *k,
		     const struct snap_made *made)
{
	const struct snap_event *e = &d->replay.event[event];
	struct step *s = &r->step[r->n];
	uint64_t size = replay_bytes(&d->replay, event);

	*s = (struct step){.addr = e->addr};
	if (e->action == SNAP_ALLOC || e->action == SNAP_OOM) {
		s->kind = e->action == SNAP_ALLOC ? STEP_ALLOC : STEP_OOM;
		s->units = step_units(e->action == SNAP_ALLOC ? size : e->size);
		s->slack = 0;
		s->block = block_of((uint32_t)event);
		s->stack = made->stack[e->stack];
		s->purpose = purpose_of(k, s->stack);
	} else if (e->action == d->replay.free_action) {
		s->kind = STEP_FREE;
		s->block = block_of(replay_alloc_of(&d->replay, event));
	} else {
		return;
	}
	r->n++;
}

struct replay *snap_steps(const struct snap_device *d, struct trace *t, const struct snap_made *made)
{
	struct replay *r = xcalloc(1, sizeof(*r));
	struct pool pool = {0};
	struct kinds k;
	size_t last = made->end < d->replay.n ? made->end + 1 : d->replay.n;

	r->trace = t;
	r->step = xcalloc(last + 1, sizeof(*r->step));
	r->cap = last + 1;
	r->blocks = (uint32_t)last + 1;
	r->facts.ran_out = d->oom.found;
	kinds_init(&k, t, NULL, false, &pool);
	for (size_t i = 0; i < last; i++)
		add_step(r, d, i, &k, made);
	pool_release(&pool);
	return r;
}
