/* SPDX-License-Identifier: Apache-2.0
 * The address of an access from the code before it (see sass_eval.h). Registers are recomputed, backward from where
 * they are needed.
 *
 * The value of a register before an instruction is the one in the dump, if nothing between there and where the thread
 * stopped may have written it; else what the last instruction of the straight line before has put there. It gives up
 * where a branch may come in, at calls, and at instructions that are guarded or not known exactly.
 */
#include "find/fault/sass_eval.h"

#include <stdlib.h>

#include "base/mem.h"
#include "formats/image.h"
#include "find/fault/sass_line.h"

#define SASS_REGS	256
#define SASS_WORK	16384	/* instructions examined for one thread, even in hostile code */
#define DEPTH_MAX	64
#define COMPARE_MAX	2048	/* instructions examined for one comparison */
#define ORIGIN_DEPTH	24

struct sass_eval {
	struct sass_lines lines;
	unsigned arch;
	struct bytes bank4;	/* addresses that the compiler keeps */
	size_t stands;			/* the line that `last` is for */
	int last[2][SASS_REGS];		/* the last line before it that may write the register, -1 = none */
	const struct sass_lane *lane;
	unsigned depth, work;
	bool comparing;			/* inside a comparison: no nested ones */
	bool differs, checked;
};

static bool value_before(struct sass_eval *e, bool uniform, int reg, size_t at, uint32_t *value);

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

static bool special_value(const struct sass_eval *e, unsigned which, uint32_t *value)
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
		return value_before(e, false, reg, at, value);
	case SASS_FROM_UREG:
		return value_before(e, true, reg, at, value);
	case SASS_FROM_BANK:
		return value_before(e, m->reg_uniform, m->reg, at, &index) &&
		       bank_word(e, m->bank, (uint64_t)m->offset + index + i * 4ull, value);
	default:
		return false;
	}
}

