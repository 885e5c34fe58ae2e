/* SPDX-License-Identifier: Apache-2.0
 * Who held the memory that could not be had: the sums and the ledger of a verdict.
 */
#include "input/recording/observe_ledger.h"
#include "judge/verdict_priv.h"
#include "input/recording/trace.h"

static void fill_sums(struct memory_sums *m, const struct casefile *f)
{
	*m = (struct memory_sums){
		.known = fact_true(f, FACT_oom_is) || fact_true(f, FACT_masked_oom),
		.request = fact_number(f, FACT_oom_request, -1),
		.free = fact_number(f, FACT_oom_free, -1),
		.total = fact_number(f, FACT_oom_total, -1),
		.allocated = fact_number(f, FACT_oom_torch_allocated, -1),
		.reserved = fact_number(f, FACT_oom_torch_reserved, -1),
		.cache = fact_number(f, FACT_oom_cache, -1),
		.live = fact_number(f, FACT_oom_live, -1),
		.not_torch = fact_number(f, FACT_oom_not_torch, -1),
		.outside = fact_number(f, FACT_oom_outside, -1),
	};
}

void verdict_memory(struct verdict *v, struct casefile *f, const struct incident *i, struct trace *t)
{
	struct ledger_seen seen;
	struct ledger *l = ledger_of_incident(f, i, t, &seen);

	ledger_facts(f, i, t, l, &seen);
	fill_sums(&v->memory, f);
	if (!l)
		return;
	ledger_own(l, trace_header(t)->cwd, &v->pool);
	v->memory.ledger = l;
}
