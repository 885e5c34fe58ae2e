/* SPDX-License-Identifier: Apache-2.0
 * What autograd seems to have saved (see snap_turns.h).
 */
#include "find/memory/snap_turns.h"

#include <stdlib.h>

#include "base/mem.h"

/* Of what a call of a model allocated, this part is still there when it ends, if gradients are on: most operations save their input or
 * their result. Without, it is the result alone; a model that returns several tensors makes many more on its way. */
#define SAVED_PART	4
#define SAVED_LEAST	2		/* or all of it: then nothing says that they were off */

struct search {
	const struct snap_turns *x;
	const struct snap_replay *r;
	uint8_t *saved;
	uint32_t *graph;		/* per event: which call's; from 1 */
	uint32_t n_graphs;
	size_t end;
	const struct snap_calls *call;	/* of the model, which is running; NULL = none is */
	size_t since;
	bool saves;			/* the last call did, */
	uint32_t turn;			/* in this turn */
};

static bool lives_at(const struct search *s, size_t made, size_t moment)
{
	uint32_t m = s->r->match[made];

	return m == SNAP_NONE || m >> 31 || m >= moment;	/* as in snap_replay.c: the highest bit is a block at the end */
}

static const struct snap_calls *calls_at(const struct search *s, size_t event)
{
	return &s->x->calls[s->r->event[event].stack];
}

static bool same_call(const struct search *s, const struct snap_calls *a, const struct snap_calls *b)
{
	if (!a || !b || a->own != b->own)
		return false;
	for (uint32_t i = 0; i < a->own; i++)
		if (s->x->frames[a->first + i] != s->x->frames[b->first + i])
			return false;
	return true;
}

static bool is_of_call(const struct search *s, size_t event)
{
	return s->r->event[event].action == SNAP_ALLOC && calls_at(s, event)->model && !calls_at(s, event)->backward;
}

static void save(struct search *s, size_t event)
{
	s->saved[event] = SAVED;
	s->graph[event] = s->n_graphs;
}

static void end_call(struct search *s, size_t now)
{
	size_t made = 0, stay = 0;

	for (size_t i = s->since; i < now; i++) {
		made += is_of_call(s, i);
		stay += is_of_call(s, i) && lives_at(s, i, now);
	}
	s->saves = stay * SAVED_PART >= made && (stay >= SAVED_LEAST || stay == made);
	s->n_graphs += s->saves;
	s->turn = s->x->of_event[s->since];
	for (size_t i = s->since; s->saves && i < now; i++)
		if (is_of_call(s, i) && lives_at(s, i, now))
			save(s, i);
}

/* What follows the call is part of its graph: a loss. */
static void follow(struct search *s, size_t event)
{
	const struct snap_calls *c = calls_at(s, event);
	bool of_call = is_of_call(s, event), same = of_call && same_call(s, s->call, c);

	if (s->call && !same) {
		end_call(s, event);
		s->call = NULL;
	}
	if (of_call && !same) {
		s->call = c;
		s->since = event;
		s->saves = false;
	} else if (c->optimizer || snap_in_backward(s->x, s->r, event) || s->x->of_event[event] != s->turn) {
		s->saves = false;
	} else if (!of_call && s->saves) {
		save(s, event);
	}
}

/* What backward frees of a graph, it frees because it has run it: also where the program holds some of it for longer. */
static void find_run(struct search *s)
{
	uint8_t *ran = xcalloc(s->n_graphs + 1, 1);
	bool backward = false;

	for (size_t i = 0; i < s->end; i++) {
		const struct snap_event *e = &s->r->event[i];
		uint32_t made = e->action == s->r->free_action ? s->r->match[i] : SNAP_NONE;

		if (e->action == SNAP_ALLOC)
			backward = snap_in_backward(s->x, s->r, i);
		if (backward && made != SNAP_NONE)
			ran[s->graph[made]] = 1;
	}
	for (size_t i = 0; i < s->end; i++)
		if (s->saved[i] && ran[s->graph[i]])
			s->saved[i] = SAVED_AND_RUN;
	free(ran);
}

uint8_t *snap_saved(const struct snap_turns *x, const struct snap_replay *r, size_t end)
{
	struct search s = {
		.x = x, .r = r, .saved = xcalloc(r->n + 1, 1), .end = end, .graph = xcalloc(r->n + 1, sizeof(*s.graph))};

	for (size_t i = 0; i < end; i++)
		if (r->event[i].action == SNAP_ALLOC)
			follow(&s, i);
	if (s.call)
		end_call(&s, end);
	find_run(&s);
	free(s.graph);
	return s.saved;
}
