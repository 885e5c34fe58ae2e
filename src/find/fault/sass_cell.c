/* SPDX-License-Identifier: Apache-2.0
 * Cells (see sass_cell.h): merging them, and the operands of an instruction as cells: registers, constants, predicates.
 */
#include "find/fault/sass_exec.h"

#include <math.h>
#include <string.h>

struct cell cell_number(uint32_t v)
{
	return (struct cell){.v = v, .known = true};
}

struct cell cell_unknown(void)
{
	return (struct cell){.n = SASS_SEVERAL, .base = CELL_NO_BASE};
}

static bool adjoin(const struct cell *a, const struct cell *b)
{
	unsigned n = (unsigned)a->n + b->n;

	return a->at + a->n == b->at && (n == 2 || n == 4 || n == 8) && a->at % n == 0;
}

static bool contains(const struct cell *a, const struct cell *b)
{
	return b->at >= a->at && b->at + b->n <= a->at + a->n;
}

/* Two halves of a value are one value. */
static void merge_bytes(struct cell *to, const struct cell *a, const struct cell *b)
{
	const struct cell *whole = a->n == 0 ? b : b->n == 0 || contains(a, b) ? a : contains(b, a) ? b : NULL;

	if (a->n == SASS_SEVERAL || b->n == SASS_SEVERAL) {
		to->n = SASS_SEVERAL;
		return;
	}
	if (!whole && adjoin(b, a))
		whole = b;
	else if (!whole && adjoin(a, b))
		whole = a;
	to->n = whole ? whole->n : SASS_SEVERAL;
	to->at = whole ? whole->at : 0;
	to->at_base = whole ? whole->at_base : 0;
	if (whole && !contains(whole, whole == a ? b : a) && a->n && b->n)
		to->n = (uint8_t)(a->n + b->n);
}

struct cell cell_merge(struct cell a, struct cell b)
{
	struct cell c = {.known = a.known && b.known, .compare = a.compare ? a.compare : b.compare,
			 .checked = a.checked || b.checked, .differs = a.differs || b.differs};

	merge_bytes(&c, &a, &b);
	c.base = !a.base || a.base == b.base ? b.base : !b.base ? a.base : CELL_NO_BASE;
	return c;
}

struct cell cell_without_base(struct cell c)
{
	c.base = 0;
	c.words = 0;
	return c;
}

struct cell cell_part(struct cell c, unsigned from, unsigned n)
{
	if (c.raw && c.n == 4 && from + n <= 4) {
		c.at += from;
		c.n = (uint8_t)n;
	}
	c.raw = false;
	return c;
}

struct cell cell_reg(const struct cell_state *s, bool uniform, int reg)
{
	if (reg < 0)
		return cell_number(0);
	return reg < CELL_REGS ? (uniform ? s->u : s->r)[reg] : cell_unknown();
}

static struct cell parameter(const struct cell_run *run, uint64_t off)
{
	struct cell c = cell_unknown();
	uint32_t half[2];

	if (off % 4 == 0 && dump_word(run->t->params, off / 4, &c.v))
		c = cell_number(c.v);
	c.words = off / 8 < 64 ? 1ull << off / 8 : 0;
	if (!c.known)
		return c;
	/* pointers have more than 32 bits and fewer than 57 */
	if (off / 8 < CELL_NO_BASE - 1 && dump_word(run->t->params, off / 8 * 2, &half[0]) &&
	    dump_word(run->t->params, off / 8 * 2 + 1, &half[1]) && half[1] && half[1] >> 25 == 0)
		c.base = (uint16_t)(off / 8 + 1);
	return c;
}

uint64_t cell_base_value(const struct cell_run *run, uint16_t base)
{
	uint32_t lo, hi;

	if (!base || base == CELL_NO_BASE || !dump_word(run->t->params, (base - 1u) * 2u, &lo) ||
	    !dump_word(run->t->params, (base - 1u) * 2u + 1, &hi))
		return 0;
	return (uint64_t)hi << 32 | lo;
}

/* The words of bank 0 before the parameters: the dimensions, and where the stack begins. */
static struct cell launch_word(const struct cell_run *run, uint64_t off)
{
	const struct sass_thread *t = run->t;
	bool old = t->arch < 100;
	uint64_t block = old ? 0 : 0x360, grid = old ? 0xc : 0x370, stack = old ? 0x28 : 0x37c;
	uint32_t v = 0;

