/* SPDX-License-Identifier: Apache-2.0
 * Finds the lines of the user's code that belong to an incident: where it happened, where it was
 * noticed, and for a failure in backward both the forward line and the line that called backward.
 */
#include <string.h>

#include "compat/cuda_errors.h"
#include "find/failure/incident.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"

/* Autograd may run on the thread that called backward. Then the user's frame on its stack is the
 * line that called, not code that runs inside backward. */
static bool called_from(const struct trace *t, uint32_t stack)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;

	for (uint32_t i = 0; s && i < s->n; i++) {
		const char *function = function_base(trace_string(t, s->frame[i].function));
		enum owner o = stack_owner(t, s, i);

		if (o == OWNER_USER)
			return false;
		if (o == OWNER_TORCH && (!strcmp(function, "_engine_run_backward") ||
					 !strcmp(function, "backward") || !strcmp(function, "grad")))
			return true;
	}
	return false;
}

/* Stacks are interned and most launches share a few: each is looked at about once. */
struct looked {
	uint32_t no[1024];
};

static bool in_backward(const struct trace *t, struct looked *seen, uint32_t stack)
{
	uint32_t *slot = &seen->no[stack / 8 % 1024];

	if (!stack || *slot == stack)
		return false;
	if (stack_in_backward(t, stack))
		return true;
	*slot = stack;
	return false;
}

/* Work in backward: its thread and time. */
struct moment {
	uint32_t tid;
	uint64_t ticks;
};

/* The newest work that another thread issued from inside backward(). */
static bool backward_from_launches(struct trace *t, struct moment m, struct place *p)
{
	const struct cw_launch *const *l;
	size_t n = trace_launches(t, &l);
	struct looked seen = {0};

	for (size_t i = n; i > 0; i--)
		if (l[i - 1]->tid != m.tid && l[i - 1]->ticks <= m.ticks &&
		    in_backward(t, &seen, l[i - 1]->stack))
			return place_of_stack(t, l[i - 1]->stack, p);
	return false;
}

static bool backward_from_calls(struct trace *t, struct moment m, struct place *p)
{
	const struct cw_call *const *c;
	size_t n = trace_calls(t, &c);
	struct looked seen = {0};

	for (size_t i = n; i > 0; i--)
		if (c[i - 1]->tid != m.tid && c[i - 1]->ticks <= m.ticks &&
		    in_backward(t, &seen, c[i - 1]->stack))
			return place_of_stack(t, c[i - 1]->stack, p);
	return false;
}

static void find_backward(struct trace *t, const struct incident *i, struct place *p)
{
	const struct cw_failure *python = incident_from(i, CW_SRC_PYTHON);
	struct moment m = {i->lead->tid, i->lead->ticks};

	if (called_from(t, i->lead->stack) && place_of_stack(t, i->lead->stack, p))
		return;
	if (python && stack_in_backward(t, python->stack) && place_of_stack(t, python->stack, p))
		return;
	if (!backward_from_launches(t, m, p))
		backward_from_calls(t, m, p);
}

/* The best stack among the members: the user's code rather than a library's. */
static void find_direct(struct trace *t, const struct incident *i, bool exceptions, struct place *p)
{
	struct place candidate;

	for (size_t k = 0; k < i->n; k++) {
		const struct cw_failure *f = i->failure[k];

		if ((f->source == CW_SRC_PYTHON) != exceptions || called_from(t, f->stack) ||
		    !place_of_stack(t, f->stack, &candidate))
			continue;
		if (!p->file || (p->library && !candidate.library))
			*p = candidate;
	}
}

static void find_forward(struct trace *t, const struct incident *i, struct scene *s)
{
	for (size_t k = 0; k < i->n && !s->forward.file; k++)
		place_of_stack(t, i->failure[k]->forward_stack, &s->forward);
	if (s->forward.file || called_from(t, i->lead->stack))
		find_backward(t, i, &s->backward);
}

void incident_scene(const struct incident *i, struct trace *t, struct scene *s)
{
	const struct cw_failure *python = incident_from(i, CW_SRC_PYTHON);
	const struct place *first, *second;

	*s = (struct scene){.node_name = i->lead->node_name};
	find_direct(t, i, false, &s->where);
	find_forward(t, i, s);
	if (python)
		place_of_stack(t, python->stack, &s->noticed);
	place_of_stack(t, i->lead->capture_stack, &s->capture);

	/* memory runs out because of the whole backward, a kernel fails because of one forward op */
	first = i->code == CODE_OUT_OF_MEMORY ? &s->backward : &s->forward;
	second = i->code == CODE_OUT_OF_MEMORY ? &s->forward : &s->backward;
	if ((!s->where.file || s->where.library) && first->file)
		s->where = *first;
	else if (!s->where.file && second->file)
		s->where = *second;
	if (!s->where.file)
		find_direct(t, i, true, &s->where);
	if (!s->where.file && s->noticed.file)
		s->where = s->noticed;
}

void launch_scene(const struct cw_launch *l, struct trace *t, struct scene *s)
{
	struct moment m = {l->tid, l->ticks};
	bool calls = called_from(t, l->stack);

	*s = (struct scene){.noticed = s->noticed, .node_name = l->node_name};
	if (calls)
		place_of_stack(t, l->stack, &s->backward);
	else
		place_of_stack(t, l->stack, &s->where);
	place_of_stack(t, l->forward_stack, &s->forward);
	if ((l->flags & CW_LAUNCH_IN_BACKWARD) && !calls && !backward_from_launches(t, m, &s->backward))
		backward_from_calls(t, m, &s->backward);
	/* a backward written in Python has a line of its own */
	if ((!s->where.file || s->where.library) && s->forward.file)
		s->where = s->forward;
	if (!s->where.file)
		s->where = s->backward;
}
