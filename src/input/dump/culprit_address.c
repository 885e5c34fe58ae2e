/* SPDX-License-Identifier: Apache-2.0
 * The address that a faulting thread accessed: from its registers, or from the code where the access destroyed them.
 *
 * A load or a returning atomic that faults writes zeros into its destination (seen on an H200); when that overlaps
 * the registers of its address, the dump has the address no more.
 */
#include <string.h>

#include "input/dump/culprit_priv.h"
#include "input/dump/sass_eval.h"
#include "base/banned.h"

bool lane_in_reach(struct hunt *h, const struct thread *t)
{
	uint64_t pc = dump_get(&t->lane, DUMP_LANE_PC);

	return h->c->pc_exact && pc >= h->c->pc && pc <= h->straight_end &&
	       (pc - h->c->pc) % SASS_BYTES == 0;
}

static struct sass_eval *eval_of(struct hunt *h)
{
	if (!h->eval_tried)
		h->eval = sass_eval_open(h->image, h->c->arch, h->c->pc);
	h->eval_tried = true;
	return h->eval;
}

/* Is the predicate that the dump has the one that the access had? */
static bool guard_kept(struct hunt *h, const struct thread *t)
{
	uint64_t pc = dump_get(&t->lane, DUMP_LANE_PC);

	return h->c->insn.guard == 7 || pc == h->c->pc || (eval_of(h) && sass_eval_keeps(h->eval, h->c->insn.guard, pc));
}

/* A predicated instruction is skipped by lanes whose predicate does not hold. */
bool lane_skipped(struct hunt *h, const struct thread *t)
{
	uint32_t p;

	return h->c->decoded && h->c->insn.guard != 7 && guard_kept(h, t) &&
	       dump_word(dump_child_bytes(&t->lane, DUMP_PREDS), (size_t)h->c->insn.guard, &p) &&
	       (p != 0) == h->c->insn.guard_not;
}

static void describe(struct hunt *h, const struct thread *t, const struct culprit_lane *l, struct sass_lane *to)
{
	const struct culprit *c = h->c;

	*to = (struct sass_lane){
		.pc = l->pc, .regs = dump_child_bytes(&t->lane, DUMP_REGS),
		.uregs = dump_child_bytes(&t->warp, DUMP_UREGS), .params = c->params,
		.params_offset = c->params_offset, .id = (uint32_t)dump_get(&t->lane, DUMP_LANE_ID),
	};
	memcpy(to->thread, l->thread, sizeof(to->thread));
	memcpy(to->block, l->block, sizeof(to->block));
	memcpy(to->block_dim, c->block, sizeof(to->block_dim));
	memcpy(to->grid_dim, c->grid, sizeof(to->grid_dim));
}

/* From the code; in doubt the address is not known. */
static bool recompute(struct hunt *h, const struct thread *t, struct culprit_lane *l)
{
	struct sass_lane lane;
	enum sass_answer answer;

	describe(h, t, l, &lane);
	if (!eval_of(h) || !lane.regs.data)
		return false;
	answer = sass_eval_address(h->eval, &h->c->insn, &lane, &l->address);
	if (answer < SASS_COMPUTED)
		return false;
	h->c->address_recomputed |= sass_overwrites_address(&h->c->insn) || answer == SASS_COMPUTED;
	h->c->address_unchecked = h->c->address_unchecked || answer == SASS_COMPUTED;
	return true;
}

/* Registers are those of the moment the lane stopped. A lane that went further than they are good for can still
 * have its address computed again, unless its predicate is not known any more. */
void lane_address(struct hunt *h, const struct thread *t, struct culprit_lane *l)
{
	struct culprit *c = h->c;
	bool near = lane_in_reach(h, t);

	/* of an access to shared memory the address itself tells whether it was made (culprit_judge) */
	if (!c->decoded || lane_skipped(h, t) || (!near && !guard_kept(h, t) && c->insn.space != SASS_SHARED))
		return;
	if (!near) {
		l->address_known = recompute(h, t, l);
		return;
	}
	l->address_known = sass_address(&c->insn, dump_child_bytes(&t->lane, DUMP_REGS),
					dump_child_bytes(&t->warp, DUMP_UREGS), &l->address);
	if (!l->address_known || l->pc == c->pc || !sass_overwrites_address(&c->insn))
		return;
	if (!c->address_doubtful && !recompute(h, t, l))
		c->address_doubtful = true;
}

void lane_address_finish(struct hunt *h)
{
	if (h->c->address_doubtful)
		h->c->address_recomputed = h->c->address_unchecked = false;
	if (h->c->decoded && h->c->pc_exact && eval_of(h))
		h->c->origin = sass_eval_origin(h->eval, &h->c->insn, h->c->params_offset);
	sass_eval_close(h->eval);
	h->eval = NULL;
}
