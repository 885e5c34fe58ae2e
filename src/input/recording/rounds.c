/* SPDX-License-Identifier: Apache-2.0
 * When the turns of the program's own loop began (see rounds.h).
 *
 * A loop over layers turns, too, but all its turns are one pass. What tells the two apart is where the loop stands: that over
 * layers is in code that a module calls, that over batches in code that calls modules. Loops of PyTorch itself are parts of
 * one operation.
 */
#include "input/recording/rounds.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "input/recording/place.h"
#include "input/recording/turns.h"

/* Index of the outermost call of a module on the stack; the number of frames if there is none. */
static uint32_t module_call(const struct trace *t, const struct cw_stack *s)
{
	for (uint32_t i = s->n; i > 0; i--)
		if (str_ends(trace_string(t, s->frame[i - 1].file), "torch/nn/modules/module.py"))
			return i - 1;
	return s->n;
}

static bool in_function(const struct trace *t, const struct cw_frame *f, const struct place *loop)
{
	return f->first_line == loop->first_line && !strcmp(trace_string(t, f->file), loop->file) &&
	       !strcmp(trace_string(t, f->function), loop->function);
}

/* Is the function of the loop on the stack, outside of all modules? */
static bool is_around_modules(const struct trace *t, const struct cw_stack *s, const struct place *loop)
{
	uint32_t call = module_call(t, s);

	for (uint32_t i = call < s->n ? call + 1 : 0; i < s->n; i++)
		if (in_function(t, &s->frame[i], loop))
			return true;
	return false;
}

/* A thread of PyTorch's backward has no frames and is in no loop: the one that waits for it has and is, since its last
 * launch. */
static size_t turns_before(struct trace *t, uint64_t ticks, struct turn *turns, uint32_t *stack)
{
	const struct cw_launch *const *launch;
	size_t n = 0;

	for (size_t i = trace_launches(t, &launch); i > 0 && !n; i--) {
		if (launch[i - 1]->ticks > ticks)
			continue;
		n = turns_of_launch(t, launch[i - 1], turns);
		*stack = launch[i - 1]->stack;
	}
	return n;
}

/* Its work is a model's: called by a module, by backward or by an optimizer. */
static bool is_of_model(const struct trace *t, const struct cw_launch *l)
{
	static const char *const parts[] = {"torch/nn/modules/module.py", "torch/autograd/", "torch/optim/",
					    "torch/_tensor.py"};
	const struct cw_stack *s = l->stack ? trace_stack(t, l->stack) : NULL;

	for (uint32_t i = 0; s && i < s->n; i++)
		for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]); k++)
			if (strstr(trace_string(t, s->frame[i].file), parts[k]))
				return true;
	return false;
}

static bool works_a_model(struct trace *t, uint32_t loop)
{
	const struct cw_launch *const *launch;
	struct turn turns[CW_LOOP_TURNS];

	for (size_t i = trace_launches(t, &launch); i > 0; i--) {
		size_t n = is_of_model(t, launch[i - 1]) ? turns_of_launch(t, launch[i - 1], turns) : 0;

		while (n && turns[n - 1].number != loop)
			n--;
		if (n)
			return true;
	}
	return false;
}

/* Which loops are the program's own; their turns at the failure. A loop that never works a model may be one over the layers of
 * a model without modules: if there are no others, only the outermost counts. */
static size_t own_loops(struct trace *t, const struct cw_failure *f, struct turn *own)
{
	struct turn turns[CW_LOOP_TURNS], outermost = {.turn = 0};
	size_t n = turns_of_failure(t, f, turns), kept = 0;
	uint32_t stack = f->stack;
	const struct cw_stack *s;

	if (!n)
		n = turns_before(t, f->ticks, turns, &stack);
	s = stack ? trace_stack(t, stack) : NULL;
	for (size_t i = 0; s && i < n; i++) {
		if (frame_owner(turns[i].loop.file, trace_header(t)->torch_path) == OWNER_TORCH ||
		    !is_around_modules(t, s, &turns[i].loop))
			continue;
		outermost = turns[i];
		if (works_a_model(t, turns[i].number))
			own[kept++] = turns[i];
	}
	if (!kept && outermost.turn)
		own[kept++] = outermost;
	return kept;
}

/* The turns of these loops at a launch; false if it was outside of one of them. */
static bool turns_at(const struct trace *t, const struct cw_launch *l, const struct turn *own, size_t n, uint32_t *at)
{
	struct turn turns[CW_LOOP_TURNS];
	size_t all = turns_of_launch(t, l, turns);

	for (size_t i = 0; i < n; i++) {
		size_t k = 0;

		while (k < all && turns[k].number != own[i].number)
			k++;
		if (k == all)
			return false;
		at[i] = turns[k].turn;
	}
	return true;
}

/* In the middle of forward or backward. A failure behind a loop says nothing about the turns of that loop. */
static bool is_in_pass(const struct trace *t, const struct cw_failure *f)
{
	const struct cw_stack *s = f->stack ? trace_stack(t, f->stack) : NULL;

	return !s || module_call(t, s) < s->n;
}

void rounds_find(struct rounds *r, struct trace *t, const struct cw_failure *f)
{
	const struct cw_launch *const *launch;
	size_t len, launches = trace_launches(t, &launch), n;
	uint32_t now[CW_LOOP_TURNS], at[CW_LOOP_TURNS];
	struct turn own[CW_LOOP_TURNS];

	*r = (struct rounds){.known = trace_chunk(t, CW_CHUNK_LOOPS, &len) != NULL};
	n = r->known ? own_loops(t, f, own) : 0;
	if (!n) {
		r->known = r->known && is_in_pass(t, f);
		return;
	}
	r->begin = xcalloc(launches + 1, sizeof(*r->begin));
	for (size_t i = 0; i < n; i++)
		now[i] = own[i].turn;
	for (size_t i = launches; i > 0; i--) {
		if (launch[i - 1]->ticks > f->ticks || !turns_at(t, launch[i - 1], own, n, at))
			continue;
		if (memcmp(at, now, n * sizeof(*at)) != 0)
			r->begin[r->n++] = launch[i - 1]->ticks + 1;
		memcpy(now, at, n * sizeof(*at));
	}
	for (size_t i = 0; i < n && !r->n; i++)
		r->known &= own[i].turn <= 1;	/* nothing was launched in earlier turns, so it is not known when they were */
}

void rounds_release(struct rounds *r)
{
	free(r->begin);
	*r = (struct rounds){.known = false};
}
