/* SPDX-License-Identifier: Apache-2.0
 * What the launches of an asserting kernel show: PyTorch's function, the line, the suspects that are known to assert.
 */
#include <string.h>

#include "case/assert.h"
#include "case/signature.h"
#include "find/failure/asserting.h"
#include "find/failure/observe.h"
#include "find/failure/place.h"
#include "find/failure/suspects.h"
#include "find/words/printed_assert.h"
#include "read/recording/trace.h"

static void facts_of_stack(struct casefile *f, const struct trace *t, uint32_t stack)
{
	const char *op = stack ? stack_torch_op(t, stack) : NULL, *line;
	struct place p;

	if (!stack)
		return;
	fact_set_text(f, FACT_assert_op, op ? op : "");
	if (place_of_caller(t, stack, &p))
		fact_set_text(f, FACT_assert_caller, place_source(&p, trace_sources(t), f->pool));
	line = fact_text(f, FACT_assert_caller);
	fact_set_flag(f, FACT_assert_position, assert_names_position(line));
}

struct search {
	struct casefile *facts;
	struct trace *trace;
	const struct asserting *asserting;
	const char *kernel, *about, *op;	/* NULL = none was found yet */
	uint32_t stack;			/* of its launch; 0 when there were several lines */
	struct place place;
	bool differ;			/* they check different things */
};

static bool same_line(const struct search *q, uint32_t stack)
{
	struct place p;

	return stack == q->stack || (place_of_stack(q->trace, stack, &p) && q->place.file &&
				     p.line == q->place.line && !strcmp(p.file, q->place.file));
}

/* What it would have asserted; NULL: nothing that is known, or not what was printed. */
static const char *about_suspect(const struct search *q, const struct cw_launch *l, const char *name, const char *full)
{
	const struct text_assert *said = q->asserting->line;
	const char *about = assert_about_kernel(name, full),
		   *printed = said ? assert_about_condition(name, said->condition) : "";

	if (said && asserting_fits(q->asserting, q->trace, l, q->facts->pool) > FITS_PERHAPS)
		return printed;
	return about[0] && (!printed[0] || !strcmp(about, printed)) ? about : NULL;
}

static void assert_consider(void *arg, const struct cw_launch *l)
{
	struct search *q = arg;
	const char *full = l->func ? trace_function_name(q->trace, l->func) : "";
	const char *name = kernel_short_name(full, q->facts->pool);
	const char *about = about_suspect(q, l, name, full), *op = stack_torch_op(q->trace, l->stack);

	if (!about)
		return;
	if (!q->kernel) {
		q->kernel = name;
		q->about = about;
		q->op = op;
		q->stack = l->stack;
		place_of_stack(q->trace, l->stack, &q->place);
		return;
	}
	q->differ |= strcmp(q->about, about) != 0;
	if (!op || !q->op || strcmp(op, q->op))
		q->op = NULL;
	if (q->stack && !same_line(q, l->stack))
		q->stack = 0;
}

uint32_t assert_facts_of_suspects(struct casefile *f, struct trace *t, const struct cw_failure *noticed,
				  const struct asserting *a)
{
	struct search q = {.facts = f, .trace = t, .asserting = a};

	suspects_asserting(t, noticed, a, f->pool, assert_consider, &q);
	if (!q.kernel || q.differ)
		return 0;
	fact_set_text(f, FACT_assert_kernel, q.kernel);
	fact_set_text(f, FACT_assert_about, q.about);
	if (q.op)
		fact_set_text(f, FACT_assert_op, q.op);
	facts_of_stack(f, t, q.stack);
	return q.stack;
}

void assert_facts_of_lines(struct casefile *f, const struct trace *t, const struct place *line, size_t n)
{
	const char *op = n && line[0].stack ? stack_torch_op(t, line[0].stack) : NULL, *other;

	if (n == 1)
		facts_of_stack(f, t, line[0].stack);
	for (size_t i = 1; i < n && op; i++) {
		other = line[i].stack ? stack_torch_op(t, line[i].stack) : NULL;
		if (!other || strcmp(op, other))
			op = NULL;
	}
	if (n > 1 && op)
		fact_set_text(f, FACT_assert_op, op);
}
