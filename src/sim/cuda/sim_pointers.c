/* SPDX-License-Identifier: Apache-2.0
 * What captured kernels of real code were given.
 *
 * Such a kernel computes nothing here, so it would not notice that memory is gone when its graph is run. With the key `pointers` it keeps
 * the pointers among its parameters that led to mapped memory when it was captured, and fails like a kernel that follows one to memory
 * that is mapped no longer. Parameters with room for many are left out: what is not filled in may hold anything. */
#include "sim/cuda/sim_contents.h"

#include <string.h>

enum { WORD = sizeof(sim_addr), ROOM_FOR_MANY = 1024 };

static void keep(struct sim_op *op, const unsigned char *bytes, size_t size)
{
	sim_addr word;

	for (size_t i = 0; i + WORD <= size && op->param_bytes + WORD <= SIM_PARAM_BYTES; i += WORD) {
		memcpy(&word, bytes + i, WORD);
		if (sim_mem_kind_of(word) != SIM_MEM_VMM)
			continue;
		memcpy(op->params + op->param_bytes, &word, WORD);
		op->param_bytes += WORD;
	}
}

void sim_pointers_keep(struct sim_op *op, const struct sim_func *f, void **params)
{
	for (unsigned int i = 0; params && i < f->param_count; i++) {
		size_t size = 0;

		if (sim_real_param(f, i, &size) != SIZE_MAX && size < ROOM_FOR_MANY)
			keep(op, params[i], size);
	}
}

bool sim_pointers_lead_nowhere(const struct sim_op *op)
{
	sim_addr word;

	for (size_t i = 0; op->u.kernel.func->real && i < op->param_bytes; i += WORD) {
		memcpy(&word, op->params + i, WORD);
		if (sim_mem_kind_of(word) < 0)
			return true;
	}
	return false;
}
