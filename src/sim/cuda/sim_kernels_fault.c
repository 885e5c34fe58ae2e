/* SPDX-License-Identifier: Apache-2.0
 * Kernels that fail: out of bounds, misaligned, asserting, trapping, overflowing, hanging. */
#include "sim/cuda/sim_kernels.h"

#include <time.h>

enum { STACK_FRAME = 288 };		/* per level of stack_overflow */

/* Thread i accesses base[offset + i]; the offset may lead anywhere. */
static float *shifted(const struct sim_op *op, struct sim_fault *fault, enum sim_insn how,
		      sim_addr base, long long offset, size_t count)
{
	return sim_kernel_touch(op, fault, how, base + (sim_addr)offset * sizeof(float), count);
}

void sim_run_oob_store(const struct sim_op *op, struct sim_fault *fault)
{
	SIM_PARAM(sim_addr, to, 0);
	SIM_PARAM(long long, offset, 1);
	size_t count = sim_kernel_threads(op);
	float *out = shifted(op, fault, SIM_INSN_STORE, to, offset, count);

	for (size_t i = 0; !fault->code && i < count; i++)
		out[i] = 1.0f;
}

void sim_run_oob_load(const struct sim_op *op, struct sim_fault *fault)
{
	SIM_PARAM(sim_addr, to, 0);
	SIM_PARAM(sim_addr, from, 1);
	SIM_PARAM(long long, offset, 2);
	size_t count = sim_kernel_threads(op);
	const float *in = shifted(op, fault, SIM_INSN_LOAD, from, offset, count);
	float *out = sim_kernel_touch(op, fault, SIM_INSN_STORE, to, count);

	for (size_t i = 0; !fault->code && i < count; i++)
		out[i] = in[i];
}

void sim_run_oob_atomic(const struct sim_op *op, struct sim_fault *fault)
{
	SIM_PARAM(sim_addr, to, 0);
	SIM_PARAM(long long, offset, 1);
	size_t count = sim_kernel_threads(op);
	float *out = shifted(op, fault, SIM_INSN_ATOMIC, to, offset, count);

	for (size_t i = 0; !fault->code && i < count; i++)
		out[i] += 1.0f;
}

/* out[i * step] = 1 with a 32-bit product, which becomes negative at 2^31. */
void sim_run_index32(const struct sim_op *op, struct sim_fault *fault)
{
	SIM_PARAM(sim_addr, to, 0);
	SIM_PARAM(int, step, 1);
	size_t count = sim_kernel_threads(op);
	struct sim_fault where = { .code = SIM_ILLEGAL_ADDRESS, .insn = SIM_INSN_STORE,
				  .exception = SIM_EXC_ILLEGAL_ADDRESS,
				  .base = to,
				  .step = step,
				  .narrow = true,
				  .count = count};

	for (; where.first < count; where.first++) {
		sim_addr at = sim_fault_address(&where, where.first);

		if (sim_mem_reach(op->ctx, at, sizeof(float)) < sizeof(float)) {
			*fault = where;
			return;
		}
		*(float *)(uintptr_t)at = 1.0f;
	}
}

/* The address is a register plus 1 in the instruction itself. */
void sim_run_misaligned(const struct sim_op *op, struct sim_fault *fault)
{
	SIM_PARAM(sim_addr, to, 0);

	sim_kernel_touch(op, fault, SIM_INSN_STORE, to + 1, 1);
	if (fault->code) {
		fault->base--;
		fault->shift = 1;
	}
}

static void fail_plainly(struct sim_fault *fault, int code, enum sim_exception exception,
			 enum sim_insn insn, size_t count)
{
	*fault = (struct sim_fault){.code = code, .exception = exception, .insn = insn, .count = count};
}

void sim_run_trap(const struct sim_op *op, struct sim_fault *fault)
{
	fail_plainly(fault, SIM_LAUNCH_FAILED, SIM_EXC_NONE, SIM_INSN_TRAP, sim_kernel_threads(op));
}

void sim_run_illegal_instruction(const struct sim_op *op, struct sim_fault *fault)
{
	fail_plainly(fault, SIM_ILLEGAL_INSTRUCTION, SIM_EXC_ILLEGAL_INSTRUCTION, SIM_INSN_ILLEGAL,
		     sim_kernel_threads(op));
}

void sim_run_assert_fail(const struct sim_op *op, struct sim_fault *fault)
{
	fail_plainly(fault, SIM_ASSERT, SIM_EXC_ASSERT, SIM_INSN_ASSERT, sim_kernel_threads(op));
}

