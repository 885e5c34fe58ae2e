/* SPDX-License-Identifier: Apache-2.0
 * Where the values behind an assertion came from: "copied to the GPU at data.py:41".
 */
#include "find/fault/observe_origin.h"

#include <string.h>

#include "case/case.h"
#include "find/failure/observe.h"
#include "find/failure/place.h"
#include "find/fault/recall.h"
#include "read/recording/trace.h"

static const char *line_text(struct casefile *c, const struct trace *t, uint32_t stack)
{
	struct place p;

	return stack && place_of_stack(t, stack, &p)
		       ? pool_printf(c->pool, "%s:%u", file_shown(p.file, trace_header(t)->cwd), p.line)
		       : NULL;
}

static const char *origin_text(struct casefile *c, const struct recalled *from, const char *made, const char *copied)
{
	const char *since = !from->contents || from->sure ? "" : "; it may have been changed since";

	if (copied && (!made || !strcmp(made, copied)))
		return pool_printf(c->pool, "copied to the GPU at %s%s", copied, since);
	if (copied)
		return pool_printf(c->pool, "made at %s, from what was copied to the GPU at %s%s", made,
				   copied, since);
	return made ? pool_printf(c->pool, "made at %s", made) : NULL;
}

void observe_origin(struct casefile *c, const struct trace *t, const struct recalled *from)
{
	const char *before = case_observer(c, RECORDING_OBSERVER);
	const char *made = line_text(c, t, from->made), *copied = line_text(c, t, from->copied);

	fact_set_text(c, FACT_assert_made, made);
	fact_set_text(c, FACT_assert_copied, copied);
	fact_set_text(c, FACT_assert_origin, origin_text(c, from, made, copied));
	if (fact_known(c, FACT_assert_values))
		fact_set_text(c, FACT_assert_source, !from->contents ? "dump" : from->sure ? "copy" : "copy-unsure");
	case_observer(c, before);
}
