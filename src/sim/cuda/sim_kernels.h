/* SPDX-License-Identifier: Apache-2.0
 * What the two files of kernels share: parameters, and access to memory that may fail. */
#ifndef CUWHY_SIM_KERNELS_H
#define CUWHY_SIM_KERNELS_H

#include <string.h>

#include "sim/cuda/sim_fault.h"

#define SIM_PARAM(type, name, index)                                                               \
	type name;                                                                                 \
	memcpy(&name, op->params + sim_kernel_layout(op->u.kernel.row, index, NULL), sizeof(name))

#define SIM_KERNEL(name, mangled, params, code, regs, shared)                                      \
	void sim_run_##name(const struct sim_op *op, struct sim_fault *fault);
#include "sim/cuda/sim_kernels.def"
#undef SIM_KERNEL

/* The memory that `count` threads access, one word each; fills in the fault if they must not. */
void *sim_kernel_touch(const struct sim_op *op, struct sim_fault *fault, enum sim_insn how,
		       sim_addr base, size_t count);
size_t sim_kernel_threads(const struct sim_op *op);	/* of the x dimension */

/* Waits; true when a dump was requested meanwhile, which ends the kernel. */
bool sim_kernel_pause(struct sim_fault *fault, long milliseconds);

#endif
