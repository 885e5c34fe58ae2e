/* SPDX-License-Identifier: Apache-2.0
 * Tracebacks from a recording (see printed.h).
 */
#include "find/failure/printed.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/pool.h"
#include "base/str.h"
#include "case/line.h"
#include "find/failure/incident.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"

#define PRINTED_MAX (256 << 10)

static void put_frame(struct buf *to, const struct trace *t, const struct cw_stack *s, uint32_t i, struct pool *pool)
{
	const struct cw_frame *f = &s->frame[i];
	struct place at = {.file = trace_string(t, f->file), .line = f->line, .text = stack_typed(t, s, i)};
	const char *source = place_source(&at, trace_sources(t), pool);

	buf_printf(to, "  File \"%s\", line %u, in %s\n", at.file, at.line, function_base(trace_string(t, f->function)));
	if (source)
		buf_printf(to, "    %s\n", source);
}

/* The arguments of the system's errors are a number and its words. */
const char *printed_message(const struct cw_failure *f, const struct trace *t, struct pool *pool)
{
	const char *text = trace_failure_text(t, f), *words;
	char *end;
	long number = f->source == CW_SRC_PYTHON ? strtol(text, &end, 10) : 0;

	if (number <= 0 || number > INT_MAX || !str_starts(end, ", "))
		return text;
	words = end + 2;
	return str_starts(words, strerror((int)number)) ? pool_printf(pool, "[Errno %ld] %s", number, words) : text;
}

static void put_exception(struct buf *to, const struct trace *t, const struct cw_failure *f, struct pool *pool)
{
	const struct cw_stack *s = f->stack ? trace_stack(t, f->stack) : NULL;
	const char *message = printed_message(f, t, pool);

	if (s)
		buf_adds(to, "Traceback (most recent call last):\n");
	for (uint32_t k = s ? s->n : 0; k-- > 0;)
		put_frame(to, t, s, k, pool);
	buf_printf(to, "%s%s%s\n", f->what[0] ? f->what : "Exception", message[0] ? ": " : "", message);
}

const char *incident_printed(const struct incident *i, const struct trace *t, struct pool *pool)
{
	const char *text = NULL;
	struct buf all;

	buf_init(&all, PRINTED_MAX);
	for (size_t k = i->n; k-- > 0;) {
		if (i->failure[k]->source != CW_SRC_PYTHON)
			continue;
		if (all.len)
			buf_adds(&all, "\nThe above exception was the direct cause of the following exception:\n\n");
		put_exception(&all, t, i->failure[k], pool);
	}
	if (all.len)
		text = pool_copy(pool, all.data, all.len);
	buf_release(&all);
	return text;
}
