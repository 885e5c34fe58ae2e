/* SPDX-License-Identifier: Apache-2.0
 * The straight line of code that leads to an instruction, executed forward: which values do registers have there?
 *
 * A load that faults may destroy the registers of its own address. The instructions that computed them are still there, and what they
 * started from is often known: parameters, the thread's position, registers that nothing has written since. sass_run.h has the same for
 * the whole way from the kernel's entry.
 *
 * "Unknown" is a valid answer, a wrong value is not: the line begins where a branch may come in or after a call, and what memory had,
 * and what is only approximated, is not known.
 */
#ifndef CUWHY_SASS_LINE_H
#define CUWHY_SASS_LINE_H

#include "find/fault/sass_run.h"

enum sass_answer {
	SASS_UNKNOWN,
	SASS_DIFFERS,  /* from a surviving register: something is not as it seems */
	SASS_COMPUTED, /* but there was no surviving register to compare with */
	SASS_CHECKED,  /* and a surviving register matches */
};

struct sass_line;

/* To the instruction at this pc. NULL when the code around it cannot be followed. */
struct sass_line *sass_line_open(struct bytes image, unsigned arch, uint64_t pc);
void sass_line_close(struct sass_line *l);

/* Does a thread that stopped at this pc still have that predicate as the instruction had it? */
bool sass_line_keeps(const struct sass_line *l, int predicate, uint64_t stopped);

/* The address of the access there, for a thread that stopped behind it. */
enum sass_answer sass_line_address(struct sass_line *l, const struct sass *s, const struct sass_thread *t,
				   uint64_t *address);

/* Which of the first 64 words (of 8 bytes) of the parameters that address is a sum of, as bits: the pointer is one of them, along with
 * offsets. 0 when the code does not say. */
uint64_t sass_line_origin(struct sass_line *l, const struct sass *s, uint64_t params_offset);

/* A register, or a pair of them, that has the same value there in all threads of all launches. */
bool sass_line_constant(struct sass_line *l, int reg, bool pair, uint64_t *value);

#endif
