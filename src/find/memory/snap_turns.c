/* SPDX-License-Identifier: Apache-2.0
 * Turns of loops, derived from the lines of a snapshot's stacks (see snap_turns.h).
 *
 * The first pass finds the events with which a turn begins, and so the functions that have loops; the second one counts.
 * What a loop inside of a model does is part of one turn of the loop around it, and is not looked at.
 */
#include "find/memory/snap_turns.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "find/memory/observe_snapshot.h"

#define THREADS_MAX	64	/* told apart by where they begin; the rest counts as one */
#define LEVELS_MAX	64	/* nested frames of the user's code */
#define CHAIN_MAX	12	/* nested loops, as in recordings */

/* A single statement may allocate several times. This often means that it is a loop: [f(x) for x in y]. */
#define SAME_LINE_TURNS	8

enum file_kind { FILE_NOT_ASKED, FILE_OTHER_LANGUAGE, FILE_MODULE, FILE_BACKWARD, FILE_OPTIMIZER, FILE_CODE };

static enum file_kind file_kind(const char *file)
{
	if (!snapshot_is_python(file))
		return FILE_OTHER_LANGUAGE;
	if (strstr(file, "torch/nn/modules/module.py"))
		return FILE_MODULE;
	if (strstr(file, "torch/autograd/") || strstr(file, "torch/_tensor.py"))
		return FILE_BACKWARD;
	return strstr(file, "torch/optim/") ? FILE_OPTIMIZER : FILE_CODE;
}

static void calls_add(struct snap_turns *x, const struct snapshot *s, struct snap_calls *c, uint32_t frame,
		      enum file_kind kind)
{
	const char *function = snap_text(s, snap_frame(s, frame)->function);
	bool model = kind == FILE_MODULE && strstr(function, "call");	/* it also moves parameters to a device */
	bool first = !c->model && !c->backward && !c->optimizer;

	c->model |= model && !c->backward && !c->optimizer;
	c->backward |= kind == FILE_BACKWARD && strstr(function, "backward");
	c->optimizer |= kind == FILE_OPTIMIZER && first;
	x->frames = xgrow(x->frames, x->n_frames, &x->cap_frames, sizeof(*x->frames));
	x->frames[x->n_frames++] = frame;
	c->n++;
	if (!c->model && !c->backward && !c->optimizer)
		c->own = c->n;
}

static void find_calls(struct snap_turns *x, const struct snapshot *s)
{
	uint8_t *kind = xcalloc(s->text.n + 1, 1);

	x->calls = xcalloc(s->stack.n + 1, sizeof(*x->calls));
	for (uint32_t i = 1; i < s->stack.n; i++) {
		size_t n;
		const uint32_t *frame = snap_stack(s, i, &n);
		struct snap_calls *c = &x->calls[i];

		c->first = (uint32_t)x->n_frames;
		for (; n > 0 && x->n_frames < UINT32_MAX; n--) {
			uint32_t file = snap_frame(s, frame[n - 1])->file;

			if (!kind[file])
				kind[file] = (uint8_t)file_kind(snap_text(s, file));
			if (kind[file] != FILE_OTHER_LANGUAGE)
				calls_add(x, s, c, frame[n - 1], kind[file]);
		}
	}
	free(kind);
}

/* A function that is being executed. */
struct level {
	uint32_t frame;
	uint32_t turn, record;		/* of its loop; 0 = it has none */
	uint32_t since, stack;		/* the event, and its stack, with which it came to its line */
	uint32_t again;			/* how often this stack came again while it was there */
};

struct thread { uint32_t root, n; struct level level[LEVELS_MAX]; };

struct walk {
	struct snap_turns *x;
	const struct snap_replay *r;
	const struct snapshot *s;
	struct thread *thread;
	size_t n_threads;
	uint8_t *begins;		/* per event: the level whose turn begins with it, from 1 */
	uint32_t *loop_of;		/* per frame; 0 = its function has none */
};

static bool same_function(const struct walk *w, uint32_t a, uint32_t b)
{
	const struct snap_frame *x = snap_frame(w->s, a), *y = snap_frame(w->s, b);

	return x->file == y->file && x->function == y->function;
}

static struct thread *thread_of(struct walk *w, uint32_t root)
{
	size_t i = 0;

	while (i < w->n_threads && !same_function(w, w->thread[i].root, root))
		i++;
	if (i == w->n_threads && i < THREADS_MAX)
		w->thread[w->n_threads++] = (struct thread){.root = root};
	return &w->thread[i < THREADS_MAX ? i : THREADS_MAX - 1];
}

static const struct snap_calls *calls_of_event(const struct walk *w, size_t i)
{
	return &w->x->calls[w->r->event[i].stack];
}

static bool counts(const struct snap_event *e)
{
	return e->action == SNAP_ALLOC || e->action == SNAP_OOM;
}

