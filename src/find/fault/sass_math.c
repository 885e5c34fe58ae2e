/* SPDX-License-Identifier: Apache-2.0
 * Decodes integer arithmetic (see sass_math.h). The layouts are the same from 7.5 to 12.1.
 *
 * Only exact forms are accepted: any unknown modifier makes the instruction unknown.
 */
#include "find/fault/sass_math.h"

#include "find/fault/sass_word.h"

#define NO_CARRY	0xf	/* !PT */

/* What the bits 72 to 90 mean; all of them belong to one of these. */
static bool mod(uint32_t mods, unsigned at)
{
	return mods >> (at - 72) & 1;
}

static unsigned mods_of(uint32_t mods, unsigned at, unsigned n)
{
	return mods >> (at - 72) & ((1u << n) - 1);
}

static struct sass_source reg_source(const struct sass_math *m, const struct word *w, unsigned at, unsigned arch)
{
	return m->uniform ? (struct sass_source){.from = SASS_FROM_UREG, .reg = ureg_at(w, at, arch)}
			  : (struct sass_source){.from = SASS_FROM_REG, .reg = reg_at(w, at)};
}

/* Six bits name a uniform register before 10.0; the others must not be set. */
static bool ureg_clean(const struct word *w, unsigned at, unsigned arch)
{
	return arch >= 100 || bits(w, at + 6, 2) == 0;
}

/* The operand of bits 32 to 63; the highest bit is a sign where it is not a number. */
static bool slot_source(struct sass_math *m, const struct word *w, unsigned arch, unsigned form, struct sass_source *s)
{
	struct sass_move move = {.reg = -1};
	struct word plain = *w;
	bool number = form == 2 || form == 4;

	if (!number)
		plain.lo &= ~(1ull << 63);
	if (m->uniform && form == 1) {
		*s = reg_source(m, w, 32, arch);
		s->minus = bits(w, 63, 1);
		return bits(&plain, 40, 24) == 0 && ureg_clean(w, 32, arch);
	}
	if (!sass_operand(&move, &plain, arch, form))
		return false;
	*s = (struct sass_source){.from = move.from, .number = move.number, .reg = move.reg, .bank = move.bank,
				  .offset = move.offset, .minus = !number && bits(w, 63, 1)};
	return move.from != SASS_FROM_UREG || ureg_clean(w, 32, arch);
}

/* a, b and c: two are registers in fixed places, one has the form that the opcode selects. */
static bool math_sources(struct sass_math *m, const struct word *w, unsigned arch)
{
	unsigned form = (unsigned)bits(w, 9, 3);
	bool c_in_slot = form == 2 || form == 3 || form == 7;
	bool more = m->uniform || form == 6 || form == 7;

	if (form == 0 || bits(w, 91, 1) != more || (m->uniform && form != 1 && form != 4))
		return false;
	m->a = reg_source(m, w, 24, arch);
	m->b = m->c = reg_source(m, w, 64, arch);
	if (m->uniform && (!ureg_clean(w, 24, arch) || !ureg_clean(w, 64, arch) || !ureg_clean(w, 16, arch)))
		return false;
	return slot_source(m, w, arch, form, c_in_slot ? &m->c : &m->b);
}

static bool slot_is_b(const struct word *w)
{
	unsigned form = (unsigned)bits(w, 9, 3);

	return form == 1 || (form >= 4 && form <= 6);
}

static bool is_zero(const struct sass_source *s)
{
	return s->from != SASS_FROM_NUMBER && s->from != SASS_FROM_BANK && s->reg < 0;
}

/* The predicates 81 to 83 and, next to the first carry, 87 to 90: in almost all forms. */
static void take_carry(struct sass_math *m, uint32_t mods)
{
	m->extended = mod(mods, 74);
	m->out[0] = (int)mods_of(mods, 81, 3);
	m->in[0] = (int)mods_of(mods, 87, 3);
	m->in_not[0] = mod(mods, 90);
}

static bool carry_fits(const struct sass_math *m, uint32_t mods)
{
	return m->extended || mods_of(mods, 87, 4) == NO_CARRY;
}

static bool take_add(struct sass_math *m, const struct word *w, uint32_t mods)
{
	take_carry(m, mods);
	m->a.minus = mod(mods, 72);
	m->c.minus = mod(mods, 75);
	m->in[1] = (int)mods_of(mods, 77, 3);
	m->in_not[1] = mod(mods, 80);
	m->out[1] = (int)mods_of(mods, 84, 3);
	return slot_is_b(w) && !mod(mods, 73) && !mod(mods, 76) && carry_fits(m, mods) &&
	       (m->extended || mods_of(mods, 77, 4) == NO_CARRY);
}

