/* SPDX-License-Identifier: Apache-2.0
 * Decodes GPU instructions that access memory. Layouts differ in three steps: up to 8.9, 9.0, from 10.0.
 */
#include "find/fault/sass.h"

#include "find/fault/sass_word.h"

enum layout {
	LAYOUT_LOAD, LAYOUT_STORE, LAYOUT_LD, LAYOUT_ST, LAYOUT_ATOM, LAYOUT_ATOMF, LAYOUT_CAS, LAYOUT_RED,
	LAYOUT_COPY, LAYOUT_LOAD256, LAYOUT_STORE256,
};

/* Widths of 16 and more are bytes; the others say where the width is written. */
enum { WIDTH_SIZE = 1, WIDTH_TYPE, WIDTH_FLOAT, WIDTH_COPY, WIDTH_16 = 16, WIDTH_32 = 32 };

struct op {
	uint16_t code;
	const char *name;
	enum sass_kind kind;
	enum sass_space space;
	enum layout layout;
	unsigned width;
};

static const struct op ops[] = {
#define ACCESS(code, name, kind, space, layout, width) \
	{code, name, SASS_##kind, SASS_##space, LAYOUT_##layout, WIDTH_##width},
#include "find/fault/sass_ops.def"
};

/* Where an opcode is in `ops`, from 1. */
enum {
#define ACCESS(code, name, kind, space, layout, width) ACCESS_##code,
#include "find/fault/sass_ops.def"
};

static const uint8_t op_at[4096] = {
#define ACCESS(code, name, kind, space, layout, width) [code] = ACCESS_##code + 1,
#include "find/fault/sass_ops.def"
};

static int64_t bits_signed(const struct word *w, unsigned at, unsigned n)
{
	uint64_t v = bits(w, at, n), sign = 1ull << (n - 1);

	return (int64_t)((v ^ sign) - sign);
}

static const struct op *find_op(uint16_t code)
{
	return op_at[code & 0xfff] ? &ops[op_at[code & 0xfff] - 1] : NULL;
}

static unsigned width_of_type(unsigned type, unsigned arch)
{
	/* u32 s32 u64 f32 f16x2 s64 f64; since 9.0 floating point has opcodes of its own */
	static const uint8_t before[8] = {4, 4, 8, 4, 4, 8, 8, 0}, since_90[8] = {4, 4, 8, 8, 16};

	return arch < 90 ? before[type] : since_90[type];
}

static unsigned width_of(const struct op *op, const struct word *w, unsigned arch)
{
	/* u8 s8 u16 s16 32 64 128, and on 7.5 another spelling of 128 */
	static const uint8_t size[8] = {1, 1, 2, 2, 4, 8, 16, 16};
	/* f16 and bf16, two, four and eight of them; f32 (twice), one, two and four; f64 */
	static const uint8_t real[16] = {4, 8, 16, 4, 8, 16, 0, 0, 0, 4, 8, 16, 4, 8, 16, 8};

	switch (op->width) {
	case WIDTH_SIZE:
		return size[bits(w, 73, 3)];
	case WIDTH_TYPE:
		/* shared atomics had two bits for it */
		return width_of_type(bits(w, 73, op->space == SASS_SHARED && arch < 90 ? 2 : 3), arch);
	case WIDTH_FLOAT:
		return real[bits(w, 73, 4)];
	case WIDTH_COPY:
		return arch < 100 ? size[bits(w, 73, 3)] : 4u << bits(w, 74, 2);
	default:
		return op->width;
	}
}

struct place {
	unsigned ureg_at;	/* 0: this form has none */
	unsigned imm_at, imm_bits, imm_shift;
	unsigned desc_at;	/* bit that makes the uniform register a descriptor, 0 = none */
	unsigned pair_at;	/* bit that makes the register a pair beside a uniform one */
};

static struct place operand_place(const struct op *op, unsigned arch)
{
	bool new = arch >= 100;

	switch (op->layout) {
	case LAYOUT_LOAD:
	case LAYOUT_LD:
		return (struct place){32, 40, 24, 0, 76, 90};
	case LAYOUT_STORE:
		return (struct place){64, 40, 24, 0, 76, 90};
	case LAYOUT_ST:
		return (struct place){0, 32, 32, 0, 0, 0};
	case LAYOUT_ATOM:
		return new ? (struct place){64, 40, 23, 0, 76, 63} : (struct place){64, 40, 24, 0, 71, 70};
	case LAYOUT_ATOMF:
		return new ? (struct place){64, 40, 23, 0, 90, 63} : (struct place){64, 40, 24, 0, 71, 70};
	case LAYOUT_CAS:
		return (struct place){0, 40, 24, 0, 0, 0};
	case LAYOUT_RED:
		return (struct place){64, 40, 24, 0, new ? 81 : 71, 90};
	case LAYOUT_COPY:
		return (struct place){64, 32, 12, 0, 76, new ? 83 : 70};
	case LAYOUT_LOAD256:
		return (struct place){32, 40, 17, 5, 76, 0};
	case LAYOUT_STORE256:
		return (struct place){64, 40, 19, 5, 76, 0};
	}
	return (struct place){0};
}

static bool is_window(enum sass_space s)
{
	return s == SASS_SHARED || s == SASS_LOCAL;
}

/* The uniform register and, next to it, the width of the other one. */
static void decode_uniform(struct sass *s, const struct place *p, const struct word *w, unsigned arch)
{
	int u = (int)bits(w, p->ureg_at, arch < 100 ? 6 : 8), zero = arch < 100 ? 63 : 255;
	bool window = is_window(s->space);

	/* descriptors came with 8.0; their bits meant something else before */
	if (!window && arch >= 80 && p->desc_at && bits(w, p->desc_at, 1)) {
		s->descriptor = u;
		return;
	}
	s->ureg = u == zero ? -1 : u;
	s->ureg_64 = !window;
	if (!window && p->pair_at)
		s->reg_64 = bits(w, p->pair_at, 1);
}

static void decode_address(struct sass *s, const struct op *op, const struct word *w, unsigned arch)
{
	static const uint8_t shift[4] = {0, 2, 3, 4};
	struct place p = operand_place(op, arch);
	bool uniform = p.ureg_at && bits(w, 91, 1);

	/* without a uniform register, the offset also takes the bits that would describe it */
	if (op->layout == LAYOUT_LD && !uniform)
		p.imm_at = p.imm_bits = 32;
	else if (p.imm_bits == 23 && !uniform)
		p.imm_bits = 24;
	s->offset = bits_signed(w, p.imm_at, p.imm_bits) * (1 << p.imm_shift);
	s->reg = (int)bits(w, 24, 8);
	s->reg_64 = !is_window(s->space);
	if (uniform)
		decode_uniform(s, &p, w, arch);
	if (s->reg == R_NONE)
		s->reg = -1;
	if (s->space == SASS_SHARED && op->width < WIDTH_16)
		s->shift = shift[bits(w, 78, 2)];
}

static void decode_dest(struct sass *s, const struct op *op, const struct word *w)
{
	if (s->kind != SASS_LOAD && s->kind != SASS_ATOMIC)
		return;
	if (op->layout == LAYOUT_COPY)
		return;
	s->dest = reg_at(w, 16);
	s->second = op->layout == LAYOUT_LOAD256 ? reg_at(w, 64) : -1;
	s->dest_regs = op->layout == LAYOUT_LOAD256 ? 4 : s->width > 4 ? (s->width + 3) / 4 : 1;
}

bool sass_decode(const uint8_t *code, unsigned arch, struct sass *s)
{
	struct word w = word_of(code);
	const struct op *op = find_op((uint16_t)bits(&w, 0, 12));

	*s = (struct sass){.name = "", .reg = -1, .ureg = -1, .descriptor = -1, .dest = -1, .second = -1, .guard = 7};
	if (arch < SASS_ARCH_MIN || arch > SASS_ARCH_MAX)
		return false;
	s->guard = (int)bits(&w, 12, 3);
	s->guard_not = bits(&w, 15, 1);
	if (bits(&w, 0, 12) == OPCODE(OP_BPT, 4))
		s->kind = SASS_TRAP;
	if (!op)
		return false;
	s->width = width_of(op, &w, arch);
	/* without .E the address has 32 bits: not in 64-bit programs */
	if (s->width == 0 || (!is_window(op->space) && op->width < WIDTH_COPY && !bits(&w, 72, 1)))
		return false;
	s->kind = op->kind;
	s->space = op->space;
	s->name = op->name;
	decode_address(s, op, &w, arch);
	decode_dest(s, op, &w);
	return true;
}

const char *sass_space_name(enum sass_space s)
{
	static const char *const name[] = {"", "generic", "global", "local", "shared"};

	return name[s];
}

static bool reg_value(struct bytes file, int reg, bool pair, uint64_t *value)
{
	uint32_t lo = 0, hi = 0;

	if (reg >= 0 && !dump_word(file, (size_t)reg, &lo))
		return false;
	if (reg >= 0 && pair && !dump_word(file, (size_t)reg + 1, &hi))
		return false;
	*value = (uint64_t)hi << 32 | lo;
	return true;
}

uint64_t sass_sum(const struct sass *s, uint64_t reg, uint64_t ureg)
{
	uint64_t a = (reg << s->shift) + ureg + (uint64_t)s->offset;

	return is_window(s->space) ? (uint32_t)a : a;
}

bool sass_address(const struct sass *s, struct bytes regs, struct bytes uregs, uint64_t *address)
{
	uint64_t a, b;

	if (s->space == SASS_NOWHERE || !reg_value(regs, s->reg, s->reg_64, &a) ||
	    !reg_value(uregs, s->ureg, s->ureg_64, &b))
		return false;
	*address = sass_sum(s, a, b);
	return true;
}

static bool regs_overlap(int a, unsigned n_a, int b, unsigned n_b)
{
	return a >= 0 && b >= 0 && a < b + (int)n_b && b < a + (int)n_a;
}

static bool overwrites(const struct sass *by, const struct sass *s)
{
	return regs_overlap(by->dest, by->dest_regs, s->reg, s->reg_64 ? 2 : 1) ||
	       regs_overlap(by->second, by->dest_regs, s->reg, s->reg_64 ? 2 : 1);
}

bool sass_overwrites_address(const struct sass *s)
{
	return overwrites(s, s);
}

bool sass_disturbs(const uint8_t *code, unsigned arch, const struct sass *s)
{
	struct word w = word_of(code);
	struct sass other;
	uint32_t op = (uint32_t)bits(&w, 0, 12);
	int dest = (int)bits(&w, 16, 8);

	/* branches, calls, returns and other control flow; EXIT and BSSY continue with the next instruction */
	if (is_control(&w) && op != OPCODE(OP_EXIT, 4) && op != OPCODE(OP_BSSY, 4))
		return true;
	/* for other accesses it is known what they write; stores write nothing */
	if (sass_decode(code, arch, &other))
		return overwrites(&other, s);
	/* an instruction writes at most four registers from its destination on, and the same for uniform ones */
	return (dest != R_NONE && regs_overlap(dest, 4, s->reg, s->reg_64 ? 2 : 1)) ||
	       regs_overlap(dest & 0x7f, 4, s->ureg, 2);
}
