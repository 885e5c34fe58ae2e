/* SPDX-License-Identifier: Apache-2.0
 * Where a thread failed: the device, the kernel and the instruction (see hunt.h).
 */
#include "find/fault/hunt.h"

#include "base/mem.h"
#include "formats/demangle.h"
#include "formats/image.h"

#define STRAIGHT_MAX	64	/* instructions */
#define GRIDS_MAX	((size_t)1 << 20)
#define SCANS_MAX	128	/* a GPU runs at most 128 grids at once */

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

static void find_instruction(struct hunt *h)
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

void hunt_where(struct hunt *h)
{
	fill_device(h);
	find_instruction(h);
}
