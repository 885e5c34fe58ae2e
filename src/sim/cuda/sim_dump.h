/* SPDX-License-Identifier: Apache-2.0
 * Rows of the tables of a GPU core dump, as driver R580 writes them, and what the writers share. */
#ifndef CUWHY_SIM_DUMP_H
#define CUWHY_SIM_DUMP_H

#include "sim/cuda/sim_fault.h"

/* Section types, relative to 0x80000000. */
enum sim_table {
	SIM_TAB_GLOBAL = 2, SIM_TAB_REGS = 5, SIM_TAB_ELF = 6, SIM_TAB_RELF = 7, SIM_TAB_BACKTRACE = 8,
	SIM_TAB_DEVICE = 9, SIM_TAB_CONTEXT = 10, SIM_TAB_SM = 11, SIM_TAB_GRID = 12,
	SIM_TAB_CTA = 13, SIM_TAB_WARP = 14, SIM_TAB_LANE = 15, SIM_TAB_MODULE = 16,
	SIM_TAB_PRED = 17, SIM_TAB_PARAM = 18, SIM_TAB_UREGS = 19, SIM_TAB_UPRED = 20,
	SIM_TAB_BANK = 21, SIM_TAB_META = 22, SIM_TAB_CBU = 23,
};

struct sim_row_device {
	uint64_t name, type, sm_type;
	uint32_t id, pci_bus, pci_device, sms, warps, lanes, regs, preds, major, minor;
	uint32_t insn_bytes, status, uregs, upreds, barriers, pad;
};

struct sim_row_context {
	uint64_t id, shared_base, local_base, global_base;
	uint32_t device, tid;
};

struct sim_row_grid {
	uint64_t id, context, function, entry, module, parent, params_offset;
	uint32_t type, origin, status, regs, grid[3], block[3], blocking, tid;
	uint32_t cluster[3], pad0, preferred[3], pad1;
};

struct sim_row_bank {
	uint64_t address;
	uint32_t bytes, bank;
};

struct sim_row_sm {
	uint32_t id, pad, exception, pc_valid;
	uint64_t pc;
	uint32_t target_valid, target[3];
	uint64_t text;
};

struct sim_row_cta {
	uint64_t grid;
	uint32_t block[3], pad0, cluster[3], pad1, cluster_size[3], pad2;
};

struct sim_row_warp {
	uint64_t pc;
	uint32_t id, valid, active, broken, pc_valid, pad0, regs, pad1, shared, pad2;
	uint32_t in_syscall, cbu_active, cbu_exited, cbu_collective;
};

struct sim_row_lane {
	uint64_t pc, offset;
	uint32_t lane, thread[3], exception, depth, syscall_depth, cc, state, pad;
};

struct sim_row_frame {
	uint64_t offset, address;
	uint32_t level, pad;
};

struct sim_row_meta {
	uint64_t generator;
	uint32_t driver[2], cuda[2], flags, time;
};

_Static_assert(sizeof(struct sim_row_device) == 88 && sizeof(struct sim_row_context) == 40 &&
		       sizeof(struct sim_row_grid) == 136 && sizeof(struct sim_row_bank) == 16 &&
		       sizeof(struct sim_row_sm) == 48 && sizeof(struct sim_row_cta) == 56 &&
		       sizeof(struct sim_row_warp) == 64 && sizeof(struct sim_row_lane) == 56 &&
		       sizeof(struct sim_row_frame) == 24 && sizeof(struct sim_row_meta) == 32,
	       "the rows of R580");

struct sim_dump {
	struct sim_elf elf;
	struct sim_buf strings;
	struct sim_ctx *ctx;
	const struct sim_op *op;	/* NULL: no kernel is running */
	const struct sim_fault *fault;
	uint64_t entry, offset;		/* of the kernel; of the instruction in question */
	uint32_t regs;			/* of each thread */
	uint32_t sm_table;		/* its section */
};

struct sim_place {
	uint32_t table, row;		/* parent section and row in it */
};

uint32_t sim_dump_add(struct sim_dump *d, enum sim_table type, struct sim_place parent,
		      const void *data, size_t bytes, size_t stride, const char *name, ...)
	__attribute__((format(printf, 7, 8)));

/* sim_dump_threads.c: blocks, warps and lanes */
uint32_t sim_dump_blocks(const struct sim_dump *d);	/* how many are shown, one per SM */
bool sim_dump_fails(const struct sim_dump *d, uint32_t block, uint32_t thread);
void sim_dump_block(struct sim_dump *d, uint32_t block);

#endif
