/* SPDX-License-Identifier: Apache-2.0
 * Finds the fault in a dump: lanes with an exception; else an SM with one, whose warp has exited; else warps
 * that a trap stopped; else whatever was running.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "input/dump/culprit_priv.h"
#include "base/banned.h"

/* Eight GPUs full of threads have 2.7 million; a file that claims more lies, by tables that overlap. */
#define ROWS_MAX	((size_t)1 << 22)

static const struct exception {
	uint32_t code;
	const char *name;
	enum culprit_fault fault;
} exceptions[] = {
#define EXC(code, name, fault, text)	{code, #name, FAULT_##fault},
#include "kb/gpu_exceptions.def"
};

static const struct {
	const char *id, *text;
	uint32_t code;
} faults[] = {
#define FAULT(name, id, code, text)	{id, text, code},
#include "kb/gpu_faults.def"
};

const char *culprit_fault_id(enum culprit_fault f)
{
	return faults[f].id;
}

const char *culprit_fault_text(enum culprit_fault f)
{
	return faults[f].text;
}

uint32_t culprit_fault_code(enum culprit_fault f)
{
	return faults[f].code;
}

/* --- threads ---------------------------------------------------------------------------------- */

struct walk {
	struct hunt *h;
	thread_fn *fn;
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

bool threads_walk(struct hunt *h, const struct dump_row *only_sm, thread_fn *fn)
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
	return w.rows <= ROWS_MAX;
}

/* --- the first one ---------------------------------------------------------------------------- */

static bool has_exception(struct hunt *h, const struct thread *t)
{
	if (!dump_get(&t->lane, DUMP_LANE_EXCEPTION))
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

/* The warp has exited and left its exception with the SM. A thread of the SM, if one is left, tells
 * the grid. */
static void find_sm(struct hunt *h)
{
	struct dump_row sm;
	size_t cursor = 0, rows = 0;

	while (rows++ < ROWS_MAX && dump_next(h->d, DUMP_SM, &cursor, &sm)) {
		if (!dump_get(&sm, DUMP_SM_EXCEPTION))
			continue;
		h->c->source = CULPRIT_SM;
		h->c->exception = (uint32_t)dump_get(&sm, DUMP_SM_EXCEPTION);
		threads_walk(h, &sm, take_any);
		h->first.sm = sm;
		return;
	}
}

static void find_first(struct hunt *h)
{
	threads_walk(h, NULL, has_exception);
	if (h->c->source == CULPRIT_NOWHERE)
		find_sm(h);
	if (h->c->source == CULPRIT_NOWHERE)
		threads_walk(h, NULL, is_broken);
	if (h->c->source == CULPRIT_NOWHERE)
		threads_walk(h, NULL, take_oldest);
}

static void name_exception(struct culprit *c)
{
	size_t i;

	c->exception_name = "UNKNOWN";
	c->fault = FAULT_OTHER;
	for (i = 0; i < sizeof(exceptions) / sizeof(exceptions[0]); i++)
		if (exceptions[i].code == c->exception) {
			c->exception_name = exceptions[i].name;
			c->fault = exceptions[i].fault;
		}
	if (c->source == CULPRIT_BROKEN)
		c->fault = FAULT_TRAP;
	if (c->source == CULPRIT_NOWHERE)
		c->fault = FAULT_NOTHING;
}

static void fill_device(struct hunt *h)
{
	struct culprit *c = h->c;
	struct dump_row meta;
	size_t cursor = 0;

	if (!dump_parent(&h->first.sm, &h->device))
		dump_next(h->d, DUMP_DEVICE, &cursor, &h->device);
	c->device = (unsigned)dump_get(&h->device, DUMP_DEVICE_ID);
	c->device_name = dump_string(&h->device, DUMP_DEVICE_NAME);
	c->chip = dump_string(&h->device, DUMP_DEVICE_CHIP);
	c->sm_type = dump_string(&h->device, DUMP_DEVICE_SM_TYPE);
	c->arch = (unsigned)(dump_get(&h->device, DUMP_DEVICE_SM_MAJOR) * 10 +
			     dump_get(&h->device, DUMP_DEVICE_SM_MINOR));
	c->sm = (uint32_t)dump_get(&h->first.sm, DUMP_SM_ID);
	c->exception_text = dump_string(&h->first.sm, DUMP_SM_TEXT);
	cursor = 0;
	if (dump_next(h->d, DUMP_META, &cursor, &meta)) {
		c->driver_major = (unsigned)dump_get(&meta, DUMP_META_DRIVER_MAJOR);
		c->driver_minor = (unsigned)dump_get(&meta, DUMP_META_DRIVER_MINOR);
		c->cuda_major = (unsigned)dump_get(&meta, DUMP_META_CUDA_MAJOR);
		c->cuda_minor = (unsigned)dump_get(&meta, DUMP_META_CUDA_MINOR);
	}
}

static struct culprit *find(struct dump *d, bool running)
{
	struct culprit *c = xcalloc(1, sizeof(*c));
	struct hunt h = {.d = d, .c = c};

	if (running)
		threads_walk(&h, NULL, take_oldest);
	else
		find_first(&h);
	name_exception(c);
	fill_device(&h);
	culprit_place(&h);
	culprit_lanes(&h);
	culprit_judge(&h);
	culprit_assert(&h);
	return c;
}

struct culprit *culprit_find(struct dump *d)
{
	return find(d, false);
}

struct culprit *culprit_find_running(struct dump *d)
{
	return find(d, true);
}

void culprit_free(struct culprit *c)
{
	if (!c)
		return;
	free(c->kernel);
	free(c->kernel_text);
	free(c->function);
	free(c->lanes);
	while (c->n_places)
		free(c->places[--c->n_places].function);
	assertion_free(&c->assertion);
	free(c);
}