/* The indices, of 8 bytes each. */
static const long long *indices(const struct sim_op *op, struct sim_fault *fault, sim_addr at,
				size_t count)
{
	size_t reach = sim_mem_reach(op->ctx, at, count * sizeof(long long)) / sizeof(long long);

	if (reach < count)
		*fault = (struct sim_fault){ .code = SIM_ILLEGAL_ADDRESS, .insn = SIM_INSN_LOAD,
					    .exception = SIM_EXC_ILLEGAL_ADDRESS,
					    .base = at,
					    .step = 2,
					    .count = count,
					    .first = reach};
	return (const long long *)(uintptr_t)at;
}

/* Checks every thread of the failing warp, because each of them prints its own line. */
static void check_indices(const struct sim_op *op, struct sim_fault *fault, const long long *index,
			  size_t count, int size)
{
	size_t warp = 0;

	for (size_t i = 0; i < count; i++) {
		if (i % op->u.kernel.block[0] % SIM_WARP == 0)
			warp = i;
		if (fault->code && warp > fault->first)
			return;
		if (index[i] >= 0 && index[i] < size)
			continue;
		if (!fault->code) {
			fail_plainly(fault, SIM_ASSERT, SIM_EXC_ASSERT, SIM_INSN_ASSERT, count);
			fault->first = i;
		}
		fault->lanes |= 1u << (i - warp);
	}
}

/* out[i] = in[index[i]], with an assertion that the index is below size. */
void sim_run_gather(const struct sim_op *op, struct sim_fault *fault)
{
	SIM_PARAM(sim_addr, to, 0);
	SIM_PARAM(sim_addr, from, 1);
	SIM_PARAM(sim_addr, at, 2);
	SIM_PARAM(int, n, 3);
	SIM_PARAM(int, size, 4);
	size_t threads = sim_kernel_threads(op);
	size_t count = n <= 0 ? 0 : (size_t)n < threads ? (size_t)n : threads;
	const long long *index = indices(op, fault, at, count);
	const float *in = (const float *)(uintptr_t)from;
	float *out;

	if (!fault->code)
		check_indices(op, fault, index, count, size);
	for (size_t i = 0; !fault->code && i < count; i++)
		sim_kernel_touch(op, fault, SIM_INSN_LOAD, (sim_addr)(uintptr_t)&in[index[i]], 1);
	out = sim_kernel_touch(op, fault, SIM_INSN_STORE, to, count);
	for (size_t i = 0; !fault->code && i < count; i++)
		out[i] = in[index[i]];
}

/* CUDA reports the overflow as an illegal address; the dump is more specific. */
void sim_run_stack_overflow(const struct sim_op *op, struct sim_fault *fault)
{
	SIM_PARAM(sim_addr, to, 0);
	SIM_PARAM(int, depth, 1);
	size_t limit, levels;
	int *out;

	pthread_mutex_lock(&op->ctx->lock);
	limit = op->ctx->limits[0];
	pthread_mutex_unlock(&op->ctx->lock);
	levels = limit / STACK_FRAME;
	if (depth > 0 && (size_t)depth > levels) {
		fail_plainly(fault, SIM_ILLEGAL_ADDRESS, SIM_EXC_OUT_OF_RANGE, SIM_INSN_STACK,
			     sim_kernel_threads(op));
		fault->depth = levels + 1 < 64 ? (unsigned int)levels + 1 : 64;
		return;
	}
	out = sim_kernel_touch(op, fault, SIM_INSN_STORE, to, 1);
	if (!fault->code)
		*out = depth;
}

bool sim_kernel_pause(struct sim_fault *fault, long milliseconds)
{
	uint64_t end = sim_clock_ns() + (uint64_t)(milliseconds > 0 ? milliseconds : 0) * 1000000;
	bool asked = false;

	sim_trigger_busy(1);
	for (;;) {
		uint64_t now = sim_clock_ns();
		struct timespec nap = {0, 2000000};

		asked = sim_trigger_asked();
		if (asked || now >= end)
			break;
		if (end - now < (uint64_t)nap.tv_nsec)
			nap.tv_nsec = (long)(end - now);
		nanosleep(&nap, NULL);
	}
	sim_trigger_busy(-1);
	if (asked) {
		fail_plainly(fault, SIM_LAUNCH_FAILED, SIM_EXC_NONE, SIM_INSN_LOOP, SIZE_MAX);
		fault->asked = true;
	}
	return asked;
}

/* Loops until *flag is not zero; with a null pointer, forever. */
void sim_run_hang(const struct sim_op *op, struct sim_fault *fault)
{
	SIM_PARAM(sim_addr, at, 0);
	_Atomic int *flag = at ? sim_kernel_touch(op, fault, SIM_INSN_LOAD, at, 1) : NULL;

	sim_trigger_busy(1);
	while (!fault->code && (!flag || !atomic_load(flag)))
		sim_kernel_pause(fault, 10);
	sim_trigger_busy(-1);
}
