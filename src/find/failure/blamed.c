/* SPDX-License-Identifier: Apache-2.0
 * Finds the launch that is blamed (see blamed.h).
 */
#include "find/failure/blamed.h"

#include <string.h>

#include "case/case.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"

static bool fits_fault(struct trace *t, const struct casefile *c, const struct cw_launch *l)
{
	const struct line *where = &c->line[LINE_where];
	struct place p = {0};

	if (!case_observed(c, GROUP_fault) || !fact_known(c, FACT_kernel_grid) || !fact_known(c, FACT_kernel_name) ||
	    !where->file)
		return false;
	if (memcmp(c->value[FACT_kernel_grid].triple, l->grid, sizeof(l->grid)) ||
	    memcmp(c->value[FACT_kernel_block].triple, l->block, sizeof(l->block)) ||
	    strcmp(trace_function_name(t, l->func), fact_text(c, FACT_kernel_name)) != 0)
		return false;
	return (place_of_stack(t, l->stack, &p) && p.line == where->number && !strcmp(p.file, where->file)) ||
	       (place_of_stack(t, l->forward_stack, &p) && p.line == where->number &&
		!strcmp(p.file, where->file));
}

size_t blamed_among(struct trace *t, const struct casefile *c, const struct cw_launch *const *l, size_t n)
{
	for (size_t i = n; i > 0; i--)
		if (fits_fault(t, c, l[i - 1]))
			return i - 1;
	return SIZE_MAX;
}

const struct cw_launch *blamed_launch(struct trace *t, const struct casefile *c)
{
	const struct cw_launch *const *l;
	size_t n = trace_launches(t, &l), found = blamed_among(t, c, l, n);

	return found < n ? l[found] : NULL;
}

uint64_t blamed_moment(struct trace *t, const struct casefile *c, uint64_t noticed_ns)
{
	const struct cw_launch *l = blamed_launch(t, c);
	const struct cw_failure *const *f;
	size_t n = trace_failures(t, &f);

	if (l && !(l->flags & CW_LAUNCH_CAPTURED))	/* a captured one ran later */
		return l->ticks;
	for (size_t i = 0; i < n; i++)
		if (f[i]->mono_ns >= noticed_ns)
			return f[i]->ticks;
	return UINT64_MAX;
}
