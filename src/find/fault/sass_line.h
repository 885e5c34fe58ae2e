/* SPDX-License-Identifier: Apache-2.0
 * The code around an access, decoded once. Only for sass_eval.c.
 */
#ifndef CUWHY_SASS_LINE_H
#define CUWHY_SASS_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "find/fault/sass_math.h"

enum sass_value { SASS_VALUE_NONE, SASS_VALUE_MOVE, SASS_VALUE_MATH };

struct sass_line {
	enum sass_value value;	/* what the written registers contain afterward, NONE = not known */
	bool entered;		/* a branch may come in before this instruction */
	bool stop;		/* the next one is not always reached from here, or not with the same registers */
	bool branch;		/* it may also go elsewhere */
	bool any;		/* every register may be written */
	bool uniform;
	int dest;
	unsigned n;
	unsigned preds, upreds;	/* predicates that may be written, as bits */
	union {
		struct sass_move move;
		struct sass_math math;
	} as;
};

struct sass_lines {
	struct sass_line *line;
	size_t n, access;	/* how many, and which of them is the access */
	uint64_t start;		/* address of the first */
};

bool sass_lines_open(struct sass_lines *l, struct bytes image, unsigned arch, uint64_t pc);
void sass_lines_close(struct sass_lines *l);

bool sass_line_writes(const struct sass_line *l, bool uniform, int reg);

#endif
