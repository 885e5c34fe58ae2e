/* SPDX-License-Identifier: Apache-2.0
 * One GPU instruction, decoded as far as needed to follow constants through code: what it puts where, and where it
 * may continue.
 */
#ifndef CUWHY_SASS_MOVE_H
#define CUWHY_SASS_MOVE_H

#include <stdbool.h>
#include <stdint.h>

#include "find/fault/sass.h"

enum sass_from {
	SASS_FROM_NOTHING,	/* no register is written */
	SASS_FROM_NUMBER,
	SASS_FROM_REG,		/* a thread's register */
	SASS_FROM_UREG,		/* a uniform one */
	SASS_FROM_BANK,		/* constant memory */
	SASS_FROM_ELSEWHERE,	/* the registers from `dest` on have other values now */
	SASS_FROM_ANYWHERE,	/* any register may have */
};

struct sass_move {
	enum sass_from from;
	bool uniform;		/* the destination is a uniform register */
	int dest;		/* -1: none, the zero register */
	unsigned n;		/* registers written, from dest on */
	uint32_t number;
	int reg;		/* source; for BANK the one added to the offset; -1 = zero */
	bool reg_uniform;	/* of BANK */
	unsigned bank, offset;
};

/* The operand of bits 32 to 63, in the form that bits 9 to 11 of the opcode choose. False when it is not known. */
struct word;
bool sass_operand(struct sass_move *m, const struct word *w, unsigned arch, unsigned form);

void sass_move(const uint8_t *code, unsigned arch, struct sass_move *m);

enum sass_step {
	SASS_STEP_ON,		/* to the next instruction, perhaps also elsewhere */
	SASS_STEP_CALL,		/* to the next one after something else has run */
	SASS_STEP_AWAY,		/* never to the next one */
	SASS_STEP_ANYWHERE,	/* computed, or not known */
};

/* Where control goes next; *target is the other place it may go to, 0 = none. */
enum sass_step sass_step(const uint8_t *code, unsigned arch, uint64_t pc, uint64_t *target);

#endif
