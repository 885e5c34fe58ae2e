/* SPDX-License-Identifier: Apache-2.0
 * Executes single instructions (see sass_cell.h): moves, integers, comparisons, memory. Layouts are the same from 7.5 to 12.1
 * and were checked with kernels of our own (tests/dump/check_run.py). An instruction that is not here has unknown results.
 */
#include "input/dump/sass_cell.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "input/dump/sass_word.h"

#define STACK_TOP	0x00fff000u	/* any value: only differences matter */
#define ALWAYS		7

/* --- cells ----------------------------------------------------------------------------------------- */

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
	struct cell c = {.known = a.known && b.known, .compare = a.compare ? a.compare : b.compare};

	merge_bytes(&c, &a, &b);
	c.base = !a.base || a.base == b.base ? b.base : !b.base ? a.base : CELL_NO_BASE;
	return c;
}

/* An index is no address, whatever it was computed from. */
static struct cell without_base(struct cell c)
{
	c.base = 0;
	return c;
}

/* Part of a value that is in the register as it was loaded. */
static struct cell part_of(struct cell c, unsigned from, unsigned n)
{
	if (c.raw && c.n == 4 && from + n <= 4) {
		c.at += from;
		c.n = (uint8_t)n;
	}
	c.raw = false;
	return c;
}

/* --- sources --------------------------------------------------------------------------------------- */

static struct cell read_reg(const struct cell_state *s, bool uniform, int reg)
{
	if (reg < 0)
		return cell_number(0);
	return reg < CELL_REGS ? (uniform ? s->u : s->r)[reg] : cell_unknown();
}

static struct cell parameter(const struct cell_run *run, uint64_t off)
{
	struct cell c = cell_unknown();
	uint32_t half[2];

	if (off % 4 || !dump_word(run->t->params, off / 4, &c.v))
		return c;
	c = cell_number(c.v);
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
		return cell_number(STACK_TOP);
	if (off >= block && off < block + 12 && off % 4 == 0)
		v = t->block_dim[(off - block) / 4];
	else if (off >= grid && off < grid + 12 && off % 4 == 0)
		v = t->grid_dim[(off - grid) / 4];
	return v ? cell_number(v) : cell_unknown();
}

static struct cell constant(const struct cell_run *run, unsigned bank, uint64_t off)
{
	const struct sass_thread *t = run->t;
	struct bytes b = bank == 3 ? run->bank3 : run->bank4;
	uint32_t v;

	if (bank == 0)
		return t->params_offset && off >= t->params_offset ? parameter(run, off - t->params_offset)
								   : launch_word(run, off);
	if ((bank != 3 && bank != 4) || off % 4 || !dump_word(b, off / 4, &v))
		return cell_unknown();
	return cell_number(v);
}

static struct cell source(const struct cell_run *run, const struct cell_state *s, const struct sass_source *from,
			  unsigned half)
{
	switch (from->from) {
	case SASS_FROM_NUMBER:
		return cell_number(half ? 0 : from->number);
	case SASS_FROM_REG:
	case SASS_FROM_UREG:
		return read_reg(s, from->from == SASS_FROM_UREG, from->reg < 0 ? -1 : from->reg + (int)half);
	case SASS_FROM_BANK:
		return constant(run, from->bank, from->offset + half * 4ull);
	default:
		return cell_unknown();
	}
}

/* The second operand of comparisons and selections: bits 32 to 63; signs of floating point are cut off. */
static bool slot(const struct cell_run *run, const struct word *w, bool uniform, bool real, struct sass_source *to)
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

/* --- results --------------------------------------------------------------------------------------- */

static void write_reg(struct cell_state *s, bool uniform, int reg, struct cell c)
{
	if (reg >= 0 && reg < CELL_REGS && reg != R_NONE)
		(uniform ? s->u : s->r)[reg] = c;
}

static void write_pred(struct cell_state *s, bool uniform, unsigned p, struct cell c)
{
	c.base = 0;
	c.raw = false;
	c.v &= 1;
	if ((p & 7) != ALWAYS)
		(uniform ? s->up : s->p)[p & 7] = c;
}

/* Whatever the instruction writes is unknown. False when it might write anything. */
static bool forget(const struct cell_run *run, struct cell_state *s, const uint8_t *code)
{
	unsigned i, preds = sass_predicates(code, run->t->arch);
	struct word w = word_of(code);
	bool uniform = bits(&w, 0, 9) >> 6 == 2;	/* 0x80 to 0xbf */
	struct sass_move m;
	struct sass a;

	for (i = 0; i < 7; i++)
		if (preds >> i & 1)
			write_pred(s, uniform, i, cell_unknown());
	if (sass_decode(code, run->t->arch, &a)) {
		for (i = 0; a.dest >= 0 && i < a.dest_regs; i++)
			write_reg(s, false, a.dest + (int)i, cell_unknown());
		return true;
	}
	sass_move(code, run->t->arch, &m);
	if (m.from == SASS_FROM_ANYWHERE)
		return false;
	for (i = 0; m.dest >= 0 && i < m.n; i++)
		write_reg(s, m.uniform, m.dest + (int)i, cell_unknown());
	return true;
}

/* --- comparisons ----------------------------------------------------------------------------------- */

const struct sass_compare *cell_compare(const struct cell_run *run, uint32_t number)
{
	return number && run->numbers[number % CELL_COMPARES] == number ? &run->compares[number % CELL_COMPARES] : NULL;
}

static uint32_t keep_compare(struct cell_run *run, const struct sass_compare *c)
{
	uint32_t number = ++run->n_compares;

	run->compares[number % CELL_COMPARES] = *c;
	run->numbers[number % CELL_COMPARES] = number;
	return number;
}

