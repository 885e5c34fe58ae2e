/* SPDX-License-Identifier: Apache-2.0
 * The launch that a verdict blames (see blamed.h).
 */
#include "show/blamed.h"

#include <stdint.h>
#include <string.h>

#include "find/failure/place.h"
#include "read/recording/trace.h"
#include "verdict/verdict.h"

static bool fits_fault(struct trace *t, const struct verdict *v, const struct cw_launch *l)
{
	const struct casefile *c = &v->c;
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

size_t blamed_among(struct trace *t, const struct verdict *v, const struct cw_launch *const *l, size_t n)
{
	for (size_t i = n; i > 0; i--)
		if (fits_fault(t, v, l[i - 1]))
			return i - 1;
	return SIZE_MAX;
}

const struct cw_launch *blamed_launch(struct trace *t, const struct verdict *v)
{
	const struct cw_launch *const *l;
	size_t n = trace_launches(t, &l), found = blamed_among(t, v, l, n);

	return found < n ? l[found] : NULL;
}
