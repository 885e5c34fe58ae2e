/* SPDX-License-Identifier: Apache-2.0
 * What a verdict says of a process that waited for the GPU for too long: who waited, in which call, at which line.
 */
#include "judge/verdict_priv.h"
#include "input/recording/place.h"
#include "input/recording/trace.h"

static void tell(struct verdict *v, const struct waiting *w)
{
	const char *how = w->polls ? "asked again and again with" : "waited in";
	const char *line = w->line.file ? pool_printf(&v->pool, " at %s:%u", w->line.shown, w->line.number) : "";

	verdict_evidence(v, "wait", pool_printf(&v->pool, "thread %u %s %s for %llu s%s", w->tid, how, w->api,
						(unsigned long long)w->seconds, line));
}

void verdict_waiting(struct verdict *v, const struct trace *t)
{
	const struct cw_hang *h = &trace_header(t)->hang;

	v->waiting = pool_alloc(&v->pool, (h->n + 1) * sizeof(*v->waiting));
	for (uint32_t i = 0; i < h->n; i++) {
		struct waiting *w = &v->waiting[v->n_waiting++];
		struct place p = { 0 };

		*w = (struct waiting){ .tid = h->thread[i].tid, .api = api_name(h->thread[i].api),
				       .seconds = h->thread[i].waited_ns / 1000000000u,
				       .polls = h->thread[i].polls != 0 };
		if (place_of_stack(t, h->thread[i].stack, &p))
			w->line = line_of_place(v, t, &p);
		w->n_stack = lines_of_stack(v, t, h->thread[i].stack, &w->stack);
		tell(v, w);
	}
	if (!v->noticed.file && v->n_waiting)
		v->noticed = v->waiting[0].line;
}
