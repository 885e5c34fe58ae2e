/* SPDX-License-Identifier: Apache-2.0
 * A kernel has failed: the assertion's message, the core dump, the sticky error. */
#include "sim/cuda/sim_dump_assert.h"
#include "sim/cuda/sim_fault.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

sim_addr sim_fault_address(const struct sim_fault *fault, size_t thread)
{
	long long index = (long long)thread * fault->step;

	if (fault->narrow)
		index = (int32_t)(uint32_t)index;
	return fault->base + fault->shift + (sim_addr)index * 4;
}

/* A fault planned in CUWHY_SIM: only its code is known, and the dump shows nothing more. */
void sim_fault_planned(struct sim_fault *fault, int code)
{
	memset(fault, 0, sizeof(*fault));
	fault->code = code;
	fault->count = SIZE_MAX;
	switch (code) {
	case SIM_ILLEGAL_ADDRESS:
		fault->exception = SIM_EXC_DEVICE_ILLEGAL_ADDRESS;
		break;
	case SIM_MISALIGNED_ADDRESS:
		fault->exception = SIM_EXC_MISALIGNED;
		break;
	case SIM_ILLEGAL_INSTRUCTION:
		fault->exception = SIM_EXC_ILLEGAL_INSTRUCTION;
		break;
	case SIM_ASSERT:
		fault->exception = SIM_EXC_ASSERT;
		break;
	default:
		fault->exception = SIM_EXC_NONE;
	}
}

#define SAID "%s:%u: %s: block: [%zu,0,0], thread: [%zu,0,0] Assertion `%s` failed.\n"

/* One line for each thread of the warp that failed, as the driver prints them. */
static void say_assertion(const struct sim_op *op, const struct sim_fault *fault)
{
	const unsigned int *size = op->u.kernel.block;
	size_t block = fault->first / size[0], thread = fault->first % size[0] / SIM_WARP * SIM_WARP;
	char line[4 * SIM_NAME_MAX];
	struct sim_assert_words w;

	sim_assert_words(op->u.kernel.func, &w);
	for (unsigned int lane = 0; lane < SIM_WARP && thread + lane < size[0]; lane++) {
		if (fault->lanes && !(fault->lanes >> lane & 1))
			continue;
		if (!sim.config.own_words) {
			fprintf(stderr, SAID, w.file, w.line, w.function, block, thread + lane, w.condition);
			continue;
		}
		snprintf(line, sizeof(line), SAID, w.file, w.line, w.function, block, thread + lane, w.condition);
		syscall(SYS_write, STDERR_FILENO, line, strlen(line));
	}
}

/* Milliseconds after the kernel's end, as measured on R580. */
enum {
	STOPPED = 80,			/* until other kernels run again: 49 to 97 */
	LATE = 100,			/* until the error: about 20 more */
};

struct late_error {
	struct sim_ctx *ctx;
	int code;
	struct sim_dump_plan plan;
};

static void hidden_name(char *to, size_t size, const struct sim_dump_plan *plan)
{
	snprintf(to, size, "%.1190s.part", plan->path);
}

static void sleep_ms(int ms)
{
	nanosleep(&(struct timespec){ms / 1000, ms % 1000 * 1000000L}, NULL);
}

/* Copies the complete dump, which is under another name, in two steps. */
static void write_slowly(const char *hidden, const char *path)
{
	FILE *from = fopen(hidden, "re"), *to = from ? fopen(path, "we") : NULL;
	char bytes[4096];
	long half = 0;
	size_t n;

	if (to && fseek(from, 0, SEEK_END) == 0 && (half = ftell(from) / 2) >= 0 && fseek(from, 0, SEEK_SET) == 0) {
		for (long left = half; left > 0 && (n = fread(bytes, 1, left < 4096 ? (size_t)left : 4096, from)) > 0;
		     left -= (long)n)
			fwrite(bytes, 1, n, to);
		fflush(to);
		sleep_ms(300);
		while ((n = fread(bytes, 1, sizeof(bytes), from)) > 0)
			fwrite(bytes, 1, n, to);
	}
	if (to)
		fclose(to);
	if (from)
		fclose(from);
	unlink(hidden);
}

static void *raise_late(void *arg)
{
	struct late_error late = *(struct late_error *)arg;
	char hidden[1300];

	free(arg);
	hidden_name(hidden, sizeof(hidden), &late.plan);
	if (sim.config.error_first) {
		sleep_ms(sim.config.error_first);
		write_slowly(hidden, late.plan.path);
		return NULL;
	}
	sleep_ms(STOPPED);
	atomic_store(&late.ctx->stopped, false);
	sleep_ms(LATE - STOPPED);
	if (sim.config.late_dumps)
		rename(hidden, late.plan.path);
	sim_ctx_fail(late.ctx, late.code);
	return NULL;
}

/* Measured on R580: a program that is not aborted after its dump continues at first, and no call reports the fault.
 * The error comes a while later, and for an assertion it is the wrong one. While the library that writes dumps is
 * still being loaded from a cold disk, the error comes before the dump. */
static bool raised_late(struct sim_ctx *ctx, int code, const struct sim_dump_plan *plan)
{
	struct late_error *late = malloc(sizeof(*late));
	pthread_t thread;

	if (!late)
		return false;
	*late = (struct late_error){ctx, code == SIM_ASSERT ? SIM_LAUNCH_FAILED : code, *plan};
	if (sim.config.error_first)
		sim_ctx_fail(ctx, late->code);
	if (sim.config.late_dumps)
		atomic_store(&ctx->stopped, true);
	if (pthread_create(&thread, NULL, raise_late, late) != 0) {
		atomic_store(&ctx->stopped, false);
		free(late);
		return false;
	}
	pthread_detach(thread);
	return true;
}

/* The driver's library that writes dumps is loaded for the first one, and may crash in its exit handler. */
static void debugger_goes(void)
{
	abort();
}

static void register_debugger(void)
{
	atexit(debugger_goes);
}

static void debugger_comes(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, register_debugger);
}

void sim_fault_raise(const struct sim_op *op, const struct sim_fault *fault)
{
	struct sim_dump_plan plan, now;
	struct sim_fault seen = *fault;
	bool dumped = false;

	/* a stray store is reported when its warp has exited, and then the grid is gone, too */
	seen.gone = sim.config.late_dumps && fault->code == SIM_ILLEGAL_ADDRESS && !fault->asked &&
		    op->kind == SIM_OP_KERNEL && sim_code_has_place(op->u.kernel.func->row);
	if (fault->insn == SIM_INSN_ASSERT)
		say_assertion(op, fault);
	sim_dump_plan(op->ctx, &plan);
	if (plan.enabled && sim.config.lost_dumps && fault->code == SIM_ASSERT) {
		atomic_store(&sim.stuck, true);
		sim_ctx_fail(op->ctx, SIM_LAUNCH_FAILED);
		return;
	}
	now = plan;
	if ((sim.config.late_dumps || sim.config.error_first) && !fault->asked)
		hidden_name(now.path, sizeof(now.path), &plan);
	if (plan.enabled && sim.config.debugger_crashes)
		debugger_comes();
	if (plan.enabled || fault->asked)
		dumped = sim_dump_write(op->ctx, op, &seen, &now);
	if (dumped && !fault->asked) {
		if (plan.abort)
			abort();
		if (raised_late(op->ctx, fault->code, &plan))
			return;
	}
	sim_ctx_fail(op->ctx, fault->code);
}
