/* SPDX-License-Identifier: Apache-2.0
 * Which launch it was (see fault.h).
 */
#include "judge/fault.h"

#include <string.h>

#include "base/str.h"
#include "input/dump/culprit.h"
#include "input/recording/suspects.h"
#include "input/recording/place.h"
#include "input/recording/trace.h"

struct search {
	struct fault_launch *found;
	struct trace *trace;
	const struct culprit *culprit;
	bool with_params;	/* only launches whose parameters are known, and are the same */
};

/* A kernel whose name the driver could no longer tell has the one under which the program looked it up. */
static bool same_name(const char *recorded, const struct culprit *c)
{
	size_t n = c->kernel_text ? strcspn(c->kernel_text, "(<") : 0;

	return !strcmp(recorded, c->kernel) ||
	       (!str_starts(recorded, "_Z") && n && strlen(recorded) == n && !strncmp(recorded, c->kernel_text, n));
}

static bool same_kernel(const struct search *q, const struct cw_launch *l)
{
	const struct cw_function *f = l->func ? trace_function(q->trace, l->func) : NULL;
	const struct culprit *c = q->culprit;

	return f && c->kernel && same_name(trace_string(q->trace, f->name), c) &&
	       (!c->grid_known || (!memcmp(l->grid, c->grid, sizeof(l->grid)) &&
				   !memcmp(l->block, c->block, sizeof(l->block))));
}

static bool same_params(const struct culprit *c, const struct cw_launch *l)
{
	size_t n = l->n_param < c->params.len ? l->n_param : c->params.len;

	return c->params.data && n && !memcmp(l->params, c->params.data, n);
}

static bool known_params(const struct culprit *c, const struct cw_launch *l)
{
	return c->params.data && c->params.len && l->n_param;
}

static void consider(void *arg, const struct cw_launch *l)
{
	struct search *q = arg;
	struct fault_launch *m = q->found;
	struct scene s = { .node_name = 0 };

	if (!same_kernel(q, l))
		return;
	if (q->with_params ? !same_params(q->culprit, l) : known_params(q->culprit, l))
		return;
	if (!m->newest)
		m->newest = l;
	launch_scene(l, q->trace, &s);
	if (!s.where.file)
		return;
	for (size_t i = 0; i < m->n; i++)
		if (m->at[i].where.line == s.where.line && !strcmp(m->at[i].where.file, s.where.file))
			return;
	if (m->n < FAULT_LINES_MAX)
		m->at[m->n++] = s;
}

static void find_replay(void *arg, const struct cw_launch *l)
{
	struct search *q = arg;

	if ((l->flags & CW_LAUNCH_GRAPH) && !q->found->replay.file)
		place_of_stack(q->trace, l->stack, &q->found->replay);
}

/* A kernel of a graph was launched when the graph was captured, and runs when the graph does. */
static void consider_captured(struct search *q, const struct cw_failure *noticed, launches_fn *each)
{
	const struct cw_launch *const *l;
	size_t n = trace_launches(q->trace, &l);

	each(q->trace, noticed, find_replay, q);
	if (!q->found->replay.file)
		return;
	for (size_t i = n; i > 0; i--)
		if (l[i - 1]->flags & CW_LAUNCH_CAPTURED)
			consider(q, l[i - 1]);
	if (!q->found->newest)
		q->found->replay = (struct place){ 0 };
}

void fault_find_launch(struct fault_launch *m, struct trace *t, const struct culprit *c,
		       const struct cw_failure *noticed)
{
	struct search q = { .found = m, .trace = t, .culprit = c };

	*m = (struct fault_launch){ .n = 0 };
	if (!c->kernel)
		return;
	/* The same parameters are the better evidence; without, launches whose parameters were not recorded. And
	 * while a dump is made, calls that wait return before the fault is known: they prove nothing then. */
	for (int pass = 0; pass < 4 && !m->newest; pass++) {
		launches_fn *each = pass & 1 ? launches_each : suspects_each;

		q.with_params = pass < 2;
		each(t, noticed, consider, &q);
		if (!m->newest)
			consider_captured(&q, noticed, each);
	}
}

struct culprit *culprit_of_process(struct dump *d, const struct trace *t)
{
	return trace_header(t)->hang.flags & CW_HANG_TRIGGERED ? culprit_find_running(d) : culprit_find(d);
}
