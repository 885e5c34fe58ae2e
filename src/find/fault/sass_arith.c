/* SPDX-License-Identifier: Apache-2.0
 * Instructions that compute (see sass_exec.h): conversions and integers.
 */
#include "find/fault/sass_exec.h"

#include <math.h>
#include <string.h>

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
bool run_widen(struct cell_state *s, const struct word *w)
{
	struct cell c = cell_reg(s, false, reg_at(w, 32));
	unsigned half = (unsigned)bits(w, 60, 2);

	if (bits(w, 0, 12) != OPCODE(OP_HADD2, 1) || bits(w, 40, 20) || half < 2 || bits(w, 62, 1))
		return false;
	/* on 7.5 it is the first operand, and the second one is minus zero */
	if (reg_at(w, 32) < 0 && bits(w, 63, 1) && (modifiers(w) & ~0xcu) == 0x40) {
		c = cell_reg(s, false, reg_at(w, 24));
		half = modifiers(w) >> 2 & 3;
		if (half < 2)
			return false;
	} else if (modifiers(w) != 0x41 || bits(w, 24, 8) != R_NONE || bits(w, 63, 1)) {
		return false;
	}
	half -= 2;
	c = cell_part(c, half * 2, 2);
	c.v = float_bits(half_value((uint16_t)(c.v >> 16 * half)));
	cell_set_reg(s, false, reg_at(w, 16), c);
	return true;
}

/* The conversions of integer division; the reciprocal is approximate, which its code expects. */
bool run_convert(struct cell_run *run, struct cell_state *s, const struct word *w)
{
	uint32_t op = operation_of(w), mods = modifiers(w);
	bool wide_in = op == OP_I2F_64, wide_out = op == OP_F2I_64 || op == OP_F2F_64;
	struct sass_source from;
	int to = reg_at(w, 16);
	struct cell c, hi;
	uint64_t in, out;
	double d;

	if (bits(w, 24, 8) || bits(w, 64, 8) || !cell_slot(run, w, false, false, &from))
		return false;
	c = cell_source(run, s, &from, 0);
	hi = cell_source(run, s, &from, 1);
	in = c.v;
	if (wide_in) {
		in |= (uint64_t)hi.v << 32;
		c = cell_merge(c, hi);
	}
	c.raw = false;
	c.base = 0;
	if (op == OP_I2F && (mods == 0x2090 || mods == 0x2094)) {	/* I2F.U32.RP, I2F.RP */
		double v = mods == 0x2090 ? (double)(uint32_t)in : (double)(int32_t)in;
		float f = (float)v;

		out = float_bits((double)f < v ? nextafterf(f, INFINITY) : f);
	} else if (op == OP_I2F_64 && mods == 0x3090) {	/* I2F.U64.RP */
		float f = (float)in;

		out = float_bits((long double)f < (long double)in ? nextafterf(f, INFINITY) : f);
	} else if (op == OP_MUFU && mods == 0x10) {	/* MUFU.RCP */
		out = float_bits(1.0f / (float)cell_float((uint32_t)in));
	} else if (op == OP_F2I && mods == 0x21f0) {	/* F2I.FTZ.U32.TRUNC.NTZ */
		d = cell_flushed(cell_float((uint32_t)in), true);
		out = !(d > 0) ? 0 : d >= 0x1p32 ? 0xffffffffu : (uint32_t)d;
	} else if (op == OP_F2I_64 && mods == 0x20d8) {	/* F2I.U64.TRUNC */
		d = cell_float((uint32_t)in);
		out = !(d > 0) ? 0 : d >= 0x1p64 ? ~0ull : (uint64_t)d;
	} else if (op == OP_F2F_64 && mods == 0x2018) {	/* F2F.F64.F32 */
		d = cell_float((uint32_t)in);
		memcpy(&out, &d, sizeof(out));
	} else {
		return false;
	}
	c.v = (uint32_t)out;
	cell_set_reg(s, false, to, c);
	c.v = (uint32_t)(out >> 32);
	if (wide_out && to >= 0)
		cell_set_reg(s, false, to + 1, c);
	return true;
}

bool run_abs(struct cell_run *run, struct cell_state *s, const struct word *w)
{
	struct sass_source from;
	struct cell c;

	if (!cell_slot(run, w, false, false, &from) || modifiers(w) || bits(w, 24, 8) || bits(w, 64, 8))
		return false;
	c = cell_without_base(cell_source(run, s, &from, 0));
	c.v = (int32_t)c.v < 0 ? 0 - c.v : c.v;
	c.raw = false;
	cell_set_reg(s, false, reg_at(w, 16), c);
	return true;
}

static bool special(const struct cell_run *run, unsigned which, struct cell *c)
{
	const struct sass_thread *t = run->t;

	if (run->nobody && which != SASS_ZERO)
		*c = cell_unknown();
	else if (which == SASS_LANEID)
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
		return cell_part(a, b.v == 0xffff ? 0 : 2, 2);
	if (m->op == SASS_LOGIC && m->table == 0xc0 && b.known && b.v == 0xff)
		return cell_part(a, 0, 1);
	if (m->op == SASS_MAD && !m->c_64 && !m->high && b.known && b.v == 0x10000)
		return cell_part(a, 0, 2);
	if (m->op == SASS_SHIFT && b.known && b.v == 16 && !m->right)
		return cell_part(a, 0, 2);
	a.raw = false;
	return a;
}