static bool holds(unsigned how, bool less, bool equal)
{
	return (how & 1 && less) || (how & 2 && equal) || (how & 4 && !less && !equal);
}

/* Combines a comparison with a predicate: and, or, exclusive or. */
static bool combine(unsigned op, bool a, bool b)
{
	return op == 0 ? a && b : op == 1 ? a || b : a != b;
}

/* What one side has already decided does not depend on the other. */
static struct cell combined(unsigned op, struct cell result, struct cell other)
{
	struct cell c = cell_merge(result, other);

	c.compare = result.compare;
	c.v = combine(op, result.v, other.v);
	if (op < 2 && other.known && other.v == (op == 1) && other.n == 0) {
		c = other;
	} else if (op < 2 && !c.known &&
		   ((other.known && other.v == (op == 1)) || (result.known && result.v == (op == 1)))) {
		c.known = true;
		c.v = op == 1;
	}
	return c;
}

static void set_predicates(struct cell_state *s, const struct word *w, bool uniform, struct cell result)
{
	unsigned op = (unsigned)bits(w, 74, 2);
	struct cell other = cell_predicate(s, uniform, (unsigned)bits(w, 87, 4)), opposite = result;

	opposite.v = !opposite.v;
	write_pred(s, uniform, (unsigned)bits(w, 81, 3), combined(op, result, other));
	write_pred(s, uniform, (unsigned)bits(w, 84, 3), combined(op, opposite, other));
}

static bool run_isetp(struct cell_run *run, struct cell_state *s, const struct word *w, bool uniform)
{
	struct sass_source from;
	struct cell a = read_reg(s, uniform, uniform ? ureg_at(w, 24, run->t->arch) : reg_at(w, 24)), b, result, low;
	bool is_signed = bits(w, 73, 1), less, equal;
	unsigned how = (unsigned)bits(w, 76, 3);
	const struct sass_compare *lower;
	struct sass_compare c;

	if (!slot(run, w, uniform, false, &from) || bits(w, 74, 2) == 3)
		return false;
	b = source(run, s, &from, 0);
	less = is_signed ? (int32_t)a.v < (int32_t)b.v : a.v < b.v;
	equal = a.v == b.v;
	c = (struct sass_compare){.how = (enum sass_how)how, .is_signed = is_signed, .known = a.known && b.known, .width = 4,
				  .a = a.v, .b = b.v, .n_a = a.n, .n_b = b.n};
	result = cell_merge(without_base(a), without_base(b));
	result.v = holds(how, less, equal);
	if (bits(w, 72, 1)) {
		low = cell_predicate(s, uniform, (unsigned)bits(w, 68, 4));
		lower = cell_compare(run, low.compare);
		result = cell_merge(result, low);
		/* for != any difference counts, for the others the lower half only between equals */
		result.v = how == SASS_NE ? !equal || low.v : equal ? low.v : holds(how & 5, less, false);
		c.known = c.known && lower && lower->known;
		c.width = lower && lower->width == 4 ? 8 : 4;
		c.a = (uint64_t)a.v << 32 | (lower ? (uint32_t)lower->a : 0);
		c.b = (uint64_t)b.v << 32 | (lower ? (uint32_t)lower->b : 0);
		c.n_a = lower && lower->n_a > c.n_a ? lower->n_a : c.n_a;
		c.n_b = lower && lower->n_b > c.n_b ? lower->n_b : c.n_b;
	}
	result.compare = keep_compare(run, &c);
	set_predicates(s, w, uniform, result);
	return true;
}

/* Floating point: bit 3 of the kind says that it holds for NaN, too; 7 and 8 ask for that alone. */
static bool real_holds(unsigned how, double a, double b)
{
	bool nan = isnan(a) || isnan(b);

	if (how == 7 || how == 8)
		return nan == (how == 8);
	return nan ? how >> 3 : holds(how & 7, a < b, a == b);
}

static double as_float(uint32_t v)
{
	float f;

	memcpy(&f, &v, sizeof(f));
	return f;
}

static double as_double(uint64_t v)
{
	double d;

	memcpy(&d, &v, sizeof(d));
	return d;
}

static double with_sign(double v, bool minus, bool absolute)
{
	v = absolute ? fabs(v) : v;
	return minus ? -v : v;
}

static double flushed(double v, bool flush)
{
	return flush && fabs(v) < 0x1p-126 ? 0 : v;
}

static bool run_fsetp(struct cell_run *run, struct cell_state *s, const struct word *w, bool wide)
{
	struct sass_source from;
	int reg = reg_at(w, 24);
	unsigned how = (unsigned)bits(w, 76, 4), form = (unsigned)bits(w, 9, 3);
	bool number = form == 2 || form == 4;
	struct cell a = read_reg(s, false, reg), b, result, hi;
	struct sass_compare c = {.how = (enum sass_how)(how & 7), .real = true, .is_signed = true, .width = wide ? 8 : 4};
	double x, y;

	/* DSETP has other kinds at the end */
	if (!slot(run, w, false, true, &from) || bits(w, 74, 2) == 3 || (wide && (bits(w, 80, 1) || how == 15)))
		return false;
	b = source(run, s, &from, 0);
	c.a = a.v;
	c.b = b.v;
	if (wide) {
		hi = read_reg(s, false, reg < 0 ? -1 : reg + 1);
		a = cell_merge(a, hi);
		c.a |= (uint64_t)hi.v << 32;
		/* a number is the upper half */
		hi = number ? b : source(run, s, &from, 1);
		c.b = (uint64_t)hi.v << 32 | (number ? 0 : b.v);
		b = cell_merge(b, hi);
	}
	x = wide ? as_double(c.a) : flushed(as_float((uint32_t)c.a), bits(w, 80, 1));
	y = wide ? as_double(c.b) : flushed(as_float((uint32_t)c.b), bits(w, 80, 1));
	x = with_sign(x, bits(w, 72, 1), bits(w, 73, 1));
	y = number ? y : with_sign(y, bits(w, 63, 1), bits(w, 62, 1));
	result = cell_merge(without_base(a), without_base(b));
	result.v = real_holds(how, x, y);
	c.known = result.known;
	c.n_a = a.n;
	c.n_b = b.n;
	result.compare = keep_compare(run, &c);
	set_predicates(s, w, false, result);
	return true;
}

