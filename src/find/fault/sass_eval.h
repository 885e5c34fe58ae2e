/* SPDX-License-Identifier: Apache-2.0
 * The address that a thread accessed, recomputed from the code before the access.
 *
 * A load that faults may destroy the registers of its own address. The instructions that computed them are still
 * there, and what they started from is often known: parameters, the thread's position, registers that nothing has
 * written since. "Unknown" is a valid answer, a wrong value is not: sass_eval.c says where it gives up.
 */
#ifndef CUWHY_SASS_EVAL_H
#define CUWHY_SASS_EVAL_H

#include <stdbool.h>
#include <stdint.h>

#include "read/dump/dump.h"
#include "find/fault/sass.h"

/* What the dump knows about a thread. */
struct sass_lane {
	uint64_t pc;			/* where it stopped; its registers are from that moment */
	struct bytes regs, uregs;
	struct bytes params;
	uint64_t params_offset;		/* of the parameters in constant bank 0 */
	uint32_t id;			/* in its warp */
	uint32_t thread[3], block[3], block_dim[3], grid_dim[3];
};

enum sass_answer {
	SASS_UNKNOWN,
	SASS_DIFFERS,		/* from a surviving register: something is not as it seems */
	SASS_COMPUTED,		/* but there was no surviving register to compare with */
	SASS_CHECKED,		/* and a surviving register matches */
};

struct sass_eval;

/* For accesses at this pc. NULL when the code around it cannot be followed. */
struct sass_eval *sass_eval_open(struct bytes image, unsigned arch, uint64_t pc);
void sass_eval_close(struct sass_eval *e);

/* Does a thread that stopped at `pc` still have that predicate as the access had it? */
bool sass_eval_keeps(const struct sass_eval *e, int predicate, uint64_t pc);

enum sass_answer sass_eval_address(struct sass_eval *e, const struct sass *s, const struct sass_lane *lane,
				   uint64_t *address);

/* Which of the first 64 words (of 8 bytes) of the parameters that address is a sum of, as bits: the pointer is one of
 * them, along with offsets. 0 when the code does not say. */
uint64_t sass_eval_origin(struct sass_eval *e, const struct sass *s, uint64_t params_offset);

#endif
