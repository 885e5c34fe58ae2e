/* SPDX-License-Identifier: Apache-2.0
 * What a thread accessed (see hunt.h): from its registers, or from the code where the access destroyed them. A load or a returning atomic that
 * faults writes zeros into its destination (seen on an H200); when that overlaps the registers of its address, the dump no longer has the
 * address.
 */
#include "find/fault/hunt.h"

#include <string.h>

#include "find/fault/sass_line.h"

#define EXECUTE_MAX	3000000u	/* instructions, for all threads: a second */

bool hunt_in_reach(const struct hunt *h, const struct thread *t)
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

bool hunt_skipped(struct hunt *h, const struct thread *t)
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
void hunt_address(struct hunt *h, const struct thread *t, struct culprit_lane *l)
{
	struct culprit *c = h->c;
	bool near = hunt_in_reach(h, t);

	/* for shared memory, the address itself says whether it was accessed (hunt_lanes.c) */
	if (!c->decoded || hunt_skipped(h, t) || (!near && !guard_kept(h, t) && c->insn.space != SASS_SHARED))
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

void hunt_address_end(struct hunt *h)
{
	if (h->c->address_doubtful)
		h->c->address_recomputed = h->c->address_unchecked = false;
	if (h->c->decoded && h->c->pc_exact && line_of(h))
		h->c->origin = sass_line_origin(h->line, &h->c->insn, h->c->params_offset);
	sass_line_close(h->line);
	h->line = NULL;
}
