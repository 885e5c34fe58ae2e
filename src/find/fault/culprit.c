/* SPDX-License-Identifier: Apache-2.0
 * The fault in a dump (see culprit.h): the steps of the hunt (hunt.h), then what they lead to: the assertion, the values behind it, the view.
 */
#include "find/fault/hunt.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define CALLS_MAX	64

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

static bool assertion_at(struct hunt *h, uint64_t back)
{
	struct assertion_source s = {
		.dump = h->d, .image = h->image, .original = h->original, .arch = h->c->arch, .back = back,
		.name = h->c->kernel_text,
	};
	struct assertion *a = &h->c->assertion;

	if (!back || !assertion_find(a, &s))
		return false;
	h->call = back - SASS_BYTES;
	if (a->condition || a->file || a->n_one_of)
		return true;
	assertion_free(a);
	*a = (struct assertion){.line = 0};
	return false;
}

/* The thread stopped after its call of __assertfail. One that is still inside has the address on its stack. */
static void find_assertion(struct hunt *h)
{
	struct dump_row row;
	uint32_t section, i;

	if (h->c->fault != FAULT_ASSERT || assertion_at(h, dump_get(&h->first.lane, DUMP_LANE_PC)))
		return;
	section = dump_child(&h->first.lane, DUMP_BACKTRACE);
	for (i = 0; i < CALLS_MAX && dump_row(h->d, section, i, &row); i++)
		if (assertion_at(h, dump_get(&row, DUMP_BACKTRACE_PC)))
			return;
}

struct memories {
	struct dump *dump;
	memory_fn *other;	/* NULL: none */
	void *arg;
};

static bool read_memory(void *arg, uint64_t address, void *to, size_t n)
{
	const struct memories *m = arg;

	return dump_memory(m->dump, address, to, n) || (m->other && m->other(m->arg, address, to, n));
}

static void values_with(const struct culprit *c, struct bytes image, struct values *v, struct memories *m)
{
	bool access = c->fault != FAULT_ASSERT;
	struct sass_thread t = {.image = image, .arch = c->arch, .entry = c->entry, .params = c->params,
				.params_offset = c->params_offset, .memory = read_memory, .arg = m};
	struct values_thread threads[VALUES_MAX * 4];
	size_t i, n = c->n_kept < VALUES_MAX * 4 ? c->n_kept : VALUES_MAX * 4;

	memcpy(t.block_dim, c->block, sizeof(t.block_dim));
	memcpy(t.grid_dim, c->grid, sizeof(t.grid_dim));
	for (i = 0; i < n; i++) {
		memcpy(threads[i].block, c->lanes[i].block, sizeof(threads[i].block));
		memcpy(threads[i].thread, c->lanes[i].thread, sizeof(threads[i].thread));
		threads[i].address =
			access && c->lanes[i].address_known && !c->address_doubtful ? c->lanes[i].address : 0;
	}
	values_find(v, &t, c->values_at, access, threads, n);
}

void culprit_values_with(const struct culprit *c, struct values *v, memory_fn *memory, void *arg)
{
	values_with(c, c->image, v, &(struct memories){.dump = c->dump, .other = memory, .arg = arg});
}

/* An assertion: up to the call. An access: up to it, if it was to global memory. */
static void find_values(struct hunt *h)
{
	struct culprit *c = h->c;
	bool access = c->fault != FAULT_ASSERT;

	if (!c->grid_known || !c->n_kept ||
	    (access ? !c->decoded || !c->pc_exact || c->space != SASS_GLOBAL || !c->address_known : !h->call))
		return;
	c->values_at = access ? c->pc : h->call;
	values_with(c, h->image, &c->values, &(struct memories){.dump = h->d});
}

bool culprit_view_lane(const struct culprit *c, size_t lane, struct view_lane *to)
{
	if (lane >= c->n_kept || !c->lanes[lane].address_known || c->address_doubtful)
		return false;
	*to = (struct view_lane){
		.block = c->lanes[lane].block[0], .thread = c->lanes[lane].thread[0], .address = c->lanes[lane].address};
	return true;
}

static bool is_line(const uint32_t dim[3])
{
	return dim[1] <= 1 && dim[2] <= 1;
}

void culprit_find_view(struct culprit *c)
{
	struct view_scene s = {.kernel = c->kernel_text, .params = c->params, .width = c->insn.width,
			       .pointer_known = c->values.pointer_known, .pointer = c->values.pointer};

	if (!c->grid_known || !c->decoded || !c->pc_exact || c->space != SASS_GLOBAL || !c->address_known)
		return;
	if (is_line(c->grid) && is_line(c->block)) {
		s.grid = c->grid[0];
		s.threads = c->block[0];
	}
	for (size_t i = 0; i < c->n_kept && s.n_lanes < VIEW_LANES; i++)
		s.n_lanes += culprit_view_lane(c, i, &s.lane[s.n_lanes]);
	view_find(&c->view, &s);
}

static struct culprit *culprit_hunt(struct dump *d, bool running, uint32_t told)
{
	struct culprit *c = xcalloc(1, sizeof(*c));
	struct hunt h = {.d = d, .c = c, .told = told};

	if (running)
		hunt_running(&h);
	else
		hunt_first(&h);
	hunt_where(&h);
	hunt_lanes(&h);
	find_assertion(&h);
	if (!running)
		find_values(&h);
	if (!running && c->fault == FAULT_ILLEGAL_ADDRESS)
		culprit_find_view(c);
	c->dump = d;
	c->image = h.image;
	return c;
}

struct culprit *culprit_find(struct dump *d)
{
	return culprit_hunt(d, false, 0);
}

struct culprit *culprit_find_told(struct dump *d, uint32_t code)
{
	return culprit_hunt(d, false, code);
}

struct culprit *culprit_find_running(struct dump *d)
{
	return culprit_hunt(d, true, 0);
}

void culprit_free(struct culprit *c)
{
	if (!c)
		return;
	free(c->lanes);
	if (!c->borrows || c->names) {
		free(c->kernel);
		free(c->kernel_text);
	}
	if (c->borrows) {
		free(c);
		return;
	}
	free(c->function);
	while (c->n_places)
		free(c->places[--c->n_places].function);
	assertion_free(&c->assertion);
	free(c);
}