/* --- predicates ------------------------------------------------------------------------------------ */

static struct cell table_of(const struct cell in[3], unsigned table)
{
	struct cell c = {.known = true};
	unsigned seen = 0, i, k;

	/* only those that the result depends on */
	for (i = 0; i < 3; i++)
		for (k = 0; k < 8; k++)
			if ((table >> k & 1) != (table >> (k ^ (4u >> i)) & 1)) {
				c = cell_merge(c, in[i]);
				break;
			}

	/* every value that the unknown ones may have */
	for (i = 0; i < 8; i++)
		if ((!in[0].known || in[0].v == (i >> 2 & 1)) && (!in[1].known || in[1].v == (i >> 1 & 1)) &&
		    (!in[2].known || in[2].v == (i & 1)))
			seen |= 1u << (table >> i & 1);
	c.known = seen == 1 || seen == 2;
	c.v = seen == 2;
	return c;
}

static bool run_plop3(struct cell_state *s, const struct word *w, bool uniform)
{
	unsigned first = (unsigned)(bits(w, 64, 3) | bits(w, 72, 5) << 3), second = (unsigned)bits(w, 16, 8);
	struct cell in[3] = {
		cell_predicate(s, uniform, (unsigned)bits(w, 87, 4)),
		cell_predicate(s, uniform, (unsigned)bits(w, 77, 4)),
		cell_predicate(s, uniform || bits(w, 67, 1), (unsigned)bits(w, 68, 4)),
	};

	write_pred(s, uniform, (unsigned)bits(w, 81, 3), table_of(in, first));
	write_pred(s, uniform, (unsigned)bits(w, 84, 3), table_of(in, second));
	return true;
}

/* Predicates into the bits of a register, and back. */
static bool run_p2r(struct cell_state *s, const struct word *w)
{
	uint32_t mask = (uint32_t)bits(w, 32, 32), v;
	struct cell c = read_reg(s, false, reg_at(w, 24));
	unsigned i;

	if (modifiers(w) || mask >> 7)
		return false;
	v = c.v & ~mask;
	c.raw = false;
	for (i = 0; i < 7; i++) {
		if (!(mask >> i & 1))
			continue;
		c = cell_merge(c, s->p[i]);
		v |= (s->p[i].v & 1) << i;
	}
	c.v = v;
	write_reg(s, false, reg_at(w, 16), c);
	return true;
}

static bool run_r2p(struct cell_state *s, const struct word *w)
{
	uint32_t mask = (uint32_t)bits(w, 32, 32);
	struct cell c = read_reg(s, false, reg_at(w, 24)), one;
	unsigned i;

	if (modifiers(w) || mask >> 7)
		return false;
	for (i = 0; i < 7; i++) {
		one = c;
		one.v = c.v >> i;
		if (mask >> i & 1)
			write_pred(s, false, i, one);
	}
	return true;
}

/* --- selections ------------------------------------------------------------------------------------ */

static struct cell choose(struct cell if_true, struct cell if_false, struct cell p)
{
	struct cell c = p.known ? (p.v ? if_true : if_false) : cell_merge(if_true, if_false), all;

	if (!p.known)
		c.known = false;
	/* the choice itself tells something, too */
	all = cell_merge(c, p);
	all.v = c.v;
	all.known = c.known;
	all.base = c.base;
	all.compare = c.compare ? c.compare : p.compare;
	if (p.n == 0) {
		all.raw = c.raw;
		all.n = c.n;
	}
	return all;
}

static bool run_sel(struct cell_run *run, struct cell_state *s, const struct word *w, bool uniform, bool real)
{
	struct sass_source from;
	struct cell a = read_reg(s, uniform, uniform ? ureg_at(w, 24, run->t->arch) : reg_at(w, 24));

	if (!slot(run, w, uniform, real, &from) || bits(w, 72, 15) || (real && bits(w, 9, 3) == 1 && bits(w, 62, 2)))
		return false;
	write_reg(s, uniform, uniform ? ureg_at(w, 16, run->t->arch) : reg_at(w, 16),
		  choose(a, source(run, s, &from, 0), cell_predicate(s, uniform, (unsigned)bits(w, 87, 4))));
	return true;
}

/* Minimum and maximum, by a predicate. */
static bool run_minmax(struct cell_run *run, struct cell_state *s, const struct word *w)
{
	bool is_vector = bits(w, 0, 9) == 0x048;
	bool is_signed = bits(w, is_vector ? 72 : 73, 1);
	struct cell a = read_reg(s, false, reg_at(w, 24)), b, p = cell_predicate(s, false, (unsigned)bits(w, 87, 4)), c;
	struct sass_source from;
	bool less;

	if (!slot(run, w, false, false, &from) || (is_vector ? bits(w, 73, 8) : bits(w, 72, 1) || bits(w, 74, 7)) ||
	    !p.known)
		return false;
	b = source(run, s, &from, 0);
	less = is_signed ? (int32_t)a.v < (int32_t)b.v : a.v < b.v;
	c = cell_merge(without_base(a), without_base(b));
	c.v = less == (p.v != 0) ? a.v : b.v;
	write_reg(s, false, reg_at(w, 16), c);
	return true;
}

