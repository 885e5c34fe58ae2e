/* SPDX-License-Identifier: Apache-2.0
 * Options of frameworks, by the frames on the stack (see batch_options.h).
 */
#include "find/memory/batch_options.h"

#include <string.h>

#include "base/str.h"
#include "case/source.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"

struct batch_option {
	const char *path, *function, *of, *batch, *accumulate, *code, *others;
};

static const struct batch_option options[] = {
#define BATCH_OPTION(path, function, of, batch, accumulate, code, others) {path, function, of, batch, accumulate, code, others},
#include "kb/batch_options.def"
};
#define OPTIONS (sizeof(options) / sizeof(options[0]))

/* Of a program with a loop of its own. */
static const struct batch_option loader = {.of = "the DataLoader",
					   .batch = "batch_size",
					   .accumulate = "",
					   .code = "loader = DataLoader(data, batch_size=SIZE)",
					   .others = ""};

static bool stack_has(const struct trace *t, uint32_t stack, const struct batch_option *o)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;

	for (uint32_t i = 0; s && i < s->n; i++)
		if (strstr(trace_string(t, s->frame[i].file), o->path) &&
		    str_starts(function_base(trace_string(t, s->frame[i].function)), o->function))
			return true;
	return false;
}

static bool stack_loads(struct trace *t, uint32_t stack)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;

	for (uint32_t i = 0; s && i < s->n; i++)
		if (stack_owner(t, s, i) == OWNER_USER &&
		    source_loads(trace_sources(t), trace_string(t, s->frame[i].file)) > 0)
			return true;
	return false;
}

static const struct batch_option *option_of(struct trace *t, const struct cw_failure *f)
{
	for (size_t i = 0; i < OPTIONS; i++)
		if (stack_has(t, f->stack, &options[i]) || stack_has(t, f->forward_stack, &options[i]))
			return &options[i];
	return stack_loads(t, f->stack) || stack_loads(t, f->forward_stack) ? &loader : NULL;
}

/* Into how many equal parts the batch must go, so that none is larger than what fits. */
static uint64_t times(uint64_t batch, uint64_t largest)
{
	uint64_t n = 1;

	while (n < batch && (batch % n || batch / n > largest))
		n++;
	return n;
}

/* SIZE and TIMES as numbers. */
static const char *code_with(struct pool *pool, const char *code, uint64_t size, uint64_t by)
{
	const char *said = "", *at = code;

	for (;;) {
		const char *s = strstr(at, "SIZE"), *t = strstr(at, "TIMES");
		const char *next = !s || (t && t < s) ? t : s;

		if (!next)
			return pool_printf(pool, "%s%s", said, at);
		said = pool_printf(pool, "%s%.*s%llu", said, (int)(next - at), at,
				   (unsigned long long)(next == s ? size : by));
		at = next + (next == s ? 4 : 5);
	}
}

void observe_batch_options(struct casefile *c, struct trace *t, const struct cw_failure *f)
{
	const struct batch_option *o = option_of(t, f);
	uint64_t batch = (uint64_t)fact_number(c, FACT_oom_batch, 0), n;
	uint64_t largest = (uint64_t)fact_number(c, FACT_oom_fits_size, 0), size;

	if (!o)
		return;
	fact_set_text(c, FACT_options_of, o->of);
	fact_set_flag(c, FACT_options_own, o == &loader);
	fact_set_text(c, FACT_options_batch, o->batch);
	fact_set_text(c, FACT_options_accumulate, o->accumulate);
	fact_set_text(c, FACT_options_others, o->others);
	if (!batch || !largest)
		return;
	n = times(batch, largest);
	size = o->accumulate[0] ? batch / n : largest;
	fact_set_number(c, FACT_options_size, (double)size);
	fact_set_number(c, FACT_options_times, (double)n);
	fact_set_text(c, FACT_options_code, code_with(c->pool, o->code, size, n));
}
