/* SPDX-License-Identifier: Apache-2.0
 * What the driver printed about a failure: the assertion that failed and its first thread, which no call returns to the program.
 */
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "case/assert.h"
#include "find/failure/asserting.h"
#include "find/failure/observe.h"
#include "find/words/printed_assert.h"
#include "read/recording/printed_lines.h"
#include "read/recording/trace.h"

#define TOLD 3		/* lines of kernels */

/* A dump knows whose thread it was, and may not know the words. */
static void fill_assertion(struct casefile *c, const struct asserting *a)
{
	const struct text_assert *said = a->line;
	const char *kernel = fact_text_or_null(c, FACT_assert_kernel);
	double bound;

	if (fact_known(c, FACT_assert_condition))
		return;
	fact_set_text(c, FACT_assert_condition, said->condition);
	fact_set_text(c, FACT_assert_file, said->file);
	if (said->source_line)
		fact_set_number(c, FACT_assert_line, said->source_line);
	fact_set_text(c, FACT_assert_function, said->function);
	if (!fact_text(c, FACT_assert_about)[0])
		fact_set_text(c, FACT_assert_about,
			      assert_about_condition(kernel ? kernel : a->function, said->condition));
	if (!fact_known(c, FACT_assert_bound) && assert_bound_in_text(said->condition, &bound))
		fact_set_number(c, FACT_assert_bound, bound);
	if (fact_known(c, FACT_fault_kind))
		return;
	fact_set_text(c, FACT_fault_kind, "");	/* only core dumps can say that */
	fact_set_text(c, FACT_fault_what, "a device-side assert");
	fact_set_triple(c, FACT_fault_block, a->block);
	fact_set_triple(c, FACT_fault_thread, a->thread);
	fact_set_number(c, FACT_fault_threads, (double)a->count);
}

static void tell(struct casefile *c, const struct printed_line *p)
{
	case_evidence(c, p->assertion || p->stream == 2 ? "driver" : "kernel",
		      p->count == 1
			      ? pool_printf(c->pool, "printed: %s", p->text)
			      : pool_printf(c->pool, "printed %llu times: %s", (unsigned long long)p->count, p->text));
}

void observe_printed(struct casefile *c, const struct incident *i, const struct trace *t)
{
	struct printed_line list[PRINTED_MAX];
	size_t n = trace_printed(t, list, c->pool), told = 0;
	struct asserting a;
	struct buf all;

	if (!trace_has_printed(t))
		return;
	asserting_find(&a, i, t, c->pool);
	fact_set_number(c, FACT_printed_asserts, (double)a.count);
	if (a.line)
		fill_assertion(c, &a);
	buf_init(&all, sizeof(struct cw_printed));
	buf_adds(&all, "");
	for (size_t k = 0; k < n; k++) {
		if (list[k].assertion || list[k].stream == 2)
			buf_printf(&all, "%s\n", list[k].text);
		if (list[k].assertion || told++ < TOLD)
			tell(c, &list[k]);
	}
	fact_set_text(c, FACT_printed_text, all.data ? all.data : "");
	buf_release(&all);
}