static uint32_t levels_of(const struct snap_calls *c)
{
	return c->own < LEVELS_MAX ? c->own : LEVELS_MAX;
}

static uint32_t common_levels(const struct walk *w, const struct thread *t, const struct snap_calls *c)
{
	uint32_t i = 0, n = levels_of(c);

	while (i < n && i < t->n && w->x->frames[c->first + i] == t->level[i].frame)
		i++;
	return i;
}

static bool goes_on(const struct walk *w, const struct thread *t, const struct snap_calls *c, uint32_t at)
{
	return at < t->n && at < levels_of(c) && same_function(w, t->level[at].frame, w->x->frames[c->first + at]);
}

/* Other threads have events of their own in between. */
static bool is_of_visit(const struct walk *w, size_t event, const struct level *l, uint32_t at)
{
	const struct snap_calls *c = calls_of_event(w, event);

	return counts(&w->r->event[event]) && levels_of(c) > at && w->x->frames[c->first + at] == l->frame;
}

/* Does the line call something else here than when it was first reached? */
static bool is_other_call(const struct walk *w, uint32_t stack, uint32_t first, uint32_t at)
{
	const struct snap_calls *a = &w->x->calls[stack], *b = &w->x->calls[first];

	if (levels_of(a) <= at + 1 || levels_of(b) <= at + 1)
		return levels_of(a) != levels_of(b);
	return !same_function(w, w->x->frames[a->first + at + 1], w->x->frames[b->first + at + 1]);
}

/* Did the same stack come again and again without a turn of an inner function that explains it? Models have loops of their own; for them
 * it counts only after the line has called something else. */
static void end_visit(struct walk *w, const struct level *l, uint32_t at, size_t end)
{
	bool other = w->x->calls[l->stack].own == w->x->calls[l->stack].n, back = other;
	uint32_t turns = 0;

	for (int pass = 0; l->again >= SAME_LINE_TURNS && pass < 2; pass++) {
		for (size_t i = l->since + 1; i < end; i++) {
			const struct snap_event *e = &w->r->event[i];

			if (!is_of_visit(w, i, l, at))
				continue;
			back |= is_other_call(w, e->stack, l->stack, at);
			if (e->stack != l->stack || !back)
				continue;
			back = other;
			turns++;
			if (pass && !w->begins[i])
				w->begins[i] = (uint8_t)(at + 1);
		}
		if (turns < SAME_LINE_TURNS)
			return;
		back = other;
	}
}

static void enter(struct walk *w, struct thread *t, const struct snap_calls *c, uint32_t from, size_t event)
{
	for (uint32_t i = from; i < levels_of(c); i++)
		t->level[i] = (struct level){.frame = w->x->frames[c->first + i], .since = (uint32_t)event,
					     .stack = w->r->event[event].stack};
	t->n = levels_of(c);
}

static void find_begin(struct walk *w, size_t event)
{
	const struct snap_calls *c = calls_of_event(w, event);
	struct thread *t = thread_of(w, w->x->frames[c->first]);
	uint32_t common = common_levels(w, t, c);

	for (uint32_t i = 0; i < common; i++)
		t->level[i].again += t->level[i].stack == w->r->event[event].stack;
	for (uint32_t i = t->n; i > common; i--)
		end_visit(w, &t->level[i - 1], i - 1, event);
	if (goes_on(w, t, c, common) &&
	    snap_frame(w->s, w->x->frames[c->first + common])->line < snap_frame(w->s, t->level[common].frame)->line)
		w->begins[event] = (uint8_t)(common + 1);
	enter(w, t, c, common, event);
}

static void find_begins(struct walk *w, size_t end)
{
	for (size_t i = 0; i <= end && i < w->r->n; i++)
		if (counts(&w->r->event[i]) && calls_of_event(w, i)->own)
			find_begin(w, i);
	for (size_t k = 0; k < w->n_threads; k++)
		for (uint32_t i = w->thread[k].n; i > 0; i--)
			end_visit(w, &w->thread[k].level[i - 1], i - 1, end + 1 < w->r->n ? end + 1 : w->r->n);
}

static uint32_t loop_with(const struct walk *w, const struct snap_frame *f)
{
	for (size_t i = 1; i < w->x->n_loops; i++)
		if (w->x->loop[i].file == f->file && w->x->loop[i].function == f->function)
			return (uint32_t)i;
	return 0;
}

