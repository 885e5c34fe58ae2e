/* SPDX-License-Identifier: Apache-2.0
 * The verdict about a text: its first error that is CUDA's or that a rule knows.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "input/text/observe.h"
#include "case/message.h"
#include "judge/verdict_priv.h"
#include "input/text/log.h"
#include "compat/cuda_errors.h"

#define SHOWN_MAX 300
#define NEAR_LINES 100

/* Do the words of the error itself, without anything around them, fit a cause? */
static bool known_by_itself(struct text_log *l, const struct text_event *e)
{
	struct pool pool = {0};
	struct casefile *f = xcalloc(1, sizeof(*f));
	struct matches m;
	bool known;

	case_init(f, &pool);
	facts_of_text(f, l, e);
	f->says = NULL;
	rules_match(&m, kb_get(), f, &pool);
	known = m.n > 0;
	pool_release(&pool);
	free(f);
	return known;
}

static bool is_ours(struct text_log *l, const struct text_event *e)
{
	return e->marked || message_is_cuda(e->message) || text_code(e->message) || known_by_itself(l, e);
}

/* The first error; those that tell of another process's end, and warnings, only when there is nothing better. */
static const struct text_event *choose(struct text_log *l)
{
	const struct text_event *list;
	size_t n = log_events(l, &list);

	for (int round = 0; round < 3; round++)
		for (size_t i = 0; i < n; i++) {
			int when = list[i].warning ? 2 : list[i].peer ? 1 : 0;

			if (when == round && is_ours(l, &list[i]))
				return &list[i];
		}
	return NULL;
}

/* A line in C++ often comes before the traceback of the very same error, which tells more. */
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

static struct line line_of_text(struct verdict *v, const struct text_frame *t)
{
	struct line l = {.file = pool_strdup(&v->pool, t->file), .number = t->line};

	l.shown = l.file;
	l.function = t->function ? pool_strdup(&v->pool, t->function) : NULL;
	l.source = t->source ? pool_strdup(&v->pool, t->source) : NULL;
	return l;
}

static void fill_where(struct verdict *v, const struct text_event *e)
{
	int at = e ? text_where(e) : -1;
	bool own;

	v->stack = pool_alloc(&v->pool, (e ? e->n_frames + 1 : 1) * sizeof(*v->stack));
	for (size_t i = e ? e->n_frames : 0; i-- > 0;)
		if (e->frame[i].file)
			v->stack[v->n_stack++] = line_of_text(v, &e->frame[i]);
	if (at < 0) {
		v->frames_off = "the text has no traceback of your own code";
		return;
	}
	v->where = line_of_text(v, &e->frame[at]);
	own = !strstr(e->frame[at].file, "site-packages") && !strstr(e->frame[at].file, "dist-packages");
	v->where.library = !own;
}

static void fill_error(struct verdict *v, const struct casefile *f, const struct text_event *e)
{
	v->code = (uint32_t)fact_number(f, FACT_error_code, 0);
	v->name = v->code ? cuda_error_name(v->code) : NULL;
	v->string = pool_strdup(&v->pool, fact_text(f, FACT_error_string));
	v->text = pool_strdup(&v->pool, fact_text(f, FACT_error_text));
	v->source = "text";
	v->from_text = true;
	v->async = fact_true(f, FACT_error_async);
	v->count = e && e->count < UINT32_MAX ? (uint32_t)e->count : 1;
	if (!e)
		return;
	v->text_line = e->line;
	v->text_file = pool_strdup(&v->pool, e->file);
	if (e->rank >= 0)
		v->rank = (uint32_t)e->rank;
	v->end_type = e->type[0] ? pool_strdup(&v->pool, e->type) : NULL;
	v->end_text = pool_strdup(&v->pool, e->message);
}

/* A failed assertion, as the kernel printed it. */
static void fill_assert(struct verdict *v, const struct text_assert *a)
{
	v->fault.known = true;
	v->fault.what = "a device-side assert";
	v->fault.asserted = true;
	v->fault.param = v->fault.param_byte = v->fault.device = -1;
	v->fault.condition = pool_strdup(&v->pool, a->condition);
	v->fault.file = a->file ? pool_strdup(&v->pool, a->file) : NULL;
	v->fault.function = a->function ? pool_strdup(&v->pool, a->function) : NULL;
	v->fault.line = a->source_line;
	v->fault.threads = (size_t)a->count;
}

static void fill_memory(struct verdict *v, const struct casefile *f)
{
	v->memory = (struct memory_sums){
		.known = fact_true(f, FACT_oom_is),
		.request = fact_number(f, FACT_oom_request, -1), .free = fact_number(f, FACT_oom_free, -1),
		.total = fact_number(f, FACT_oom_total, -1), .allocated = fact_number(f, FACT_oom_torch_allocated, -1),
		.reserved = fact_number(f, FACT_oom_torch_reserved, -1), .cache = fact_number(f, FACT_oom_cache, -1),
		.live = fact_number(f, FACT_oom_live, -1), .not_torch = -1, .outside = fact_number(f, FACT_oom_outside, -1),
	};
}