	if (off == stack)
		return run->stack;
	if (off >= block && off < block + 12 && off % 4 == 0)
		v = t->block_dim[(off - block) / 4];
	else if (off >= grid && off < grid + 12 && off % 4 == 0)
		v = t->grid_dim[(off - grid) / 4];
	return v ? cell_number(v) : cell_unknown();
}

struct cell cell_constant(const struct cell_run *run, unsigned bank, uint64_t off)
{
	const struct sass_thread *t = run->t;
	uint32_t v;

	if (bank == 0)
		return t->params_offset && off >= t->params_offset ? parameter(run, off - t->params_offset)
								   : launch_word(run, off);
	/* variables (bank 3) may have been written since the module was loaded; addresses that the compiler keeps are not */
	if (bank != 4 || off % 4 || !dump_word(run->bank4, off / 4, &v))
		return cell_unknown();
	return cell_number(v);
}

struct cell cell_source(const struct cell_run *run, const struct cell_state *s, const struct sass_source *from,
			unsigned half)
{
	switch (from->from) {
	case SASS_FROM_NUMBER:
		return cell_number(half ? 0 : from->number);
	case SASS_FROM_REG:
	case SASS_FROM_UREG:
		return cell_reg(s, from->from == SASS_FROM_UREG, from->reg < 0 ? -1 : from->reg + (int)half);
	case SASS_FROM_BANK:
		return cell_constant(run, from->bank, from->offset + half * 4ull);
	default:
		return cell_unknown();
	}
}

bool cell_slot(const struct cell_run *run, const struct word *w, bool uniform, bool real, struct sass_source *to)
{
	unsigned form = (unsigned)bits(w, 9, 3);
	bool number = form == 2 || form == 4;
	struct sass_move m = {.reg = -1};
	struct word plain = *w;

	if (!number && real)
		plain.lo &= ~(3ull << 62);
	if (uniform && form == 1) {
		*to = (struct sass_source){.from = SASS_FROM_UREG, .reg = ureg_at(w, 32, run->t->arch)};
		return bits(&plain, 40, 24) == 0;
	}
	if (form == 0 || !sass_operand(&m, &plain, run->t->arch, form))
		return false;
	*to = (struct sass_source){
		.from = m.from, .number = m.number, .reg = m.reg, .bank = m.bank, .offset = m.offset};
	return true;
}

/* A predicate of four bits: which one, and whether it is inverted. */
struct cell cell_predicate(const struct cell_state *s, bool uniform, unsigned field)
{
	struct cell c = (uniform ? s->up : s->p)[field & 7];

	c.v = (c.v & 1) ^ (field >> 3 & 1);
	c.raw = false;
	return c;
}

void cell_set_reg(struct cell_state *s, bool uniform, int reg, struct cell c)
{
	if (reg >= 0 && reg < CELL_REGS && reg != R_NONE)
		(uniform ? s->u : s->r)[reg] = c;
}

void cell_set_predicate(struct cell_state *s, bool uniform, unsigned p, struct cell c)
{
	c.base = 0;
	c.words = 0;
	c.raw = false;
	c.v &= 1;
	if ((p & 7) != CELL_ALWAYS)
		(uniform ? s->up : s->p)[p & 7] = c;
}

bool cell_forget(const struct cell_run *run, struct cell_state *s, const uint8_t *code)
{
	struct sass_effect e;
	unsigned i, d;

	sass_effect(code, run->t->arch, &e);
	for (i = 0; i < CELL_ALWAYS; i++) {
		if (e.preds >> i & 1)
			cell_set_predicate(s, false, i, cell_unknown());
		if (e.upreds >> i & 1)
			cell_set_predicate(s, true, i, cell_unknown());
	}
	for (d = 0; d < 2; d++)
		for (i = 0; e.dest[d] >= 0 && i < e.n; i++)
			cell_set_reg(s, e.uniform, e.dest[d] + (int)i, cell_unknown());
	return !e.any;
}

double cell_float(uint32_t v)
{
	float f;

	memcpy(&f, &v, sizeof(f));
	return f;
}

double cell_flushed(double v, bool flush)
{
	return flush && fabs(v) < 0x1p-126 ? 0 : v;
}
