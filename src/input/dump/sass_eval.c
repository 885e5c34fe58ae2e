/* SPDX-License-Identifier: Apache-2.0
 * The address of an access from the code before it (see sass_eval.h); sass_value.c computes the registers.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "formats/image.h"
#include "input/dump/sass_eval_priv.h"
#include "base/banned.h"

struct sass_eval *sass_eval_open(struct bytes image, unsigned arch, uint64_t pc)
{
	struct sass_eval *e = xcalloc(1, sizeof(*e));

	e->arch = arch;
	e->stands = SIZE_MAX;
	image_section(image, ".nv.constant4", &e->bank4);
	if (sass_lines_open(&e->lines, image, arch, pc))
		return e;
	sass_eval_close(e);
	return NULL;
}

void sass_eval_close(struct sass_eval *e)
{
	if (!e)
		return;
	sass_lines_close(&e->lines);
	free(e);
}

bool sass_eval_reaches(const struct sass_eval *e, uint64_t pc)
{
	const struct sass_lines *l = &e->lines;
	uint64_t access = l->start + l->access * SASS_BYTES;
	size_t i, stands;

	if (pc < access || (pc - access) % SASS_BYTES || (pc - l->start) / SASS_BYTES > l->n)
		return false;
	stands = (size_t)((pc - l->start) / SASS_BYTES);
	for (i = l->access; i < stands; i++)
		if (l->line[i].stop || l->line[i].branch)
			return false;
	return true;
}

bool sass_eval_keeps(const struct sass_eval *e, int predicate, uint64_t pc)
{
	size_t i;

	if (!sass_eval_reaches(e, pc))
		return false;
	for (i = e->lines.access; i < (size_t)((pc - e->lines.start) / SASS_BYTES); i++)
		if (e->lines.line[i].preds >> predicate & 1)
			return false;
	return true;
}

/* Which line was the last to write each register, before the one where the thread stands. */
static void find_last(struct sass_eval *e, size_t stands)
{
	const struct sass_line *l;
	size_t i, r;

	if (e->stands == stands)
		return;
	e->stands = stands;
	for (r = 0; r < SASS_REGS; r++)
		e->last[0][r] = e->last[1][r] = -1;
	for (i = 0; i < stands; i++) {
		l = &e->lines.line[i];
		for (r = 0; l->any && r < SASS_REGS; r++)
			e->last[0][r] = e->last[1][r] = (int)i;
		for (r = 0; l->dest >= 0 && r < l->n && (size_t)l->dest + r < SASS_REGS; r++)
			e->last[l->uniform][(size_t)l->dest + r] = (int)i;
	}
}

/* A part of the address: computed, and compared with the register where that one survived. Half of a pair is not
 * believed when the other half cannot be compared; a register that is the whole address is, and a uniform one has nothing
 * to do with them. */
static bool part(struct sass_eval *e, bool uniform, bool pair, int reg, uint32_t *value)
{
	size_t at = e->lines.access;
	uint32_t survived;
	bool here;

	if (reg < 0) {
		*value = 0;
		return true;
	}
	here = sass_value_dump(e, uniform, reg, at, &survived);
	if (!sass_value_code(e, uniform, reg, at, value)) {
		*value = here ? survived : 0;
		e->checked = e->checked || (here && !pair && !uniform);
		return here && (uniform || !pair);
	}
	if (here) {
		e->differs = e->differs || survived != *value;
		e->checked = true;
	}
	return true;
}

static bool parts(struct sass_eval *e, bool uniform, int reg, bool pair, uint64_t *value)
{
	uint32_t lo, hi = 0;

	if (!part(e, uniform, pair, reg, &lo) || (pair && reg >= 0 && !part(e, uniform, pair, reg + 1, &hi)))
		return false;
	*value = (uint64_t)hi << 32 | lo;
	return true;
}

enum sass_answer sass_eval_address(struct sass_eval *e, const struct sass *s, const struct sass_lane *lane,
				   uint64_t *address)
{
	uint64_t reg = 0, ureg = 0;

	if (!sass_eval_reaches(e, lane->pc))
		return SASS_UNKNOWN;
	find_last(e, (size_t)((lane->pc - e->lines.start) / SASS_BYTES));
	e->lane = lane;
	e->depth = 0;
	e->work = SASS_WORK;
	e->comparing = e->differs = e->checked = false;
	if (!parts(e, false, s->reg, s->reg_64, &reg) || !parts(e, true, s->ureg, s->ureg_64, &ureg))
		return e->differs ? SASS_DIFFERS : SASS_UNKNOWN;
	*address = sass_sum(s, reg, ureg);
	return e->differs ? SASS_DIFFERS : e->checked ? SASS_CHECKED : SASS_COMPUTED;
}
