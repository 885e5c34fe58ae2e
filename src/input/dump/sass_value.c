/* SPDX-License-Identifier: Apache-2.0
 * Computes registers again, backwards from where they are needed.
 *
 * The value of a register before an instruction is that of the dump, when nothing from there to where the thread
 * stands may have written it; else what the last instruction of the straight line before has put there. Given up at
 * places where a branch may come in, at calls, at instructions that are guarded or not known exactly.
 */
#include "input/dump/sass_eval_priv.h"
#include "base/banned.h"

#define DEPTH_MAX	64
#define COMPARE_MAX	2048	/* instructions looked at for one comparison */

/* ---- where values come from --------------------------------------------------------------------------------- */

static bool value_at(struct sass_eval *e, bool uniform, int reg, size_t at, uint32_t *value);

static bool dims_word(const struct sass_eval *e, uint64_t off, uint32_t *value)
{
	uint64_t block = e->arch < 100 ? 0 : 0x360, grid = e->arch < 100 ? 0xc : 0x370;

	if (off >= block && off < block + 12)
		*value = e->lane->block_dim[(off - block) / 4];
	else if (off >= grid && off < grid + 12)
		*value = e->lane->grid_dim[(off - grid) / 4];
	else
		return false;
	return *value != 0;
}

static bool bank_word(const struct sass_eval *e, unsigned bank, uint64_t off, uint32_t *value)
{
	const struct sass_lane *l = e->lane;

	if (off % 4)
		return false;
	if (bank == 4)
		return dump_word(e->bank4, off / 4, value);
	if (bank != 0)
		return false;
	if (l->params_offset && off >= l->params_offset)
		return (off - l->params_offset) % 4 == 0 && dump_word(l->params, (off - l->params_offset) / 4, value);
	return dims_word(e, off, value);
}

static bool special(const struct sass_eval *e, unsigned which, uint32_t *value)
{
	const struct sass_lane *l = e->lane;

	if (which == SASS_LANEID)
		*value = l->id;
	else if (which >= SASS_TID && which < SASS_TID + 3)
		*value = l->thread[which - SASS_TID];
	else if (which >= SASS_CTAID && which < SASS_CTAID + 3)
		*value = l->block[which - SASS_CTAID];
	else
		return false;
	return true;
}

static bool move_value(struct sass_eval *e, const struct sass_move *m, unsigned i, size_t at, uint32_t *value)
{
	uint32_t index;
	int reg = m->reg < 0 ? -1 : m->reg + (int)i;

	switch (m->from) {
	case SASS_FROM_NUMBER:
		*value = m->number;
		return i == 0;
	case SASS_FROM_REG:
		return value_at(e, false, reg, at, value);
	case SASS_FROM_UREG:
		return value_at(e, true, reg, at, value);
	case SASS_FROM_BANK:
		return value_at(e, m->reg_uniform, m->reg, at, &index) &&
		       bank_word(e, m->bank, (uint64_t)m->offset + index + i * 4ull, value);
	default:
		return false;
	}
}

static bool source_word(struct sass_eval *e, const struct sass_source *s, unsigned i, size_t at, uint32_t *value)
{
	struct sass_move m = {.from = s->from, .number = s->number, .reg = s->reg, .bank = s->bank,
			      .offset = s->offset};

	if (s->from == SASS_FROM_BANK)
		m.reg = -1;
	if (s->from == SASS_FROM_NUMBER && i) {
		*value = 0;
		return true;
	}
	return move_value(e, &m, i, at, value);
}

static bool source_value(struct sass_eval *e, const struct sass_source *s, bool pair, size_t at, uint64_t *value)
{
	uint32_t lo, hi = 0;

	if (!source_word(e, s, 0, at, &lo) || (pair && !source_word(e, s, 1, at, &hi)))
		return false;
	*value = (uint64_t)hi << 32 | lo;
	return true;
}

/* ---- carries ------------------------------------------------------------------------------------------------ */

static bool math_value(struct sass_eval *e, size_t i, uint64_t *value, unsigned *over);

/* One step back in the straight line; false when its instruction may not be the one before. */
static bool step_back(struct sass_eval *e, size_t *at)
{
	const struct sass_lines *l = &e->lines;

	if (*at == 0 || l->line[*at].entered || l->line[*at - 1].stop || e->work == 0)
		return false;
	e->work--;
	(*at)--;
	return true;
}

static bool find_carry(struct sass_eval *e, bool uniform, int p, size_t at, size_t *found)
{
	const struct sass_line *l;

	while (step_back(e, &at)) {
		l = &e->lines.line[at];
		if (!((uniform ? l->upreds : l->preds) >> p & 1))
			continue;
		*found = at;
		return l->value == SASS_VALUE_MATH && l->as.math.uniform == uniform;
	}
	return false;
}

/* A sum of three may run over twice. It has two carries then; which of them is which never matters to one who
 * adds both, and nobody else is answered. */
