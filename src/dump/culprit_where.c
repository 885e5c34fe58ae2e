/* SPDX-License-Identifier: Apache-2.0
 * Where the fault happened: the kernel, the instruction, the lanes and the addresses they accessed.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "dump/culprit_priv.h"
#include "dump/image.h"
#include "trace/demangle.h"
#include "base/banned.h"

#define WINDOW		((uint64_t)16 << 20)	/* size of the shared and of the local window */
#define SHARED_MAX	((uint64_t)256 << 10)	/* no GPU has more shared memory for a block */
#define STRAIGHT_MAX	64			/* instructions */
#define FRAME_MAX	((uint64_t)1 << 20)
/* Bounds on what a lying file can make us look at; real ones stay far below. */
#define GRIDS_MAX	((size_t)1 << 20)
#define MODULES_MAX	16384
#define SCANS_MAX	128			/* a GPU runs at most 128 grids at once */

/* --- kernel ----------------------------------------------------------------------------------- */

static bool same_device(struct hunt *h, const struct dump_row *row)
{
	struct dump_row device;

	return dump_parent(row, &device) && device.section == h->device.section &&
	       device.index == h->device.index;
}

static bool find_module(struct hunt *h, const struct dump_row *grid, struct dump_bytes *image)
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

/* The grid that the thread's block belongs to; when no thread is left, one whose module holds the pc. */
static bool is_our_grid(struct hunt *h, const struct dump_row *grid, uint64_t pc)
{
	struct image_function f;
	struct dump_bytes image;

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
	c->regs = (uint32_t)dump_get(&h->grid, DUMP_GRID_REGS);
	for (i = 0; i < 3; i++) {
		c->grid[i] = (uint32_t)dump_get(&h->grid, DUMP_GRID_GRID_X + i);
		c->block[i] = (uint32_t)dump_get(&h->grid, DUMP_GRID_BLOCK_X + i);
		c->cluster[i] = (uint32_t)dump_get(&h->grid, DUMP_GRID_CLUSTER_X + i);
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

/* --- instruction ------------------------------------------------------------------------------ */

/* The warp's own pc, else the SM's; both name the instruction. A lane's is that of a later one. */
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
	struct dump_bytes image;
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
	memcpy(c->code, code, SASS_BYTES);
	c->code_known = true;
	c->decoded = sass_decode(code, c->arch, &c->insn) && c->pc_exact;
	c->space = c->decoded ? c->insn.space : SASS_NOWHERE;
}

/* How far a lane can have gone without losing what the address was made of. */
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

void culprit_place(struct hunt *h)
{
	struct culprit *c = h->c;

	c->insn = (struct sass){.name = "", .reg = -1, .ureg = -1, .descriptor = -1, .dest = -1};
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
	/* threads and grid are gone: the function that holds the pc is the kernel, or one that it called */
	if (!c->grid_known && !c->kernel && c->function) {
		name_kernel(c, c->function);
		c->kernel_offset = c->function_offset;
	}
	find_straight(h);
	c->call_depth = (unsigned)dump_get(&h->first.lane, DUMP_LANE_CALL_DEPTH);
}

/* --- lanes ------------------------------------------------------------------------------------ */

/* All lanes of a warp carry its exception, also those that wait elsewhere for the ones that did it. */
static bool is_active(const struct thread *t)
{
	uint64_t active = dump_get(&t->warp, DUMP_WARP_ACTIVE);

	return active == 0 || active >> (dump_get(&t->lane, DUMP_LANE_ID) & 31) & 1;
}

static bool is_faulting(struct hunt *h, const struct thread *t)
{
	switch (h->c->source) {
	case CULPRIT_LANE:
		return dump_get(&t->lane, DUMP_LANE_EXCEPTION) &&
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

void culprit_lanes(struct hunt *h)
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

/* --- judgement -------------------------------------------------------------------------------- */

/* A generic address is one of local or shared memory when it lies in the window of that. */
static void resolve_space(struct hunt *h)
{
	struct culprit *c = h->c;
	struct dump_row row;
	size_t cursor = 0, n = 0;

	if (c->space != SASS_GENERIC || !c->address_known)
		return;
	while (n++ < GRIDS_MAX && dump_next(h->d, DUMP_CONTEXT, &cursor, &row)) {
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
static void keep_misaligned(struct culprit *c)
{
	size_t i, n = 0;

	for (i = 0; i < c->n_kept; i++)
		n += c->lanes[i].address_known && c->lanes[i].address % c->insn.width != 0;
	if (n == 0 || c->n_kept != c->n_lanes)
		return;
	for (i = n = 0; i < c->n_kept; i++)
		if (c->lanes[i].address_known && c->lanes[i].address % c->insn.width != 0)
			c->lanes[n++] = c->lanes[i];
	c->n_kept = c->n_lanes = n;
}

/* A warp's shared accesses go out of range together, but only those lanes did it whose address no block can have. */
static void keep_out_of_range(struct culprit *c)
{
	size_t i, n = 0;

	for (i = 0; i < c->n_kept; i++)
		n += c->lanes[i].address_known && c->lanes[i].address >= SHARED_MAX;
	if (n == 0 || c->n_kept != c->n_lanes)
		return;
	for (i = n = 0; i < c->n_kept; i++)
		if (c->lanes[i].address_known && c->lanes[i].address >= SHARED_MAX)
			c->lanes[n++] = c->lanes[i];
	c->n_kept = c->n_lanes = n;
}

void culprit_judge(struct hunt *h)
{
	resolve_space(h);
	if (h->c->fault == FAULT_OUT_OF_RANGE && h->c->decoded && h->c->space == SASS_SHARED)
		keep_out_of_range(h->c);
	if (is_stack_overflow(h))
		h->c->fault = FAULT_STACK_OVERFLOW;
	if (h->c->fault == FAULT_MISALIGNED && h->c->decoded)
		keep_misaligned(h->c);
}
