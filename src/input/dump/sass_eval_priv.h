/* SPDX-License-Identifier: Apache-2.0
 * The computation of registers from code, between sass_eval.c and sass_value.c.
 */
#ifndef CUWHY_SASS_EVAL_PRIV_H
#define CUWHY_SASS_EVAL_PRIV_H

#include "input/dump/sass_eval.h"
#include "input/dump/sass_line.h"

#define SASS_REGS	256
#define SASS_WORK	16384	/* instructions looked at for one thread, hostile code or not */

struct sass_eval {
	struct sass_lines lines;
	unsigned arch;
	struct bytes bank4;	/* addresses that the compiler keeps */
	size_t stands;			/* the line that `last` is for */
	int last[2][SASS_REGS];		/* the last line before it that may write the register, -1 = none */
	const struct sass_lane *lane;
	unsigned depth, work;
	bool comparing;			/* inside of a comparison: no further ones */
	bool differs, checked;
};

/* The register before line `at`: as the code there makes it, and as the dump has it, if nothing has written it since. */
bool sass_value_code(struct sass_eval *e, bool uniform, int reg, size_t at, uint32_t *value);
/* The last line before `at` that has written the register, and nothing else has since. */
bool sass_value_writer(struct sass_eval *e, bool uniform, int reg, size_t at, size_t *found);
bool sass_value_dump(const struct sass_eval *e, bool uniform, int reg, size_t at, uint32_t *value);

#endif