/* Addresses are sums; what is multiplied, shifted or subtracted is an index. */
static void set_base(struct cell *of, const struct sass_math *m, const struct cell in[3])
{
	bool sum = m->op == SASS_ADD || m->op == SASS_LOGIC;
	bool a = sum || (m->op == SASS_MAD && in[1].known && in[1].v == 1);
	bool b = sum || m->op == SASS_LEA || m->op == SASS_COPY, c = sum || m->op == SASS_MAD;
	struct cell none = {.known = true};

	of->base = cell_merge(cell_merge(a ? in[0] : none, b ? in[1] : none), c ? in[2] : none).base;
	of->words = (a && !m->a.minus ? in[0].words : 0) | (b && !m->b.minus ? in[1].words : 0) |
		    (c && !m->c.minus ? in[2].words : 0);
}

static struct cell math_source(struct cell_run *run, struct cell_state *s, const struct sass_source *from, bool pair,
			       uint64_t *v)
{
	struct cell lo = cell_source(run, s, from, 0), hi, both;

	*v = lo.v;
	if (!pair)
		return lo;
	hi = cell_source(run, s, from, 1);
	*v |= (uint64_t)hi.v << 32;
	both = cell_merge(lo, hi);
	both.words = lo.words | hi.words;
	return both;
}

bool run_math(struct cell_run *run, struct cell_state *s, const struct sass_math *m, struct cell *result)
{
	struct sass_values in = {.carry = 0};
	struct cell from[3], all, carry;
	unsigned over, i;
	uint64_t value = 0;

	if (m->op == SASS_SPECIAL) {
		special(run, m->shift, result);
		cell_set_reg(s, m->uniform, m->dest, *result);
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
		all.checked |= carry.checked;
		all.differs |= carry.differs;
		if (carry.n)
			all = cell_merge(all, cell_without_base(carry));
	}
	set_base(&all, m, from);
	all.compare = from[0].compare ? from[0].compare : from[1].compare ? from[1].compare : from[2].compare;
	if (!sass_compute(m, &in, &value, &over))
		all.known = false;
	/* two carries that only one predicate takes are lost */
	if (over > 1 && (m->out[0] == SASS_PT) != (m->out[1] == SASS_PT))
		all.known = false;
	all.v = (uint32_t)value;
	if (m->op == SASS_COPY && !m->ab_64)
		all = from[1];
	cell_set_reg(s, m->uniform, m->dest, all);
	*result = all;
	result->v = (uint32_t)value;
	if (m->n == 2 && m->dest >= 0) {
		all.v = (uint32_t)(value >> 32);
		cell_set_reg(s, m->uniform, m->dest + 1, all);
	}
	all.base = 0;
	all.v = over >= 1;
	if (m->out[0] != SASS_PT)
		cell_set_predicate(s, m->uniform, (unsigned)m->out[0], all);
	all.v = m->out[0] == SASS_PT ? over >= 1 : over >= 2;
	if (m->out[1] != SASS_PT)
		cell_set_predicate(s, m->uniform, (unsigned)m->out[1], all);
	return true;
}

/* IMAD.HI: the upper half of a product, plus a number of 64 bits. */
bool run_mad_high(struct cell_run *run, struct cell_state *s, const struct word *w)
{
	unsigned form = (unsigned)bits(w, 9, 3);
	bool is_signed = bits(w, 73, 1);
	struct cell a = cell_reg(s, false, reg_at(w, 24)), b, lo, hi, all;
	int c = reg_at(w, 64);
	struct sass_source from;
	uint64_t product, sum;

	if ((form != 1 && form < 4) || form == 7 || bits(w, 72, 1) || bits(w, 74, 7) || bits(w, 84, 3) ||
	    bits(w, 87, 4) != 15 || !cell_slot(run, w, false, false, &from))
		return false;
	b = cell_source(run, s, &from, 0);
	lo = cell_reg(s, false, c);
	hi = cell_reg(s, false, c < 0 ? -1 : c + 1);
	all = cell_without_base(cell_merge(cell_merge(a, b), cell_merge(lo, hi)));
	product = is_signed ? (uint64_t)((int64_t)(int32_t)a.v * (int32_t)b.v) : (uint64_t)a.v * b.v;
	sum = product + ((uint64_t)hi.v << 32 | lo.v);
	all.v = (uint32_t)(sum >> 32);
	cell_set_reg(s, false, reg_at(w, 16), all);
	/* how a signed sum carries is not known */
	all.v = sum < product;
	all.known = all.known && !is_signed;
	cell_set_predicate(s, false, (unsigned)bits(w, 81, 3), all);
	return true;
}

/* LOP3 may also say whether anything is left. */
bool run_lop3(struct cell_run *run, struct cell_state *s, const uint8_t *code, bool uniform)
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
	cell_set_predicate(s, uniform, p, c);
	return true;
}
