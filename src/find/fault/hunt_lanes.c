/* SPDX-License-Identifier: Apache-2.0
 * The threads at fault, and where the others are (see hunt.h).
 */
#include "find/fault/hunt.h"

#include "base/mem.h"
#include "formats/image.h"

#define WINDOW		((uint64_t)16 << 20)	/* size of the shared and of the local window */
#define SHARED_MAX	((uint64_t)256 << 10)	/* no GPU has more shared memory per block */
#define FRAME_MAX	((uint64_t)1 << 20)
#define CONTEXTS_MAX	((size_t)1 << 20)

static void places_count(struct hunt *h, const struct thread *t)
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

static void places_finish(struct hunt *h)
{
	struct culprit *c = h->c;
	struct image_function f;
	size_t i;

	xsort(c->places, c->n_places, sizeof(c->places[0]), by_threads);
	for (i = 0; i < c->n_places; i++) {
		if (image_find(h->image, c->places[i].pc, &f)) {
			c->places[i].function = xstrdup(f.name);
			c->places[i].offset = c->places[i].pc - f.start;
		} else if (c->places[i].pc >= c->entry) {
			c->places[i].offset = c->places[i].pc - c->entry;
		}
	}
}

/* All lanes of a warp carry its exception, even those that wait elsewhere for the faulting ones. */
static bool is_active(const struct thread *t)
{
	uint64_t active = dump_get(&t->warp, DUMP_WARP_ACTIVE);

	return active == 0 || active >> (dump_get(&t->lane, DUMP_LANE_ID) & 31) & 1;
}

static bool is_faulting(struct hunt *h, const struct thread *t)
{
	switch (h->c->source) {
	case CULPRIT_LANE:
		return hunt_counts(h, dump_get(&t->lane, DUMP_LANE_EXCEPTION)) &&
		       (!h->c->pc_exact || (is_active(t) && !hunt_skipped(h, t)));
	case CULPRIT_SM:
		return dump_get(&t->sm, DUMP_SM_EXCEPTION) == h->c->exception &&
		       dump_get(&t->sm, DUMP_SM_PC) == h->c->pc && hunt_in_reach(h, t) && !hunt_skipped(h, t);
	case CULPRIT_BROKEN:
		return dump_get(&t->warp, DUMP_WARP_BROKEN);
	default:
		return true;
	}
}

static void keep_lane(struct hunt *h, const struct thread *t)
{
	struct culprit *c = h->c;
	struct culprit_lane *l;
	int i;

	if (!c->lanes)
		c->lanes = xcalloc(CULPRIT_LANES_MAX, sizeof(*c->lanes));
	l = &c->lanes[c->n_kept++];
	l->pc = dump_get(&t->lane, DUMP_LANE_PC);
	for (i = 0; i < 3; i++) {
		l->block[i] = (uint32_t)dump_get(&t->cta, DUMP_CTA_BLOCK_X + i);
		l->thread[i] = (uint32_t)dump_get(&t->lane, DUMP_LANE_THREAD_X + i);
	}
	hunt_address(h, t, l);
}

static bool take_lane(struct hunt *h, const struct thread *t)
{
	struct culprit *c = h->c;

	if (!is_faulting(h, t))
		return false;
	/* each device has its own table of SMs, and counts its grids by itself */
	if (dump_get(&t->cta, DUMP_CTA_GRID) != c->grid_id || t->sm.section != h->first.sm.section) {
		c->n_other += c->source == CULPRIT_LANE;
		return false;
	}
	if (c->n_lanes++ < CULPRIT_LANES_MAX)
		keep_lane(h, t);
	if (t->warp.section != h->last_warp.section || t->warp.index != h->last_warp.index) {
		h->last_warp = t->warp;
		c->n_warps++;
	}
	if (t->cta.section != h->last_cta.section || t->cta.index != h->last_cta.index) {
		h->last_cta = t->cta;
		c->n_blocks++;
	}
	if (c->source == CULPRIT_RUNNING)
		places_count(h, t);
	return false;
}

