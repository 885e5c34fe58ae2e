/* SPDX-License-Identifier: Apache-2.0
 * Finds the launches that an asynchronous error may have come from (see suspects.h).
 */
#include "find/failure/suspects.h"

#include <string.h>

#include "find/failure/asserting.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"

#define STREAMS_MAX 256

/* Until when a stream's work is known to have succeeded. */
struct barriers {
	uint64_t all;		/* every stream */
	struct { uint64_t stream, ticks; } one[STREAMS_MAX];	/* stream: as of stream_of() */
	size_t n;
};

static void barrier_add(struct barriers *b, uint64_t stream, uint64_t ticks)
{
	for (size_t i = 0; i < b->n; i++) {
		if (b->one[i].stream == stream) {
			b->one[i].ticks = ticks;
			return;
		}
	}
	if (b->n < STREAMS_MAX) {
		b->one[b->n].stream = stream;
		b->one[b->n++].ticks = ticks;
	}
}

static uint64_t barrier_of(const struct barriers *b, uint64_t stream)
{
	uint64_t ticks = b->all;

	for (size_t i = 0; i < b->n; i++)
		if (b->one[i].stream == stream && b->one[i].ticks > ticks)
			ticks = b->one[i].ticks;
	return ticks;
}

/* Only calls that wait for all work of a stream count. An event may have been recorded long before. */
static void find_barriers(struct barriers *b, struct trace *t, uint64_t end)
{
	const struct cw_call *const *c;
	size_t n = trace_calls(t, &c);

	for (size_t i = 0; i < n; i++) {
		if (c[i]->result || c[i]->ticks >= end)
			continue;
		if (api_does(c[i]->api, DOES_SYNC_ALL))
			b->all = c[i]->ticks;
		else if (api_does(c[i]->api, DOES_SYNC_STREAM))
			barrier_add(b, stream_of(c[i]->arg[0], c[i]->tid), c[i]->ticks);
	}
}

static bool same_place(const struct place *a, const struct place *b)
{
	if (!a->file || !b->file)
		return a->file == b->file;
	return a->line == b->line && !strcmp(a->file, b->file);
}

static void each_behind(struct trace *t, const struct barriers *b, const struct cw_failure *noticed, suspect_fn *each,
			void *arg)
{
	const struct cw_launch *const *l;
	size_t n = trace_launches(t, &l);

	for (size_t i = n; i > 0; i--) {
		const struct cw_launch *k = l[i - 1];

		/* for a captured launch, `result` is the number of its capture, and it did not run */
		if (!(k->flags & CW_LAUNCH_CAPTURED) && !k->result && k->ticks < noticed->ticks &&
		    k->ticks > barrier_of(b, stream_of(k->stream, k->tid)))
			each(arg, k);
	}
}

void suspects_each(struct trace *t, const struct cw_failure *noticed, suspect_fn *each, void *arg)
{
	struct barriers b = {0};

	find_barriers(&b, t, noticed->ticks);
	each_behind(t, &b, noticed, each, arg);
}

void launches_each(struct trace *t, const struct cw_failure *noticed, suspect_fn *each, void *arg)
{
	each_behind(t, &(struct barriers){0}, noticed, each, arg);
}

struct fitting {
	const struct asserting *asserting;
	struct trace *trace;
	struct pool *pool;
	enum fits best;			/* of all suspects; then the least that counts */
	suspect_fn *each;
	void *arg;
	size_t cleared;
};

static void fit_best(void *arg, const struct cw_launch *l)
{
	struct fitting *q = arg;
	enum fits fits = asserting_fits(q->asserting, q->trace, l, q->pool);

	q->best = fits > q->best ? fits : q->best;
}

static void each_fitting(void *arg, const struct cw_launch *l)
{
	struct fitting *q = arg;

	if (asserting_fits(q->asserting, q->trace, l, q->pool) >= q->best)
		q->each(q->arg, l);
	else
		q->cleared++;
}

size_t suspects_asserting(struct trace *t, const struct cw_failure *noticed, const struct asserting *a,
			  struct pool *pool, suspect_fn *each, void *arg)
{
	struct fitting q = {.asserting = a, .trace = t, .pool = pool, .each = each, .arg = arg};

	if (!a->line) {
		suspects_each(t, noticed, each, arg);
		return 0;
	}
	suspects_each(t, noticed, fit_best, &q);
	suspects_each(t, noticed, each_fitting, &q);
	return q.cleared;
}

struct search {
	struct suspects *found;
	const struct trace *trace;
};

static void suspect_add(void *arg, const struct cw_launch *l)
{
	struct search *q = arg;
	struct suspects *s = q->found;
	struct place p = {0};

	if (!place_of_stack(q->trace, l->stack, &p))
		place_of_stack(q->trace, l->forward_stack, &p);
	s->launches++;
	for (size_t i = 0; i < s->n; i++) {
		if (same_place(&s->line[i].place, &p)) {
			s->line[i].launches++;
			return;
		}
	}
	if (s->n < SUSPECTS_MAX)
		s->line[s->n++] = (struct suspect){.place = p, .func = l->func, .launches = 1};
}

void suspects_find(struct suspects *s, struct trace *t, const struct cw_failure *noticed, const struct asserting *a,
		   struct pool *pool)
{
	struct search q = {s, t};

	*s = (struct suspects){.n = 0};
	s->cleared = suspects_asserting(t, noticed, a, pool, suspect_add, &q);
}
