/* SPDX-License-Identifier: Apache-2.0
 * Makes the verdict about one incident: facts, then rules, then what the cause's file says.
 */
#include <string.h>

#include "base/mem.h"
#include "judge/verdict_priv.h"
#include "compat/cuda_errors.h"
#include "input/recording/trace.h"

_Static_assert((int)SURE_CERTAIN == (int)KB_CERTAIN && (int)SURE_POSSIBLE == (int)KB_POSSIBLE,
	       "one scale of certainty");

#define STACK_MAX 128
#define CANDIDATES_MAX 8

struct verdict *verdict_new(const char *cause)
{
	struct verdict *v = xcalloc(1, sizeof(*v));

	v->cause = kb_find(kb_get(), cause);
	if (!v->cause)
		BUG("a cause without a file");
	v->title = v->cause->title;
	v->rank = CW_UNKNOWN;
	v->exit = -1;
	v->sure = SURE_CERTAIN;
	return v;
}

void verdict_append(struct verdict **list, struct verdict *v)
{
	while (*list)
		list = &(*list)->next;
	*list = v;
}

const char *verdict_keep(struct verdict *v, const char *text)
{
	return text && text[0] ? pool_strdup(&v->pool, text) : NULL;
}

static void say(struct pool *pool, struct said **list, const char *source, const char *text,
		const char *command)
{
	struct said *s = pool_alloc(pool, sizeof(*s));

	s->source = source;
	s->text = text;
	s->command = command;
	while (*list)
		list = &(*list)->next;
	*list = s;
}

struct line line_of_place(struct verdict *v, const struct trace *t, const struct place *p)
{
	struct line l = { 0 };

	if (!p->file)
		return l;
	l.file = pool_strdup(&v->pool, p->file);
	l.shown = file_shown(l.file, trace_header(t)->cwd);
	l.function = verdict_keep(v, p->function);
	l.number = p->line;
	l.library = p->library;
	l.source = place_source(p, trace_header(t)->cwd, &v->pool);
	return l;
}

const struct line *verdict_caller(const struct verdict *v, size_t n)
{
	bool outside = false;

	for (size_t i = 0; i < v->n_stack; i++) {
		const struct line *l = &v->stack[i];

		if (!l->file || frame_owner(l->file, "") != OWNER_USER)
			continue;
		if (outside && n-- == 0)
			return l;
		outside = outside || (v->where.file && l->number == v->where.number && !strcmp(l->file, v->where.file));
	}
	return NULL;
}

size_t lines_of_stack(struct verdict *v, const struct trace *t, uint32_t off, struct line **lines)
{
	const struct cw_stack *s = off ? trace_stack(t, off) : NULL;
	size_t n = 0;

	if (!s)
		return 0;
	*lines = pool_alloc(&v->pool, STACK_MAX * sizeof(**lines));
	for (uint32_t i = 0; i < s->n && n < STACK_MAX; i++) {
		struct line *l = &(*lines)[n++];

		l->file = pool_strdup(&v->pool, trace_string(t, s->frame[i].file));
		l->function = verdict_keep(v, trace_string(t, s->frame[i].function));
		l->number = s->frame[i].line;
	}
	return n;
}

static void fill_lines(struct verdict *v, const struct trace *t, const struct scene *s)
{
	const struct line *caller;
	uint32_t off = trace_header(t)->frames_off_because;

	v->where = line_of_place(v, t, &s->where);
	v->noticed = line_of_place(v, t, &s->noticed);
	v->forward = line_of_place(v, t, &s->forward);
	v->backward = line_of_place(v, t, &s->backward);
	v->capture = line_of_place(v, t, &s->capture);
	v->n_stack = lines_of_stack(v, t, s->where.stack, &v->stack);
	caller = verdict_caller(v, 0);
	if (caller)
		v->caller = line_of_place(v, t, &(struct place){ .file = caller->file, .line = caller->number });
	if (!v->where.file && off)
		v->frames_off = reason_text(off);
}

static void fill_error(struct verdict *v, const struct casefile *f)
{
	v->code = (uint32_t)fact_number(f, FACT_error_code, 0);
	v->name = verdict_keep(v, fact_text(f, FACT_error_name));
	v->string = verdict_keep(v, fact_text(f, FACT_error_string));
	v->api = verdict_keep(v, fact_text(f, FACT_error_api));
	v->source = verdict_keep(v, fact_text(f, FACT_error_source));
	v->text = verdict_keep(v, fact_text(f, FACT_error_text));
	v->node = verdict_keep(v, fact_text(f, FACT_torch_node));
	v->count = (uint32_t)fact_number(f, FACT_error_count, 1);
	v->async = fact_true(f, FACT_error_async);
	v->sim = fact_true(f, FACT_process_sim);
}

static void fill_kernel(struct verdict *v, const struct casefile *f, const struct incident *i)
{
	const struct cw_failure *l = NULL;

	for (size_t k = 0; k < i->n && !l; k++)
		if (i->failure[k]->is_launch)
			l = i->failure[k];
	/* a launch that returns an error of earlier work is innocent */
	if ((!l && !fact_known(f, FACT_func_name)) || i->sticky)
		return;
	v->kernel.known = true;
	v->kernel.name = verdict_keep(v, fact_text(f, FACT_func_name));
	v->kernel.short_name = verdict_keep(v, fact_text(f, FACT_func_short));
	if (!l)
		return;
	v->kernel.dims_known = true;
	memcpy(v->kernel.grid, l->grid, sizeof(l->grid));
	memcpy(v->kernel.block, l->block, sizeof(l->block));
	v->kernel.shared = l->shared;
	v->kernel.stream = l->stream;
}

