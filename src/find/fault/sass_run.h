/* SPDX-License-Identifier: Apache-2.0
 * One GPU thread, executed from its kernel's entry to an instruction: what decided that it got there?
 *
 * A thread that failed an assertion has lost the registers of the comparison when the dump is written. But a thread is
 * determined by its position, the parameters and the memory that it reads, and all of these can be in the dump. So it is
 * executed again, alone. Every value carries which bytes of global memory it was computed from: those behind the last
 * condition are the value that was checked.
 *
 * "Unknown" is a valid answer, a wrong value is not: what other threads contribute is unknown, an instruction that is
 * not known exactly makes its results unknown, and one that might do anything ends the run.
 */
#ifndef CUWHY_SASS_RUN_H
#define CUWHY_SASS_RUN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "find/fault/sass.h"

#define SASS_RUN_ARCH_MAX 103 /* later ones compare and select 64 bits at once */
#define SASS_SEVERAL 255 /* bytes that are not one value, or not known */

/* The bytes of global memory that a value was computed from. */
struct sass_bytes {
	uint64_t at;
	unsigned n;    /* 0 = none */
	uint64_t base; /* the pointer among the parameters that `at` was computed from, 0 = not known */
};

enum sass_how { SASS_NEVER, SASS_LT, SASS_EQ, SASS_LE, SASS_GT, SASS_NE, SASS_GE, SASS_NUM };

struct sass_compare {
	enum sass_how how;
	bool real; /* floating point; else integers */
	bool is_signed;
	bool known;	/* a and b are */
	unsigned width; /* of the operands: 4 or 8 bytes */
	uint64_t a, b;
	unsigned n_a, n_b; /* bytes of memory behind each; 0 = none, a constant of the launch */
};

struct sass_thread {
	struct bytes image;
	unsigned arch;
	uint64_t entry;
	struct bytes params;
	uint64_t params_offset; /* of the parameters in constant bank 0 */
	uint32_t id;		/* in its warp */
	uint32_t thread[3], block[3], block_dim[3], grid_dim[3];
	/* global memory as it was at the failure; false where it is not known */
	bool (*memory)(void *arg, uint64_t address, void *to, size_t n);
	void *arg;
	/* if it is still in the dump: where it stopped and its registers then; no data = not known */
	uint64_t stopped;
	struct bytes regs, uregs;
};

enum sass_end {
	SASS_END_THERE,	  /* the instruction was reached */
	SASS_END_LEFT,	  /* the thread ended without reaching it: something was different */
	SASS_END_MISSING, /* it depends on memory that is not known */
	SASS_END_LOST,	  /* the code cannot be followed */
	SASS_END_LONG,	  /* too many instructions */
};

struct sass_found {
	struct sass_bytes from; /* the value that decided; of an access: that its address was computed from */
	bool compared;
	struct sass_compare compare;
	int pointer;	  /* of an access: the byte of the parameters with the pointer that its address was computed from, -1 = not known */
	bool address_known;
	uint64_t address; /* that it has */
	unsigned agree, differ; /* registers of the dump that nothing has written since, and the values that were computed */
	bool missing;	  /* memory was read that is not known */
	uint64_t lost_at; /* the instruction that could not be followed */
	unsigned steps;
};

/* Runs the thread until it is about to execute the instruction at `pc`. With `access`, what that instruction's address
 * was computed from is found, else what the last condition before it was. `steps` bounds the work. */
enum sass_end sass_run(const struct sass_thread *t, uint64_t pc, bool access, unsigned steps, struct sass_found *f);

/* Does a thread execute this instruction of the kernel at most once? False when it is in a loop or in a function, or when that is not known. */
bool sass_once(struct bytes image, unsigned arch, uint64_t entry, uint64_t pc);

/* An access to global or generic memory that a thread makes, or may make. */
struct sass_access {
	uint64_t pc;
	struct sass insn;
	bool known; /* the address is */
	uint64_t address;
	uint64_t base; /* the pointer among the parameters that it was computed from, 0 = not known */
	bool sure;     /* the thread makes it, and nothing behind it was read from memory, which may have changed since */
};

typedef void sass_access_fn(void *arg, const struct sass_access *a);

/* Runs threads of one kernel from its entry to their end, one after the other: what do they access? */
struct sass_runner;

/* `t` has everything but the thread, and must stay. NULL when code of this architecture is not known. */
struct sass_runner *sass_runner_open(const struct sass_thread *t);
void sass_runner_close(struct sass_runner *r);

/* SASS_END_LEFT when the thread was followed to its end on all ways; else there may be more accesses. */
enum sass_end sass_runner_trace(struct sass_runner *r, const uint32_t block[3], const uint32_t thread[3],
				unsigned steps, sass_access_fn *fn, void *arg, unsigned *used);

#endif
