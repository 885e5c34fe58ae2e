/* SPDX-License-Identifier: Apache-2.0
 * Whose failure ended the program (see ending.h).
 */
#include "find/failure/ending.h"

#include <string.h>

#include "base/pool.h"
#include "case/process.h"
#include "find/failure/incident.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"

enum role { ROLE_CODE, ROLE_TESTS, ROLE_CHILD, ROLE_PASSES };

/* Who caught the exception, if the failed call raised one. */
enum by { BY_UNKNOWN, BY_NOBODY, BY_CODE, BY_TESTS, BY_CHILD };

struct caught {
	enum by by;
	bool exits;			/* by leaving the process */
	bool sure;
	const struct cw_handler *handler;	/* of BY_CODE */
};

static bool is_another(const char *type, size_t len)
{
	static const char *const types[] = {
#define ANOTHER(type) type,
#include "kb/python_catchers.def"
	};

	for (size_t k = 0; k < sizeof(types) / sizeof(types[0]); k++)
		if (strlen(types[k]) == len && !strncmp(types[k], type, len))
			return true;
	return false;
}

static bool swallows(const char *type)
{
	static const char *const types[] = {
#define SWALLOWS(type) type,
#include "kb/python_catchers.def"
	};

	for (size_t k = 0; k < sizeof(types) / sizeof(types[0]); k++)
		if (!strcmp(types[k], type))
			return true;
	return false;
}

static enum role role_of(const char *file)
{
	static const struct { const char *part; enum role role; } rows[] = {
#define CATCHER(role, part) {part, ROLE_##role},
#include "kb/python_catchers.def"
	};

	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++)
		if (strstr(file, rows[k].part))
			return rows[k].role;
	return ROLE_CODE;
}

enum matches { MATCHES_NOT, MATCHES_PERHAPS, MATCHES };

/* `torch`: it is an exception of PyTorch's, all of which are RuntimeErrors. `other`: a handler further in has raised another one. */
static enum matches matches_of(const char *types, bool torch, bool other)
{
	enum matches best = *types ? MATCHES_NOT : MATCHES;

	while (*types) {
		size_t n = strcspn(types, ",");
		bool any =
			(n == 9 && !strncmp(types, "Exception", n)) || (n == 13 && !strncmp(types, "BaseException", n));
		enum matches m = any || (torch && !other && n == 12 && !strncmp(types, "RuntimeError", n)) ? MATCHES
				 : !other && is_another(types, n)					   ? MATCHES_NOT
								  : MATCHES_PERHAPS;

		best = m > best ? m : best;
		types += n;
		types += strspn(types, ", ");
	}
	return best;
}

static const struct cw_failure_handlers *handlers_of(const struct trace *t, const struct cw_failure *f)
{
	size_t len;
	const struct cw_failure_handlers *all = trace_chunk(t, CW_CHUNK_HANDLERS, &len);

	for (size_t k = 0; f->seq && k < len / sizeof(*all); k++)
		if (all[k].seq == f->seq)
			return all[k].known && all[k].n <= CW_HANDLERS ? &all[k] : NULL;
	return NULL;
}

/* The failure nearest to the end that the recorder saw in the program's code, not at its end. */
static const struct cw_failure *last_failure(const struct incident *i)
{
	for (size_t k = i->n; k > 0; k--)
		if (i->failure[k - 1]->source != CW_SRC_PYTHON && i->failure[k - 1]->stack)
			return i->failure[k - 1];
	return i->lead;
}

/* By the innermost handler that may catch it. */
static struct caught caught_by(const struct incident *i, const struct trace *t, const struct cw_failure *f)
{
	const struct cw_failure_handlers *e = f->stack ? handlers_of(t, f) : NULL;
	const struct cw_stack *s = f->stack ? trace_stack(t, f->stack) : NULL;
	struct caught c = {.by = BY_NOBODY, .sure = i->raised};
	bool other = false;

	if (!e || !s)
		return (struct caught){.by = BY_UNKNOWN};
	for (uint32_t k = 0; k < e->n; k++) {
		const struct cw_handler *h = &e->at[k];
		const char *types = trace_string(t, h->types);
		enum role role = h->frame < s->n ? role_of(trace_string(t, s->frame[h->frame].file)) : ROLE_CODE;
		bool with = h->kind == CW_HANDLER_WITH, ends = with && swallows(types);
		enum matches m = !with ? matches_of(types, i->raised, other)
				 : ends || role == ROLE_TESTS ? MATCHES_PERHAPS : MATCHES_NOT;

		if (m == MATCHES_NOT || role == ROLE_PASSES)
			continue;
		if (h->kind == CW_HANDLER_EXCEPT && h->does == CW_HANDLER_RAISES && !(h->flags & CW_HANDLER_BRANCHES)) {
			other = true;
			continue;
		}
		c.handler = h;
		c.by = role == ROLE_TESTS && !ends ? BY_TESTS : role == ROLE_CHILD ? BY_CHILD : BY_CODE;
		c.exits = h->kind == CW_HANDLER_EXCEPT && h->does == CW_HANDLER_EXITS;
		c.sure = c.sure && m == MATCHES && !(h->flags & CW_HANDLER_BRANCHES);
		return c;
	}
	return c;
}