/* Loops of PyTorch's own are none of the program's. */
static void add_loop(struct walk *w, uint32_t frame)
{
	const struct snap_frame *f = snap_frame(w->s, frame);
	uint32_t known = loop_with(w, f);
	struct snap_turns *x = w->x;

	if (known) {
		x->loop[known].line = f->line < x->loop[known].line ? f->line : x->loop[known].line;
		return;
	}
	x->loop = xgrow(x->loop, x->n_loops, &x->cap_loops, sizeof(*x->loop));
	if (snapshot_owner(snap_text(w->s, f->file), w->s->torch_path) <= SNAP_LIBRARY)
		x->loop[x->n_loops++] = (struct snap_loop){f->file, f->function, f->line};
}

#define LOOPS_MAX 256		/* functions with loops outside of models: a program has a handful */

static void find_loops(struct walk *w, size_t end)
{
	for (size_t i = 0; i <= end && i < w->r->n && w->x->n_loops < LOOPS_MAX; i++)
		if (w->begins[i])
			add_loop(w, w->x->frames[calls_of_event(w, i)->first + w->begins[i] - 1]);
	w->loop_of = xcalloc(w->s->frame.n + 1, sizeof(*w->loop_of));
	for (uint32_t i = 0; i < w->s->frame.n; i++)
		w->loop_of[i] = loop_with(w, snap_frame(w->s, i));
}

static uint32_t new_record(struct snap_turns *x, uint32_t up, uint32_t loop, uint32_t turn)
{
	x->turn = xgrow(x->turn, x->n_turns, &x->cap_turns, sizeof(*x->turn));
	x->turn[x->n_turns] = (struct snap_turn){up, loop, turn};
	return (uint32_t)x->n_turns++;
}

/* Of the innermost loop, after the levels have followed the event. */
static uint32_t record_of(struct walk *w, struct thread *t)
{
	uint32_t up = 0, chain = 0;

	for (uint32_t i = 0; i < t->n && chain < CHAIN_MAX; i++) {
		struct level *l = &t->level[i];
		const struct snap_turn *known = &w->x->turn[l->record];

		if (!l->turn)
			continue;
		chain++;
		if (!l->record || known->up != up || known->turn != l->turn)
			l->record = new_record(w->x, up, w->loop_of[l->frame], l->turn);
		up = l->record;
	}
	return up;
}

static void count_turns(struct walk *w, size_t event)
{
	const struct snap_calls *c = calls_of_event(w, event);
	struct thread *t = thread_of(w, w->x->frames[c->first]);
	uint32_t common = common_levels(w, t, c), begins = w->begins[event], from = common;
	struct level before = {0};
	bool goes = goes_on(w, t, c, common);

	if (begins && begins - 1 < common) {	/* the same line again: what it calls is called anew */
		t->level[begins - 1].turn++;
		from = begins;
	} else if (goes) {
		before = t->level[common];
	}
	enter(w, t, c, from, event);
	for (uint32_t i = from; i < t->n; i++)
		t->level[i].turn = w->loop_of[t->level[i].frame] != 0;
	if (before.turn) {
		t->level[common].turn = before.turn + (begins == common + 1);
		t->level[common].record = before.record;
	}
	w->x->of_event[event] = record_of(w, t);
}

/* An event without Python code is from one of backward's threads: it belongs to the turn of the thread that waits for backward. */
static void count_all(struct walk *w, size_t end)
{
	uint32_t now = 0;

	for (size_t i = 0; i < w->n_threads; i++)
		w->thread[i].n = 0;
	for (size_t i = 0; i <= end && i < w->r->n; i++) {
		if (counts(&w->r->event[i]) && calls_of_event(w, i)->own) {
			count_turns(w, i);
			now = w->x->of_event[i];
		}
		w->x->of_event[i] = now;
	}
}

void snap_turns_find(struct snap_turns *x, const struct snap_replay *r, size_t end)
{
	struct walk w = {.x = x, .r = r, .s = r->s};

	*x = (struct snap_turns){.n_turns = 1, .n_loops = 1};
	x->turn = xgrow(NULL, 0, &x->cap_turns, sizeof(*x->turn));
	x->loop = xgrow(NULL, 0, &x->cap_loops, sizeof(*x->loop));
	x->turn[0] = (struct snap_turn){0};
	x->loop[0] = (struct snap_loop){0};
	x->of_event = xcalloc(r->n + 1, sizeof(*x->of_event));
	find_calls(x, r->s);
	for (size_t i = 0; i < r->n && !x->stacks; i++)
		x->stacks = counts(&r->event[i]) && calls_of_event(&w, i)->own;
	w.begins = xcalloc(r->n + 1, 1);
	w.thread = xcalloc(THREADS_MAX, sizeof(*w.thread));
	find_begins(&w, end);
	find_loops(&w, end);
	count_all(&w, end);
	free(w.begins);
	free(w.thread);
	free(w.loop_of);
}

void snap_turns_release(struct snap_turns *x)
{
	free(x->of_event);
	free(x->turn);
	free(x->loop);
	free(x->calls);
	free(x->frames);
	*x = (struct snap_turns){0};
}
