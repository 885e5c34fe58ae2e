/* SPDX-License-Identifier: Apache-2.0
 * Decodes the instructions that compilers move constants with (see sass_move.h).
 *
 * Only exact forms count as moves: any unknown modifier makes it "elsewhere".
 */
#include "find/fault/sass_move.h"

#include "find/fault/sass_word.h"

enum { FILE_ANY, FILE_NONE, FILE_R, FILE_U };

/* By operation: a thread that is executed takes many steps. */
static const struct {
	uint8_t file, most;
} writes[512] = {
#define OPERATION(operation, name, file, most, predicates) [operation] = {FILE_##file, most},
#include "find/fault/sass_ops.def"
};

#define MOD_MOV		0x00f
#define MOD_MOV64	0x10f
#define MOD_IMAD	0x78e00
#define MOD_IMAD_SIGNED	0x78e02
#define MOD_HFMA2	0x001
#define MOD_R2UR	0x00e00

bool sass_operand(struct sass_move *m, const struct word *w, unsigned arch, unsigned form)
{
	switch (form) {
	case 1:
		m->from = SASS_FROM_REG;
		m->reg = reg_at(w, 32);
		/* bits 40 to 63 hold nothing but signs of the operand */
		return bits(w, 40, 24) == 0;
	case 2: case 4:
		m->from = SASS_FROM_NUMBER;
		m->number = (uint32_t)bits(w, 32, 32);
		return true;
	case 3: case 5:
		m->from = SASS_FROM_BANK;
		m->offset = (unsigned)bits(w, 40, 13) * 4;
		m->bank = (unsigned)bits(w, 54, 5);
		m->reg = -1;
		/* the offset's sign, and banks that a register names, are not followed */
		return bits(w, 32, 8) == 0 && bits(w, 53, 1) == 0 && bits(w, 59, 5) == 0 && !bits(w, 91, 1);
	default:
		m->from = SASS_FROM_UREG;
		m->reg = ureg_at(w, 32, arch);
		return bits(w, 40, 24) == 0 && bits(w, 91, 1);
	}
}

static bool take_mov(struct sass_move *m, const struct word *w, unsigned arch, unsigned form)
{
	bool wide = arch >= 120 && modifiers(w) == MOD_MOV64;

	if ((modifiers(w) != MOD_MOV && !wide) || bits(w, 64, 8) || bits(w, 24, 8))
		return false;
	m->n = wide ? 2 : 1;
	return (form == 1 || form >= 4) && sass_operand(m, w, arch, form) && (!wide || form == 1);
}

/* RZ times RZ plus the operand; the multiplier's second register has the operand's place or bits 64 to 71. */
static bool take_imad(struct sass_move *m, const struct word *w, unsigned arch, unsigned form)
{
	uint32_t mods = modifiers(w);

	if ((mods != MOD_IMAD && mods != MOD_IMAD_SIGNED) || bits(w, 24, 8) != R_NONE)
		return false;
	if (form == 1) {
		m->from = SASS_FROM_REG;
		m->reg = reg_at(w, 64);
		return bits(w, 32, 8) == R_NONE && bits(w, 40, 24) == 0;
	}
	return (form == 2 || form == 3 || form == 7) && bits(w, 64, 8) == R_NONE && sass_operand(m, w, arch, form);
}

/* Two halves at once, minus zero times zero plus a number: its bits. */
static bool take_hfma2(struct sass_move *m, const struct word *w, unsigned arch, unsigned form)
{
	return form == 2 && modifiers(w) == MOD_HFMA2 && bits(w, 24, 8) == R_NONE && bits(w, 64, 8) == R_NONE &&
	       sass_operand(m, w, arch, form);
}

/* Loads of 32 and 64 bits from constant memory; since 10.0 uniform ones also of 128. */
static bool take_load(struct sass_move *m, const struct word *w, unsigned offset_at, uint32_t more)
{
	uint32_t mods = modifiers(w);

	if ((mods != 8 && mods != 10 && (mods != 12 || !more)) || bits(w, 64, 8) || bits(w, 91, 1) != more)
		return false;
	m->from = SASS_FROM_BANK;
	m->n = 1u << (mods - 8) / 2;
	m->offset = (unsigned)bits(w, offset_at, 54 - offset_at);
	m->bank = (unsigned)bits(w, 54, 5);
	/* the highest bit is a sign */
	return bits(w, 32, offset_at - 32) == 0 && bits(w, 53, 1) == 0 && bits(w, 59, 5) == 0;
}

static bool take_r2ur(struct sass_move *m, const struct word *w, uint32_t code)
{
	m->from = SASS_FROM_REG;
	m->reg = reg_at(w, 24);
	return (code == OPCODE(OP_R2UR, 1) || code == OPCODE(OP_R2UR_OLD, 1)) && modifiers(w) == MOD_R2UR &&
	       bits(w, 64, 8) == 0 && bits(w, 32, 32) == 0;
}

