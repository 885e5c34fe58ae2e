/* SPDX-License-Identifier: Apache-2.0
 * Finds the fault in a dump: lanes with an exception; else an SM with one, whose warp has exited; else warps
 * that a trap stopped; else whatever was running. Then where that was: the kernel and the instruction; who did it:
 * the threads; and what they accessed.
 */
#include "find/fault/culprit.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "formats/demangle.h"
#include "formats/image.h"
#include "read/dump/dump.h"
#include "find/fault/sass_line.h"

#define STRAIGHT_MAX	64			/* instructions */
#define WINDOW		((uint64_t)16 << 20)	/* size of the shared and of the local window */
#define SHARED_MAX	((uint64_t)256 << 10)	/* no GPU has more shared memory per block */
#define FRAME_MAX	((uint64_t)1 << 20)
#define EXECUTE_MAX	3000000u		/* instructions, for all threads: a second */

/* Bounds on what a malicious file can make us look at; real ones stay far below. */
#define ROWS_MAX	((size_t)1 << 22)	/* eight GPUs full of threads have 2.7 million; tables that overlap, more */
#define CONTEXTS_MAX	((size_t)1 << 20)
#define GRIDS_MAX	((size_t)1 << 20)
#define MODULES_MAX	16384
#define SCANS_MAX	128			/* a GPU runs at most 128 grids at once */
#define CALLS_MAX	64

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

/* A thread with everything above it. */
struct thread {
	struct dump_row sm, cta, warp, lane;
};

struct hunt {
	struct dump *d;
	struct culprit *c;
	struct thread first;		/* rows may be absent: an SM alone, without threads */
	struct dump_row device, grid;
	struct dump_row last_warp, last_cta;	/* of the lane taken before */
	struct bytes image;	/* of the grid's module, or of the one that holds the pc */
	struct bytes original;	/* the same before relocation; empty in light dumps */
	uint64_t straight_end;		/* a lane up to here still has the registers as they were at the pc */
	struct sass_line *line;		/* recomputes destroyed addresses; NULL = not needed or not possible */
	bool line_tried;
	bool line_differs;		/* from a register: the code is not what ran, or not all of it */
	bool once, once_tried;		/* a thread executes the instruction at most once */
	unsigned steps;			/* that were used to execute threads */
	uint64_t call;			/* of an assertion's function, 0 = not known */
	uint32_t told;			/* only exceptions of this CUDA error count, 0 = all */
};

typedef bool thread_fn(struct hunt *h, const struct thread *t);

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

/* Calls fn for every valid thread of the dump, or of one SM, until it returns true. */
static void threads_walk(struct hunt *h, const struct dump_row *only_sm, thread_fn *fn)
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

static bool counts(const struct hunt *h, uint64_t exception)
{
	const struct exception *known = exception_known(exception);

	return exception && (!h->told || (known && faults[known->fault].code == h->told));
}

static bool has_exception(struct hunt *h, const struct thread *t)
{
	if (!counts(h, dump_get(&t->lane, DUMP_LANE_EXCEPTION)))
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
		if (!counts(h, dump_get(&sm, DUMP_SM_EXCEPTION)))
			continue;
		h->c->source = CULPRIT_SM;
		h->c->exception = (uint32_t)dump_get(&sm, DUMP_SM_EXCEPTION);
		threads_walk(h, &sm, take_any);
		h->first.sm = sm;
		return;
	}
}

static void find_exception(struct hunt *h)
{
	threads_walk(h, NULL, has_exception);
	if (h->c->source == CULPRIT_NOWHERE)
		find_sm(h);
}