uint64_t ending_last_seen(const struct incident *i)
{
	uint64_t last = 0;

	for (size_t k = 0; k < i->n; k++) {
		const struct cw_failure *f = i->failure[k];
		uint64_t ticks = f->last_ticks > f->ticks ? f->last_ticks : f->ticks;

		if (f->source != CW_SRC_PYTHON)
			last = ticks > last ? ticks : last;
	}
	return last;
}

static bool same_function(const struct trace *t, const struct cw_frame *a, const struct cw_frame *b)
{
	return a->first_line == b->first_line && !strcmp(trace_string(t, a->file), trace_string(t, b->file)) &&
	       !strcmp(trace_string(t, a->function), trace_string(t, b->function));
}

/* Is the handler that caught the exception still at work in this stack? Frames are counted from the root. */
static bool is_in_handler(const struct trace *t, const struct cw_handler *h, uint32_t stack, uint32_t failed)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL, *f = failed ? trace_stack(t, failed) : NULL;
	uint32_t from_root = f && h->frame < f->n ? f->n - h->frame : 0;
	const struct cw_frame *at = s && from_root && from_root <= s->n ? &s->frame[s->n - from_root] : NULL;

	return at && !((s->flags | f->flags) & CW_STACK_CUT) && same_function(t, at, &f->frame[h->frame]) &&
	       at->line >= h->first_line && at->line <= h->last_line;
}

/* Was it done while the failure was on its way up: by the handler that caught it, or by a context manager that was left because of it? */
static bool is_aftermath(const struct trace *t, const struct cw_failure *f, const struct cw_handler *h, uint32_t stack)
{
	const struct cw_failure_handlers *e = handlers_of(t, f);

	if (h && is_in_handler(t, h, stack, f->stack))
		return true;
	for (uint32_t k = 0; e && k < e->n; k++)
		if (e->at[k].kind == CW_HANDLER_WITH && is_in_handler(t, &e->at[k], stack, f->stack))
			return true;
	return false;
}

/* Does work of this thread show that the thread that failed went on, or, if it was not the main one, the program? */
static bool counts(const struct trace *t, uint32_t tid, uint32_t failed)
{
	return tid == failed || failed != trace_header(t)->pid;
}

static bool launch_worked(const struct cw_launch *l)
{
	return (l->flags & CW_LAUNCH_CAPTURED) || !l->result;	/* of a captured launch, `result` is the capture's number */
}

/* Cleaning up is no use. */
static bool call_worked(const struct cw_call *c)
{
	return !c->result && api_does(c->api, DOES_LOAD | DOES_GIVE | DOES_REQUEST);
}

/* Did the program use the GPU with success, after the failure and not because of it? */
static bool went_on(const struct incident *i, struct trace *t, const struct cw_failure *f, const struct cw_handler *h)
{
	const struct cw_launch *const *l;
	const struct cw_call *const *c;
	uint64_t last = ending_last_seen(i);
	size_t n = trace_launches(t, &l);

	for (; n > 0 && l[n - 1]->ticks > last; n--)
		if (launch_worked(l[n - 1]) && counts(t, l[n - 1]->tid, f->tid) &&
		    !is_aftermath(t, f, h, l[n - 1]->stack))
			return true;
	for (n = trace_calls(t, &c); n > 0 && c[n - 1]->ticks > last; n--)
		if (call_worked(c[n - 1]) && counts(t, c[n - 1]->tid, f->tid) &&
		    !is_aftermath(t, f, h, c[n - 1]->stack))
			return true;
	return false;
}

uint64_t ending_last_use(struct trace *t)
{
	const struct cw_launch *const *l;
	const struct cw_call *const *c;
	uint64_t last = 0;
	size_t n = trace_launches(t, &l);

	while (n > 0 && !launch_worked(l[n - 1]))
		n--;
	last = n ? l[n - 1]->ticks : 0;
	for (n = trace_calls(t, &c); n > 0 && c[n - 1]->ticks > last; n--)
		if (call_worked(c[n - 1]))
			last = c[n - 1]->ticks;
	return last ? trace_header(t)->clock0.mono_ns + trace_ns(t, last) : 0;
}

static const char *end_words(const struct process_end *end, struct pool *pool)
{
	return !end->status_known ? "ended" : end->signal ? pool_printf(pool, "ended by signal %d", end->signal)
				  : pool_printf(pool, "ended with status %d", end->exit);
}

static struct ending unknown(struct pool *pool, const char *what, const struct process_end *end, const char *why)
{
	return (struct ending){FATE_UNKNOWN, pool_printf(pool, "%s %s%s", what, end_words(end, pool), why)};
}

