/* SPDX-License-Identifier: Apache-2.0
 * The state of a thread that is executed (see sass_run.h). Only for sass_run.c and what executes instructions (sass_exec.h).
 */
#ifndef CUWHY_SASS_CELL_H
#define CUWHY_SASS_CELL_H

#include "find/fault/sass_math.h"
#include "find/fault/sass_run.h"

#define CELL_REGS     256
#define CELL_PREDS    8
#define CELL_STORES   256    /* words that a thread writes and may read again */
#define CELL_COMPARES 1024   /* the newest ones */
#define CELL_NO_BASE  0xffff /* several pointers */

/* A register or predicate. */
struct cell {
	uint32_t v;
	uint32_t compare; /* number of the comparison that it is the result of, 0 = none */
	uint64_t at;	  /* bytes of global memory that it was computed from, */
	uint8_t n;	  /* how many; 0 = none, SASS_SEVERAL */
	bool known : 1;
	bool raw : 1;	  /* it has those bytes as they are */
	/* of a thread in a dump: a register behind the value was compared with what the dump has, and it differed */
	bool checked : 1, differs : 1;
	uint16_t base;	  /* the word of the parameters, from 1, that it is an address of */
	uint16_t at_base; /* the same of `at` */
	uint64_t words;	  /* the words of the parameters that it is a sum of, whatever they are; only the first 64, as bits */
};

struct cell_store {
	uint64_t address;
	enum sass_space space;
	unsigned n;
	struct cell value;
};

struct cell_state {
	struct cell r[CELL_REGS], u[CELL_REGS], p[CELL_PREDS], up[CELL_PREDS];
	struct cell decided; /* the last condition */
	uint64_t pc;
	struct cell_store store[CELL_STORES];
	size_t n_stores;
};

struct cell_run {
	const struct sass_thread *t;
	struct bytes bank4; /* addresses that the compiler keeps */
	struct sass_compare compares[CELL_COMPARES];
	uint32_t numbers[CELL_COMPARES]; /* of these comparisons */
	uint32_t n_compares;
	bool missing;	/* memory was read that is not known, */
	bool loaded;	/* and that is */
	bool nobody;	/* no thread in particular: its position is not known */
	struct cell stack; /* where it begins */
};

struct cell cell_number(uint32_t v);
/* What is computed from both; its value is not set. */
struct cell cell_merge(struct cell a, struct cell b);
struct cell cell_unknown(void);

/* Executes an instruction that is no branch, if its guard holds. False: it may have done anything. */
bool cell_step(struct cell_run *run, struct cell_state *s, const uint8_t *code);
/* The predicate that must hold. */
struct cell cell_guard(const struct cell_state *s, const uint8_t *code);

struct cell cell_predicate(const struct cell_state *s, bool uniform, unsigned field);
const struct sass_compare *cell_compare(const struct cell_run *run, uint32_t number);
/* The address of an access. */
struct cell cell_address(const struct cell_state *s, const struct sass *a, uint64_t *address);
uint64_t cell_base_value(const struct cell_run *run, uint16_t base);

#endif
