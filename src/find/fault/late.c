/* SPDX-License-Identifier: Apache-2.0
 * Finds the launch and the address of a fault that was reported late (see late.h, strays.h).
 *
 * All launches of the kernel that may have run are executed, the newest first. One of them must have left its memory, at the
 * instruction that the dump names. In a stream it was the first that does: after it, nothing ran.
 */
#include "find/fault/late.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "find/fault/culprit.h"
#include "find/fault/strays.h"
#include "find/failure/place.h"
#include "find/failure/suspects.h"
#include "read/recording/trace.h"
#include "find/fault/address.h"
#include "find/fault/fault.h"

#define LAUNCHES_MAX 256	/* more of one kernel that nothing waited for are rare */

struct one {
	const struct cw_launch *launch;
	struct stray_launch how;
	struct strays found;
	bool complete;
};

struct hunt {
	struct trace *trace;
	const struct culprit *culprit;
	const struct cw_failure *noticed;
	struct one one[LAUNCHES_MAX];
	size_t n;
	bool any;	/* of all kernels: the dump does not name one that was launched */
	const struct cw_launch *beyond;	/* the newest for which there is no room, */
	bool more_lines;		/* and there are others, of other lines */
	unsigned steps;
};

static void add_line(struct fault_launch *m, struct trace *t, const struct cw_launch *l)
{
	struct scene s = {.node_name = 0};

	launch_scene(l, t, &s);
	if (!s.where.file)
		return;
	for (size_t i = 0; i < m->n; i++)
		if (m->at[i].where.line == s.where.line && !strcmp(m->at[i].where.file, s.where.file))
			return;
	if (m->n < FAULT_LINES_MAX)
		m->at[m->n++] = s;
}

static bool same_line(struct trace *t, const struct cw_launch *a, const struct cw_launch *b)
{
	struct fault_launch m = {.n = 0};

	add_line(&m, t, a);
	add_line(&m, t, b);
	return m.n == 1;
}

/* The dump may have the parameters, all of them; the recording has the first bytes. */
static bool other_params(const struct culprit *k, const struct cw_launch *l)
{
	size_t n = l->n_param < k->params.len ? l->n_param : k->params.len;

	return k->params.data && n && memcmp(l->params, k->params.data, n < CW_PARAM_BYTES ? n : CW_PARAM_BYTES) != 0;
}

static void add_launch(void *arg, const struct cw_launch *l)
{
	struct hunt *h = arg;

	if (h->any ? !l->func || !trace_function(h->trace, l->func)
		   : !fault_same_kernel(h->trace, h->culprit, l) || other_params(h->culprit, l))
		return;
	for (size_t i = 0; i < h->n; i++)
		if (h->one[i].launch == l)
			return;
	if (h->n == LAUNCHES_MAX) {
		h->more_lines = h->more_lines || (h->beyond && !same_line(h->trace, h->beyond, l));
		h->beyond = h->beyond ? h->beyond : l;
		return;
	}
	h->one[h->n] = (struct one){.launch = l};
	memcpy(h->one[h->n].how.grid, l->grid, sizeof(l->grid));
	memcpy(h->one[h->n].how.block, l->block, sizeof(l->block));
	if (h->any)
		h->one[h->n].how.kernel = trace_string(h->trace, trace_function(h->trace, l->func)->name);
	h->one[h->n++].how.params =
		h->culprit->params.data && !h->any
			? h->culprit->params
			: (struct bytes){l->params, l->n_param < CW_PARAM_BYTES ? l->n_param : CW_PARAM_BYTES};
}

static void execute(struct hunt *h, struct one *o, unsigned share)
{
	struct stray_around *around = stray_around_open(h->trace, h->culprit, h->noticed, o->launch);
	unsigned steps = share < h->steps ? share : h->steps, given = steps;

	if (strays_find(&o->found, h->culprit, &o->how, &steps, stray_around_at, around))
		o->complete = o->found.complete && !stray_around_doubt(around);
	h->steps -= given - steps;
	stray_around_close(around);
}

/* From here on in the list. */
static bool execute_from(struct hunt *h, size_t first)
{
	bool found = false;

	for (size_t i = first; i < h->n; i++) {
		execute(h, &h->one[i], h->steps / (unsigned)(h->n - i));
		found = found || h->one[i].found.best != STRAY_INSIDE;
	}
	return found;
}