/* Bytes of two registers, chosen one by one; the fourth bit repeats the sign. */
static bool run_prmt(struct cell_run *run, struct cell_state *s, const struct word *w, bool uniform)
{
	struct sass_source from;
	unsigned form = (unsigned)bits(w, 9, 3), i, k, used[2] = {0, 0};
	int at_a = uniform ? ureg_at(w, 24, run->t->arch) : reg_at(w, 24);
	int at_c = uniform ? ureg_at(w, 64, run->t->arch) : reg_at(w, 64);
	struct cell a = read_reg(s, uniform, at_a), c = read_reg(s, uniform, at_c), sel, in[2], out;
	uint64_t both;
	uint32_t v = 0;

	if ((form != 1 && form != 4 && form != 6) || modifiers(w) || !slot(run, w, uniform, false, &from))
		return false;
	sel = source(run, s, &from, 0);
	if (!sel.known)
		return false;
	both = (uint64_t)c.v << 32 | a.v;
	for (i = 0; i < 4; i++) {
		k = sel.v >> (4 * i) & 7;
		used[k / 4] |= 1u << k % 4;
		v |= (sel.v >> (4 * i + 3) & 1 ? (both >> (8 * k + 7) & 1 ? 0xffu : 0) : (uint32_t)(both >> 8 * k & 0xff))
		     << 8 * i;
	}
	in[0] = a;
	in[1] = c;
	for (i = 0; i < 2; i++)
		in[i] = !used[i]		? cell_number(0)
			: used[i] == 3		? part_of(in[i], 0, 2)
			: used[i] == 12		? part_of(in[i], 2, 2)
			: (used[i] & (used[i] - 1)) == 0 ? part_of(in[i], (unsigned)__builtin_ctz(used[i]), 1)
							 : in[i];
	out = cell_merge(in[0], in[1]);
	out.v = v;
	write_reg(s, uniform, uniform ? ureg_at(w, 16, run->t->arch) : reg_at(w, 16), out);
	return true;
}

/* --- conversions ----------------------------------------------------------------------------------- */

static float half_value(uint16_t h)
{
	unsigned exponent = h >> 10 & 31, fraction = h & 1023;
	float v = exponent == 31 ? (fraction ? NAN : INFINITY)
		  : exponent	 ? ldexpf((float)(1024 + fraction), (int)exponent - 25)
				 : ldexpf((float)fraction, -24);

	return h >> 15 ? -v : v;
}

static uint32_t float_bits(float f)
{
	uint32_t v;

	memcpy(&v, &f, sizeof(v));
	return v;
}

/* HADD2.F32: half a register as a number of 32 bits, plus minus zero. */
static bool run_widen(struct cell_state *s, const struct word *w)
{
	struct cell c = read_reg(s, false, reg_at(w, 32));
	unsigned half = (unsigned)bits(w, 60, 2);

	if (bits(w, 0, 12) != 0x230 || bits(w, 40, 20) || half < 2 || bits(w, 62, 1))
		return false;
	/* on 7.5 it is the first operand, and the second one is minus zero */
	if (reg_at(w, 32) < 0 && bits(w, 63, 1) && (modifiers(w) & ~0xcu) == 0x40) {
		c = read_reg(s, false, reg_at(w, 24));
		half = modifiers(w) >> 2 & 3;
		if (half < 2)
			return false;
	} else if (modifiers(w) != 0x41 || bits(w, 24, 8) != R_NONE || bits(w, 63, 1)) {
		return false;
	}
	half -= 2;
	c = part_of(c, half * 2, 2);
	c.v = float_bits(half_value((uint16_t)(c.v >> 16 * half)));
	write_reg(s, false, reg_at(w, 16), c);
	return true;
}

/* The conversions of integer division; the reciprocal is approximate, which its code expects. */
static bool run_convert(struct cell_run *run, struct cell_state *s, const struct word *w)
{
	uint32_t op = (uint32_t)bits(w, 0, 9), mods = modifiers(w);
	bool wide_in = op == 0x112, wide_out = op == 0x111 || op == 0x110;
	struct sass_source from;
	int to = reg_at(w, 16);
	struct cell c, hi;
	uint64_t in, out;
	double d;

	if (bits(w, 24, 8) || bits(w, 64, 8) || !slot(run, w, false, false, &from))
		return false;
	c = source(run, s, &from, 0);
	hi = source(run, s, &from, 1);
	in = c.v;
	if (wide_in) {
		in |= (uint64_t)hi.v << 32;
		c = cell_merge(c, hi);
	}
	c.raw = false;
	c.base = 0;
	if (op == 0x106 && (mods == 0x2090 || mods == 0x2094)) {	/* I2F.U32.RP, I2F.RP */
		double v = mods == 0x2090 ? (double)(uint32_t)in : (double)(int32_t)in;
		float f = (float)v;

		out = float_bits((double)f < v ? nextafterf(f, INFINITY) : f);
	} else if (op == 0x112 && mods == 0x3090) {	/* I2F.U64.RP */
		float f = (float)in;

		out = float_bits((long double)f < (long double)in ? nextafterf(f, INFINITY) : f);
	} else if (op == 0x108 && mods == 0x10) {	/* MUFU.RCP */
		out = float_bits(1.0f / (float)as_float((uint32_t)in));
	} else if (op == 0x105 && mods == 0x21f0) {	/* F2I.FTZ.U32.TRUNC.NTZ */
		d = flushed(as_float((uint32_t)in), true);
		out = !(d > 0) ? 0 : d >= 0x1p32 ? 0xffffffffu : (uint32_t)d;
	} else if (op == 0x111 && mods == 0x20d8) {	/* F2I.U64.TRUNC */
		d = as_float((uint32_t)in);
		out = !(d > 0) ? 0 : d >= 0x1p64 ? ~0ull : (uint64_t)d;
	} else if (op == 0x110 && mods == 0x2018) {	/* F2F.F64.F32 */
		d = as_float((uint32_t)in);
		memcpy(&out, &d, sizeof(out));
	} else {
		return false;
	}
	c.v = (uint32_t)out;
	write_reg(s, false, to, c);
	c.v = (uint32_t)(out >> 32);
	if (wide_out && to >= 0)
		write_reg(s, false, to + 1, c);
	return true;
}