/* Sums of 64 bits, without carries. How an immediate is extended is not known: only small ones are accepted. */
static bool take_add64(struct sass_math *m, const struct word *w, uint32_t mods)
{
	m->n = 2;
	m->ab_64 = m->c_64 = true;
	return take_add(m, w, mods) && !m->extended && m->out[0] == SASS_PT && m->out[1] == SASS_PT &&
	       m->b.from != SASS_FROM_BANK && (m->b.from != SASS_FROM_NUMBER || m->b.number < 1u << 31);
}

static bool take_lea(struct sass_math *m, const struct word *w, uint32_t mods)
{
	bool from_sign = mod(mods, 73);

	m->op = SASS_LEA;
	take_carry(m, mods);
	m->is_signed = from_sign;
	m->high = mod(mods, 80);
	m->shift = mods_of(mods, 75, 5);
	return slot_is_b(w) && !mod(mods, 72) && mods_of(mods, 84, 3) == 0 &&
	       carry_fits(m, mods) && (m->high || !from_sign) && ((m->high && !from_sign) || is_zero(&m->c));
}

static bool take_mad(struct sass_math *m, const struct word *w, uint32_t mods, bool wide)
{
	m->op = SASS_MAD;
	m->n = wide ? 2 : 1;
	m->c_64 = wide;
	take_carry(m, mods);
	m->is_signed = mod(mods, 73);
	/* the sign of c is with it where it has the slot */
	if (slot_is_b(w))
		m->c.minus = mod(mods, 75);
	if (mod(mods, 72) || (mod(mods, 75) && !slot_is_b(w)) || mods_of(mods, 76, 5) || mods_of(mods, 84, 3) ||
	    !carry_fits(m, mods) || m->b.minus || (wide && m->c.minus))
		return false;
	/* overflow is only counted for unsigned sums */
	return wide ? !m->is_signed || (m->out[0] == SASS_PT && !m->extended) : m->out[0] == SASS_PT;
}

static bool take_mad_high(struct sass_math *m, const struct word *w, uint32_t mods)
{
	m->high = true;
	return take_mad(m, w, mods, false) && !m->extended && !m->c.minus && is_zero(&m->c);
}

static bool take_shift(struct sass_math *m, const struct word *w, uint32_t mods)
{
	unsigned type = mods_of(mods, 73, 2);	/* s64 u64 s32 u32 */

	m->op = SASS_SHIFT;
	m->is_signed = type == 0 || type == 2;
	m->shift_64 = type < 2;
	m->wrap = mod(mods, 75);
	m->right = mod(mods, 76);
	m->high = mod(mods, 80);
	return slot_is_b(w) && !m->b.minus && !mod(mods, 72) && mods_of(mods, 77, 3) == 0 &&
	       mods_of(mods, 81, 10) == 0;
}

static bool take_logic(struct sass_math *m, const struct word *w, uint32_t mods)
{
	m->op = SASS_LOGIC;
	m->table = (uint8_t)mods;
	return slot_is_b(w) && !m->b.minus && mods >> 8 == 0x78e;
}

/* Only two operands: the place of the third must be empty. */
static bool take_two(struct sass_math *m, const struct word *w, uint32_t mods, uint32_t want)
{
	m->c = (struct sass_source){.from = SASS_FROM_NUMBER};
	return slot_is_b(w) && mods == want && bits(w, 64, 8) == 0;
}

static bool take_copy(struct sass_math *m, const struct word *w, uint32_t mods, uint32_t want, unsigned n)
{
	m->op = SASS_COPY;
	m->n = n;
	m->ab_64 = n == 2;
	return bits(w, 9, 3) == 6 && bits(w, 24, 8) == 0 && take_two(m, w, mods, want) && !m->b.minus;
}

static bool take_special(struct sass_math *m, const struct word *w, uint32_t mods)
{
	m->op = SASS_SPECIAL;
	m->shift = mods;
	return mods < 0x100 && bits(w, 24, 8) == 0 && bits(w, 32, 32) == 0 && bits(w, 64, 8) == 0 && !bits(w, 91, 1);
}

static bool take_wide(struct sass_math *m, const struct word *w, unsigned arch, uint32_t mods)
{
	m->n = 2;
	m->ab_64 = m->c_64 = true;
	return arch >= 120 && (m->b.from == SASS_FROM_REG || m->b.from == SASS_FROM_UREG) &&
	       take_two(m, w, mods, 0x78e02);
}

static bool take_vector(struct sass_math *m, const struct word *w, unsigned arch, uint32_t mods)
{
	switch (operation_of(w)) {
	case OP_MOV:
		return arch >= 120 && take_copy(m, w, mods, 0x10f, 2);
	case OP_IADD3:
		return take_add(m, w, mods);
	case OP_LEA:
		return take_lea(m, w, mods);
	case OP_LOP3:
		return take_logic(m, w, mods);
	case OP_SHF:
		return take_shift(m, w, mods);
	case OP_IMAD:
		return take_mad(m, w, mods, false);
	case OP_IMAD_WIDE:
		return take_mad(m, w, mods, true);
	case OP_IMAD_HI:
		return take_mad_high(m, w, mods);
	case OP_HFMA2_MMA:
		return take_wide(m, w, arch, mods);
	case OP_VIADD:
		return arch >= 90 && take_two(m, w, mods, 0) && !m->b.minus;
	default:
		return false;
	}
}