static int rank(const struct one *o)
{
	return (int)o->found.best * 2 + (o->found.best != STRAY_INSIDE && o->found.sure);
}

/* The work of a graph is not in the order of its capture's streams: it counts as one. */
static bool same_stream(const struct cw_launch *a, const struct cw_launch *b)
{
	return (a->flags & b->flags & CW_LAUNCH_CAPTURED) ||
	       (!((a->flags | b->flags) & CW_LAUNCH_CAPTURED) &&
		stream_of(a->stream, a->tid) == stream_of(b->stream, b->tid));
}

static bool is_first_in_stream(const struct hunt *h, const struct one *o)
{
	for (size_t i = 0; i < h->n; i++)
		if (rank(&h->one[i]) == rank(o) && same_stream(h->one[i].launch, o->launch) &&
		    h->one[i].launch->ticks < o->launch->ticks)
			return false;
	return true;
}

/* Another launch, at another line, of which not all is known, may have failed as well. */
static bool is_doubtful(const struct hunt *h, const struct one *best)
{
	if (!best->found.sure || best->found.best < STRAY_BEYOND || (best->found.best == STRAY_BEYOND && !best->complete))
		return true;
	if (h->beyond && (h->more_lines || !same_line(h->trace, h->beyond, best->launch)))
		return true;
	for (size_t i = 0; i < h->n; i++)
		if (!h->one[i].complete && rank(&h->one[i]) < rank(best) &&
		    !same_line(h->trace, h->one[i].launch, best->launch))
			return true;
	return false;
}

static struct culprit *settle(struct hunt *h, struct fault_launch *m)
{
	struct culprit *found;
	bool perhaps;
	struct place replay = m->replay;
	struct one *best = NULL;
	int top = 0;

	for (size_t i = 0; i < h->n; i++)
		top = rank(&h->one[i]) > top ? rank(&h->one[i]) : top;
	*m = (struct fault_launch){.n = 0};
	for (size_t i = 0; i < h->n; i++) {
		if (rank(&h->one[i]) != top || !is_first_in_stream(h, &h->one[i]))
			continue;
		if (!best)
			best = &h->one[i];
		add_line(m, h->trace, h->one[i].launch);
	}
	m->newest = best->launch;
	if (best->launch->flags & CW_LAUNCH_CAPTURED)
		m->replay = replay;
	perhaps = is_doubtful(h, best);
	found = culprit_with_strays(h->culprit, &best->how, &best->found);
	found->address_perhaps = perhaps;
	return found;
}

static bool was_given_freed(const struct hunt *h, const struct cw_launch *l)
{
	struct stray_around *around = stray_around_open(h->trace, h->culprit, h->noticed, l);
	bool freed = stray_around_freed(around);

	stray_around_close(around);
	return freed;
}

/* Nothing could be computed: those whose arguments alone are wrong. */
static void settle_freed(struct hunt *h, struct fault_launch *m)
{
	const struct cw_launch *first = NULL;
	struct place replay = m->replay;

	for (size_t i = 0; i < h->n; i++) {
		if (!was_given_freed(h, h->one[i].launch))
			continue;
		if (!first) {
			first = h->one[i].launch;
			*m = (struct fault_launch){.newest = first};
		}
		add_line(m, h->trace, h->one[i].launch);
	}
	if (first && first->flags & CW_LAUNCH_CAPTURED)
		m->replay = replay;
}

struct culprit *late_find(struct trace *t, const struct culprit *k, const struct cw_failure *noticed,
			  struct fault_launch *m)
{
	struct hunt *h = xcalloc(1, sizeof(*h));
	struct culprit *late = NULL;
	bool found;
	size_t n;

	*h = (struct hunt){.trace = t, .culprit = k, .noticed = noticed, .steps = STRAYS_STEPS, .any = !m->newest};
	fault_each_launch(t, noticed, suspects_each, add_launch, h);
	found = execute_from(h, 0);
	if (!found) {	/* a call that waited returned before the fault was known */
		n = h->n;
		fault_each_launch(t, noticed, launches_each, add_launch, h);
		found = execute_from(h, n);
	}
	if (found)
		late = settle(h, m);
	else
		settle_freed(h, m);
	for (size_t i = 0; i < h->n; i++)
		strays_free(&h->one[i].found);
	free(h);
	return late;
}