static bool run_abs(struct cell_run *run, struct cell_state *s, const struct word *w)
{
	struct sass_source from;
	struct cell c;

	if (!slot(run, w, false, false, &from) || modifiers(w) || bits(w, 24, 8) || bits(w, 64, 8))
		return false;
	c = without_base(source(run, s, &from, 0));
	c.v = (int32_t)c.v < 0 ? 0 - c.v : c.v;
	c.raw = false;
	write_reg(s, false, reg_at(w, 16), c);
	return true;
}

/* --- integers -------------------------------------------------------------------------------------- */

static bool special(const struct cell_run *run, unsigned which, struct cell *c)
{
	const struct sass_thread *t = run->t;

	if (which == SASS_LANEID)
		*c = cell_number(t->id);
	else if (which >= SASS_TID && which < SASS_TID + 3)
		*c = cell_number(t->thread[which - SASS_TID]);
	else if (which >= SASS_CTAID && which < SASS_CTAID + 3)
		*c = cell_number(t->block[which - SASS_CTAID]);
	else if (which == SASS_ZERO)
		*c = cell_number(0);
	else
		*c = cell_unknown();
	return true;
}

/* What a shift or a mask leaves of a value that was loaded. */
static struct cell narrowed(const struct sass_math *m, struct cell a, struct cell b)
{
	if (m->op == SASS_LOGIC && m->table == 0xc0 && b.known && (b.v == 0xffff || b.v == 0xffff0000))
		return part_of(a, b.v == 0xffff ? 0 : 2, 2);
	if (m->op == SASS_LOGIC && m->table == 0xc0 && b.known && b.v == 0xff)
		return part_of(a, 0, 1);
	if (m->op == SASS_MAD && !m->c_64 && !m->high && b.known && b.v == 0x10000)
		return part_of(a, 0, 2);
	if (m->op == SASS_SHIFT && b.known && b.v == 16 && !m->right)
		return part_of(a, 0, 2);
	a.raw = false;
	return a;
}

/* Addresses are sums; what is multiplied or shifted is an index. */
static uint16_t base_of(const struct sass_math *m, const struct cell in[3])
{
	struct cell a = in[0], b = in[1], c = in[2];

	if (m->op == SASS_MAD)
		a.base = b.known && b.v == 1 ? a.base : 0, b.base = 0;
	else if (m->op == SASS_LEA)
		a.base = c.base = 0;
	else if (m->op == SASS_COPY)
		a.base = c.base = 0;
	else if (m->op != SASS_ADD && m->op != SASS_LOGIC)
		return 0;
	return cell_merge(cell_merge(a, b), c).base;
}

static struct cell math_source(struct cell_run *run, struct cell_state *s, const struct sass_source *from, bool pair,
			       uint64_t *v)
{
	struct cell lo = source(run, s, from, 0), hi;

	*v = lo.v;
	if (!pair)
		return lo;
	hi = source(run, s, from, 1);
	*v |= (uint64_t)hi.v << 32;
	return cell_merge(lo, hi);
}

static bool run_math(struct cell_run *run, struct cell_state *s, const struct sass_math *m, struct cell *result)
{
	struct sass_values in = {.carry = 0};
	struct cell from[3], all, carry;
	unsigned over, i;
	uint64_t value = 0;

	if (m->op == SASS_SPECIAL) {
		special(run, m->shift, result);
		write_reg(s, m->uniform, m->dest, *result);
		return true;
	}
	from[0] = m->op == SASS_COPY ? cell_number(0) : math_source(run, s, &m->a, m->ab_64, &in.a);
	from[1] = math_source(run, s, &m->b, m->ab_64, &in.b);
	from[2] = math_source(run, s, &m->c, m->c_64, &in.c);
	all = cell_merge(cell_merge(narrowed(m, from[0], from[1]), from[1]), from[2]);
	for (i = 0; m->extended && i < 2; i++) {
		carry = cell_predicate(s, m->uniform, (unsigned)m->in[i] | (m->in_not[i] ? 8u : 0u));
		in.carry += carry.v;
		/* a carry between the halves of an address is no other value */
		all.known = all.known && carry.known;
		if (carry.n)
			all = cell_merge(all, without_base(carry));
	}
	all.base = base_of(m, from);
	all.compare = from[0].compare ? from[0].compare : from[1].compare ? from[1].compare : from[2].compare;
	if (!sass_compute(m, &in, &value, &over))
		all.known = false;
	/* two carries that only one predicate takes are lost */
	if (over > 1 && (m->out[0] == SASS_PT) != (m->out[1] == SASS_PT))
		all.known = false;
	all.v = (uint32_t)value;
	if (m->op == SASS_COPY && !m->ab_64)
		all = from[1];
	write_reg(s, m->uniform, m->dest, all);
	*result = all;
	result->v = (uint32_t)value;
	if (m->n == 2 && m->dest >= 0) {
		all.v = (uint32_t)(value >> 32);
		write_reg(s, m->uniform, m->dest + 1, all);
	}
	all.base = 0;
	all.v = over >= 1;
	if (m->out[0] != SASS_PT)
		write_pred(s, m->uniform, (unsigned)m->out[0], all);
	all.v = m->out[0] == SASS_PT ? over >= 1 : over >= 2;
	if (m->out[1] != SASS_PT)
		write_pred(s, m->uniform, (unsigned)m->out[1], all);
	return true;
}

