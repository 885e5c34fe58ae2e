/* SPDX-License-Identifier: Apache-2.0
 * The built-in kernels, which run on the CPU. Like real ones they process one element per thread,
 * so a grid that is too small leaves elements untouched, and a bad pointer is an illegal address. */
#include "sim/cuda/sim_kernels.h"

#include <stdio.h>
#include <time.h>

struct table_t {
	float value[80];		/* 320 bytes: more than the recorder keeps */
};

size_t sim_kernel_threads(const struct sim_op *op)
{
	return (size_t)op->u.kernel.grid[0] * op->u.kernel.block[0];
}

static size_t elements(const struct sim_op *op, int n)
{
	size_t threads = sim_kernel_threads(op);

	if (n <= 0)
		return 0;
	return (size_t)n < threads ? (size_t)n : threads;
}

/* Memory is looked up before the address is checked for alignment. With more elements than threads,
 * threads loop: what counts is the iteration that fails. */
static __attribute__((noinline, cold)) void touch_failed(const struct sim_op *op,
							 struct sim_fault *fault, enum sim_insn how,
							 sim_addr base, size_t count, size_t first)
{
	size_t threads = sim_kernel_threads(op);
	size_t before = first < count ? first / threads * threads : 0;

	memset(fault, 0, sizeof(*fault));
	fault->code = first < count ? SIM_ILLEGAL_ADDRESS : SIM_MISALIGNED_ADDRESS;
	fault->exception = fault->code == SIM_ILLEGAL_ADDRESS ? SIM_EXC_ILLEGAL_ADDRESS : SIM_EXC_MISALIGNED;
	fault->insn = how;
	fault->base = base + before * sizeof(float);
	fault->step = 1;
	fault->count = count - before < threads ? count - before : threads;
	fault->first = first < count ? first - before : 0;
}

void *sim_kernel_touch(const struct sim_op *op, struct sim_fault *fault, enum sim_insn how,
		       sim_addr base, size_t count)
{
	size_t bytes = count * sizeof(float);
	size_t reach = count && !fault->code ? sim_mem_reach(op->ctx, base, bytes) : bytes;

	if (SIM_UNLIKELY(reach < bytes || (count && base % sizeof(float) && !fault->code)))
		touch_failed(op, fault, how, base, count, reach / sizeof(float));
	return (void *)(uintptr_t)base;
}

void sim_run_nop(const struct sim_op *op, struct sim_fault *fault)
{
	(void)op;
	(void)fault;
}

/* printf() in a kernel: the driver prints it, a piece for each part of the format. */
void sim_run_say(const struct sim_op *op, struct sim_fault *fault)
{
	SIM_PARAM(int, number, 0);

	(void)fault;
	for (size_t i = 0; i < sim_kernel_threads(op); i++) {
		printf("thread ");
		printf("%zu", i);
		printf(" was given ");
		printf("%d", number);
		printf("\n");
	}
}

/* Through a table of one pointer, which is no parameter. */
void sim_run_through(const struct sim_op *op, struct sim_fault *fault)
{
	SIM_PARAM(sim_addr, table, 0);
	const sim_addr *to = sim_kernel_touch(op, fault, SIM_INSN_LOAD, table, 2);
	size_t count = sim_kernel_threads(op);
	float *out = fault->code ? NULL : sim_kernel_touch(op, fault, SIM_INSN_STORE, *to, count);

	for (size_t i = 0; !fault->code && i < count; i++)
		out[i] = 1.0f;
}

/* A workspace, as a library's kernel uses it: what it does with it is not known. */
void sim_run_uses(const struct sim_op *op, struct sim_fault *fault)
{
	SIM_PARAM(sim_addr, workspace, 0);

	sim_kernel_touch(op, fault, SIM_INSN_LOAD, workspace, workspace ? 1 : 0);
}

void sim_run_fill(const struct sim_op *op, struct sim_fault *fault)
{
	SIM_PARAM(sim_addr, to, 0);
	SIM_PARAM(float, value, 1);
	SIM_PARAM(int, n, 2);
	size_t count = elements(op, n);
	float *out = sim_kernel_touch(op, fault, SIM_INSN_STORE, to, count);

	for (size_t i = 0; !fault->code && i < count; i++)
		out[i] = value;
}

void sim_run_iota(const struct sim_op *op, struct sim_fault *fault)
{
	SIM_PARAM(sim_addr, to, 0);
	SIM_PARAM(int, n, 1);
	size_t count = elements(op, n);
	float *out = sim_kernel_touch(op, fault, SIM_INSN_STORE, to, count);

	for (size_t i = 0; !fault->code && i < count; i++)
		out[i] = (float)i;
}

void sim_run_fat(const struct sim_op *op, struct sim_fault *fault)
{
	sim_run_iota(op, fault);
}

void sim_run_copy(const struct sim_op *op, struct sim_fault *fault)
{
	SIM_PARAM(sim_addr, to, 0);
	SIM_PARAM(sim_addr, from, 1);
	SIM_PARAM(int, n, 2);
	size_t count = elements(op, n);
	const float *in = sim_kernel_touch(op, fault, SIM_INSN_LOAD, from, count);
	float *out = sim_kernel_touch(op, fault, SIM_INSN_STORE, to, count);

	for (size_t i = 0; !fault->code && i < count; i++)
		out[i] = in[i];
}

