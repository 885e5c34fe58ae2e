/* SPDX-License-Identifier: Apache-2.0
 * The threads in a core dump: blocks, their warps, the registers of each lane.
 *
 * The failing block is shown from its failing warp on (earlier ones have exited), and the next
 * blocks that also fail with one warp each, to keep dumps small. */
#include "sim/cuda/sim_dump.h"

enum { BLOCKS_MAX = 4, STACK_TOP = 0xfffc60, FRAME = 288, UREGS = 64, PREDS = 8, BARRIERS = 16 };

struct warp {
	uint32_t sm, block, index;	/* block and its warp */
	uint32_t valid, failing;	/* lanes */
	uint32_t row;			/* in the table of warps */
};

static uint32_t first_block(const struct sim_dump *d)
{
	return (uint32_t)(d->fault->first / d->op->u.kernel.block[0]);
}

static uint32_t first_warp(const struct sim_dump *d)
{
	return (uint32_t)(d->fault->first % d->op->u.kernel.block[0]) / SIM_WARP;
}

static uint32_t block_threads(const struct sim_dump *d)
{
	return d->op->u.kernel.block[0] * d->op->u.kernel.block[1] * d->op->u.kernel.block[2];
}

/* The element that a thread of a block works on. */
static size_t element(const struct sim_dump *d, uint32_t block, uint32_t thread)
{
	uint32_t width = d->op->u.kernel.block[0];

	return (size_t)block * width + thread % width;
}

static bool touches_memory(const struct sim_fault *fault)
{
	return fault->insn == SIM_INSN_LOAD || fault->insn == SIM_INSN_STORE ||
	       fault->insn == SIM_INSN_ATOMIC;
}

bool sim_dump_fails(const struct sim_dump *d, uint32_t block, uint32_t thread)
{
	const struct sim_fault *fault = d->fault;
	size_t e = element(d, block, thread);

	if (fault->asked || !fault->insn || e >= fault->count)
		return false;
	if (fault->exception != SIM_EXC_ILLEGAL_ADDRESS)
		return true;
	return sim_mem_reach(d->ctx, sim_fault_address(fault, e), 4) < 4;
}

uint32_t sim_dump_blocks(const struct sim_dump *d)
{
	uint32_t first = first_block(d), n = 1;

	while (touches_memory(d->fault) && n < BLOCKS_MAX && first + n < d->op->u.kernel.grid[0] &&
	       n < (uint32_t)sim.devices[d->ctx->device].model->sms &&
	       sim_dump_fails(d, first + n, 0))
		n++;
	return n;
}

static void add_registers(struct sim_dump *d, const struct warp *w, struct sim_place place,
			  uint32_t thread)
{
	uint32_t regs[256] = {0}, preds[PREDS] = {[PREDS - 1] = 1};
	sim_addr address = sim_fault_address(d->fault, element(d, w->block, thread)) -
			   d->fault->shift;
	uint32_t stack = STACK_TOP - d->fault->depth * FRAME;

	regs[0] = thread % d->op->u.kernel.block[0];
	regs[1] = stack;
	if (touches_memory(d->fault)) {
		regs[2] = (uint32_t)address;
		regs[3] = (uint32_t)(address >> 32);
		regs[5] = 0x3f800000;
	} else if (d->fault->insn == SIM_INSN_STACK) {
		regs[2] = stack + 0x74;
		regs[4] = d->fault->depth;
	}
	sim_dump_add(d, SIM_TAB_REGS, place, regs, (d->regs - 2) * 4, 4,
		     ".cudbg.regs.dev0.sm%u.cta0.wp%u.ln%u", w->sm, w->row, place.row);
	sim_dump_add(d, SIM_TAB_PRED, place, preds, sizeof(preds), 4,
		     ".cudbg.pred.dev0.sm%u.cta0.wp%u.ln%u", w->sm, w->row, place.row);
}

static void add_backtrace(struct sim_dump *d, const struct warp *w, struct sim_place place)
{
	struct sim_row_frame frames[64] = {0};
	uint32_t depth = d->fault->depth < 64 ? d->fault->depth : 64;

	for (uint32_t i = 0; i < depth; i++) {
		frames[i].offset = d->offset + 0x10;
		frames[i].address = d->entry + frames[i].offset;
		frames[i].level = i;
	}
	sim_dump_add(d, SIM_TAB_BACKTRACE, place, frames, depth * sizeof(*frames), sizeof(*frames),
		     ".cudbg.bt.dev0.sm%u.cta0.wp%u.ln%u", w->sm, w->row, place.row);
}

static void fill_lane(const struct sim_dump *d, const struct warp *w, uint32_t lane,
		      struct sim_row_lane *row)
{
	const unsigned int *size = d->op->u.kernel.block;
	uint32_t thread = w->index * SIM_WARP + lane;

	row->lane = lane;
	row->thread[0] = thread % size[0];
	row->thread[1] = thread / size[0] % size[1];
	row->thread[2] = thread / size[0] / size[1];
	row->offset = d->fault->insn && !d->fault->asked ? d->offset + 16 : d->offset;
	row->pc = d->entry + row->offset;
	row->depth = d->fault->depth;
	row->state = 1;
	if (w->failing >> lane & 1)
		row->exception = (uint32_t)d->fault->exception;
}

