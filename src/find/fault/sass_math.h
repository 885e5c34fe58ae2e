/* SPDX-License-Identifier: Apache-2.0
 * One integer arithmetic instruction of the kind that computes addresses, decoded and executed.
 */
#ifndef CUWHY_SASS_MATH_H
#define CUWHY_SASS_MATH_H

#include <stdbool.h>
#include <stdint.h>

#include "find/fault/sass_move.h"

enum sass_math_op {
	SASS_ADD,		/* a + b + c */
	SASS_LEA,		/* (a << shift) + b; high: the upper half of c:a so shifted, + b */
	SASS_MAD,		/* a * b + c, the lower 32 bits; wide: 64 bits; high: the upper half */
	SASS_SHIFT,		/* c:a shifted by b, the lower or upper half */
	SASS_LOGIC,		/* a table of a, b and c bit by bit */
	SASS_COPY,		/* b */
	SASS_SPECIAL,		/* a special register */
};

enum { SASS_LANEID = 0, SASS_TID = 0x21, SASS_CTAID = 0x25, SASS_ZERO = 0xff };	/* and .Y, .Z after them */

#define SASS_PT	7		/* the predicate that always holds */

struct sass_source {
	enum sass_from from;	/* NUMBER, REG, UREG or BANK */
	uint32_t number;
	int reg;		/* -1 = zero */
	unsigned bank, offset;
	bool minus;		/* in the extended form: inverted */
};

struct sass_math {
	enum sass_math_op op;
	bool uniform;		/* destination and carries are uniform */
	int dest;		/* -1 = none */
	unsigned n;		/* registers written */
	struct sass_source a, b, c;
	bool ab_64, c_64;	/* these are pairs */
	bool extended;		/* carries are added */
	int in[2], out[2];	/* predicates of carries; SASS_PT as `out`: none */
	bool in_not[2];
	bool is_signed, high, right, wrap, shift_64;
	unsigned shift;		/* or the number of the special register */
	uint8_t table;
};

/* False when it is none of these, guarded, or has a modifier that is not known. */
bool sass_math(const uint8_t *code, unsigned arch, struct sass_math *m);

struct sass_values {
	uint64_t a, b, c;
	unsigned carry;		/* how many of the carries are set */
};

/* The value, and how often the sum overflowed. False when the result is not known. */
bool sass_compute(const struct sass_math *m, const struct sass_values *in, uint64_t *value, unsigned *carry);

/* What an instruction may write. Doubtful ones count. */
struct sass_effect {
	bool any;	/* every register */
	bool uniform;
	int dest[2];	/* -1 = none; of the widest loads there are two */
	unsigned n;	/* registers from each on */
	unsigned preds, upreds;	/* predicates, as bits */
};

void sass_effect(const uint8_t *code, unsigned arch, struct sass_effect *e);

#endif
