/* SPDX-License-Identifier: Apache-2.0
 * One GPU instruction (16 bytes, compute capability 7.5 to 12.1), decoded as far as a memory fault needs:
 * what kind of access, where, how wide, and from which registers the address of a lane comes.
 */
#ifndef CUWHY_SASS_H
#define CUWHY_SASS_H

#include <stdbool.h>
#include <stdint.h>

#include "read/dump/dump.h"

#define SASS_BYTES	16
#define SASS_ARCH_MIN	75
#define SASS_ARCH_MAX	121

enum sass_kind { SASS_OTHER, SASS_LOAD, SASS_STORE, SASS_ATOMIC, SASS_REDUCTION, SASS_TRAP };
enum sass_space { SASS_NOWHERE, SASS_GENERIC, SASS_GLOBAL, SASS_LOCAL, SASS_SHARED };

/* address = reg + ureg + offset, each 0 where it is absent (-1) */
struct sass {
	enum sass_kind kind;
	enum sass_space space;
	const char *name;	/* "STG"; "" for instructions that access no memory */
	unsigned width;		/* bytes that a lane accesses; for LDSM and STSM one row of a matrix */
	int reg;		/* address register, -1 = none */
	bool reg_64;		/* a pair of registers, reg and reg + 1 */
	unsigned shift;		/* the register counts elements of 1 << shift bytes */
	int ureg;		/* uniform address register, -1 = none */
	bool ureg_64;
	int descriptor;		/* uniform register of a memory descriptor, not part of the address */
	int64_t offset;
	int guard;		/* predicate that must hold, 7 = always */
	bool guard_not;
	int dest;		/* first register that a load or atomic overwrites, -1 = none */
	unsigned dest_regs;
	int second;		/* of the widest loads: the first of as many others, -1 = none */
};

/* `arch` is major * 10 + minor. False when the architecture is unknown or the instruction accesses no memory
 * (kind SASS_OTHER or SASS_TRAP then). */
bool sass_decode(const uint8_t *code, unsigned arch, struct sass *s);

const char *sass_space_name(enum sass_space s);

/* The address for these values of its registers. */
uint64_t sass_sum(const struct sass *s, uint64_t reg, uint64_t ureg);

/* The address that a lane accessed, from its registers and those of its warp. False when one is missing. */
bool sass_address(const struct sass *s, struct bytes regs, struct bytes uregs, uint64_t *address);

/* Would the load have overwritten its own address? Then registers read after it may have another value. */
bool sass_overwrites_address(const struct sass *s);

/* May this instruction, executed after `s`, have changed the registers of its address, or left the straight
 * line from it? Doubtful cases count as yes. */
bool sass_disturbs(const uint8_t *code, unsigned arch, const struct sass *s);

#endif