static struct ending ending_in_python(const struct incident *i, struct trace *t, const struct process_end *end,
				      struct pool *pool)
{
	const struct cw_failure *f = last_failure(i);
	struct caught c = caught_by(i, t, f);
	bool on = went_on(i, t, f, c.by == BY_CODE ? c.handler : NULL);

	if (c.by == BY_CHILD && end->status_known && end->exit == 1 && c.sure)
		return (struct ending){FATE_ENDED, NULL};
	if (c.by == BY_TESTS)
		return unknown(pool, "a test runner caught it, and the program", end,
			       ", perhaps because of another test");
	if (c.by == BY_CODE && c.exits && c.sure && (on || f->tid != trace_header(t)->pid))
		return unknown(pool,
			       on ? "the program caught it to exit, but used the GPU again, and"
				  : "a thread caught it to exit; the program",
			       end, ", perhaps for another reason");
	if (c.by == BY_CODE && c.exits && c.sure)
		return (struct ending){FATE_ENDED, NULL};
	if (on)
		return (struct ending){FATE_SURVIVED, NULL};
	if (c.by == BY_UNKNOWN || c.by == BY_CHILD)
		return unknown(pool, "the program may have handled it, and", end, ", perhaps for another reason");
	if (c.by == BY_NOBODY)
		return unknown(pool, "no exception was seen to reach the top of the program; it", end,
			       ", perhaps for another reason");
	return unknown(pool, c.exits ? "code that exits may have caught it; the program" : "the program caught it and",
		       end, ", perhaps for another reason");
}

struct ending ending_of(const struct incident *i, struct trace *t, const struct process_end *end, struct pool *pool)
{
	if (trace_header(t)->py_version)
		return ending_in_python(i, t, end, pool);
	if (went_on(i, t, i->lead, NULL))
		return unknown(pool, "the program went on to use the GPU and", end, ", perhaps for another reason");
	return (struct ending){FATE_ENDED, NULL};
}

bool ending_is_over(const struct incident *i, struct trace *t)
{
	const struct cw_failure *f = last_failure(i);
	struct caught c = caught_by(i, t, f);

	return c.by == BY_CODE && !c.exits && went_on(i, t, f, c.handler);
}

bool ending_of_test(const struct incident *i, const struct trace *t)
{
	return caught_by(i, t, last_failure(i)).by == BY_TESTS;
}

/* How many frames, from the root, are the same line of the same function. */
static uint32_t same_from_root(const struct trace *t, const struct cw_stack *a, const struct cw_stack *b)
{
	uint32_t n = 0;

	while (n < a->n && n < b->n && a->frame[a->n - 1 - n].line == b->frame[b->n - 1 - n].line &&
	       same_function(t, &a->frame[a->n - 1 - n], &b->frame[b->n - 1 - n]))
		n++;
	return n;
}

/* The function that caught it raised this exception itself, when nothing had worked since, and it is not one that bugs raise: it
 * had no attempt left. */
static bool gave_up(const struct incident *i, struct trace *t, const struct cw_failure *f, const struct cw_handler *h,
		    const struct cw_failure *exception)
{
	const struct cw_stack *s = trace_stack(t, f->stack), *e = trace_stack(t, exception->stack);

	return s->n - h->frame == e->n && same_function(t, &s->frame[h->frame], &e->frame[0]) &&
	       !is_another(exception->what, strlen(exception->what)) && !went_on(i, t, f, h);
}

const char *ending_raised_behind(const struct incident *i, struct trace *t, const struct cw_failure *exception)
{
	const struct cw_failure *f = last_failure(i);
	const struct cw_stack *s = f->stack ? trace_stack(t, f->stack) : NULL;
	const struct cw_stack *e = exception->stack ? trace_stack(t, exception->stack) : NULL;
	struct caught c;
	uint32_t n;

	if (!strcmp(exception->what, "KeyboardInterrupt"))
		return NULL;
	if (!s || !e || ((s->flags | e->flags) & CW_STACK_CUT) || f->tid != exception->tid ||
	    exception->ticks < ending_last_seen(i))
		return NULL;
	n = same_from_root(t, s, e);
	if (n == s->n || n == e->n)
		return NULL;
	if (!same_function(t, &s->frame[s->n - 1 - n], &e->frame[e->n - 1 - n]) && n-- == 0)
		return NULL;	/* not on another line of a function, nor in another call from the same line */
	c = caught_by(i, t, f);
	if (c.by == BY_UNKNOWN)
		return NULL;
	/* code that caught it in the function that raised, or further in: that went on, and so did the program, unless that was
	 * its last attempt */
	if (c.by == BY_CODE && c.handler->frame <= s->n - 1 - n)
		return gave_up(i, t, f, c.handler, exception) ? "in the function that caught it" : NULL;
	/* PyTorch does not return a status */
	return i->lead->source == CW_SRC_TORCH_OOM || went_on(i, t, f, NULL) ? NULL : "in the function that made it";
}
