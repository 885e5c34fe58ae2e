/* SPDX-License-Identifier: Apache-2.0
 * Instructions that decide (see sass_exec.h): comparisons, predicates, selections.
 */
#include "find/fault/sass_exec.h"

#include <math.h>
#include <string.h>

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
	cell_set_predicate(s, uniform, (unsigned)bits(w, 81, 3), combined(op, result, other));
	cell_set_predicate(s, uniform, (unsigned)bits(w, 84, 3), combined(op, opposite, other));
}

bool run_isetp(struct cell_run *run, struct cell_state *s, const struct word *w, bool uniform)
{
	struct sass_source from;
	struct cell a = cell_reg(s, uniform, uniform ? ureg_at(w, 24, run->t->arch) : reg_at(w, 24)), b, result, low;
	bool is_signed = bits(w, 73, 1), less, equal;
	unsigned how = (unsigned)bits(w, 76, 3);
	const struct sass_compare *lower;
	struct sass_compare c;

	if (!cell_slot(run, w, uniform, false, &from) || bits(w, 74, 2) == 3)
		return false;
	b = cell_source(run, s, &from, 0);
	less = is_signed ? (int32_t)a.v < (int32_t)b.v : a.v < b.v;
	equal = a.v == b.v;
	c = (struct sass_compare){.how = (enum sass_how)how, .is_signed = is_signed, .known = a.known && b.known, .width = 4,
				  .a = a.v, .b = b.v, .n_a = a.n, .n_b = b.n};
	result = cell_merge(cell_without_base(a), cell_without_base(b));
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

bool run_fsetp(struct cell_run *run, struct cell_state *s, const struct word *w, bool wide)
{
	struct sass_source from;
	int reg = reg_at(w, 24);
	unsigned how = (unsigned)bits(w, 76, 4), form = (unsigned)bits(w, 9, 3);
	bool number = form == 2 || form == 4;
	struct cell a = cell_reg(s, false, reg), b, result, hi;
	struct sass_compare c = {.how = (enum sass_how)(how & 7), .real = true, .is_signed = true, .width = wide ? 8 : 4};
	double x, y;

	/* DSETP has other kinds at the end */
	if (!cell_slot(run, w, false, true, &from) || bits(w, 74, 2) == 3 || (wide && (bits(w, 80, 1) || how == 15)))
		return false;
	b = cell_source(run, s, &from, 0);
	c.a = a.v;
	c.b = b.v;
	if (wide) {
		hi = cell_reg(s, false, reg < 0 ? -1 : reg + 1);
		a = cell_merge(a, hi);
		c.a |= (uint64_t)hi.v << 32;
		/* a number is the upper half */
		hi = number ? b : cell_source(run, s, &from, 1);
		c.b = (uint64_t)hi.v << 32 | (number ? 0 : b.v);
		b = cell_merge(b, hi);
	}
	x = wide ? as_double(c.a) : cell_flushed(cell_float((uint32_t)c.a), bits(w, 80, 1));
	y = wide ? as_double(c.b) : cell_flushed(cell_float((uint32_t)c.b), bits(w, 80, 1));
	x = with_sign(x, bits(w, 72, 1), bits(w, 73, 1));
	y = number ? y : with_sign(y, bits(w, 63, 1), bits(w, 62, 1));
	result = cell_merge(cell_without_base(a), cell_without_base(b));
	result.v = real_holds(how, x, y);
	c.known = result.known;
	c.n_a = a.n;
	c.n_b = b.n;
	result.compare = keep_compare(run, &c);
	set_predicates(s, w, false, result);
	return true;
}

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

bool run_plop3(struct cell_state *s, const struct word *w, bool uniform)
{
	unsigned first = (unsigned)(bits(w, 64, 3) | bits(w, 72, 5) << 3), second = (unsigned)bits(w, 16, 8);
	struct cell in[3] = {
		cell_predicate(s, uniform, (unsigned)bits(w, 87, 4)),
		cell_predicate(s, uniform, (unsigned)bits(w, 77, 4)),
		cell_predicate(s, uniform || bits(w, 67, 1), (unsigned)bits(w, 68, 4)),
	};

	cell_set_predicate(s, uniform, (unsigned)bits(w, 81, 3), table_of(in, first));
	cell_set_predicate(s, uniform, (unsigned)bits(w, 84, 3), table_of(in, second));
	return true;
}

/* Predicates into the bits of a register, and back. */
bool run_p2r(struct cell_state *s, const struct word *w)
{
	uint32_t mask = (uint32_t)bits(w, 32, 32), v;
	struct cell c = cell_reg(s, false, reg_at(w, 24));
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
	cell_set_reg(s, false, reg_at(w, 16), c);
	return true;
}

bool run_r2p(struct cell_state *s, const struct word *w)
{
	uint32_t mask = (uint32_t)bits(w, 32, 32);
	struct cell c = cell_reg(s, false, reg_at(w, 24)), one;
	unsigned i;

	if (modifiers(w) || mask >> 7)
		return false;
	for (i = 0; i < 7; i++) {
		one = c;
		one.v = c.v >> i;
		if (mask >> i & 1)
			cell_set_predicate(s, false, i, one);
	}
	return true;
}

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
	all.words = p.known || if_true.words == if_false.words ? (p.known && !p.v ? if_false : if_true).words : 0;
	all.compare = c.compare ? c.compare : p.compare;
	if (p.n == 0) {
		all.raw = c.raw;
		all.n = c.n;
	}
	return all;
}

