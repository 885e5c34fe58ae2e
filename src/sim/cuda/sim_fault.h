/* SPDX-License-Identifier: Apache-2.0
 * How a kernel of the simulated GPU fails, and what a core dump says about it. */
#ifndef CUWHY_SIM_FAULT_H
#define CUWHY_SIM_FAULT_H

#include "sim/cuda/sim.h"
#include "sim/cuda/sim_elf.h"

/* What a kernel can do wrong; also the letters of the `code` column of sim_kernels.def. */
enum sim_insn {
	SIM_INSN_NONE = 0,
	SIM_INSN_LOAD = 'l',
	SIM_INSN_STORE = 's',
	SIM_INSN_ATOMIC = 'a',
	SIM_INSN_STACK = 'k',		/* a store to local memory */
	SIM_INSN_TRAP = 't',
	SIM_INSN_ASSERT = 'x',
	SIM_INSN_ILLEGAL = 'i',
	SIM_INSN_LOOP = 'h',
	SIM_INSN_CHECK = 'c',		/* of an index, before an assertion */
	SIM_INSN_PLACE = 'p',		/* the address from the first two parameters and the position of the thread */
	SIM_INSN_PLACE_SECOND = 'q',	/* from the second and the third */
	SIM_INSN_PLACE_ALONE = 'r',	/* from the first alone */
};

/* Numbers of the exceptions in a core dump. */
enum sim_exception {
	SIM_EXC_NONE = 0,
	SIM_EXC_ILLEGAL_INSTRUCTION = 4,
	SIM_EXC_OUT_OF_RANGE = 5,
	SIM_EXC_MISALIGNED = 6,
	SIM_EXC_DEVICE_ILLEGAL_ADDRESS = 10,
	SIM_EXC_ASSERT = 12,
	SIM_EXC_ILLEGAL_ADDRESS = 14,
};

/* Thread i of the x dimension accesses base + shift + 4 * index(i), where index is i * step,
 * possibly truncated to 32 bits. */
struct sim_fault {
	int code;			/* the CUDA error, 0 = none */
	enum sim_exception exception;
	enum sim_insn insn;
	sim_addr base;
	unsigned int shift;
	long long step;
	bool narrow;
	bool asked;			/* not a fault: a dump was requested */
	bool gone;			/* its threads have ended when the dump is written */
	size_t count;			/* participating threads */
	size_t first;			/* the first one that fails */
	uint32_t lanes;			/* those of its warp that also fail; 0: not counted */
	unsigned int depth;		/* depth of calls within the kernel */
};

/* Where the parameters are in constant bank 0. */
enum { SIM_PARAMS_AT_SM90 = 0x210, SIM_PARAMS_AT_SM80 = 0x160 };

enum { SIM_DUMP_SKIP_ELF = 1, SIM_DUMP_SKIP_GLOBAL = 2, SIM_DUMP_SKIP_ABORT = 16, SIM_DUMP_LIGHTWEIGHT = 47 };

struct sim_dump_plan {
	bool enabled;
	bool abort;			/* abort the process after the dump */
	unsigned int flags;
	char path[1200];		/* sim_fault.c appends a few letters */
};

/* sim_fault.c */
sim_addr sim_fault_address(const struct sim_fault *fault, size_t thread);
void sim_fault_planned(struct sim_fault *fault, int code);
void sim_fault_raise(const struct sim_op *op, const struct sim_fault *fault);

/* sim_coredump.c */
void sim_dump_env(void);			/* at cuInit */
void sim_dump_plan(struct sim_ctx *ctx, struct sim_dump_plan *plan);
void sim_dump_name(char *out, size_t size, const char *pattern);

/* sim_trigger.c */
int sim_trigger_start(const char *pattern);
void sim_trigger_stop(void);
bool sim_trigger_asked(void);			/* for a long-running kernel */
void sim_trigger_busy(int change);		/* such a kernel begins (1) or ends (-1) */

/* sim_dump.c and sim_dump_code.c; op is NULL when no kernel is running */
bool sim_dump_write(struct sim_ctx *ctx, const struct sim_op *op, const struct sim_fault *fault,
		    const struct sim_dump_plan *plan);
uint64_t sim_code_entry(const struct sim_func *f);
bool sim_code_has_place(const struct sim_kernel_row *row);
unsigned int sim_code_offset(const struct sim_kernel_row *row, enum sim_insn insn);
bool sim_code_image(struct sim_elf *out, const struct sim_module *mod, bool relocated);

#endif
