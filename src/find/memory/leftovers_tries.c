/* SPDX-License-Identifier: Apache-2.0
 * What is left of attempts that ran out of memory and that the program survived.
 */
#include "find/memory/leftovers_parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* An attempt that is over: it ran out of memory, and the same function, or the loop in it, went on. */
struct try {
	const struct cw_stack *stack;
	uint32_t outer;			/* how many of its outermost frames lead to what it called */
	struct path path;		/* of the loops in these frames */
	uint64_t ticks;
};

/* How many frames two stacks have in common, from the outermost on, line for line. */
static uint32_t common_frames(const struct trace *t, const struct cw_stack *a, const struct cw_stack *b)
{
	uint32_t i = 0;

	while (i < a->n && i < b->n && frame_same_function(t, stack_outer_frame(a, i), stack_outer_frame(b, i)) &&
	       stack_outer_frame(a, i)->line == stack_outer_frame(b, i)->line)
		i++;
	return i;
}

/* The innermost of its frames that is the loop's function, counted from 1 at the outermost; 0 = none. */
static uint32_t frame_of_loop(const struct search *s, const struct cw_stack *stack, uint32_t number)
{
	size_t len;
	const struct cw_loop *loop = trace_chunk(s->trace, CW_CHUNK_LOOPS, &len);
	uint32_t found = 0;

	for (uint32_t i = 0; number < len / sizeof(*loop) && i < stack->n; i++)
		found = frame_same_function(s->trace, stack_outer_frame(stack, i), &loop[number].frame) ? i + 1 : found;
	return found;
}

/* Is the program now at another place in the function whose call failed? Then that call is over. If it is at the same line again because
 * a loop has turned, the call from the function with the loop is over. 0 = neither. */
static uint32_t frames_of_try(const struct search *s, const struct try *x, const struct cw_stack *now)
{
	uint32_t common = common_frames(s->trace, x->stack, now), turned = 0;
	const struct cw_frame *was = stack_outer_frame(x->stack, common), *is = stack_outer_frame(now, common);

	if (was && is && frame_same_function(s->trace, was, is))
		return common + 1;
	while (turned < x->path.n && turned < s->now.n &&
	       !memcmp(&x->path.step[turned], &s->now.step[turned], sizeof(struct loop_turn)))
		turned++;
	return turned < x->path.n ? frame_of_loop(s, x->stack, x->path.step[turned].loop) : 0;
}

/* Loops inside of what the try called are its own. */
static void drop_inner_loops(const struct search *s, struct try *x)
{
	uint32_t n = 0;

	while (n < x->path.n) {
		uint32_t frame = frame_of_loop(s, x->stack, x->path.step[n].loop);

		if (!frame || frame > x->outer)
			break;
		n++;
	}
	x->path.n = n;
}

static bool try_of(struct search *s, struct try *x, const struct cw_failure *f, const struct cw_failure *now)
{
	uint32_t stack = f->stack ? f->stack : f->forward_stack, here = now->stack ? now->stack : now->forward_stack;
	const struct cw_stack *is = here ? trace_stack(s->trace, here) : NULL;
	struct turn turn[CW_LOOP_TURNS];

	*x = (struct try){.stack = stack ? trace_stack(s->trace, stack) : NULL, .ticks = f->ticks};
	if (f->source != CW_SRC_TORCH_OOM || f->ticks >= now->ticks || f->device != s->m->device || !x->stack || !is)
		return false;
	path_of_turns(&x->path, s->trace, &s->loops, turn, turns_at_failure(s->trace, f, turn),
		      s->loops.any_model ? LOOP_AROUND_MODEL : 0);
	x->outer = frames_of_try(s, x, is);
	drop_inner_loops(s, x);
	return x->outer > 0;
}

static bool is_of_try(struct search *s, const struct try *x, const struct piece *p)
{
	const struct cw_stack *stack = p->stack && p->ticks <= x->ticks ? trace_stack(s->trace, p->stack) : NULL;
	enum ledger_kind kind;
	struct turn turn[CW_LOOP_TURNS];
	struct path path;

	if (!stack || common_frames(s->trace, stack, x->stack) < x->outer)
		return false;
	kind = kinds_of(s->k, p);
	path_of_turns(&path, s->trace, &s->loops, turn, turns_of_piece(s->trace, p, turn),
		      s->loops.any_model ? LOOP_AROUND_MODEL : 0);
	return (kind == KIND_ACTIVATIONS || kind == KIND_OTHER) && path.n >= x->path.n &&
	       !memcmp(path.step, x->path.step, x->path.n * sizeof(path.step[0]));
}

/* Where the failed call was made: the innermost of the frames that led to it. */
static struct place place_of_try(const struct search *s, const struct try *x, uint32_t stack)
{
	struct place found = {0};

	if (!place_outside(s->trace, stack, x->stack->n - x->outer - 1, &found))
		place_of_stack(s->trace, stack, &found);
	return found;
}

/* What the try left and no pile has yet. If there is a graph, all of it is the graph's: a graph also keeps its inputs. */
static void add_try(struct search *s, const struct try *x, struct tallies *lines)
{
	size_t *block = xcalloc(s->m->torch.n + 1, sizeof(*block)), n = 0;
	bool graph = false;

	for (size_t i = 0; i < s->m->torch.n; i++) {
		const struct piece *p = &s->m->torch.list[i];

		if (s->out->graphs.gone[i] || s->out->tensors.gone[i] || !is_of_try(s, x, p))
			continue;
		graph |= kinds_of(s->k, p) == KIND_ACTIVATIONS;
		block[n++] = i;
	}
	for (size_t i = 0; i < n; i++) {
		left_add(s, graph ? &s->out->graphs : &s->out->tensors, &lines[graph],
			 &(struct entry){.block = block[i]}, &(struct pile){.end = 1, .turns = 1});
		s->out->tried += s->m->torch.list[block[i]].size;
	}
	free(block);
}

void tries_add(struct search *s, const struct cw_failure *now, struct tallies *lines)
{
	const struct cw_failure *const *all;
	size_t n = trace_failures(s->trace, &all);
	struct try x;

	for (size_t i = 0; i < n && s->out->known; i++) {
		uint64_t before = s->out->tried;

		if (!try_of(s, &x, all[i], now))
			continue;
		add_try(s, &x, lines);
		if (s->out->tried > before)
			s->out->try = place_of_try(s, &x, all[i]->stack ? all[i]->stack : all[i]->forward_stack);
	}
	if (s->out->tried)	/* it may have left what it was meant to leave */
		s->out->exact = false;
}