static const char *source_id(uint32_t source)
{
	switch (source) {
#define X(number, name, id, text) case number: return id;
	CW_SOURCES(X)
#undef X
	default: return "recording";
	}
}

static char *evidence_text(struct verdict *v, const struct cw_failure *f)
{
	const char *function = f->api ? api_name(f->api) : f->what;

	switch (f->source) {
	case CW_SRC_DRIVER:
	case CW_SRC_RUNTIME:
		return pool_printf(&v->pool, "%s returned %u (%s)%s%s", function[0] ? function : "a call",
				   f->code, cuda_error_name(f->code), f->text[0] ? ": " : "", f->text);
	case CW_SRC_TORCH_CUDA:
		return pool_printf(&v->pool, "PyTorch saw error %u (%s) in %s", f->code,
				   cuda_error_name(f->code), f->what[0] ? f->what : "a CUDA call");
	case CW_SRC_TORCH_OOM:
		return pool_printf(&v->pool, "PyTorch's allocator could not give %llu bytes",
				   (unsigned long long)f->request_bytes);
	case CW_SRC_PYTHON:
		return pool_printf(&v->pool, "%s: %.*s", f->what[0] ? f->what : "exception",
				   (int)strcspn(f->text, "\n"), f->text);
	case CW_SRC_FORK:
		return pool_strdup(&v->pool, "PyTorch found CUDA in use in a forked child");
	default:
		return pool_copy(&v->pool, f->text, strcspn(f->text, "\n"));
	}
}

static void fill_evidence(struct verdict *v, const struct incident *i)
{
	if (v->because)
		say(&v->pool, &v->evidence, "rule", v->because, NULL);
	for (size_t k = 0; k < i->n; k++)
		if (i->failure[k]->source != CW_SRC_WAIT)	/* verdict_waiting tells that, of all threads */
			say(&v->pool, &v->evidence, source_id(i->failure[k]->source),
			    evidence_text(v, i->failure[k]), NULL);
}

void verdict_evidence(struct verdict *v, const char *source, const char *text)
{
	say(&v->pool, &v->evidence, source, text, NULL);
}

static void add_why(void *arg, const char *text, const char *command)
{
	struct verdict *v = arg;

	say(&v->pool, &v->why, NULL, text, command);
}

void verdict_why(struct verdict *v, const char *text)
{
	add_why(v, text, NULL);
}

static void add_fix(void *arg, const char *text, const char *command)
{
	struct verdict *v = arg;

	say(&v->pool, &v->fix, NULL, text, command);
}

void verdict_of_cause(struct verdict *v, const struct match *m, const struct casefile *f)
{
	if (m) {
		v->cause = m->cause;
		v->sure = (enum certainty)m->sure;
		v->because = m->because ? pool_strdup(&v->pool, m->because) : NULL;
	}
	v->title = cause_headline(v->cause, f, &v->pool);
	advice_each(v->cause->why, f, &v->pool, add_why, v);
	advice_each(v->cause->fix, f, &v->pool, add_fix, v);
}

void verdict_judge(struct verdict *v, const struct casefile *f)
{
	struct matches m;

	rules_match(&m, kb_get(), f, &v->pool);
	v->candidates = m.list;
	v->n_candidates = m.n < CANDIDATES_MAX ? m.n : CANDIDATES_MAX;
	v->unchecked = pool_alloc(&v->pool, (m.n_unchecked + 1) * sizeof(*v->unchecked));
	for (size_t k = 0; k < m.n_unchecked; k++)
		v->unchecked[v->n_unchecked++] = m.unchecked[k]->id;
	v->sure = SURE_POSSIBLE;
	verdict_of_cause(v, m.n ? &m.list[0] : NULL, f);
}

struct verdict *verdict_of_incident(const struct incident *i, struct trace *t, const struct culprit *c)
{
	struct verdict *v = verdict_new("unknown");
	struct casefile *f = pool_alloc(&v->pool, sizeof(*f));
	struct scene s;

	case_init(f, &v->pool);
	fact_set_flag(f, FACT_dump_missing, !c && i->sticky && trace_header(t)->dump_path[0]);
	incident_scene(i, t, &s);
	verdict_join_dump(v, i, t, c, f, &s);
	verdict_suspects(v, i, t, f, &s);
	place_skip_decorators(&s.where, trace_header(t)->cwd, &v->pool);
	facts_of_incident(f, i, t, &s);
	fill_lines(v, t, &s);
	fill_error(v, f);
	if (!v->fault.known)
		fill_kernel(v, f, i);
	verdict_memory(v, f, i, t);
	if (i->hang)
		verdict_waiting(v, t);
	verdict_judge(v, f);
	fill_evidence(v, i);
	v->time_ns = i->lead->mono_ns;
	return v;
}
