/* SPDX-License-Identifier: Apache-2.0
 * The few kernels of PyTorch's that are computed: tensor.fill_, behind torch.ones and torch.full, and arange, because programs read back
 * what they filled (the scale of a gradient scaler, a mask of ones, positions), and the values are parameters of the launch; and what
 * sizes go through, in sim_numbers.c. To recognize more of PyTorch's kernels would be an endless list. */
#include "sim/cuda/sim_contents.h"

#include <string.h>

/* elementwise_kernel(int n, FillFunctor<T> {T value}, array of one pointer, …), for tensors without gaps. */
enum { PARAM_N, PARAM_VALUE, PARAM_POINTER };

static bool is_fill(const struct sim_func *f, size_t *unit)
{
	size_t n = 0, pointer = 0;

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

/* In the order of AT_DISPATCH_ALL_TYPES_AND2(Half, BFloat16): the number of the innermost lambda in the kernel's name. Integers are
 * computed in 64 bits, the small floats as float. The same in the wheels of 2.4, 2.6, 2.8, 2.11 and 2.15. */
enum ramp_type { RAMP_NONE, RAMP_U8, RAMP_I8, RAMP_I32, RAMP_I64, RAMP_I16, RAMP_F64, RAMP_F32, RAMP_F16, RAMP_BF16, RAMP_TYPES };

static size_t ramp_unit(enum ramp_type type)
{
	static const unsigned char bytes[RAMP_TYPES] = {0, 1, 1, 4, 8, 2, 8, 4, 2, 2};

	return bytes[type];
}

/* elementwise_kernel_with_index(int n, lambda {start, step, …}, pointer) */
static enum ramp_type ramp_of(const struct sim_func *f)
{
	static const char inner[] = "_clEvENKUlvE";
	const char *name = strstr(f->name, "arange_cuda_out"), *at = name ? strstr(name, inner) : NULL;
	size_t n = 0, functor = 0, pointer = 0;
	int type;

	if (!at)
		return RAMP_NONE;
	at += sizeof(inner) - 1;
	type = *at == '_' ? RAMP_U8 : *at >= '0' && *at <= '7' && at[1] == '_' ? RAMP_I8 + (*at - '0') : RAMP_NONE;
	sim_real_param(f, PARAM_N, &n);
	sim_real_param(f, PARAM_VALUE, &functor);
	sim_real_param(f, PARAM_POINTER, &pointer);
	if (n != sizeof(int) || pointer != sizeof(sim_addr) ||
	    functor < (type >= RAMP_F32 ? 2 * sizeof(float) : SIM_PATTERN_BYTES))
		return RAMP_NONE;
	return (enum ramp_type)type;
}

/* To the nearest, and to the even one of two. */
static uint16_t to_bfloat16(float value)
{
	uint32_t bits;

	memcpy(&bits, &value, sizeof(bits));
	return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static uint16_t to_half(float value)
{
	uint32_t bits, sign;
	float magic;

	memcpy(&bits, &value, sizeof(bits));
	sign = bits >> 16 & 0x8000;
	bits &= 0x7fffffff;
	if (bits >= 0x477ff000)			/* rounds to infinity */
		return (uint16_t)(sign | 0x7c00);
	if (bits < 0x38800000) {		/* below the smallest normal one: let the addition round */
		memcpy(&magic, &bits, sizeof(magic));
		magic += 0.5f;
		memcpy(&bits, &magic, sizeof(bits));
		return (uint16_t)(sign | (bits - 0x3f000000));
	}
	return (uint16_t)(sign | ((bits - 0x38000000 + 0xfff + (bits >> 13 & 1)) >> 13));
}

static void ramp_float(unsigned char *to, enum ramp_type type, float value)
{
	uint16_t half = type == RAMP_BF16 ? to_bfloat16(value) : to_half(value);

	memcpy(to, type == RAMP_F32 ? (void *)&value : (void *)&half, ramp_unit(type));
}

void sim_known_ramp(const struct sim_op *op)
{
	enum ramp_type type = (enum ramp_type)op->u.fill.ramp;
	unsigned char *to = (unsigned char *)(uintptr_t)op->u.fill.to;
	struct { uint64_t start, step; } whole;
	struct { double start, step; } real;
	struct { float start, step; } small;

	memcpy(&whole, op->u.fill.pattern, sizeof(whole));
	memcpy(&real, op->u.fill.pattern, sizeof(real));
	memcpy(&small, op->u.fill.pattern, sizeof(small));
	for (size_t i = 0; i < op->u.fill.width; i++, to += op->u.fill.bytes) {
		if (type == RAMP_F64)
			memcpy(to, &(double){real.start + real.step * (double)i}, sizeof(double));
		else if (type >= RAMP_F32)
			ramp_float(to, type, small.start + small.step * (float)i);
		else			/* the lowest bytes come first */
			memcpy(to, &(uint64_t){whole.start + whole.step * i}, op->u.fill.bytes);
	}
}

/* Elements that lie side by side, and need no conversion. */
static bool is_plain(const char *name)
{
	return strstr(name, "vectorized_elementwise_kernel") ||
	       (strstr(name, "unrolled_elementwise_kernel") && !strstr(name, "LoadWithCast"));
}

static enum sim_known known_by_name(const char *name)
{
	if (strstr(name, "elementwise_kernel_with_index") && strstr(name, "arange_cuda_out"))
		return SIM_KNOWN_RAMP;
	if (strstr(name, "CatArrayBatchedCopy") &&
	    (strstr(name, "EEEjLi1ELi128ELi1E") || strstr(name, "EEEjLi1ELi64ELi64E"))) /* of one dimension */
		return SIM_KNOWN_JOIN;
	if (strstr(name, "reduce_kernelILi512ELi1E")) {
		if (strstr(name, "sum_functorIlll"))
			return SIM_KNOWN_SUM;
		if (strstr(name, "MaxNanFunctorIlE"))
			return SIM_KNOWN_MAX;
		return strstr(name, "MinNanFunctorIlE") ? SIM_KNOWN_MIN : SIM_KNOWN_NONE;
	}
	if (!is_plain(name))
		return SIM_KNOWN_NONE;
	if (strstr(name, "FillFunctor"))
		return SIM_KNOWN_FILL;
	if (strstr(name, "15CUDAFunctor_addIlE"))
		return SIM_KNOWN_ADD;
	if (strstr(name, "21CUDAFunctorOnSelf_addIlE"))
		return SIM_KNOWN_ADD_SCALAR;
	if (strstr(name, "14CompareFunctorIlE") && !strstr(name, "compare_scalar_kernel"))
		return SIM_KNOWN_COMPARE;
	return SIM_KNOWN_NONE;
}

enum sim_known sim_known_kind(struct sim_func *f)
{
	unsigned char kind = atomic_load_explicit(&f->known, memory_order_relaxed);

	if (SIM_UNLIKELY(kind == SIM_KNOWN_UNSEEN)) {
		kind = (unsigned char)known_by_name(f->name);
		atomic_store_explicit(&f->known, kind, memory_order_relaxed);
	}
	return (enum sim_known)kind;
}

bool sim_known_op(const struct sim_func *f, enum sim_known kind, void **params, struct sim_op *op)
{
	enum ramp_type ramp = RAMP_NONE;
	size_t unit = 0, bytes;
	sim_addr to;
	bool truth;
	int n;

	if (!params || f->param_count <= PARAM_POINTER)
		return false;
	if (kind == SIM_KNOWN_RAMP) {
		ramp = ramp_of(f);
		unit = ramp_unit(ramp);
	} else if (!is_fill(f, &unit)) {
		return false;
	}
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
	op->u.fill.ramp = (int)ramp;
	memcpy(op->u.fill.pattern, params[PARAM_VALUE], !ramp ? unit : ramp >= RAMP_F32 ? 2 * sizeof(float) : SIM_PATTERN_BYTES);
	op->u.fill.drop = sim_contents_drops(to, bytes);
	truth = !ramp && unit == 1 && op->u.fill.pattern[0] <= 1 && sim_truth_turns(op->u.fill.pattern[0]);
	sim_contents_filled(to, bytes, op->u.fill.drop && (ramp || !is_zero(params[PARAM_VALUE], unit)), truth);
	return true;
}