/* IMAD.HI: the upper half of a product, plus a number of 64 bits. */
static bool run_mad_high(struct cell_run *run, struct cell_state *s, const struct word *w)
{
	unsigned form = (unsigned)bits(w, 9, 3);
	bool is_signed = bits(w, 73, 1);
	struct cell a = read_reg(s, false, reg_at(w, 24)), b, lo, hi, all;
	int c = reg_at(w, 64);
	struct sass_source from;
	uint64_t product, sum;

	if ((form != 1 && form < 4) || form == 7 || bits(w, 72, 1) || bits(w, 74, 7) || bits(w, 84, 3) ||
	    bits(w, 87, 4) != 15 || !slot(run, w, false, false, &from))
		return false;
	b = source(run, s, &from, 0);
	lo = read_reg(s, false, c);
	hi = read_reg(s, false, c < 0 ? -1 : c + 1);
	all = without_base(cell_merge(cell_merge(a, b), cell_merge(lo, hi)));
	product = is_signed ? (uint64_t)((int64_t)(int32_t)a.v * (int32_t)b.v) : (uint64_t)a.v * b.v;
	sum = product + ((uint64_t)hi.v << 32 | lo.v);
	all.v = (uint32_t)(sum >> 32);
	write_reg(s, false, reg_at(w, 16), all);
	/* how a signed sum carries is not known */
	all.v = sum < product;
	all.known = all.known && !is_signed;
	write_pred(s, false, (unsigned)bits(w, 81, 3), all);
	return true;
}

/* LOP3 may also say whether anything is left. */
static bool run_lop3(struct cell_run *run, struct cell_state *s, const uint8_t *code, bool uniform)
{
	struct word w = word_of(code);
	uint8_t plain[SASS_BYTES];
	unsigned p = (unsigned)bits(&w, 81, 3);
	struct sass_math m;
	struct cell c;

	if (bits(&w, 87, 4) != 15 || bits(&w, 80, 1))
		return false;
	w.hi |= 7ull << (81 - 64);
	w.lo = htole64(w.lo);
	w.hi = htole64(w.hi);
	memcpy(plain, &w, sizeof(plain));
	if (!sass_math(plain, run->t->arch, &m) || !run_math(run, s, &m, &c))
		return false;
	c.v = c.v != 0;
	write_pred(s, uniform, p, c);
	return true;
}

/* --- moves ----------------------------------------------------------------------------------------- */

static struct cell moved(const struct cell_run *run, const struct cell_state *s, const struct sass_move *m, unsigned i)
{
	struct cell index;

	switch (m->from) {
	case SASS_FROM_NUMBER:
		return i ? cell_unknown() : cell_number(m->number);
	case SASS_FROM_REG:
	case SASS_FROM_UREG:
		return read_reg(s, m->from == SASS_FROM_UREG, m->reg < 0 ? -1 : m->reg + (int)i);
	case SASS_FROM_BANK:
		index = read_reg(s, m->reg_uniform, m->reg);
		return index.known ? constant(run, m->bank, (uint64_t)m->offset + index.v + i * 4ull) : cell_unknown();
	default:
		return cell_unknown();
	}
}

static void run_move(const struct cell_run *run, struct cell_state *s, const struct sass_move *m)
{
	struct cell value[8];
	unsigned i, n = m->n < 8 ? m->n : 8;

	for (i = 0; i < n; i++)		/* all are read before any is written */
		value[i] = moved(run, s, m, i);
	for (i = 0; i < n; i++)
		write_reg(s, m->uniform, m->dest < 0 ? -1 : m->dest + (int)i, value[i]);
}

/* The last parameter may be shorter than a word. */
static struct cell small_parameter(const struct cell_run *run, unsigned bank, uint64_t off, unsigned n)
{
	const struct sass_thread *t = run->t;
	uint64_t at = off - t->params_offset;
	struct cell c;

	if (bank == 0 && t->params_offset && off >= t->params_offset) {
		if (!t->params.data || at > t->params.len || n > t->params.len - at)
			return cell_unknown();
		return cell_number(t->params.data[at] | (n == 2 ? (uint32_t)t->params.data[at + 1] << 8 : 0));
	}
	c = constant(run, bank, off & ~3ull);
	c.v = c.v >> 8 * (off % 4) & (n == 1 ? 0xff : 0xffff);
	return c;
}

/* LDC and ULDC of one or two bytes. */
static bool run_small_constant(const struct cell_run *run, struct cell_state *s, const struct word *w, bool uniform)
{
	unsigned size = (unsigned)bits(w, 73, 3), n = size < 2 ? 1 : 2;
	struct cell index = cell_number(0), c;
	uint64_t off = bits(w, 38, 15);

	if (size > 3 || modifiers(w) & ~0xeu || bits(w, 53, 1) || bits(w, 32, 6) || bits(w, 59, 5) || bits(w, 64, 8))
		return false;
	if (!uniform)
		index = read_reg(s, false, reg_at(w, 24));
	if (!index.known)
		return false;
	off += index.v;
	if (off % 4 + n > 4)
		return false;
	c = small_parameter(run, (unsigned)bits(w, 54, 5), off, n);
	if (size == 1)
		c.v = (uint32_t)(int8_t)c.v;
	else if (size == 3)
		c.v = (uint32_t)(int16_t)c.v;
	c.base = 0;
	write_reg(s, uniform, uniform ? ureg_at(w, 16, run->t->arch) : reg_at(w, 16), c);
	return true;
}