bool run_sel(struct cell_run *run, struct cell_state *s, const struct word *w, bool uniform, bool real)
{
	struct sass_source from;
	struct cell a = cell_reg(s, uniform, uniform ? ureg_at(w, 24, run->t->arch) : reg_at(w, 24));

	if (!cell_slot(run, w, uniform, real, &from) || bits(w, 72, 15) || (real && bits(w, 9, 3) == 1 && bits(w, 62, 2)))
		return false;
	cell_set_reg(s, uniform, uniform ? ureg_at(w, 16, run->t->arch) : reg_at(w, 16),
		     choose(a, cell_source(run, s, &from, 0), cell_predicate(s, uniform, (unsigned)bits(w, 87, 4))));
	return true;
}

/* Minimum and maximum, by a predicate. */
bool run_minmax(struct cell_run *run, struct cell_state *s, const struct word *w)
{
	bool is_vector = operation_of(w) == OP_VIMNMX;
	bool is_signed = bits(w, is_vector ? 72 : 73, 1);
	struct cell a = cell_reg(s, false, reg_at(w, 24)), b, p = cell_predicate(s, false, (unsigned)bits(w, 87, 4)), c;
	struct sass_source from;
	bool less;

	if (!cell_slot(run, w, false, false, &from) ||
	    (is_vector ? bits(w, 73, 8) : bits(w, 72, 1) || bits(w, 74, 7)) || !p.known)
		return false;
	b = cell_source(run, s, &from, 0);
	less = is_signed ? (int32_t)a.v < (int32_t)b.v : a.v < b.v;
	c = cell_merge(cell_without_base(a), cell_without_base(b));
	c.v = less == (p.v != 0) ? a.v : b.v;
	cell_set_reg(s, false, reg_at(w, 16), c);
	return true;
}

/* Bytes of two registers, chosen one by one; the fourth bit repeats the sign. */
bool run_prmt(struct cell_run *run, struct cell_state *s, const struct word *w, bool uniform)
{
	struct sass_source from;
	unsigned form = (unsigned)bits(w, 9, 3), i, k, used[2] = {0, 0};
	int at_a = uniform ? ureg_at(w, 24, run->t->arch) : reg_at(w, 24);
	int at_c = uniform ? ureg_at(w, 64, run->t->arch) : reg_at(w, 64);
	struct cell a = cell_reg(s, uniform, at_a), c = cell_reg(s, uniform, at_c), sel, in[2], out;
	uint64_t both;
	uint32_t v = 0;

	if ((form != 1 && form != 4 && form != 6) || modifiers(w) || !cell_slot(run, w, uniform, false, &from))
		return false;
	sel = cell_source(run, s, &from, 0);
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
			: used[i] == 3		? cell_part(in[i], 0, 2)
			: used[i] == 12		? cell_part(in[i], 2, 2)
			: (used[i] & (used[i] - 1)) == 0 ? cell_part(in[i], (unsigned)__builtin_ctz(used[i]), 1)
							 : in[i];
	out = cell_merge(in[0], in[1]);
	out.v = v;
	cell_set_reg(s, uniform, uniform ? ureg_at(w, 16, run->t->arch) : reg_at(w, 16), out);
	return true;
}