/* False: the instruction is not one of the moves. */
static bool move_decode(struct sass_move *m, const struct word *w, unsigned arch)
{
	uint32_t code = (uint32_t)bits(w, 0, 12), form = code >> 9;

	m->n = 1;
	switch (operation_of(w)) {
	case OP_MOV:
		return take_mov(m, w, arch, form);
	case OP_IMAD:
		return take_imad(m, w, arch, form);
	case OP_HFMA2:
		return take_hfma2(m, w, arch, form);
	case OP_HFMA2_MMA:
		return arch < 120 && take_hfma2(m, w, arch, form);
	case OP_UMOV:
		return modifiers(w) == 0 && bits(w, 64, 8) == 0 && bits(w, 24, 8) == 0 && form == 4 &&
		       sass_operand(m, w, arch, form);
	case OP_ULDC:
		return code == OPCODE(OP_ULDC, 5) && bits(w, 24, 8) == 0 && take_load(m, w, 38, 0);
	case OP_LDC:
		m->reg = reg_at(w, 24);
		return code == OPCODE(OP_LDC, 5) && take_load(m, w, 38, 0);
	case OP_LDCU:
		m->reg = ureg_at(w, 24, arch);
		m->reg_uniform = true;
		return code == OPCODE(OP_LDCU, 3) && arch >= 100 && take_load(m, w, 37, 1);
	case OP_R2UR:
	case OP_R2UR_OLD:
		return take_r2ur(m, w, code);
	default:
		return false;
	}
}

void sass_move(const uint8_t *code, unsigned arch, struct sass_move *m)
{
	struct word w = word_of(code);
	uint32_t i = (uint32_t)bits(&w, 0, 9);

	*m = (struct sass_move){.from = SASS_FROM_ANYWHERE, .reg = -1, .dest = -1};
	if (writes[i].file == FILE_ANY || arch < SASS_ARCH_MIN || arch > SASS_ARCH_MAX)
		return;
	/* LDCU has forms with two destinations */
	if (i == OP_LDCU && bits(&w, 0, 12) != OPCODE(OP_LDCU, 3))
		return;
	m->uniform = writes[i].file == FILE_U;
	m->dest = m->uniform ? ureg_at(&w, 16, arch) : reg_at(&w, 16);
	/* a guarded move may not have happened */
	if (writes[i].file != FILE_NONE && bits(&w, 12, 4) == 7 && move_decode(m, &w, arch))
		return;
	m->n = writes[i].most;
	m->from = writes[i].file == FILE_NONE || m->dest < 0 ? SASS_FROM_NOTHING : SASS_FROM_ELSEWHERE;
}

/* In units of four bytes; from 9.0 on the low eight bits have a separate place. */
static uint64_t branch_target(const struct word *w, unsigned arch, uint64_t pc)
{
	uint64_t words = bits(w, 34, 30) | bits(w, 64, 18) << 30;

	if (words >> 47)
		words |= ~0ull << 48;
	if (arch >= 90)
		words = words << 8 | bits(w, 16, 8);
	return pc + SASS_BYTES + words * 4;
}

/* BSSY says where its threads meet again, in bytes. */
static uint64_t meeting_of(const struct word *w, uint64_t pc)
{
	return pc + SASS_BYTES + (uint64_t)(int64_t)(int32_t)bits(w, 32, 32);
}

enum sass_step sass_step(const uint8_t *code, unsigned arch, uint64_t pc, uint64_t *target)
{
	struct word w = word_of(code);
	bool always = bits(&w, 12, 4) == 7;

	*target = 0;
	if (!is_control(&w))
		return SASS_STEP_ON;
	switch (bits(&w, 0, 12)) {
	case OPCODE(OP_BSSY, 4):
		*target = meeting_of(&w, pc);
		return SASS_STEP_ON;
	case OPCODE(OP_WARPSYNC, 1):	/* with bit 86 .COLLECTIVE, which goes on elsewhere */
		if (!bits(&w, 86, 1))
			return SASS_STEP_ON;
		if (arch < 90)	/* not seen */
			return SASS_STEP_ANYWHERE;
		*target = branch_target(&w, arch, pc);
		return SASS_STEP_ON;
	case OPCODE(OP_BRA, 2):	/* with a uniform predicate */
		*target = branch_target(&w, arch, pc);
		return SASS_STEP_ON;
	case OPCODE(OP_BRA, 4):	/* perhaps with a second predicate */
		*target = branch_target(&w, arch, pc);
		return always && bits(&w, 87, 4) == 7 ? SASS_STEP_AWAY : SASS_STEP_ON;
	case OPCODE(OP_EXIT, 4):
		return always && bits(&w, 87, 4) == 7 ? SASS_STEP_AWAY : SASS_STEP_ON;
	case OPCODE(OP_RET, 4):
		return always ? SASS_STEP_AWAY : SASS_STEP_ON;
	case OPCODE(OP_CALL_NEAR, 4):
		*target = branch_target(&w, arch, pc);
		return SASS_STEP_CALL;
	case OPCODE(OP_CALL, 1): case OPCODE(OP_CALL, 4):
		return SASS_STEP_CALL;
	case OPCODE(OP_BSYNC, 4): case OPCODE(OP_BREAK, 4): case OPCODE(OP_YIELD, 4): case OPCODE(OP_WARPSYNC, 4):
	case OPCODE(OP_LEPC, 1): case OPCODE(OP_LEPC, 4):
	case OPCODE(OP_BMOV_FROM, 1): case OPCODE(OP_BMOV_FROM, 7): case OPCODE(OP_BMOV_TO, 4):
	case OPCODE(OP_BPT, 4):
		return SASS_STEP_ON;
	default:
		return SASS_STEP_ANYWHERE;
	}
}
