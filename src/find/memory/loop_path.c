/* SPDX-License-Identifier: Apache-2.0
 * Places in the program's loops (see loop_path.h).
 */
#include "find/memory/loop_path.h"

#include <string.h>

#include "base/mem.h"
#include "find/code/layers.h"
#include "find/failure/place.h"
#include "read/recording/trace_memory.h"

const struct cw_frame *stack_outer_frame(const struct cw_stack *s, uint32_t i)
{
	return i < s->n ? &s->frame[s->n - 1 - i] : NULL;
}

static bool same_text(const struct trace *t, uint32_t a, uint32_t b)
{
	return a == b || !strcmp(trace_string(t, a), trace_string(t, b));
}

bool frame_same_function(const struct trace *t, const struct cw_frame *a, const struct cw_frame *b)
{
	return a->first_line == b->first_line && same_text(t, a->file, b->file) && same_text(t, a->function, b->function);
}

bool stacks_begin_apart(const struct trace *t, const struct cw_stack *a, const struct cw_stack *b)
{
	return a->n && b->n && !((a->flags | b->flags) & CW_STACK_CUT) &&
	       !frame_same_function(t, stack_outer_frame(a, 0), stack_outer_frame(b, 0));
}

/* One of PyTorch's files calls modules, and also moves them to a device; another runs backward, and also operators of tensors. */
static bool is_beside(const struct trace *t, const struct cw_frame *f)
{
	const char *file = trace_string(t, f->file), *function = trace_string(t, f->function);

	return (strstr(file, "torch/nn/modules/module.py") && !strstr(function, "call")) ||
	       (strstr(file, "torch/_tensor.py") && strcmp(function_base(function), "backward") != 0);
}

uint32_t stack_outermost_of(const struct trace *t, const struct cw_stack *s, const char *const *parts)
{
	for (uint32_t i = s->n; i > 0; i--)
		for (size_t k = 0; parts[k]; k++)
			if (strstr(trace_string(t, s->frame[i - 1].file), parts[k]) && !is_beside(t, &s->frame[i - 1]))
				return i - 1;
	return s->n;
}

static bool in_function(const struct trace *t, const struct cw_frame *f, const struct place *loop)
{
	return f->first_line == loop->first_line && !strcmp(trace_string(t, f->file), loop->file) &&
	       !strcmp(trace_string(t, f->function), loop->function);
}

/* Is the function that contains the loop on the stack, further out than the frame `inner`? */
static bool is_outside(const struct trace *t, const struct cw_stack *s, const struct place *loop, uint32_t inner)
{
	for (uint32_t i = inner < s->n ? inner + 1 : 0; i < s->n; i++)
		if (in_function(t, &s->frame[i], loop))
			return true;
	return false;
}

static bool is_torch(const struct trace *t, const struct turn *turn)
{
	return frame_owner(turn->loop.file, trace_header(t)->torch_path) == OWNER_TORCH;
}

/* A model works when a module, backward or an optimizer is running. */
static void loops_note(struct loops *l, const struct trace *t, uint32_t stack, const struct turn *turn, size_t n)
{
	static const char *const model[] = {"torch/nn/modules/module.py", "torch/autograd/", "torch/optim/",
					    "torch/_tensor.py", NULL};
	static const char *const backward[] = {"torch/autograd/", "torch/_tensor.py", NULL};
	const struct cw_stack *s = stack && n ? trace_stack(t, stack) : NULL;
	uint32_t at_model, at_backward;

	for (size_t i = 0; i < n; i++)
		if (turn[i].number < l->n && turn[i].turn > 1)
			l->is[turn[i].number] |= LOOP_TURNED;
	if (!s)
		return;
	at_model = stack_outermost_of(t, s, model);
	at_backward = stack_in_backward(t, stack) ? stack_outermost_of(t, s, backward) : s->n;
	for (size_t i = 0; i < n; i++) {
		if (turn[i].number >= l->n || is_torch(t, &turn[i]))
			continue;
		if (at_model < s->n)
			l->is[turn[i].number] |=
				is_outside(t, s, &turn[i].loop, at_model) ? LOOP_AROUND_MODEL : LOOP_IN_MODEL;
		if (l->is[turn[i].number] & LOOP_AROUND_MODEL) {
			l->workers |= l->worker && stacks_begin_apart(t, s, l->worker);
			l->worker = s;
		}
		if (at_backward < s->n && is_outside(t, s, &turn[i].loop, at_backward))
			l->is[turn[i].number] |= LOOP_AROUND_BACKWARD;
	}
}

/* A loop inside a model is over its layers, or over steps that are parts of one pass; so it is where the same loop is reached past the model,
 * by a method that is called directly. Where it always is, only the source tells. */
static bool is_part_of_pass(const struct loops *l, struct trace *t, uint32_t number)
{
	size_t len;
	const struct cw_loop *loop = trace_chunk(t, CW_CHUNK_LOOPS, &len);

	if (l->is[number] & LOOP_AROUND_BACKWARD)
		return false;
	return l->is[number] & LOOP_IN_MODEL ||
	       loop_is_over_layers(t, trace_string(t, loop[number].frame.file), loop[number].frame.line);
}