static bool take_uniform(struct sass_math *m, const struct word *w, unsigned arch, uint32_t mods)
{
	switch (operation_of(w)) {
	case OP_UIADD3:
		return take_add(m, w, mods);
	case OP_ULEA:
		return take_lea(m, w, mods);
	case OP_ULOP3:
		return take_logic(m, w, mods);
	case OP_UIADD3_64:
		return arch >= 120 && take_add64(m, w, mods);
	case OP_USHF:
		return take_shift(m, w, mods);
	case OP_UIMAD:
		return take_mad(m, w, mods, false);
	case OP_UIMAD_WIDE:
		return take_mad(m, w, mods, true);
	default:
		return false;
	}
}

/* UMOV of a uniform register has the layout of the sixth form of the others. */
static bool take_umov(struct sass_math *m, const struct word *w, unsigned arch, uint32_t mods)
{
	m->b = (struct sass_source){.from = SASS_FROM_UREG, .reg = ureg_at(w, 32, arch)};
	return bits(w, 40, 24) == 0 && bits(w, 91, 1) && ureg_clean(w, 32, arch) && take_copy(m, w, mods, 0, 1);
}

static bool math_decode(struct sass_math *m, const struct word *w, unsigned arch)
{
	uint32_t op = (uint32_t)bits(w, 0, 12), mods = modifiers(w);

	if (op == OPCODE(OP_S2R, 4) || op == OPCODE(OP_S2UR, 4))
		return take_special(m, w, mods);
	if (op == OPCODE(OP_UMOV, 6))
		return take_umov(m, w, arch, mods);
	if (!math_sources(m, w, arch))
		return false;
	return m->uniform ? take_uniform(m, w, arch, mods) : take_vector(m, w, arch, mods);
}

bool sass_math(const uint8_t *code, unsigned arch, struct sass_math *m)
{
	struct word w = word_of(code);

	*m = (struct sass_math){
		.op = SASS_ADD, .n = 1, .in = {SASS_PT, SASS_PT}, .in_not = {true, true}, .out = {SASS_PT, SASS_PT}};
	if (arch < SASS_ARCH_MIN || arch > SASS_ARCH_MAX || bits(&w, 12, 4) != 7 || bits(&w, 92, 13))
		return false;
	m->uniform = is_uniform(&w) || operation_of(&w) == OP_S2UR;
	m->dest = m->uniform ? ureg_at(&w, 16, arch) : reg_at(&w, 16);
	return (!m->uniform || ureg_clean(&w, 16, arch)) && math_decode(m, &w, arch);
}

/* By operation. */
enum { PREDICATES, KEEPS };
static const uint8_t keeps[512] = {
#define OPERATION(operation, name, file, most, predicates) [operation] = predicates,
#include "find/fault/sass_ops.def"
};

static unsigned predicates(const uint8_t *code, unsigned arch)
{
	struct word w = word_of(code);
	struct sass_move move;
	struct sass s;

	if (keeps[operation_of(&w)])
		return 0;
	if (sass_decode(code, arch, &s))
		return s.kind == SASS_STORE || s.kind == SASS_REDUCTION ? 0 : 1u << bits(&w, 81, 3) & 0x7f;
	sass_move(code, arch, &move);
	/* R2P writes several, FMNMX names one elsewhere */
	if (move.from == SASS_FROM_ANYWHERE || operation_of(&w) == OP_R2P || operation_of(&w) == OP_FMNMX)
		return 0x7f;
	return (1u << bits(&w, 81, 3) | 1u << bits(&w, 84, 3)) & 0x7f;
}

void sass_effect(const uint8_t *code, unsigned arch, struct sass_effect *e)
{
	struct word w = word_of(code);
	unsigned preds = predicates(code, arch);
	struct sass_move move;
	struct sass_math math;
	struct sass s;

	*e = (struct sass_effect){.dest = {-1, -1}};
	if (sass_decode(code, arch, &s)) {
		e->dest[0] = s.dest;
		e->dest[1] = s.second;
		e->n = s.dest_regs;
		e->preds = preds;
		return;
	}
	sass_move(code, arch, &move);
	e->any = move.from == SASS_FROM_ANYWHERE;
	e->uniform = move.uniform;
	e->dest[0] = move.from == SASS_FROM_NOTHING ? -1 : move.dest;
	e->n = move.n;
	/* the exact forms write none */
	if (move.from >= SASS_FROM_NUMBER && move.from <= SASS_FROM_BANK)
		return;
	if (sass_math(code, arch, &math)) {
		e->dest[0] = math.dest;
		e->n = math.n;
		preds = (1u << math.out[0] | 1u << math.out[1]) & 0x7f;
	}
	*(is_uniform(&w) ? &e->upreds : &e->preds) = preds;
}
