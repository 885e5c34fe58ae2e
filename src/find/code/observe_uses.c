/* SPDX-License-Identifier: Apache-2.0
 * Facts about what the program does with what a line makes, and whether it trains with it.
 */
#include "find/failure/observe.h"

#include "find/code/uses.h"
#include "find/failure/place.h"
#include "find/memory/loop_path.h"
#include "find/memory/trains.h"
#include "read/recording/trace.h"

static const char *const use_words[] = {[USE_UNKNOWN] = "", [USE_KEPT] = "kept", [USE_BACKWARD] = "backward"};

static bool is_trained(const struct uses *u)
{
	return u->pass == USE_BACKWARD || u->use == USE_BACKWARD;
}

/* Backward that runs over the value itself says more than the name of a function, or than words in its file. */
static enum trains trains_with(const struct uses *u, struct trace *t, uint32_t stack)
{
	enum trains name = stack_trains_by_name(t, stack);

	if (is_trained(u))
		return TRAINS_YES;
	if (name != TRAINS_UNKNOWN)
		return name;
	return u->pass == USE_KEPT ? TRAINS_NO : stack_trains(t, stack);
}

/* Would a smaller batch go with gradient accumulation? Not where nothing is trained. */
static enum trains batch_trains(enum trains code, struct trace *t, const struct incident *i)
{
	bool any = trace_header(t)->n_nodes_run > 0;

	if (failure_in_backward(t, i->lead))
		return TRAINS_YES;
	if (code == TRAINS_NO && any && stack_trains_by_name(t, i->lead->stack) != TRAINS_NO)
		return TRAINS_UNKNOWN;		/* what runs backward is in another file */
	return code == TRAINS_UNKNOWN && any ? TRAINS_YES : code;
}

/* Has backward run anything of this pass? The lines of a model, and of helpers around it, are those of every pass; one of those that lead to
 * them is the pass's own. */
static bool pass_was_run(struct trace *t, uint32_t stack, const struct place *at)
{
	static const char *const modules[] = {"torch/nn/modules/module.py", NULL};
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;
	uint32_t model = s ? stack_outermost_of(t, s, modules) : 0;

	if (!s || !line_was_run(t, at->file, at->line))
		return false;
	for (uint32_t k = model < s->n ? model + 1 : 0; k < s->n; k++)
		if (stack_owner(t, s, k) == OWNER_USER &&
		    !line_was_run(t, trace_string(t, s->frame[k].file), s->frame[k].line))
			return false;
	return true;
}

static bool evaluates(const struct uses *u, struct trace *t, const struct incident *i, const struct place *at)
{
	if (!trace_header(t)->n_nodes_run || failure_in_backward(t, i->lead) || !at->file ||
	    pass_was_run(t, i->lead->stack, at))
		return false;
	if (u->pass == USE_KEPT)
		return true;
	return u->pass == USE_UNKNOWN && !u->read && stack_trains_by_name(t, i->lead->stack) == TRAINS_NO;
}

void observe_uses(struct casefile *f, const struct incident *i, struct trace *t, const struct place *last)
{
	struct place at = {0};
	struct uses asked, kept;
	enum trains code, batch;

	place_of_stack(t, i->lead->stack, &at);
	uses_find(&asked, t, i->lead->stack, at.file, at.line, f->pool);
	kept = asked;
	if (last)
		uses_find(&kept, t, last->stack, last->file, last->line, f->pool);
	code = trains_with(is_trained(&kept) || asked.pass == USE_UNKNOWN ? &kept : &asked, t, i->lead->stack);
	batch = batch_trains(code, t, i);
	if (code != TRAINS_UNKNOWN)
		fact_set_flag(f, FACT_graph_trains, code == TRAINS_YES);
	if (batch != TRAINS_UNKNOWN)
		fact_set_flag(f, FACT_oom_trains, batch == TRAINS_YES);
	fact_set_flag(f, FACT_graph_evaluates, evaluates(&asked, t, i, &at));
	if (last)
		fact_set_flag(f, FACT_graph_line_run, line_was_run(t, last->file, last->line));
	fact_set_text(f, FACT_graph_use, use_words[last ? kept.use : USE_UNKNOWN]);
	fact_set_text(f, FACT_graph_held, last ? kept.held : NULL);
	fact_set_text(f, FACT_graph_keeper, last ? kept.keeper : NULL);
	fact_set_text(f, FACT_graph_detach, last && kept.use == USE_KEPT ? kept.edit : NULL);
	fact_set_text(f, FACT_graph_spread, last && kept.use == USE_BACKWARD ? kept.edit : NULL);
	fact_set_text(f, FACT_graph_no_grad, last && kept.no_grad ? kept.no_grad : asked.no_grad);
}