void loops_find(struct loops *l, struct trace *t, const struct moment *m)
{
	const struct cw_launch *const *launch;
	struct turn turn[CW_LOOP_TURNS];
	uint32_t stack = 0;
	size_t len;

	(void)trace_chunk(t, CW_CHUNK_LOOPS, &len);
	*l = (struct loops){.n = len / sizeof(struct cw_loop)};
	l->is = xcalloc(l->n + 1, sizeof(*l->is));
	for (size_t i = 0; i < m->torch.n; i++)
		loops_note(l, t, m->torch.list[i].stack, turn, turns_of_piece(t, &m->torch.list[i], turn));
	for (size_t i = trace_launches(t, &launch); i > 0; i--) {
		if (launch[i - 1]->stack != stack)	/* many in a row have the same */
			loops_note(l, t, launch[i - 1]->stack, turn, turns_of_launch(t, launch[i - 1], turn));
		stack = launch[i - 1]->stack;
	}
	for (uint32_t i = 0; i < l->n; i++)
		if (l->is[i] & LOOP_AROUND_MODEL && is_part_of_pass(l, t, i))
			l->is[i] = (uint8_t)((l->is[i] & ~LOOP_AROUND_MODEL) | LOOP_IN_MODEL);
	for (size_t i = 0; i < l->n; i++) {
		l->any_model |= l->is[i] & LOOP_AROUND_MODEL;
		l->any_backward |= l->is[i] & LOOP_AROUND_BACKWARD;
	}
}

void path_add_recursion(struct path *p, const struct trace *t, uint32_t stack)
{
	static const char *const modules[] = {"torch/nn/modules/module.py", NULL};
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;
	uint32_t inner = s ? stack_outermost_of(t, s, modules) : 0, times;

	for (uint32_t i = s && inner < s->n ? inner + 1 : 0; s && i < s->n && p->n < CW_LOOP_TURNS; i += times) {
		for (times = 1; i + times < s->n && s->frame[i + times].line == s->frame[i].line &&
				frame_same_function(t, &s->frame[i + times], &s->frame[i]);
		     times++)
			;
		if (times == 1 || stack_owner(t, s, i) != OWNER_USER)
			continue;
		p->step[p->n++] = (struct loop_turn){RECURSION | s->frame[i].file, times};
		p->exact &= !(s->flags & CW_STACK_CUT);
	}
}

/* It only waits for a thread or an event loop, and has done nothing else so far. */
static bool is_idle(const struct trace *t, const struct loops *l, const struct turn *x)
{
	return !(l->is[x->number] & LOOP_TURNED) &&
	       frame_owner(x->loop.file, trace_header(t)->torch_path) == OWNER_STDLIB;
}

void path_of_turns(struct path *p, const struct trace *t, const struct loops *l, const struct turn *turn, size_t n,
		   uint8_t want)
{
	*p = (struct path){.exact = true};
	for (size_t i = n; i > 0; i--) {
		const struct turn *x = &turn[i - 1];

		if (x->number >= l->n || is_torch(t, x) ||
		    (want ? !(l->is[x->number] & want)
			  : p->n > 0 || l->is[x->number] & LOOP_IN_MODEL || is_idle(t, l, x)))
			continue;
		p->step[p->n++] = (struct loop_turn){x->number, x->turn};
		p->exact &= x->exact;
	}
}

int path_order(const struct path *a, const struct path *b)
{
	for (uint32_t i = 0; i < a->n && i < b->n; i++) {
		const struct loop_turn *x = &a->step[i], *y = &b->step[i];

		if (x->loop != y->loop)
			return x->loop < y->loop ? -1 : 1;
		if (x->turn != y->turn)
			return x->turn < y->turn ? -1 : 1;
	}
	return a->n < b->n ? -1 : a->n > b->n;
}

uint32_t path_turns_between(const struct path *a, const struct path *b)
{
	uint32_t last = a->n - 1;

	if (!a->n || a->n != b->n || memcmp(a->step, b->step, last * sizeof(a->step[0])) != 0 ||
	    a->step[last].loop != b->step[last].loop || b->step[last].turn <= a->step[last].turn)
		return 1;
	return b->step[last].turn - a->step[last].turn;
}

bool path_is_now(const struct path *block, const struct path *now)
{
	return block->n <= now->n && (!block->n || !memcmp(block->step, now->step, block->n * sizeof(block->step[0])));
}

size_t turns_at_failure(struct trace *t, const struct cw_failure *f, struct turn *turn)
{
	const struct cw_launch *const *launch;
	size_t n = turns_of_failure(t, f, turn);

	for (size_t i = n || f->stack ? 0 : trace_launches(t, &launch); i > 0 && !n; i--)
		if (launch[i - 1]->ticks <= f->ticks)
			n = turns_of_launch(t, launch[i - 1], turn);
	return n;
}