static bool carry_both(struct sass_eval *e, const struct sass_math *m, size_t at, unsigned *count)
{
	size_t first, second;
	uint64_t value;

	return m->in[0] != m->in[1] && !m->in_not[0] && !m->in_not[1] &&
	       find_carry(e, m->uniform, m->in[0], at, &first) && find_carry(e, m->uniform, m->in[1], at, &second) &&
	       first == second && math_value(e, first, &value, count) && *count <= 2;
}

static bool carry_one(struct sass_eval *e, const struct sass_math *m, int k, size_t at, unsigned *count)
{
	const struct sass_math *from;
	size_t found;
	uint64_t value;

	if (m->in[k] == SASS_PT) {
		*count = !m->in_not[k];
		return true;
	}
	if (!find_carry(e, m->uniform, m->in[k], at, &found))
		return false;
	from = &e->lines.line[found].as.math;
	if ((from->out[0] != SASS_PT && from->out[1] != SASS_PT) || !math_value(e, found, &value, count) || *count > 1)
		return false;
	if (m->in_not[k])
		*count = !*count;
	return true;
}

static bool carries(struct sass_eval *e, const struct sass_math *m, size_t at, unsigned *count)
{
	unsigned one, other;

	*count = 0;
	if (!m->extended)
		return true;
	if (m->in[0] != SASS_PT && m->in[1] != SASS_PT && carry_both(e, m, at, count))
		return true;
	if (!carry_one(e, m, 0, at, &one) || !carry_one(e, m, 1, at, &other))
		return false;
	*count = one + other;
	return true;
}

/* ---- evaluation --------------------------------------------------------------------------------------------- */

/* What the arithmetic instruction of line i computes. */
static bool math_value(struct sass_eval *e, size_t i, uint64_t *value, unsigned *over)
{
	const struct sass_math *m = &e->lines.line[i].as.math;
	struct sass_values in = {.carry = 0};
	uint32_t word;

	*over = 0;
	if (m->op == SASS_SPECIAL) {
		if (!special(e, m->shift, &word))
			return false;
		*value = word;
		return true;
	}
	if (e->depth >= DEPTH_MAX)
		return false;
	e->depth++;
	if (!(m->op == SASS_COPY || source_value(e, &m->a, m->ab_64, i, &in.a)) ||
	    !source_value(e, &m->b, m->ab_64, i, &in.b) || !source_value(e, &m->c, m->c_64, i, &in.c) ||
	    !carries(e, m, i, &in.carry)) {
		e->depth--;
		return false;
	}
	e->depth--;
	return sass_compute(m, &in, value, over);
}

static bool line_value(struct sass_eval *e, size_t i, int reg, uint32_t *value)
{
	const struct sass_line *l = &e->lines.line[i];
	unsigned over, half = (unsigned)(reg - l->dest);
	uint64_t wide;
	bool ok;

	if (l->value == SASS_VALUE_MATH) {
		ok = math_value(e, i, &wide, &over);
		*value = (uint32_t)(ok ? half ? wide >> 32 : wide : 0);
		return ok;
	}
	if (l->value != SASS_VALUE_MOVE || e->depth >= DEPTH_MAX)
		return false;
	e->depth++;
	ok = move_value(e, &l->as.move, half, i, value);
	e->depth--;
	return ok;
}

bool sass_value_writer(struct sass_eval *e, bool uniform, int reg, size_t at, size_t *found)
{
	while (step_back(e, &at))
		if (sass_line_writes(&e->lines.line[at], uniform, reg)) {
			*found = at;
			return !e->lines.line[at].any;
		}
	return false;
}

bool sass_value_code(struct sass_eval *e, bool uniform, int reg, size_t at, uint32_t *value)
{
	size_t found;

	return sass_value_writer(e, uniform, reg, at, &found) && line_value(e, found, reg, value);
}

bool sass_value_dump(const struct sass_eval *e, bool uniform, int reg, size_t at, uint32_t *value)
{
	return reg < SASS_REGS && e->last[uniform][reg] < (int)at &&
	       dump_word(uniform ? e->lane->uregs : e->lane->regs, (size_t)reg, value);
}

static bool is_number(const struct sass_line *l)
{
	return l->value == SASS_VALUE_MOVE && l->as.move.from == SASS_FROM_NUMBER;
}

/* A register that survived must be what the code makes of it. That a constant is one proves nothing. */
static void compare(struct sass_eval *e, bool uniform, int reg, size_t at, uint32_t survived)
{
	unsigned most = e->work < COMPARE_MAX ? e->work : COMPARE_MAX, rest = e->work - most;
	uint32_t computed;
	size_t found;

	if (e->comparing)
		return;
	e->comparing = true;
	e->work = most;
	if (sass_value_writer(e, uniform, reg, at, &found) && line_value(e, found, reg, &computed)) {
		e->differs = e->differs || computed != survived;
		e->checked = e->checked || !is_number(&e->lines.line[found]);
	}
	e->comparing = false;
	e->work += rest;
}

static bool value_at(struct sass_eval *e, bool uniform, int reg, size_t at, uint32_t *value)
{
	if (reg < 0) {
		*value = 0;
		return true;
	}
	if (sass_value_dump(e, uniform, reg, at, value)) {
		compare(e, uniform, reg, at, *value);
		return true;
	}
	return sass_value_code(e, uniform, reg, at, value);
}
