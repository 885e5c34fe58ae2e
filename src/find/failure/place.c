/* SPDX-License-Identifier: Apache-2.0
 * Lines of Python on the stacks of a recording (see place.h).
 */
#include "find/failure/place.h"

#include <string.h>

#include "base/str.h"
#include "read/recording/trace.h"

#define CALLERS_MAX 3

/* Whatever is on the outermost line is the command's own; all other code must be defined in it. */
const char *stack_typed(const struct trace *t, const struct cw_stack *s, uint32_t i)
{
	const struct cw_header *h = trace_header(t);
	const char *function, *text;

	if (strcmp(trace_string(t, s->frame[i].file), "<string>") != 0 || !(text = command_text(h->cmdline)))
		return NULL;
	function = trace_string(t, s->frame[i].function);
	if (!strcmp(function, "<module>"))
		return i + 1 == s->n && !(s->flags & CW_STACK_CUT) ? text : NULL;
	return text_defines(text, strlen(h->cmdline) + 1 >= sizeof(h->cmdline), function_base(function),
			    s->frame[i].first_line)
		       ? text
		       : NULL;
}

enum owner stack_owner(const struct trace *t, const struct cw_stack *s, uint32_t i)
{
	enum owner o = frame_owner(trace_string(t, s->frame[i].file), trace_header(t)->torch_path);

	return o == OWNER_GENERATED && stack_typed(t, s, i) ? OWNER_USER : o;
}

static bool place_of_frame(const struct trace *t, uint32_t stack, uint32_t i, bool library, struct place *p)
{
	const struct cw_stack *s = trace_stack(t, stack);
	const struct cw_frame *f = &s->frame[i];

	*p = (struct place){.file = trace_string(t, f->file),
			    .function = trace_string(t, f->function),
			    .line = f->line,
			    .first_line = f->first_line,
			    .library = library,
			    .stack = stack,
			    .text = stack_typed(t, s, i)};
	return p->file[0] != '\0';
}

bool place_of_stack(const struct trace *t, uint32_t stack, struct place *p)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;

	*p = (struct place){0};
	if (!s)
		return false;
	for (uint32_t i = 0; i < s->n; i++)
		if (stack_owner(t, s, i) == OWNER_USER)
			return place_of_frame(t, stack, i, false, p);
	for (uint32_t i = 0; i < s->n; i++) {
		if (stack_owner(t, s, i) < OWNER_TORCH &&
		    trace_string(t, s->frame[i].file)[0])
			return place_of_frame(t, stack, i, true, p);
	}
	return false;
}

const char *place_callers(const struct trace *t, const struct place *p, struct pool *pool)
{
	const struct cw_stack *s = p->stack ? trace_stack(t, p->stack) : NULL;
	const char *text = "";
	unsigned n = 0;
	bool inside = false;

	for (uint32_t i = 0; s && i < s->n && n < CALLERS_MAX; i++) {
		struct place one;

		if (stack_owner(t, s, i) != OWNER_USER || !place_of_frame(t, p->stack, i, false, &one))
			continue;
		if (inside)
			text = pool_printf(pool, "%s%s%s:%u", text, n++ ? ", from " : "",
					   file_shown(one.file, trace_header(t)->cwd), one.line);
		inside = inside || place_same(&one, p);
	}
	return text;
}

bool place_outside(const struct trace *t, uint32_t stack, uint32_t frame, struct place *p)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;

	*p = (struct place){0};
	for (uint32_t i = frame + 1; s && i < s->n; i++)
		if (stack_owner(t, s, i) == OWNER_USER)
			return place_of_frame(t, stack, i, false, p);
	return false;
}

bool place_of_caller(const struct trace *t, uint32_t stack, struct place *p)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;

	*p = (struct place){0};
	for (uint32_t i = 0; s && i < s->n; i++)
		if (stack_owner(t, s, i) < OWNER_STDLIB)
			return place_of_frame(t, stack, i, false, p);
	return false;
}

bool stack_in_backward(const struct trace *t, uint32_t stack)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;

	for (uint32_t i = 0; s && i < s->n; i++) {
		const char *function = function_base(trace_string(t, s->frame[i].function));

		if (stack_owner(t, s, i) == OWNER_TORCH &&
		    (!strcmp(function, "backward") || !strcmp(function, "grad") ||
		     !strcmp(function, "_engine_run_backward")))
			return true;
	}
	return false;
}

bool failure_in_backward(const struct trace *t, const struct cw_failure *f)
{
	return f->node_name != 0 || stack_in_backward(t, f->stack);
}

bool stack_top_within(const struct trace *t, uint32_t stack, uint32_t of)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;
	const struct cw_stack *o = of ? trace_stack(t, of) : NULL;

	if (!s || !o || !s->n)
		return false;
	for (uint32_t i = 0; i < o->n; i++)
		if (o->frame[i].line == s->frame[0].line &&
		    !strcmp(trace_string(t, o->frame[i].file), trace_string(t, s->frame[0].file)))
			return true;
	return false;
}

static bool is_operator_name(const char *function)
{
	static const char *const plumbing[] = {
		"fn", "forward", "backward", "wrapper", "inner", "__call__", "__torch_function__",
		"_call_impl", "_wrapped_call_impl", "_conv_forward", "decorate_context", "_fn", NULL,
	};

	for (size_t i = 0; plumbing[i]; i++)
		if (!strcmp(function, plumbing[i]))
			return false;
	return function[0] != '<';
}

const char *stack_torch_op(const struct trace *t, uint32_t stack)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;
	const char *other = NULL, *called = NULL;	/* by the user: the outermost of several */

	for (uint32_t i = 0; s && i < s->n && stack_owner(t, s, i) == OWNER_TORCH; i++) {
		const char *file = trace_string(t, s->frame[i].file);
		const char *function = function_base(trace_string(t, s->frame[i].function));

		if (!is_operator_name(function))
			continue;
		while (function[0] == '_' && function[1] != '_')
			function++;
		if (str_ends(file, "torch/nn/functional.py") || str_ends(file, "torch/functional.py"))
			called = function;
		if (!other)
			other = function;
	}
	return called ? called : other;
}

enum owner stack_top_owner(const struct trace *t, uint32_t stack)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;

	for (uint32_t i = 0; s && i < s->n; i++) {
		enum owner o = stack_owner(t, s, i);

		if (o != OWNER_GENERATED)
			return o;
	}
	return OWNER_USER;
}
