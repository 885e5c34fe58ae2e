/* SPDX-License-Identifier: Apache-2.0
 * What a worker does with one work item: kernels, copies, fills, waits, events, graphs. */
#include "sim/cuda/sim.h"
#include "sim/cuda/sim_contents.h"
#include "sim/cuda/sim_copy.h"
#include "sim/cuda/sim_fault.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Most of what a large copy reads was never kept. */
static void copy_large(const struct sim_op *op)
{
	int kind = sim_mem_kind_of(op->u.copy.from);
	void *to = (void *)(uintptr_t)op->u.copy.to;

	if (kind == SIM_MEM_DEVICE || kind == SIM_MEM_VMM)
		sim_contents_get(to, op->u.copy.from, op->u.copy.width);
	else
		memmove(to, (const void *)(uintptr_t)op->u.copy.from, op->u.copy.width);
}

static void run_copy(const struct sim_op *op)
{
	unsigned char *to = (unsigned char *)(uintptr_t)op->u.copy.to;
	const unsigned char *from = (const unsigned char *)(uintptr_t)op->u.copy.from;

	if (op->u.copy.drop) {
		sim_contents_clear(op->u.copy.to,
				   sim_copy_span(op->u.copy.width, op->u.copy.height, op->u.copy.to_pitch));
		return;
	}
	if (op->u.copy.invent) {
		sim_contents_invent(to, op->u.copy.width, op);
		return;
	}
	if (op->u.copy.height == 1 && op->u.copy.width > sim.config.contents) {
		copy_large(op);
		return;
	}
	for (size_t row = 0; row < op->u.copy.height; row++)
		memmove(to + row * op->u.copy.to_pitch, from + row * op->u.copy.from_pitch,
			op->u.copy.width);
}

static void run_fill(const struct sim_op *op)
{
	size_t unit = op->u.fill.bytes;

	if (op->u.fill.drop) {
		sim_contents_clear(op->u.fill.to,
				   sim_copy_span(op->u.fill.width * unit, op->u.fill.height, op->u.fill.pitch));
		return;
	}
	if (op->u.fill.ramp) {
		sim_known_ramp(op);
		return;
	}
	for (size_t row = 0; row < op->u.fill.height; row++) {
		unsigned char *to = (unsigned char *)(uintptr_t)op->u.fill.to +
				    row * op->u.fill.pitch;

		if (unit == 1) {
			memset(to, op->u.fill.pattern[0], op->u.fill.width);
			continue;
		}
		for (size_t i = 0; i < op->u.fill.width; i++)
			memcpy(to + i * unit, op->u.fill.pattern, unit);
	}
}

static void run_event(const struct sim_op *op)
{
	struct sim_event *e = op->u.event.event;

	pthread_mutex_lock(&e->lock);
	if (e->turn == op->u.event.turn)
		e->time_ns = sim_clock_ns();
	pthread_mutex_unlock(&e->lock);
}

/* Whoever waits for it waits for the whole graph. */
static void run_record(const struct sim_op *op)
{
	struct sim_event *e = sim_pool_get(&sim.events, op->u.event.event);

	if (!e)
		return;
	pthread_mutex_lock(&e->lock);
	e->time_ns = sim_clock_ns();
	pthread_mutex_unlock(&e->lock);
}

static void run_graph(struct sim_op *op)
{
	struct sim_exec *exec = op->u.exec;

	/* Nodes are in the order of their capture, which satisfies every dependency. */
	for (size_t i = 0; i < exec->count && !atomic_load(&op->ctx->sticky); i++) {
		struct sim_op node = exec->nodes[i];

		node.ctx = op->ctx;
		if (node.kind == SIM_OP_KERNEL)
			node.u.kernel.id = sim_grid_number(op->ctx);
		sim_op_run(&node);
	}
	sim_exec_leave(exec);
}

static pthread_mutex_t gpu_lock = PTHREAD_MUTEX_INITIALIZER;

/* The worker holds the GPU for this work, if it can only do one thing at a time. */
static bool occupies(const struct sim_op *op)
{
	return sim.config.full_gpu && (op->kind == SIM_OP_KERNEL || op->kind == SIM_OP_FILL);
}

static void run_kernel(const struct sim_op *op)
{
	struct sim_fault fault;

	fault.code = 0;			/* the rest is filled in where it fails */
	if (SIM_UNLIKELY(op->fault))
		sim_fault_planned(&fault, op->fault);
	else if (SIM_UNLIKELY(sim.config.pointers && sim_pointers_lead_nowhere(op)))
		sim_fault_planned(&fault, SIM_ILLEGAL_ADDRESS);
	else
		op->u.kernel.row->run(op, &fault);
	if (SIM_UNLIKELY(fault.code))
		sim_fault_raise(op, &fault);
}

/* While the driver handles a fault, kernels have to wait, and a fill is one. Copies and events do not. */
static void wait_for_gpu(const struct sim_op *op)
{
	if (op->kind == SIM_OP_KERNEL || op->kind == SIM_OP_FILL)
		while (sim_ctx_stopped(op->ctx))
			nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

/* After a fault nothing runs anymore, but resources are still released. */
void sim_op_run(struct sim_op *op)
{
	bool dead, alone = occupies(op);

	wait_for_gpu(op);
	if (alone)
		pthread_mutex_lock(&gpu_lock);
	dead = atomic_load_explicit(&op->ctx->sticky, memory_order_acquire) != 0;

	switch (op->kind) {
	case SIM_OP_KERNEL:
		if (!dead)
			run_kernel(op);
		break;
	case SIM_OP_COPY:
		if (!dead)
			run_copy(op);
		free(op->u.copy.owned);
		break;
	case SIM_OP_FILL:
		sim_grid_number(op->ctx);
		if (!dead)
			run_fill(op);
		break;
	case SIM_OP_WAIT:
		sim_stream_wait(op->u.wait.stream, op->u.wait.seq);
		break;
	case SIM_OP_EVENT:
		run_event(op);
		break;
	case SIM_OP_RECORD:
		run_record(op);
		break;
	case SIM_OP_HOST:
		if (!dead)
			op->u.host.fn(op->u.host.data);
		break;
	case SIM_OP_FREE:
		sim_mem_free(op->u.address);
		break;
	case SIM_OP_GRAPH:
		if (op->fault)
			sim_ctx_fail(op->ctx, op->fault);
		run_graph(op);
		break;
	case SIM_OP_AWAIT:		/* the launch has waited */
	case SIM_OP_NONE:
		break;
	}
	if (alone)
		pthread_mutex_unlock(&gpu_lock);
}