static void add_lanes(struct sim_dump *d, const struct warp *w, struct sim_place warp)
{
	struct sim_row_lane rows[SIM_WARP] = {0};
	struct sim_place place = {0, 0};
	uint32_t count = 0;

	for (uint32_t lane = 0; lane < SIM_WARP; lane++)
		if (w->valid >> lane & 1)
			fill_lane(d, w, lane, &rows[count++]);
	place.table = sim_dump_add(d, SIM_TAB_LANE, warp, rows, count * sizeof(*rows),
				   sizeof(*rows), ".cudbg.lntbl.dev0.sm%u.cta0.wp%u", w->sm,
				   w->row);
	for (; place.row < count; place.row++) {
		add_backtrace(d, w, place);
		add_registers(d, w, place, w->index * SIM_WARP + rows[place.row].lane);
	}
}

/* Lanes are the participating threads; after an assertion only the ones that failed are left. */
static void fill_masks(const struct sim_dump *d, struct warp *w)
{
	for (uint32_t lane = 0; lane < SIM_WARP; lane++) {
		uint32_t thread = w->index * SIM_WARP + lane;

		if (thread >= block_threads(d) || element(d, w->block, thread) >= d->fault->count)
			continue;
		w->valid |= 1u << lane;
		if (sim_dump_fails(d, w->block, thread))
			w->failing |= 1u << lane;
	}
	if (d->fault->lanes)
		w->valid = w->failing = d->fault->lanes;
}

static void fill_warp(const struct sim_dump *d, const struct warp *w, struct sim_row_warp *row)
{
	enum sim_insn insn = d->fault->insn;

	row->id = w->index;
	row->valid = row->active = row->cbu_active = w->valid;
	row->cbu_exited = ~w->valid;
	row->regs = d->regs;
	row->shared = SIM_SHARED_RESERVED + (uint32_t)d->op->u.kernel.func->shared;
	row->broken = insn == SIM_INSN_TRAP;
	if (insn == SIM_INSN_ASSERT)
		row->in_syscall = w->failing;
	else if (d->fault->exception && w->failing) {
		row->pc_valid = 1;
		row->pc = d->entry + d->offset;
	}
}

static void add_warp(struct sim_dump *d, const struct warp *w, struct sim_place place)
{
	uint32_t uregs[UREGS] = {[6] = (uint32_t)d->fault->base, [7] = (uint32_t)(d->fault->base >> 32)};
	uint32_t preds[PREDS] = {[PREDS - 1] = 1}, barriers[BARRIERS] = {0};

	sim_dump_add(d, SIM_TAB_UREGS, place, uregs, sizeof(uregs), 4,
		     ".cudbg.uregs.dev0.sm%u.cta0.wp%u", w->sm, w->row);
	sim_dump_add(d, SIM_TAB_UPRED, place, preds, sizeof(preds), 4,
		     ".cudbg.upred.dev0.sm%u.cta0.wp%u", w->sm, w->row);
	sim_dump_add(d, SIM_TAB_CBU, place, barriers, sizeof(barriers), 4,
		     ".cudbg.cbu_bar.dev0.sm%u.cta0.wp%u", w->sm, w->row);
	add_lanes(d, w, place);
}

/* Which warps of the block are still present. */
static uint32_t list_warps(const struct sim_dump *d, uint32_t sm, struct warp *list)
{
	uint32_t all = (block_threads(d) + SIM_WARP - 1) / SIM_WARP, count = 0;
	uint32_t from = sm ? 0 : first_warp(d),
		 to = sm || d->fault->lanes ? from + 1 : all;

	if (sim.config.warp_exits && d->fault->exception == SIM_EXC_ILLEGAL_ADDRESS) {
		from++;			/* the one that failed has exited, as can happen on an H200 */
		to = all;
	}
	for (uint32_t i = from; i < to; i++) {
		struct warp *w = &list[count];

		*w = (struct warp){.sm = sm, .block = first_block(d) + sm, .index = i, .row = count};
		fill_masks(d, w);
		if (sim.config.warp_exits && d->fault->exception == SIM_EXC_ILLEGAL_ADDRESS)
			w->failing = 0;
		count += w->valid != 0;
	}
	return count;
}

void sim_dump_block(struct sim_dump *d, uint32_t sm)
{
	struct warp list[SIM_BLOCK_THREADS_MAX / SIM_WARP];
	struct sim_row_warp rows[SIM_BLOCK_THREADS_MAX / SIM_WARP] = {0};
	struct sim_row_cta cta = {.grid = d->op->u.kernel.id, .block = {first_block(d) + sm}};
	struct sim_place place = {d->sm_table, sm};
	uint32_t count = list_warps(d, sm, list);

	place.table = sim_dump_add(d, SIM_TAB_CTA, place, &cta, count ? sizeof(cta) : 0,
				   sizeof(cta), ".cudbg.ctatbl.dev0.sm%u", sm);
	place.row = 0;
	if (!count)
		return;
	for (uint32_t i = 0; i < count; i++)
		fill_warp(d, &list[i], &rows[i]);
	place.table = sim_dump_add(d, SIM_TAB_WARP, place, rows, count * sizeof(*rows),
				   sizeof(*rows), ".cudbg.wptbl.dev0.sm%u.cta0", sm);
	for (; place.row < count; place.row++)
		add_warp(d, &list[place.row], place);
}