/* ULDC with a uniform register in the address. */
static bool run_uldc(const struct cell_run *run, struct cell_state *s, const struct word *w)
{
	uint32_t mods = modifiers(w);
	struct cell index = read_reg(s, true, ureg_at(w, 24, run->t->arch));
	uint64_t off = bits(w, 38, 15);
	int to = ureg_at(w, 16, run->t->arch);
	unsigned i;

	if (bits(w, 0, 12) != 0xabb || run->t->arch >= 100 || (mods != 8 && mods != 10) || bits(w, 53, 1) ||
	    bits(w, 32, 6) || bits(w, 59, 5) || bits(w, 64, 8) || !bits(w, 91, 1) || !index.known)
		return false;
	for (i = 0; i < (mods == 8 ? 1u : 2u); i++)
		write_reg(s, true, to < 0 ? -1 : to + (int)i,
			  constant(run, (unsigned)bits(w, 54, 5), (uint64_t)(uint32_t)(off + index.v) + 4 * i));
	return true;
}

/* --- memory ---------------------------------------------------------------------------------------- */

struct cell cell_address(const struct cell_state *s, const struct sass *a, uint64_t *address)
{
	struct cell lo = read_reg(s, false, a->reg), hi = read_reg(s, false, a->reg < 0 ? -1 : a->reg + 1);
	struct cell ulo = read_reg(s, true, a->ureg), uhi = read_reg(s, true, a->ureg < 0 ? -1 : a->ureg + 1), all;
	uint64_t reg = lo.v, ureg = ulo.v;

	if (a->reg_64 && a->reg >= 0) {
		reg |= (uint64_t)hi.v << 32;
		lo = cell_merge(lo, hi);
	}
	if (a->ureg_64 && a->ureg >= 0) {
		ureg |= (uint64_t)uhi.v << 32;
		ulo = cell_merge(ulo, uhi);
	}
	all = cell_merge(lo, ulo);
	*address = sass_sum(a, reg, ureg);
	return all;
}

/* The newest of the thread's own stores that the bytes overlap. */
static const struct cell_store *stored(const struct cell_state *s, enum sass_space space, uint64_t at, unsigned n)
{
	size_t i;

	for (i = s->n_stores; i-- > 0;)
		if (s->store[i].space == space && at < s->store[i].address + s->store[i].n && s->store[i].address < at + n)
			return &s->store[i];
	return NULL;
}

static struct cell load_word(struct cell_run *run, struct cell_state *s, enum sass_space space, uint64_t at, unsigned n,
			     uint16_t base)
{
	const struct cell_store *mine = stored(s, space, at, n);
	struct cell c = {.at = at, .n = (uint8_t)n, .raw = true, .at_base = base};
	uint8_t bytes[4] = {0};

	if (mine)
		return mine->address == at && mine->n == n ? mine->value : cell_unknown();
	if (space != SASS_GLOBAL)
		return cell_unknown();
	if (run->t->memory && run->t->memory(run->t->arg, at, bytes, n)) {
		run->loaded = c.known = true;
		c.v = bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
	} else {
		run->missing = true;
	}
	return c;
}

static uint32_t extended(uint32_t v, unsigned type)
{
	return type == 1 ? (uint32_t)(int8_t)v : type == 3 ? (uint32_t)(int16_t)v : v;
}

static void run_load(struct cell_run *run, struct cell_state *s, const struct sass *a, const struct word *w)
{
	/* a generic address is taken for global memory: the dump has nothing at others */
	enum sass_space space = a->space == SASS_GENERIC ? SASS_GLOBAL : a->space;
	unsigned i, n = a->width < 4 ? a->width : 4;
	struct cell at, c;
	uint64_t address;

	at = cell_address(s, a, &address);
	for (i = 0; a->dest >= 0 && i < a->dest_regs; i++) {
		c = at.known && (space == SASS_GLOBAL || space == SASS_LOCAL)
			    ? load_word(run, s, space, address + 4ull * i, n, at.base)
			    : cell_unknown();
		if (a->width < 4)
			c.v = extended(c.v, (unsigned)bits(w, 73, 3));
		write_reg(s, false, a->dest + (int)i, c);
	}
}

/* The dump has what was stored to global memory long ago; to local memory only we have it. */
static bool drop_store(struct cell_state *s)
{
	size_t i = 0;

	while (i < s->n_stores && s->store[i].space != SASS_GLOBAL)
		i++;
	if (i == s->n_stores)
		return false;
	s->n_stores--;
	memmove(&s->store[i], &s->store[i + 1], (s->n_stores - i) * sizeof(s->store[0]));
	return true;
}

/* What is written to an unknown place may be anywhere. */
static bool run_store(struct cell_state *s, const struct sass *a, const struct word *w)
{
	enum sass_space space = a->space == SASS_GENERIC ? SASS_GLOBAL : a->space;
	unsigned i, n = a->width < 4 ? a->width : 4, words = a->width > 4 ? a->width / 4 : 1;
	/* the value is at 32 where the address has 24 bits from 40 on, else at 64 */
	int reg = bits(w, 9, 3) == 4 ? reg_at(w, 32) : reg_at(w, 64);
	struct cell at, c;
	uint64_t address;

	if (space == SASS_SHARED)
		return true;
	at = cell_address(s, a, &address);
	if (!at.known)
		return space == SASS_GLOBAL;
	for (i = 0; i < words; i++) {
		if (s->n_stores == CELL_STORES && !drop_store(s))
			return false;
		c = bits(w, 9, 3) == 4 ? read_reg(s, false, reg < 0 ? -1 : reg + (int)i) : cell_unknown();
		if (n < 4) {
			c.v &= n == 1 ? 0xff : 0xffff;
			c = part_of(c, 0, n);
		}
		s->store[s->n_stores++] = (struct cell_store){
			.address = address + 4ull * i, .space = space, .n = n, .value = c};
	}
	return true;
}

