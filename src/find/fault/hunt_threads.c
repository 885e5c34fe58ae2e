/* SPDX-License-Identifier: Apache-2.0
 * The threads of a dump, and the one to begin with (see hunt.h).
 */
#include "find/fault/hunt.h"

static const struct exception {
	uint32_t code;
	const char *name;
	enum culprit_fault fault;
} exceptions[] = {
#define EXC(code, name, fault, text)	{code, #name, FAULT_##fault},
#include "kb/gpu_exceptions.def"
};

struct walk {
	struct hunt *h;
	hunt_fn *fn;
	struct thread t;
	size_t rows;
};

/* Rows of the tables of a type below a parent, one level after the other. */
static bool walk_below(struct walk *w, const struct dump_row *parent, enum dump_table table);

static bool walk_row(struct walk *w, enum dump_table table, const struct dump_row *row)
{
	uint64_t id;

	switch (table) {
	case DUMP_CTA:
		w->t.cta = *row;
		return walk_below(w, row, DUMP_WARP);
	case DUMP_WARP:
		w->t.warp = *row;
		return walk_below(w, row, DUMP_LANE);
	default:
		w->t.lane = *row;
		id = dump_get(row, DUMP_LANE_ID);
		return id < 32 && (dump_get(&w->t.warp, DUMP_WARP_VALID) >> id & 1) && w->fn(w->h, &w->t);
	}
}

static bool walk_below(struct walk *w, const struct dump_row *parent, enum dump_table table)
{
	const uint32_t *sections;
	size_t i, n = dump_children(parent, table, &sections);
	struct dump_row row;
	uint32_t r;

	for (i = 0; i < n; i++)
		for (r = 0; dump_row(parent->dump, sections[i], r, &row); r++)
			if (++w->rows > ROWS_MAX || walk_row(w, table, &row))
				return true;
	return false;
}

void hunt_walk(struct hunt *h, const struct dump_row *only_sm, hunt_fn *fn)
{
	struct walk w = {.h = h, .fn = fn};
	size_t cursor = 0;

	if (only_sm) {
		w.t.sm = *only_sm;
		walk_below(&w, only_sm, DUMP_CTA);
	}
	while (!only_sm && dump_next(h->d, DUMP_SM, &cursor, &w.t.sm))
		if (++w.rows > ROWS_MAX || walk_below(&w, &w.t.sm, DUMP_CTA))
			break;
}

static const struct exception *exception_known(uint64_t code)
{
	for (size_t i = 0; i < sizeof(exceptions) / sizeof(exceptions[0]); i++)
		if (exceptions[i].code == code)
			return &exceptions[i];
	return NULL;
}

bool hunt_counts(const struct hunt *h, uint64_t exception)
{
	const struct exception *known = exception_known(exception);

	return exception && (!h->told || (known && culprit_fault_code(known->fault) == h->told));
}

static bool has_exception(struct hunt *h, const struct thread *t)
{
	if (!hunt_counts(h, dump_get(&t->lane, DUMP_LANE_EXCEPTION)))
		return false;
	h->first = *t;
	h->c->source = CULPRIT_LANE;
	h->c->exception = (uint32_t)dump_get(&t->lane, DUMP_LANE_EXCEPTION);
	return true;
}

static bool is_broken(struct hunt *h, const struct thread *t)
{
	if (!dump_get(&t->warp, DUMP_WARP_BROKEN))
		return false;
	h->first = *t;
	h->c->source = CULPRIT_BROKEN;
	return true;
}

/* Of several kernels that run, the others may wait for the oldest. Each device has its own table of SMs, and
 * counts its grids by itself. */
static bool take_oldest(struct hunt *h, const struct thread *t)
{
	uint64_t grid = dump_get(&t->cta, DUMP_CTA_GRID), oldest = dump_get(&h->first.cta, DUMP_CTA_GRID);
	bool first = h->c->source == CULPRIT_NOWHERE, here = t->sm.section == h->first.sm.section;

	if (!first && (!here || grid != oldest))
		h->c->other_grids = true;
	if (first || (here && grid < oldest))
		h->first = *t;
	h->c->source = CULPRIT_RUNNING;
	return false;
}

static bool take_any(struct hunt *h, const struct thread *t)
{
	h->first = *t;
	return true;
}

/* The warp has exited and left its exception with the SM. A thread of the SM, if one is left, identifies
 * the grid. */
static void find_sm(struct hunt *h)
{
	struct dump_row sm;
	size_t cursor = 0, rows = 0;

	while (rows++ < ROWS_MAX && dump_next(h->d, DUMP_SM, &cursor, &sm)) {
		if (!hunt_counts(h, dump_get(&sm, DUMP_SM_EXCEPTION)))
			continue;
		h->c->source = CULPRIT_SM;
		h->c->exception = (uint32_t)dump_get(&sm, DUMP_SM_EXCEPTION);
		hunt_walk(h, &sm, take_any);
		h->first.sm = sm;
		return;
	}
}

static void find_exception(struct hunt *h)
{
	hunt_walk(h, NULL, has_exception);
	if (h->c->source == CULPRIT_NOWHERE)
		find_sm(h);
}

static void find(struct hunt *h)
{
	find_exception(h);
	if (h->c->source == CULPRIT_NOWHERE && h->told) {
		h->told = 0;
		find_exception(h);
	}
	if (h->c->source == CULPRIT_NOWHERE)
		hunt_walk(h, NULL, is_broken);
	if (h->c->source == CULPRIT_NOWHERE)
		hunt_walk(h, NULL, take_oldest);
}

static void name_exception(struct culprit *c)
{
	const struct exception *known = exception_known(c->exception);

	c->exception_name = known ? known->name : "UNKNOWN";
	c->fault = known ? known->fault : FAULT_OTHER;
	if (c->source == CULPRIT_BROKEN)
		c->fault = FAULT_TRAP;
	if (c->source == CULPRIT_NOWHERE)
		c->fault = FAULT_NOTHING;
}

void hunt_first(struct hunt *h)
{
	find(h);
	name_exception(h->c);
}

void hunt_running(struct hunt *h)
{
	hunt_walk(h, NULL, take_oldest);
	name_exception(h->c);
}
