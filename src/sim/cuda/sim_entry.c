/* SPDX-License-Identifier: Apache-2.0
 * The exported functions: each does the checks common to all driver calls, then calls
 * sim_<symbol>. */
#include "sim/cuda/sim.h"

#include <string.h>

struct sim_global sim;
__thread struct sim_tls sim_tls;

static const char *const fn_base[] = {
#define SIM_API(base, symbol, since, twin, need, params, args) #base,
#include "sim/cuda/sim_api.def"
#undef SIM_API
};

static const char *const fn_symbol[] = {
#define SIM_API(base, symbol, since, twin, need, params, args) #symbol,
#include "sim/cuda/sim_api.def"
#undef SIM_API
};

static bool fn_submits_kernels(enum sim_fn fn)
{
	return fn == SIM_FN_cuLaunchKernel || fn == SIM_FN_cuLaunchKernelEx ||
	       fn == SIM_FN_cuLaunchCooperativeKernel || fn == SIM_FN_cuGraphLaunch;
}

/* A sticky failure of a launch happens while the kernel runs, so the launch itself succeeds. */
static int plan_apply(const struct sim_plan *plan, enum sim_fn fn)
{
	struct sim_ctx *ctx = sim_ctx_current();

	if (!plan->sticky)
		return plan->code;
	if (fn_submits_kernels(fn)) {
		sim_tls.fault = plan->code;
		return 0;
	}
	if (ctx)
		sim_ctx_fail(ctx, plan->code);
	return plan->code;
}

static int plan_check(enum sim_fn fn)
{
	for (int i = 0; i < sim.config.plan_count; i++) {
		struct sim_plan *plan = &sim.config.plans[i];

		if (strcmp(plan->name, fn_base[fn]) && strcmp(plan->name, fn_symbol[fn]))
			continue;
		if (atomic_fetch_add(&plan->calls, 1) + 1 == plan->number)
			return plan_apply(plan, fn);
	}
	return 0;
}

/* On a worker thread the caller is a host function, which must not call the driver. */
static __attribute__((noinline, cold)) int no_context(void)
{
	if (sim_tls.worker)
		return SIM_NOT_PERMITTED;
	sim_log("No CUDA context is current to the calling thread");
	return SIM_INVALID_CONTEXT;
}

static inline int context_check(enum sim_need need)
{
	struct sim_ctx *ctx;
	int sticky;

	if (SIM_UNLIKELY(sim_tls.depth == 0))
		return no_context();
	ctx = sim_tls.stack[sim_tls.depth - 1];
	if (SIM_UNLIKELY(!atomic_load_explicit(&ctx->head.alive, memory_order_acquire)))
		return SIM_CONTEXT_IS_DESTROYED;
	if (need != SIM_NEED_WORK)
		return 0;
	sticky = atomic_load_explicit(&ctx->sticky, memory_order_acquire);
	if (SIM_UNLIKELY(sticky))
		sim_log("Sticky error detected");
	return sticky;
}

static int enter_slow(enum sim_fn fn, enum sim_need need)
{
	int code = 0;

	switch ((enum sim_state)atomic_load(&sim.state)) {
	case SIM_FORKED:
		/* Measured: after cuInit in the parent, cuInit in the child fails too. */
		if (need >= SIM_NEED_INIT || fn == SIM_FN_cuInit)
			return SIM_NOT_INITIALIZED;
		return 0;
	case SIM_ENDED:
		return need >= SIM_NEED_INIT ? SIM_DEINITIALIZED : 0;
	case SIM_FRESH:
	case SIM_FAILED:
		if (need >= SIM_NEED_INIT)
			return SIM_NOT_INITIALIZED;
		if (fn == SIM_FN_cuInit && sim_config_load() == 0)
			code = plan_check(fn);
		return code;
	case SIM_READY:
		break;
	}
	if (need >= SIM_NEED_CTX)
		code = context_check(need);
	return code ? code : plan_check(fn);
}

static inline int enter(enum sim_fn fn, enum sim_need need)
{
	if (SIM_UNLIKELY(!atomic_load_explicit(&sim.fast, memory_order_acquire)))
		return enter_slow(fn, need);
	return need >= SIM_NEED_CTX ? context_check(need) : 0;
}

static __attribute__((noinline, cold)) int leave_failed(enum sim_fn fn, int code)
{
	if (code != SIM_NOT_READY && code != SIM_NOT_INITIALIZED)
		sim_log_returning(fn_symbol[fn], code);
	return code;
}

#define CALL(symbol, need, args, per)                                                              \
	if (SIM_FN_##symbol == SIM_FN_cuGetExportTable)                                            \
		sim_tls.caller = __builtin_return_address(0);                                      \
	int code = enter(SIM_FN_##symbol, SIM_NEED_##need);                                        \
	if (SIM_LIKELY(!code)) {                                                                   \
		sim_tls.per_thread = per;                                                          \
		code = sim_##symbol args;                                                          \
	}                                                                                          \
	return SIM_LIKELY(!code) ? 0 : leave_failed(SIM_FN_##symbol, code);

#define TWIN_NONE(symbol, need, params, args)
#define TWIN_S(symbol, need, params, args)                                                         \
	SIM_EXPORT int symbol##_ptsz params;                                                       \
	int symbol##_ptsz params { CALL(symbol, need, args, 1) }
#define TWIN_D(symbol, need, params, args)                                                         \
	SIM_EXPORT int symbol##_ptds params;                                                       \
	int symbol##_ptds params { CALL(symbol, need, args, 1) }

#define SIM_API(base, symbol, since, twin, need, params, args)                                     \
	SIM_EXPORT int symbol params;                                                              \
	int symbol params{CALL(symbol, need, args, 0)} TWIN_##twin(symbol, need, params, args)
#include "sim/cuda/sim_api.def"
#undef SIM_API