static void find_lanes(struct hunt *h)
{
	struct culprit *c = h->c;
	size_t i;

	if (!c->grid_known)
		return;
	hunt_walk(h, NULL, take_lane);
	hunt_address_end(h);
	places_finish(h);
	for (i = 0; i < c->n_kept; i++) {
		if (!c->lanes[i].address_known)
			continue;
		if (!c->address_known || c->lanes[i].address < c->address_min)
			c->address_min = c->lanes[i].address;
		if (!c->address_known || c->lanes[i].address > c->address_max)
			c->address_max = c->lanes[i].address;
		c->address_known = true;
	}
}

/* A generic address is local or shared memory when it is in the window for that. */
static void resolve_space(struct hunt *h)
{
	struct culprit *c = h->c;
	struct dump_row row;
	size_t cursor = 0, n = 0;

	if (c->space != SASS_GENERIC || !c->address_known)
		return;
	while (n++ < CONTEXTS_MAX && dump_next(h->d, DUMP_CONTEXT, &cursor, &row)) {
		if (dump_get(&row, DUMP_CONTEXT_ID) != c->context)
			continue;
		if (c->address_min - dump_get(&row, DUMP_CONTEXT_LOCAL_BASE) < WINDOW)
			c->space = SASS_LOCAL;
		else if (c->address_min - dump_get(&row, DUMP_CONTEXT_SHARED_BASE) < WINDOW)
			c->space = SASS_SHARED;
		else
			c->space = SASS_GLOBAL;
		return;
	}
}

/* CUDA says "illegal memory access" for a stack that has grown out of local memory: the thread was in a
 * called function, or accessed its own frame, at and above the stack pointer R1. */
static bool is_stack_overflow(struct hunt *h)
{
	struct culprit *c = h->c;
	uint32_t sp;

	if (c->fault != FAULT_OUT_OF_RANGE || c->space != SASS_LOCAL)
		return false;
	if (!c->address_known)
		return c->call_depth > 0;
	return dump_word(dump_child_bytes(&h->first.lane, DUMP_REGS), 1, &sp) &&
	       c->lanes[0].address_known && c->lanes[0].address - sp < FRAME_MAX;
}

/* The exception is the warp's; of its lanes only those with such an address are at fault. */
static bool is_misaligned(const struct culprit *c, const struct culprit_lane *l)
{
	return l->address_known && l->address % c->insn.width != 0;
}

/* A warp's shared accesses go out of range together, but only lanes whose address no block can have are at fault. */
static bool is_beyond_shared(const struct culprit *c, const struct culprit_lane *l)
{
	(void)c;
	return l->address_known && l->address >= SHARED_MAX;
}

/* Keeps the lanes at fault: when there is one, and when all lanes were checked. */
static void keep_guilty(struct culprit *c, bool (*guilty)(const struct culprit *c, const struct culprit_lane *l))
{
	size_t i, n = 0;

	for (i = 0; i < c->n_kept; i++)
		n += guilty(c, &c->lanes[i]);
	if (n == 0 || c->n_kept != c->n_lanes)
		return;
	for (i = n = 0; i < c->n_kept; i++)
		if (guilty(c, &c->lanes[i]))
			c->lanes[n++] = c->lanes[i];
	c->n_kept = c->n_lanes = n;
}

static void judge_lanes(struct hunt *h)
{
	resolve_space(h);
	if (h->c->fault == FAULT_OUT_OF_RANGE && h->c->decoded && h->c->space == SASS_SHARED)
		keep_guilty(h->c, is_beyond_shared);
	if (is_stack_overflow(h))
		h->c->fault = FAULT_STACK_OVERFLOW;
	if (h->c->fault == FAULT_MISALIGNED && h->c->decoded)
		keep_guilty(h->c, is_misaligned);
}

void hunt_lanes(struct hunt *h)
{
	find_lanes(h);
	judge_lanes(h);
}
