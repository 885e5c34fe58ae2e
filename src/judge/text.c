/* SPDX-License-Identifier: Apache-2.0
 * The verdict about a text: its first error that comes from CUDA or that a rule knows.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "case/message.h"
#include "input/text/log.h"
#include "input/text/observe.h"
#include "judge/process.h"
#include "judge/text.h"
#include "judge/verdict.h"

#define NEAR_LINES 100

/* Does the error message alone, without the lines around it, match a cause? */
static bool known_by_itself(struct text_log *l, const struct text_event *e)
{
	struct pool pool = {0};
	struct casefile *f = xcalloc(1, sizeof(*f));
	struct matches m;
	bool known;

	case_init(f, &pool);
	text_observe(f, l, e);
	f->says = NULL;
	rules_match(&m, kb_get(), f, &pool);
	known = m.n > 0;
	pool_release(&pool);
	free(f);
	return known;
}

static bool event_is_ours(struct text_log *l, const struct text_event *e)
{
	return e->marked || message_is_cuda(e->message) || text_code(e->message) || known_by_itself(l, e);
}

/* The first error; reports of another process's end, and warnings, only if there is nothing better. */
static const struct text_event *choose_event(struct text_log *l)
{
	const struct text_event *list;
	size_t n = log_events(l, &list);

	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < n; i++) {
			int when = list[i].warning ? 2 : list[i].peer ? 1 : 0;

			if (when == round && event_is_ours(l, &list[i]))
				return &list[i];
		}
	return NULL;
}

/* A C++ line often comes before the traceback of the same error, which says more. */
static const struct text_event *with_traceback(const struct text_log *l, const struct text_event *e)
{
	const struct text_event *list;
	size_t n = log_events(l, &list);
	uint32_t code = e && !e->n_frames ? text_code(e->message) : 0;

	for (size_t i = 0; code && i < n; i++)
		if (&list[i] != e && list[i].n_frames && list[i].line >= e->line && list[i].line < e->line + NEAR_LINES &&
		    !strcmp(list[i].who, e->who) && text_code(list[i].message) == code)
			return &list[i];
	return e;
}

static struct verdict *nothing_wrong(const struct text_log *l)
{
	struct verdict *v = verdict_new("none");

	v->sure = log_progress(l) ? SURE_LIKELY : SURE_POSSIBLE;	/* a text may not say everything */
	text_tell_others(&v->c, l, NULL);
	verdict_take_evidence(v);
	return v;
}

struct verdict *verdict_of_text_and(struct text_log *l, const struct process_also *also, const struct text_event **chosen)
{
	const struct text_event *e = with_traceback(l, choose_event(l));
	struct verdict *v;

	*chosen = e;
	if (e && e->warning && log_progress_after(l, e->line))	/* the program continued */
		return nothing_wrong(l);
	v = verdict_new("unknown");
	text_observe(&v->c, l, e);
	if (also)
		also->observe(&v->c, also->arg);
	verdict_judge(v);
	if (!v->n_candidates && !e) {
		verdict_free(v);
		return nothing_wrong(l);
	}
	if (e && e->rank >= 0)
		v->rank = (uint32_t)e->rank;
	text_tell_others(&v->c, l, e);
	verdict_take_evidence(v);
	return v;
}

struct verdict *verdict_of_text(struct text_log *l)
{
	const struct text_event *chosen;

	return verdict_of_text_and(l, NULL, &chosen);
}