void sim_run_scale(const struct sim_op *op, struct sim_fault *fault)
{
	SIM_PARAM(sim_addr, to, 0);
	SIM_PARAM(float, factor, 1);
	SIM_PARAM(int, n, 2);
	size_t count = elements(op, n);
	float *out = sim_kernel_touch(op, fault, SIM_INSN_STORE, to, count);

	for (size_t i = 0; !fault->code && i < count; i++)
		out[i] *= factor;
}

void sim_run_saxpy(const struct sim_op *op, struct sim_fault *fault)
{
	SIM_PARAM(sim_addr, to, 0);
	SIM_PARAM(sim_addr, from, 1);
	SIM_PARAM(float, factor, 2);
	SIM_PARAM(int, n, 3);
	size_t count = elements(op, n);
	const float *in = sim_kernel_touch(op, fault, SIM_INSN_LOAD, from, count);
	float *out = sim_kernel_touch(op, fault, SIM_INSN_STORE, to, count);

	for (size_t i = 0; !fault->code && i < count; i++)
		out[i] += factor * in[i];
}

void sim_run_vecadd(const struct sim_op *op, struct sim_fault *fault)
{
	SIM_PARAM(sim_addr, to, 0);
	SIM_PARAM(sim_addr, left, 1);
	SIM_PARAM(sim_addr, right, 2);
	SIM_PARAM(int, n, 3);
	size_t count = elements(op, n);
	const float *a = sim_kernel_touch(op, fault, SIM_INSN_LOAD, left, count);
	const float *b = sim_kernel_touch(op, fault, SIM_INSN_LOAD, right, count);
	float *out = sim_kernel_touch(op, fault, SIM_INSN_STORE, to, count);

	for (size_t i = 0; !fault->code && i < count; i++)
		out[i] = a[i] + b[i];
}

/* A reduction loops over all elements, whatever the grid. */
void sim_run_sum(const struct sim_op *op, struct sim_fault *fault)
{
	SIM_PARAM(sim_addr, to, 0);
	SIM_PARAM(sim_addr, from, 1);
	SIM_PARAM(int, n, 2);
	size_t count = n > 0 ? (size_t)n : 0;
	const float *in = sim_kernel_touch(op, fault, SIM_INSN_LOAD, from, count);
	float *out = sim_kernel_touch(op, fault, SIM_INSN_STORE, to, 1);
	double total = 0;

	for (size_t i = 0; !fault->code && i < count; i++)
		total += (double)in[i];
	if (!fault->code)
		*out = (float)total;
}

/* Waits instead of computing, so that other streams and the program can continue. */
void sim_run_spin(const struct sim_op *op, struct sim_fault *fault)
{
	SIM_PARAM(int, ms, 0);

	sim_kernel_pause(fault, ms);
}

void sim_run_table(const struct sim_op *op, struct sim_fault *fault)
{
	SIM_PARAM(sim_addr, to, 0);
	SIM_PARAM(struct table_t, table, 1);
	SIM_PARAM(int, n, 2);
	size_t count = elements(op, n);
	float *out = sim_kernel_touch(op, fault, SIM_INSN_STORE, to, count);

	for (size_t i = 0; !fault->code && i < count; i++)
		out[i] = table.value[i % 80];
}

static const struct sim_kernel_row kernels[] = {
#define SIM_KERNEL(name, mangled, params, code, regs, shared)                                      \
	{#name, #mangled, params, code, regs, shared, sim_run_##name},
#include "sim/cuda/sim_kernels.def"
#undef SIM_KERNEL
};

const struct sim_kernel_row *sim_kernel_find(const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof(kernels) / sizeof(kernels[0]); i++)
		if (strlen(kernels[i].name) == length && !memcmp(kernels[i].name, name, length))
			return &kernels[i];
	return NULL;
}

static size_t param_size(char letter, size_t *align)
{
	size_t size = letter == 'p' || letter == 'l' ? 8 : letter == 'B' ? sizeof(struct table_t) : 4;

	*align = letter == 'B' ? 4 : size;
	return size;
}

/* Offset of a parameter, or SIZE_MAX after the last; *size may be NULL. */
size_t sim_kernel_layout(const struct sim_kernel_row *row, unsigned int index, size_t *size)
{
	size_t offset = 0, bytes, align;

	for (const char *p = row->params; *p; p++) {
		bytes = param_size(*p, &align);
		offset = (offset + align - 1) / align * align;
		if (index-- == 0) {
			if (size)
				*size = bytes;
			return offset;
		}
		offset += bytes;
	}
	return SIZE_MAX;
}

size_t sim_kernel_bytes(const struct sim_kernel_row *row)
{
	size_t count = strlen(row->params), size = 0;
	size_t offset = count ? sim_kernel_layout(row, (unsigned int)count - 1, &size) : 0;

	return offset + size;
}
