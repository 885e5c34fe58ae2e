/* SPDX-License-Identifier: Apache-2.0
 * The one kernel of PyTorch's that is computed: tensor.fill_, behind torch.ones and torch.full. Programs read back what they filled
 * (the scale of a gradient scaler, a mask of ones), and the value is a parameter of the launch. To recognize more of PyTorch's
 * kernels would be an endless list. */
#include "sim/sim_contents.h"

#include <string.h>

/* elementwise_kernel(int n, FillFunctor<T> {T value}, array of one pointer, …), for tensors without gaps. */
enum { PARAM_N, PARAM_VALUE, PARAM_POINTER };

static bool is_fill(const struct sim_func *f, size_t *unit)
{
	size_t n = 0, pointer = 0;

	if (!strstr(f->name, "FillFunctor") ||
	    (!strstr(f->name, "vectorized_elementwise_kernel") && !strstr(f->name, "unrolled_elementwise_kernel")))
		return false;
	sim_real_param(f, PARAM_N, &n);
	sim_real_param(f, PARAM_VALUE, unit);
	sim_real_param(f, PARAM_POINTER, &pointer);
	return n == sizeof(int) && pointer == sizeof(sim_addr) && *unit && *unit <= SIM_PATTERN_BYTES &&
	       !(*unit & (*unit - 1));
}

static bool is_zero(const void *value, size_t unit)
{
	static const char zeros[SIM_PATTERN_BYTES];

	return memcmp(value, zeros, unit) == 0;
}

bool sim_known_op(const struct sim_func *f, void **params, struct sim_op *op)
{
	size_t unit = 0, bytes;
	sim_addr to;
	int n;

	if (!params || f->param_count <= PARAM_POINTER || !is_fill(f, &unit))
		return false;
	memcpy(&n, params[PARAM_N], sizeof(n));
	memcpy(&to, params[PARAM_POINTER], sizeof(to));
	bytes = n > 0 ? (size_t)n * unit : 0;
	if (!bytes || !sim_mem_covers(to, bytes))
		return false;
	op->kind = SIM_OP_FILL;
	memset(&op->u, 0, sizeof(op->u));
	op->u.fill.to = to;
	op->u.fill.width = (size_t)n;
	op->u.fill.height = 1;
	op->u.fill.pitch = bytes;
	op->u.fill.bytes = (unsigned int)unit;
	memcpy(op->u.fill.pattern, params[PARAM_VALUE], unit);
	op->u.fill.drop = sim_contents_drops(to, bytes);
	sim_contents_filled(to, bytes, op->u.fill.drop && !is_zero(params[PARAM_VALUE], unit),
			    unit == 1 && op->u.fill.pattern[0] <= 1 && sim_truth_turns(op->u.fill.pattern[0]));
	return true;
}