static bool source_word(struct sass_eval *e, const struct sass_source *s, unsigned i, size_t at, uint32_t *value)
{
	struct sass_move m = {.from = s->from, .number = s->number, .reg = s->reg, .bank = s->bank, .offset = s->offset};

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

static bool math_value(struct sass_eval *e, size_t i, uint64_t *value, unsigned *over);

/* One step back in the straight line; false when the previous instruction may be another one. */
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

/* A sum of three may overflow twice. Then it has two carries; which is which does not matter to code that
 * adds both, and any other use is unknown. */
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

static bool count_carries(struct sass_eval *e, const struct sass_math *m, size_t at, unsigned *count)
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

/* What the arithmetic instruction of line i computes. */
static bool math_value(struct sass_eval *e, size_t i, uint64_t *value, unsigned *over)
{
	const struct sass_math *m = &e->lines.line[i].as.math;
	struct sass_values in = {.carry = 0};
	uint32_t word;

	*over = 0;
	if (m->op == SASS_SPECIAL) {
		if (!special_value(e, m->shift, &word))
			return false;
		*value = word;
		return true;
	}
	if (e->depth >= DEPTH_MAX)
		return false;
	e->depth++;
	if (!(m->op == SASS_COPY || source_value(e, &m->a, m->ab_64, i, &in.a)) ||
	    !source_value(e, &m->b, m->ab_64, i, &in.b) || !source_value(e, &m->c, m->c_64, i, &in.c) ||
	    !count_carries(e, m, i, &in.carry)) {
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

/* The last line before `at` that has written the register, and nothing else has since. */
static bool value_writer(struct sass_eval *e, bool uniform, int reg, size_t at, size_t *found)
{
	while (step_back(e, &at))
		if (sass_line_writes(&e->lines.line[at], uniform, reg)) {
			*found = at;
			return !e->lines.line[at].any;
		}
	return false;
}

/* The register before line `at`, as the code there computes it. */
static bool value_by_code(struct sass_eval *e, bool uniform, int reg, size_t at, uint32_t *value)
{
	size_t found;

	return value_writer(e, uniform, reg, at, &found) && line_value(e, found, reg, value);
}

/* The same from the dump, if nothing has written it since. */
static bool value_in_dump(const struct sass_eval *e, bool uniform, int reg, size_t at, uint32_t *value)
{
	return reg < SASS_REGS && e->last[uniform][reg] < (int)at &&
	       dump_word(uniform ? e->lane->uregs : e->lane->regs, (size_t)reg, value);
}

static bool is_constant(const struct sass_line *l)
{
	return l->value == SASS_VALUE_MOVE && l->as.move.from == SASS_FROM_NUMBER;
}

/* A surviving register must equal what the code computes. A matching constant proves nothing. */
static void compare_survivor(struct sass_eval *e, bool uniform, int reg, size_t at, uint32_t survived)
{
	unsigned most = e->work < COMPARE_MAX ? e->work : COMPARE_MAX, rest = e->work - most;
	uint32_t computed;
	size_t found;

	if (e->comparing)
		return;
	e->comparing = true;
	e->work = most;
	if (value_writer(e, uniform, reg, at, &found) && line_value(e, found, reg, &computed)) {
		e->differs = e->differs || computed != survived;
		e->checked = e->checked || !is_constant(&e->lines.line[found]);
	}
	e->comparing = false;
	e->work += rest;
}

static bool value_before(struct sass_eval *e, bool uniform, int reg, size_t at, uint32_t *value)
{
	if (reg < 0) {
		*value = 0;
		return true;
	}
	if (value_in_dump(e, uniform, reg, at, value)) {
		compare_survivor(e, uniform, reg, at, *value);
		return true;
	}
	return value_by_code(e, uniform, reg, at, value);
}

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

/* Did the thread get to its pc without leaving the straight line from the access? */
static bool eval_reaches(const struct sass_eval *e, uint64_t pc)
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

	if (!eval_reaches(e, pc))
		return false;
	for (i = e->lines.access; i < (size_t)((pc - e->lines.start) / SASS_BYTES); i++)
		if (e->lines.line[i].preds >> predicate & 1)
			return false;
	return true;
}

/* Which line was the last to write each register, before the one where the thread stopped. */
static void find_last_writers(struct sass_eval *e, size_t stands)
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

/* A part of the address: computed, and compared with the register if it survived. Half of a pair is not trusted when
 * the other half cannot be compared; a register that is the whole address is. A uniform register has nothing to do with
 * them. */
static bool address_part(struct sass_eval *e, bool uniform, bool pair, int reg, uint32_t *value)
{
	size_t at = e->lines.access;
	uint32_t survived;
	bool here;

	if (reg < 0) {
		*value = 0;
		return true;
	}
	here = value_in_dump(e, uniform, reg, at, &survived);
	if (!value_by_code(e, uniform, reg, at, value)) {
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

static bool address_parts(struct sass_eval *e, bool uniform, int reg, bool pair, uint64_t *value)
{
	uint32_t lo, hi = 0;

	if (!address_part(e, uniform, pair, reg, &lo) ||
	    (pair && reg >= 0 && !address_part(e, uniform, pair, reg + 1, &hi)))
		return false;
	*value = (uint64_t)hi << 32 | lo;
	return true;
}

enum sass_answer sass_eval_address(struct sass_eval *e, const struct sass *s, const struct sass_lane *lane,
				   uint64_t *address)
{
	uint64_t reg = 0, ureg = 0;

	if (!eval_reaches(e, lane->pc))
		return SASS_UNKNOWN;
	find_last_writers(e, (size_t)((lane->pc - e->lines.start) / SASS_BYTES));
	e->lane = lane;
	e->depth = 0;
	e->work = SASS_WORK;
	e->comparing = e->differs = e->checked = false;
	if (!address_parts(e, false, s->reg, s->reg_64, &reg) || !address_parts(e, true, s->ureg, s->ureg_64, &ureg))
		return e->differs ? SASS_DIFFERS : SASS_UNKNOWN;
	*address = sass_sum(s, reg, ureg);
	return e->differs ? SASS_DIFFERS : e->checked ? SASS_CHECKED : SASS_COMPUTED;
}

/* An address is a pointer plus something far smaller. So only sums are followed, backward along the straight line: what
 * was multiplied, shifted or subtracted is an index, and what comes from memory or unknown code is taken for one. If that
 * was the pointer, no parameter is found, and that is the answer. */
struct origin {
	struct sass_eval *e;
	uint64_t params_offset, words;
	unsigned depth;
};

static void of_register(struct origin *o, bool uniform, int reg, size_t at);

static void of_bank(struct origin *o, unsigned bank, uint64_t off)
{
	if (bank == 0 && off >= o->params_offset && (off - o->params_offset) / 8 < 64)
		o->words |= 1ull << (off - o->params_offset) / 8;
}

static void of_source(struct origin *o, const struct sass_source *s, unsigned half, size_t at)
{
	if (s->minus)
		return;
	if (s->from == SASS_FROM_BANK)
		of_bank(o, s->bank, s->offset + half * 4ull);
	else if ((s->from == SASS_FROM_REG || s->from == SASS_FROM_UREG) && s->reg >= 0)
		of_register(o, s->from == SASS_FROM_UREG, s->reg + (int)half, at);
}

static bool source_is_one(const struct sass_source *s)
{
	return s->from == SASS_FROM_NUMBER && s->number == 1;
}

/* `half`: which half of a two-register result. */
static void of_math(struct origin *o, const struct sass_math *m, unsigned half, size_t at)
{
	unsigned ab = m->ab_64 ? half : 0, c = m->c_64 ? half : 0;

	switch (m->op) {
	case SASS_ADD:
	case SASS_LOGIC:
		of_source(o, &m->a, ab, at);
		of_source(o, &m->b, ab, at);
		of_source(o, &m->c, c, at);
		break;
	case SASS_LEA:
		of_source(o, &m->b, ab, at);
		break;
	case SASS_MAD:
		of_source(o, &m->c, c, at);
		if (source_is_one(&m->b))
			of_source(o, &m->a, ab, at);
		break;
	case SASS_COPY:
		of_source(o, &m->b, ab, at);
		break;
	default:
		break;
	}
}

static void of_move(struct origin *o, const struct sass_move *m, unsigned half, size_t at)
{
	if (m->from == SASS_FROM_BANK && m->reg < 0)
		of_bank(o, m->bank, m->offset + half * 4ull);
	else if ((m->from == SASS_FROM_REG || m->from == SASS_FROM_UREG) && m->reg >= 0)
		of_register(o, m->from == SASS_FROM_UREG, m->reg + (int)half, at);
}

static void of_register(struct origin *o, bool uniform, int reg, size_t at)
{
	const struct sass_line *l;
	size_t found;

	if (o->depth >= ORIGIN_DEPTH || !value_writer(o->e, uniform, reg, at, &found))
		return;
	o->depth++;
	l = &o->e->lines.line[found];
	if (l->value == SASS_VALUE_MATH)
		of_math(o, &l->as.math, (unsigned)(reg - l->dest), found);
	else if (l->value == SASS_VALUE_MOVE)
		of_move(o, &l->as.move, (unsigned)(reg - l->dest), found);
	o->depth--;
}

uint64_t sass_eval_origin(struct sass_eval *e, const struct sass *s, uint64_t params_offset)
{
	struct origin o = {.e = e, .params_offset = params_offset};

	e->work = SASS_WORK;
	if (s->reg >= 0)
		of_register(&o, false, s->reg, e->lines.access);
	if (s->ureg >= 0)
		of_register(&o, true, s->ureg, e->lines.access);
	return params_offset ? o.words : 0;
}