struct hits {
	struct verdict *v;
	const struct text_log *log;
	uint64_t error_line;
};

/* A line that the rule rests on. */
static void tell_hit(void *arg, const char *words)
{
	struct hits *h = arg;
	const struct text_hit *hit = log_hit(h->log, words);
	const struct said *s = h->v->evidence;
	char *text;

	if (!hit)
		return;
	text = pool_printf(&h->v->pool, "%s line %llu: %.*s", hit->file, (unsigned long long)hit->line, SHOWN_MAX, hit->text);
	for (; s; s = s->next)
		if (!strcmp(s->text, text))
			return;
	verdict_evidence(h->v, "text", text);
	if (hit->line != h->error_line)
		verdict_why(h->v, text);
}

static void fill_evidence(struct verdict *v, const struct text_log *l, const struct text_event *e)
{
	struct hits h = {v, l, e ? e->line : 0};
	const struct text_assert *a;
	size_t n = log_asserts(l, &a);

	if (v->because)
		verdict_evidence(v, "rule", v->because);
	for (size_t i = 0; i < n && i < 4; i++)
		verdict_evidence(v, "text", pool_printf(&v->pool, "line %llu: Assertion `%s` failed, %llu time%s", (unsigned long long)a[i].line,
							a[i].condition, (unsigned long long)a[i].count, a[i].count == 1 ? "" : "s"));
	if (e)
		verdict_evidence(v, "text", pool_printf(&v->pool, "%s line %llu: %s%s%.*s", e->file, (unsigned long long)e->line, e->type,
							e->type[0] ? ": " : "",
							(int)(strcspn(e->message, "\n") < SHOWN_MAX ? strcspn(e->message, "\n") : SHOWN_MAX),
							e->message));
	if (v->n_candidates && v->candidates[0].when)
		expr_says(v->candidates[0].when->expr, false, tell_hit, &h);
}

/* Other errors of the text, which came later. */
static void tell_others(struct verdict *v, const struct text_log *l, const struct text_event *first)
{
	const struct text_event *list;
	size_t n = log_events(l, &list), told = 0;

	for (size_t i = 0; i < n && told < 4; i++) {
		if (&list[i] == first || list[i].warning)
			continue;
		verdict_evidence(v, "text", pool_printf(&v->pool, "%s %s line %llu: %s%s%.*s", first ? "another error:" : "not CUDA's:", list[i].file,
							(unsigned long long)list[i].line, list[i].type, list[i].type[0] ? ": " : "",
							(int)(strcspn(list[i].message, "\n") < SHOWN_MAX / 2 ? strcspn(list[i].message, "\n") :
							SHOWN_MAX / 2), list[i].message));
		told++;
	}
}

static struct verdict *nothing_wrong(const struct text_log *l)
{
	struct verdict *v = verdict_new("none");

	v->from_text = true;
	v->sure = log_progress(l) ? SURE_LIKELY : SURE_POSSIBLE;	/* a text need not tell all */
	tell_others(v, l, NULL);
	return v;
}

struct verdict *verdict_of_text(struct text_log *l)
{
	const struct text_event *e = with_traceback(l, choose(l));
	const struct text_assert *a;
	struct verdict *v;
	struct casefile *f;

	if (e && e->warning && log_progress_after(l, e->line))	/* the program went on */
		return nothing_wrong(l);
	v = verdict_new("unknown");
	f = pool_alloc(&v->pool, sizeof(*f));
	case_init(f, &v->pool);
	facts_of_text(f, l, e);
	fill_where(v, e);
	fill_error(v, f, e);
	if (log_asserts(l, &a))
		fill_assert(v, &a[0]);
	fill_memory(v, f);
	verdict_judge(v, f);
	if (!v->n_candidates && !e) {
		verdict_free(v);
		return nothing_wrong(l);
	}
	fill_evidence(v, l, e);
	tell_others(v, l, e);
	return v;
}

static int weight(const struct verdict *v)
{
	if (!strcmp(v->cause->id, "none"))
		return -2;
	if (!strcmp(v->cause->id, "unknown"))
		return -1;
	return (int)v->sure * 2 + !v->from_text;	/* what was recorded beats what was said */
}

struct verdict *verdict_combine(struct verdict **list, size_t n)
{
	size_t best = 0;

	for (size_t i = 1; i < n; i++)
		if (weight(list[i]) > weight(list[best]))
			best = i;
	for (size_t i = 0; i < n; i++) {
		if (i == best)
			continue;
		if (weight(list[i]) == -2)
			verdict_free(list[i]);
		else
			verdict_append(&list[best]->others, list[i]);
	}
	return list[best];
}