/* --- one instruction ------------------------------------------------------------------------------- */

/* True when it was executed. */
static bool run_known(struct cell_run *run, struct cell_state *s, const uint8_t *code)
{
	struct word w = word_of(code);

	switch (bits(&w, 0, 9)) {
	case 0x003:
		return bits(&w, 9, 3) == 4 && run_p2r(s, &w);
	case 0x004:
		return bits(&w, 9, 3) == 4 && run_r2p(s, &w);
	case 0x005:	/* CS2R of zero */
		if (modifiers(&w) != 0x1ff && modifiers(&w) != 0x0ff)
			return false;
		write_reg(s, false, reg_at(&w, 16), cell_number(0));
		if (modifiers(&w) == 0x1ff)
			write_reg(s, false, reg_at(&w, 16) < 0 ? -1 : reg_at(&w, 16) + 1, cell_number(0));
		return true;
	case 0x007:
		return run_sel(run, s, &w, false, false);
	case 0x087:
		return run_sel(run, s, &w, true, false);
	case 0x008:
		return run_sel(run, s, &w, false, true);
	case 0x00b:
		return run_fsetp(run, s, &w, false);
	case 0x02a:
		return run_fsetp(run, s, &w, true);
	case 0x00c:
		return run_isetp(run, s, &w, false);
	case 0x08c:
		return run_isetp(run, s, &w, true);
	case 0x012:
		return run_lop3(run, s, code, false);
	case 0x092:
		return run_lop3(run, s, code, true);
	case 0x013:
		return run_abs(run, s, &w);
	case 0x016:
		return run_prmt(run, s, &w, false);
	case 0x096:
		return run_prmt(run, s, &w, true);
	case 0x017:
	case 0x048:
		return run_minmax(run, s, &w);
	case 0x01c:
		return run_plop3(s, &w, false);
	case 0x09c:
		return run_plop3(s, &w, true);
	case 0x027:
		return run_mad_high(run, s, &w);
	case 0x030:
		return run_widen(s, &w);
	case 0x105: case 0x106: case 0x108: case 0x110: case 0x111: case 0x112:
		return run_convert(run, s, &w);
	case 0x0b9:
		return bits(&w, 0, 12) == 0xab9 && run_small_constant(run, s, &w, true);
	case 0x0bb:
		return run_uldc(run, s, &w);
	case 0x182:
		return bits(&w, 0, 12) == 0xb82 && run_small_constant(run, s, &w, false);
	default:
		return false;
	}
}

static bool run_plain(struct cell_run *run, struct cell_state *s, const uint8_t *code)
{
	struct sass_move m;
	struct sass_math math;
	struct cell result;

	sass_move(code, run->t->arch, &m);
	if (m.from >= SASS_FROM_NUMBER && m.from <= SASS_FROM_BANK) {
		run_move(run, s, &m);
		return true;
	}
	return sass_math(code, run->t->arch, &math) && run_math(run, s, &math, &result);
}

bool cell_execute(struct cell_run *run, struct cell_state *s, const uint8_t *code)
{
	uint8_t plain[SASS_BYTES];
	struct word w;
	struct sass a;

	/* without the guard, which holds */
	memcpy(plain, code, sizeof(plain));
	plain[1] = (uint8_t)((plain[1] & 0x0f) | ALWAYS << 4);
	w = word_of(plain);
	if (sass_decode(plain, run->t->arch, &a)) {
		if (a.kind == SASS_LOAD && a.name[0] == 'L' && a.name[1] == 'D' && strcmp(a.name, "LDGSTS") &&
		    strcmp(a.name, "LDSM") && a.width <= 16) {
			run_load(run, s, &a, &w);
			return true;
		}
		if (a.kind == SASS_STORE)
			return a.width <= 16 ? run_store(s, &a, &w) : false;
		return forget(run, s, plain);
	}
	return run_plain(run, s, plain) || run_known(run, s, plain) || forget(run, s, plain);
}

/* What a register has when it is not known whether it was written. */
static struct cell either(struct cell before, struct cell after, struct cell guard)
{
	struct cell c = cell_merge(cell_merge(before, after), guard);

	c.base = before.base == after.base ? before.base : CELL_NO_BASE;
	c.known = before.known && after.known && before.v == after.v;
	c.v = after.v;
	c.compare = after.compare;
	return c;
}

static void either_of(struct cell *now, const struct cell *before, size_t n, struct cell guard)
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(&now[i], &before[i], sizeof(now[i])) != 0)
			now[i] = either(before[i], now[i], guard);
}

bool cell_perhaps(struct cell_run *run, struct cell_state *s, const uint8_t *code, struct cell guard)
{
	struct cell_state *before = xcalloc(1, sizeof(*before));
	bool ok;

	*before = *s;
	ok = cell_execute(run, s, code);
	guard.compare = 0;
	either_of(s->r, before->r, CELL_REGS, guard);
	either_of(s->u, before->u, CELL_REGS, guard);
	either_of(s->p, before->p, CELL_PREDS, guard);
	either_of(s->up, before->up, CELL_PREDS, guard);
	/* where older ones were dropped, a few too many */
	for (size_t i = before->n_stores < CELL_STORES - 8 ? before->n_stores : CELL_STORES - 8; i < s->n_stores; i++)
		s->store[i].value = cell_unknown();
	free(before);
	return ok;
}