static void find_first(struct hunt *h)
{
	find_exception(h);
	if (h->c->source == CULPRIT_NOWHERE && h->told) {
		h->told = 0;
		find_exception(h);
	}
	if (h->c->source == CULPRIT_NOWHERE)
		threads_walk(h, NULL, is_broken);
	if (h->c->source == CULPRIT_NOWHERE)
		threads_walk(h, NULL, take_oldest);
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

static bool same_device(struct hunt *h, const struct dump_row *row)
{
	struct dump_row device;

	return dump_parent(row, &device) && device.section == h->device.section &&
	       device.index == h->device.index;
}

static bool find_module(struct hunt *h, const struct dump_row *grid, struct bytes *image)
{
	uint64_t handle = dump_get(grid, DUMP_GRID_MODULE), context = dump_get(grid, DUMP_GRID_CONTEXT);
	struct dump_row row, parent;
	size_t cursor = 0, n = 0;

	while (n++ < MODULES_MAX && dump_next(h->d, DUMP_MODULE, &cursor, &row)) {
		if (dump_get(&row, DUMP_MODULE_HANDLE) != handle || !dump_parent(&row, &parent) ||
		    dump_get(&parent, DUMP_CONTEXT_ID) != context)
			continue;
		*image = dump_child_bytes(&row, DUMP_IMAGE);
		h->original = dump_child_bytes(&row, DUMP_ELF_IMAGE);
		return image->data;
	}
	return false;
}

/* The grid that the thread's block belongs to; when no thread is left, one whose module contains the pc. */
static bool is_our_grid(struct hunt *h, const struct dump_row *grid, uint64_t pc)
{
	struct image_function f;
	struct bytes image;

	if (!same_device(h, grid))
		return false;
	if (h->first.cta.section)
		return dump_get(grid, DUMP_GRID_ID) == dump_get(&h->first.cta, DUMP_CTA_GRID);
	return pc && find_module(h, grid, &image) &&
	       image_entry(image, dump_get(grid, DUMP_GRID_ENTRY), &f) && pc - f.start < f.size;
}

static void fill_grid(struct hunt *h)
{
	struct culprit *c = h->c;
	int i;

	c->grid_known = true;
	c->grid_id = dump_get(&h->grid, DUMP_GRID_ID);
	c->entry = dump_get(&h->grid, DUMP_GRID_ENTRY);
	c->context = dump_get(&h->grid, DUMP_GRID_CONTEXT);
	for (i = 0; i < 3; i++) {
		c->grid[i] = (uint32_t)dump_get(&h->grid, DUMP_GRID_GRID_X + i);
		c->block[i] = (uint32_t)dump_get(&h->grid, DUMP_GRID_BLOCK_X + i);
	}
	c->params = dump_child_bytes(&h->grid, DUMP_PARAMS);
	c->params_offset = dump_get(&h->grid, DUMP_GRID_PARAMS_OFFSET);
}

static void name_kernel(struct culprit *c, const char *name)
{
	c->kernel = xstrdup(name);
	c->kernel_text = demangle(name);
	if (!c->kernel_text)
		c->kernel_text = xstrdup(name);
}

static void find_kernel(struct hunt *h)
{
	uint64_t pc = dump_get(&h->first.sm, DUMP_SM_PC_VALID) ? dump_get(&h->first.sm, DUMP_SM_PC) : 0;
	size_t cursor = 0, n = 0, max = h->first.cta.section ? GRIDS_MAX : SCANS_MAX;
	struct image_function f;
	struct dump_row row;

	while (n++ < max && dump_next(h->d, DUMP_GRID, &cursor, &row))
		if (is_our_grid(h, &row, pc)) {
			h->grid = row;
			fill_grid(h);
			break;
		}
	if (h->c->grid_known && find_module(h, &h->grid, &h->image) && image_entry(h->image, h->c->entry, &f))
		name_kernel(h->c, f.name);
}

/* The warp's own pc, else the SM's; both name the instruction. A lane's pc is a later one. */
static void find_pc(struct hunt *h)
{
	struct culprit *c = h->c;

	c->pc_exact = true;
	if (c->source == CULPRIT_LANE && dump_get(&h->first.warp, DUMP_WARP_PC_VALID))
		c->pc = dump_get(&h->first.warp, DUMP_WARP_PC);
	else if (c->exception && dump_get(&h->first.sm, DUMP_SM_PC_VALID))
		c->pc = dump_get(&h->first.sm, DUMP_SM_PC);
	else {
		c->pc_exact = false;
		c->pc = c->source == CULPRIT_SM ? 0 : dump_get(&h->first.lane, DUMP_LANE_PC);
	}
	c->pc_known = c->pc != 0;
}

static bool is_trap(struct hunt *h, uint64_t pc)
{
	const uint8_t *code = image_code(h->image, pc, SASS_BYTES);
	struct sass s;

	return code && !sass_decode(code, h->c->arch, &s) && s.kind == SASS_TRAP;
}

/* A kernel can call functions of other modules, of the driver's own for example. */
static void find_image(struct hunt *h)
{
	struct dump_row row;
	struct bytes image;
	size_t cursor = 0, n = 0;

	if (!h->c->pc_known || image_code(h->image, h->c->pc, SASS_BYTES))
		return;
	while (n++ < MODULES_MAX && dump_next(h->d, DUMP_MODULE, &cursor, &row)) {
		image = dump_child_bytes(&row, DUMP_IMAGE);
		if (image_code(image, h->c->pc, SASS_BYTES)) {
			h->image = image;
			h->original = dump_child_bytes(&row, DUMP_ELF_IMAGE);
			return;
		}
	}
}

static void find_function(struct hunt *h)
{
	struct culprit *c = h->c;
	struct image_function f;
	const uint8_t *code;

	if (!c->pc_known)
		return;
	if (c->grid_known && c->pc >= c->entry)
		c->kernel_offset = c->pc - c->entry;
	if (image_find(h->image, c->pc, &f)) {
		c->function = xstrdup(f.name);
		c->function_offset = c->pc - f.start;
	}
	code = image_code(h->image, c->pc, SASS_BYTES);
	if (!code)
		return;
	c->decoded = sass_decode(code, c->arch, &c->insn) && c->pc_exact;
	c->space = c->decoded ? c->insn.space : SASS_NOWHERE;
}

/* How far a lane can have gone without losing the registers of the address. */
static void find_straight(struct hunt *h)
{
	const uint8_t *code;
	int i;

	h->straight_end = h->c->pc + SASS_BYTES;
	for (i = 1; h->c->decoded && i < STRAIGHT_MAX; i++) {
		code = image_code(h->image, h->straight_end, SASS_BYTES);
		if (!code || sass_disturbs(code, h->c->arch, &h->c->insn))
			return;
		h->straight_end += SASS_BYTES;
	}
}

static void find_where(struct hunt *h)
{
	struct culprit *c = h->c;
	struct image_function f;

	c->insn = (struct sass){.name = "", .reg = -1, .ureg = -1, .descriptor = -1, .dest = -1, .second = -1};
	if (c->source == CULPRIT_NOWHERE)
		return;
	find_kernel(h);
	find_pc(h);
	find_image(h);
	if (c->source == CULPRIT_BROKEN && c->pc_known) {
		if (is_trap(h, c->pc - SASS_BYTES))
			c->pc -= SASS_BYTES;
		c->pc_exact = is_trap(h, c->pc);
	}
	find_function(h);
	/* threads and grid are gone: the function that contains the pc is the kernel, or one that it called */
	if (!c->grid_known && !c->kernel && c->function) {
		bool found = image_kernel(h->image, c->pc, &f);

		name_kernel(c, found ? f.name : c->function);
		c->kernel_offset = found ? c->pc - f.start : c->function_offset;
	}
	find_straight(h);
	c->call_depth = (unsigned)dump_get(&h->first.lane, DUMP_LANE_CALL_DEPTH);
}

/* From its registers, or from the code where the access destroyed them: a load or a returning atomic that faults
 * writes zeros into its destination (seen on an H200); when that overlaps the registers of its address, the dump no longer
 * has the address. */

static bool lane_in_reach(struct hunt *h, const struct thread *t)
{
	uint64_t pc = dump_get(&t->lane, DUMP_LANE_PC);

	return h->c->pc_exact && pc >= h->c->pc && pc <= h->straight_end &&
	       (pc - h->c->pc) % SASS_BYTES == 0;
}

static struct sass_line *line_of(struct hunt *h)
{
	if (!h->line_tried)
		h->line = sass_line_open(h->image, h->c->arch, h->c->pc);
	h->line_tried = true;
	return h->line;
}

/* Is the predicate in the dump still the one that the access had? */
static bool guard_kept(struct hunt *h, const struct thread *t)
{
	uint64_t pc = dump_get(&t->lane, DUMP_LANE_PC);

	return h->c->insn.guard == 7 || pc == h->c->pc || (line_of(h) && sass_line_keeps(h->line, h->c->insn.guard, pc));
}

/* A predicated instruction is skipped by lanes whose predicate is false. */
static bool lane_skipped(struct hunt *h, const struct thread *t)
{
	uint32_t p;

	return h->c->decoded && h->c->insn.guard != 7 && guard_kept(h, t) &&
	       dump_word(dump_child_bytes(&t->lane, DUMP_PREDS), (size_t)h->c->insn.guard, &p) &&
	       (p != 0) == h->c->insn.guard_not;
}

static void lane_describe(struct hunt *h, const struct thread *t, const struct culprit_lane *l, struct sass_thread *to)
{
	const struct culprit *c = h->c;

	*to = (struct sass_thread){
		.image = h->image, .arch = c->arch, .entry = c->entry, .params = c->params, .params_offset = c->params_offset,
		.id = (uint32_t)dump_get(&t->lane, DUMP_LANE_ID), .stopped = l->pc,
		.regs = dump_child_bytes(&t->lane, DUMP_REGS), .uregs = dump_child_bytes(&t->warp, DUMP_UREGS),
	};
	memcpy(to->thread, l->thread, sizeof(to->thread));
	memcpy(to->block, l->block, sizeof(to->block));
	memcpy(to->block_dim, c->block, sizeof(to->block_dim));
	memcpy(to->grid_dim, c->grid, sizeof(to->grid_dim));
}

/* By executing the thread from the kernel's entry. What it has computed must be in its registers, as far as these survived; in a
 * loop they could be those of another turn. */
static bool lane_execute(struct hunt *h, const struct thread *t, struct culprit_lane *l)
{
	const struct culprit *c = h->c;
	struct sass_thread one;
	struct sass_found f;
	enum sass_end end;

	if (!h->once_tried)
		h->once = c->grid_known && sass_once(h->image, c->arch, c->entry, c->pc);
	h->once_tried = true;
	if (!h->once || h->line_differs || h->steps >= EXECUTE_MAX)
		return false;
	lane_describe(h, t, l, &one);
	end = sass_run(&one, c->pc, true, EXECUTE_MAX - h->steps, &f);
	h->steps += f.steps;
	if (end != SASS_END_THERE || !f.address_known || f.from.n || !f.agree || f.differ)
		return false;
	l->address = f.address;
	h->c->address_recomputed = true;
	return true;
}

/* From the code; when in doubt, the address is unknown. */
static bool lane_recompute(struct hunt *h, const struct thread *t, struct culprit_lane *l)
{
	struct culprit_lane again = *l;
	struct sass_thread lane;
	enum sass_answer answer;

	lane_describe(h, t, l, &lane);
	if (!line_of(h) || !lane.regs.data)
		return false;
	answer = sass_line_address(h->line, &h->c->insn, &lane, &l->address);
	h->line_differs = h->line_differs || answer == SASS_DIFFERS;
	if (answer < SASS_COMPUTED)
		return false;
	h->c->address_recomputed |= sass_overwrites_address(&h->c->insn) || answer == SASS_COMPUTED;
	/* two ways to the same address, and registers that agree with one of them */
	if (answer == SASS_COMPUTED && lane_execute(h, t, &again)) {
		h->line_differs = h->line_differs || again.address != l->address;
		return again.address == l->address;
	}
	h->c->address_unchecked = h->c->address_unchecked || answer == SASS_COMPUTED;
	return true;
}

/* Registers are those of the moment the lane stopped. A lane that went beyond where they are valid can still
 * have its address recomputed, unless its predicate is no longer known. */
static void lane_address(struct hunt *h, const struct thread *t, struct culprit_lane *l)
{
	struct culprit *c = h->c;
	bool near = lane_in_reach(h, t);

	/* for shared memory, the address itself says whether it was accessed (judge_lanes) */
	if (!c->decoded || lane_skipped(h, t) || (!near && !guard_kept(h, t) && c->insn.space != SASS_SHARED))
		return;
	if (!near) {
		l->address_known = lane_recompute(h, t, l) || lane_execute(h, t, l);
		return;
	}
	l->address_known = sass_address(&c->insn, dump_child_bytes(&t->lane, DUMP_REGS),
					dump_child_bytes(&t->warp, DUMP_UREGS), &l->address);
	if (!l->address_known || l->pc == c->pc || !sass_overwrites_address(&c->insn))
		return;
	if (!c->address_doubtful && !lane_recompute(h, t, l) && !lane_execute(h, t, l))
		c->address_doubtful = true;
}

static void lane_address_finish(struct hunt *h)
{
	if (h->c->address_doubtful)
		h->c->address_recomputed = h->c->address_unchecked = false;
	if (h->c->decoded && h->c->pc_exact && line_of(h))
		h->c->origin = sass_line_origin(h->line, &h->c->insn, h->c->params_offset);
	sass_line_close(h->line);
	h->line = NULL;
}

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
		return counts(h, dump_get(&t->lane, DUMP_LANE_EXCEPTION)) &&
		       (!h->c->pc_exact || (is_active(t) && !lane_skipped(h, t)));
	case CULPRIT_SM:
		return dump_get(&t->sm, DUMP_SM_EXCEPTION) == h->c->exception &&
		       dump_get(&t->sm, DUMP_SM_PC) == h->c->pc && lane_in_reach(h, t) && !lane_skipped(h, t);
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
	lane_address(h, t, l);
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
	threads_walk(h, NULL, take_lane);
	lane_address_finish(h);
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

/* An assertion: up to the call. An access: up to it, if it was to global memory. */
static void find_values(struct hunt *h)
{
	struct culprit *c = h->c;
	bool access = c->fault != FAULT_ASSERT;
	struct sass_thread t = {
		.image = h->image, .arch = c->arch, .entry = c->entry, .params = c->params, .params_offset = c->params_offset};
	struct values_thread threads[VALUES_MAX * 4];
	size_t i, n = c->n_kept < VALUES_MAX * 4 ? c->n_kept : VALUES_MAX * 4;

	if (!c->grid_known || !n ||
	    (access ? !c->decoded || !c->pc_exact || c->space != SASS_GLOBAL || !c->address_known : !h->call))
		return;
	memcpy(t.block_dim, c->block, sizeof(t.block_dim));
	memcpy(t.grid_dim, c->grid, sizeof(t.grid_dim));
	for (i = 0; i < n; i++) {
		memcpy(threads[i].block, c->lanes[i].block, sizeof(threads[i].block));
		memcpy(threads[i].thread, c->lanes[i].thread, sizeof(threads[i].thread));
		threads[i].address =
			access && c->lanes[i].address_known && !c->address_doubtful ? c->lanes[i].address : 0;
	}
	values_find(&c->values, h->d, &t, access ? c->pc : h->call, access, threads, n);
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
		threads_walk(&h, NULL, take_oldest);
	else
		find_first(&h);
	name_exception(c);
	fill_device(&h);
	find_where(&h);
	find_lanes(&h);
	judge_lanes(&h);
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
