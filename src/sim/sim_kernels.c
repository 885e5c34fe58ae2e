/* SPDX-License-Identifier: Apache-2.0
 * The built-in kernels, on the CPU. Like real ones they handle one element a thread, so a grid that
 * is too small leaves elements untouched, and a wrong pointer is an illegal address. */
#include "sim/sim.h"

#include <string.h>
#include <time.h>

struct table_t {
	float value[80];		/* 320 bytes: more than a recorder keeps */
};

#define PARAM(type, name, index)                                                                   \
	type name;                                                                                 \
	memcpy(&name, op->params + sim_kernel_layout(op->u.kernel.row, index, NULL), sizeof(name))

static size_t elements(const struct sim_op *op, int n)
{
	size_t threads = (size_t)op->u.kernel.grid[0] * op->u.kernel.block[0];

	if (n <= 0)
		return 0;
	return (size_t)n < threads ? (size_t)n : threads;
}

static float *floats(sim_addr address, size_t count, int *code)
{
	if (count && !sim_mem_covers(address, count * sizeof(float)))
		*code = SIM_ILLEGAL_ADDRESS;
	else if (count && address % sizeof(float))
		*code = SIM_MISALIGNED_ADDRESS;
	return (float *)(uintptr_t)address;
}

static int run_fill(const struct sim_op *op)
{
	PARAM(sim_addr, to, 0);
	PARAM(float, value, 1);
	PARAM(int, n, 2);
	size_t count = elements(op, n);
	int code = 0;
	float *out = floats(to, count, &code);

	for (size_t i = 0; !code && i < count; i++)
		out[i] = value;
	return code;
}

static int run_iota(const struct sim_op *op)
{
	PARAM(sim_addr, to, 0);
	PARAM(int, n, 1);
	size_t count = elements(op, n);
	int code = 0;
	float *out = floats(to, count, &code);

	for (size_t i = 0; !code && i < count; i++)
		out[i] = (float)i;
	return code;
}

static int run_fat(const struct sim_op *op)
{
	return run_iota(op);
}

static int run_copy(const struct sim_op *op)
{
	PARAM(sim_addr, to, 0);
	PARAM(sim_addr, from, 1);
	PARAM(int, n, 2);
	size_t count = elements(op, n);
	int code = 0;
	float *out = floats(to, count, &code);
	const float *in = floats(from, count, &code);

	for (size_t i = 0; !code && i < count; i++)
		out[i] = in[i];
	return code;
}

static int run_scale(const struct sim_op *op)
{
	PARAM(sim_addr, to, 0);
	PARAM(float, factor, 1);
	PARAM(int, n, 2);
	size_t count = elements(op, n);
	int code = 0;
	float *out = floats(to, count, &code);

	for (size_t i = 0; !code && i < count; i++)
		out[i] *= factor;
	return code;
}

static int run_saxpy(const struct sim_op *op)
{
	PARAM(sim_addr, to, 0);
	PARAM(sim_addr, from, 1);
	PARAM(float, factor, 2);
	PARAM(int, n, 3);
	size_t count = elements(op, n);
	int code = 0;
	float *out = floats(to, count, &code);
	const float *in = floats(from, count, &code);

	for (size_t i = 0; !code && i < count; i++)
		out[i] += factor * in[i];
	return code;
}

static int run_vecadd(const struct sim_op *op)
{
	PARAM(sim_addr, to, 0);
	PARAM(sim_addr, left, 1);
	PARAM(sim_addr, right, 2);
	PARAM(int, n, 3);
	size_t count = elements(op, n);
	int code = 0;
	float *out = floats(to, count, &code);
	const float *a = floats(left, count, &code);
	const float *b = floats(right, count, &code);

	for (size_t i = 0; !code && i < count; i++)
		out[i] = a[i] + b[i];
	return code;
}

/* A reduction strides over all elements, whatever the grid. */
static int run_sum(const struct sim_op *op)
{
	PARAM(sim_addr, to, 0);
	PARAM(sim_addr, from, 1);
	PARAM(int, n, 2);
	size_t count = n > 0 ? (size_t)n : 0;
	int code = 0;
	float *out = floats(to, 1, &code);
	const float *in = floats(from, count, &code);
	double total = 0;

	for (size_t i = 0; !code && i < count; i++)
		total += (double)in[i];
	if (!code)
		*out = (float)total;
	return code;
}

/* Waits instead of computing: other streams and the program go on meanwhile. */
static int run_spin(const struct sim_op *op)
{
	PARAM(int, ms, 0);
	struct timespec pause = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	if (ms > 0)
		nanosleep(&pause, NULL);
	return 0;
}

static int run_table(const struct sim_op *op)
{
	PARAM(sim_addr, to, 0);
	PARAM(struct table_t, table, 1);
	PARAM(int, n, 2);
	size_t count = elements(op, n);
	int code = 0;
	float *out = floats(to, count, &code);

	for (size_t i = 0; !code && i < count; i++)
		out[i] = table.value[i % 80];
	return code;
}

static int run_trap(const struct sim_op *op)
{
	(void)op;
	return SIM_LAUNCH_FAILED;
}

static int run_assert_fail(const struct sim_op *op)
{
	(void)op;
	return SIM_ASSERT;
}

static int run_misaligned(const struct sim_op *op)
{
	PARAM(sim_addr, to, 0);
	int code = 0;

	floats(to + 1, 1, &code);
	return code;
}

#define run_nop NULL		/* so that an idle stream can skip it */

static const struct sim_kernel_row kernels[] = {
#define SIM_KERNEL(name, mangled, params, regs, shared)                                            \
	{ #name, #mangled, params, regs, shared, run_##name },
#include "sim/sim_kernels.def"
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
	size_t size = letter == 'p' || letter == 'l' ? 8 : letter == 'B' ?
		      sizeof(struct table_t) : 4;

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
