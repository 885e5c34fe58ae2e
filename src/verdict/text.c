/* SPDX-License-Identifier: Apache-2.0
 * The verdict about a text: its first error that comes from CUDA or that a rule knows.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "case/message.h"
#include "compat/cuda_errors.h"
#include "find/input.h"
#include "find/words/contradiction.h"
#include "read/text/exception.h"
#include "find/words/likeness.h"
#include "find/words/log.h"
#include "find/words/observe.h"
#include "verdict/text.h"
#include "verdict/verdict.h"

#define NEAR_LINES 100
/* The odds of a cause against none, as logarithms: by the words of the text, and by those of the line alone. Of 353 clean logs
 * and unrelated failures, each left out of what was learned, none exceeds both; with 1 and 1 three do, for two failures more in
 * 1,300. */
#define LEAD_TEXT  2.0
#define LEAD_LINE  1.0
#define OTHERS_TOLD 4

/* A text while it is judged. */
struct reading {
	const struct text_log *log;
	const struct text_event *event;
	size_t n;
	const struct inputs_beside *beside;
	/* of each event, once it was asked for: the cause that its message alone matches, without the words around it; NULL: none */
	const struct cause *cause[LOG_EVENTS_MAX];
	bool matched[LOG_EVENTS_MAX];
};

static const struct cause *match_event(const struct text_log *l, const struct text_event *e)
{
	struct casefile *c = xcalloc(1, sizeof(*c));
	const struct cause *cause;
	struct pool pool = {0};
	struct matches m;

	case_init(c, &pool);
	text_observe_event(c, l, e);
	rules_match(&m, kb_get(), c, &pool);
	cause = m.n ? m.list[0].cause : NULL;
	pool_release(&pool);
	free(c);
	return cause;
}

static const struct cause *cause_by_itself(struct reading *r, const struct text_event *e)
{
	size_t i = (size_t)(e - r->event);

	if (!r->matched[i])
		r->cause[i] = match_event(r->log, e);
	r->matched[i] = true;
	return r->cause[i];
}

static bool event_is_ours(struct reading *r, const struct text_event *e)
{
	return e->marked || message_is_cuda(e->message) || text_code(e->message) || cause_by_itself(r, e);
}

/* In one file the order of lines counts, between files their times, where both have them. */
static bool is_earlier(const struct text_event *e, const struct text_event *first)
{
	if (first && e->file == first->file)
		return e->order < first->order;
	return !first || (e->time && first->time && e->time < first->time);
}

/* "What does this CUDA error mean?": the title of a question names no error; the lines below it do. */
static bool is_question(const struct text_event *e)
{
	return !e->raised && !text_code(e->message) && strchr(e->message, '?');
}

/* A traceback whose exception is not in the text. */
static bool lacks_message(const struct text_event *e)
{
	return e->cut && !e->message[0];
}

/* It is a failure of a program, of this run. */
static bool ends_run(struct reading *r, const struct text_event *e)
{
	return !e->warning && !e->peer && !is_question(e) && !lacks_message(e) && event_is_ours(r, e) &&
	       !log_handled(r->log, e);
}

/* Nothing that is typed into the same process repairs it: its CUDA context is lost, or its machine or its installation is at fault. */
static bool lasts(struct reading *r, const struct text_event *e)
{
	const struct cause *cause = cause_by_itself(r, e);

	return cuda_error_sticky(text_code(e->message)) == 1 || (cause && AT(cause->check));
}

/* Something was started again after `e`, and `later` is how that failed. */
static bool gives_way(struct reading *r, const struct text_event *e, const struct text_event *later)
{
	enum restart by = later->order > e->order ? log_restarted(r->log, e, later) : RESTART_NOT;

	return by && ends_run(r, later) && (by != RESTART_STATEMENT || !lasts(r, e));
}

static bool is_superseded(struct reading *r, const struct text_event *e)
{
	for (size_t i = 0; i < r->n; i++)
		if (gives_way(r, e, &r->event[i]))
			return true;
	return false;
}

/* The last failure of an earlier run, with another cause; NULL: there is none. */
static const struct text_event *earlier_failure(struct reading *r, const struct text_event *e)
{
	const struct text_event *found = NULL;

	for (size_t i = 0; i < r->n; i++) {
		const struct text_event *o = &r->event[i];

		if (o != e && o->order < e->order && log_restarted(r->log, o, e) && ends_run(r, o) &&
		    (!found || found->order < o->order) && cause_by_itself(r, o) != cause_by_itself(r, e))
			found = o;
	}
	return found;
}

/* The failure of an earlier run stays a candidate: that it was repaired is only a claim in the text. */
static void offer_earlier(struct verdict *v, const struct cause *cause)
{
	struct match *list = pool_alloc(&v->pool, (v->n_candidates + 1) * sizeof(*list));
	size_t at = 0;

	for (size_t i = 0; i < v->n_candidates; i++)
		if (v->candidates[i].cause == cause)
			return;
	if (!cause || !v->n_candidates)
		return;
	while (at < v->n_candidates && (!at || v->candidates[at].sure > KB_POSSIBLE))
		at++;
	memcpy(list, v->candidates, at * sizeof(*list));
	list[at] = (struct match){.cause = cause, .sure = KB_POSSIBLE,
				  .because = "the text has this error first, and nothing proves that it was repaired"};
	memcpy(list + at + 1, v->candidates + at, (v->n_candidates - at) * sizeof(*list));
	v->candidates = list;
	v->n_candidates++;
}

/* A command that was run again is a new process. Otherwise the error before may still be the reason. */
static void weigh_earlier(struct verdict *v, struct reading *r, const struct text_event *e,
			  const struct text_event *earlier)
{
	verdict_why(v, text_other_error(&v->pool, r->log, e, earlier));
	if (log_restarted(r->log, earlier, e) == RESTART_PROGRAM)
		return;
	offer_earlier(v, cause_by_itself(r, earlier));
	verdict_cap(v, SURE_LIKELY, "the text has an earlier error, and only suggests that it was repaired");
}

/* A later run got past it, and failed in a way that is not CUDA's. */
static void weigh_later(struct verdict *v, const struct reading *r, const struct text_event *e)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct text_event *later = &r->event[i];

		if (later->order < e->order || log_restarted(r->log, e, later) < RESTART_TOLD || !later->raised ||
		    later->warning || later->peer || strstr(later->type, "Interrupt"))
			continue;
		verdict_why(v, text_other_error(&v->pool, r->log, e, later));
		verdict_cap(v, SURE_LIKELY,
			    "a later run in the text failed with another error, so this one may be repaired");
		return;
	}
}

/* The first error that was not handled; reports of another process's end, questions and warnings, only if there is nothing better. */
static const struct text_event *choose_event(struct reading *r)
{
	for (int round = 0; round < 4; round++) {
		const struct text_event *first = NULL;

		for (size_t i = 0; i < r->n; i++) {
			const struct text_event *e = &r->event[i];
			int when = e->warning ? 3 : is_question(e) || e->cited ? 2 : e->peer ? 1 : 0;

			if (when == round && !lacks_message(e) && is_earlier(e, first) && event_is_ours(r, e) &&
			    !log_handled(r->log, e) && !is_superseded(r, e))
				first = e;
		}
		if (first)
			return first;
	}
	return NULL;
}

/* No cause is known for it, but it speaks of a GPU, and nothing shows that the program went on. */
static const struct text_event *choose_unknown(const struct reading *r)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct text_event *e = &r->event[i];

		if (e->gpu && e->type[0] && !e->warning && !lacks_message(e) && !strstr(e->type, "Interrupt") &&
		    !log_progress_after(r->log, e) && !log_handled(r->log, e))
			return e;
	}
	return NULL;
}

/* "MPS backend out of memory", "RuntimeError: XPU …": not a GPU of NVIDIA's. */
static bool is_of_other_device(const char *message)
{
	static const char *const devices[] = {"MPS", "XPU", "TPU", "NPU", "HPU", "mps:", "xpu:", "npu:", "hpu:"};

	for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++)
		if (strstr(message, devices[i]))
			return true;
	return false;
}

/* Its own words, and those of the whole text, speak for one of the causes rather than for none. */
static bool is_like_a_failure(const struct text_log *l, const char *type, const char *message)
{
	struct text_words words = {0};
	struct pool pool = {0};
	bool like;

	text_words_line(&words, &pool, pool_printf(&pool, "%s: %s", type, message));
	like = likeness_lead(&words) > LEAD_LINE && likeness_lead(log_words(l)) > LEAD_TEXT;
	text_words_release(&words);
	pool_release(&pool);
	return like;
}

/* What ended the program names no GPU, and no row knows it. Python's own exceptions say what they are about, so that only their rules speak. */
static const struct text_event *choose_alike(const struct reading *r)
{
	for (size_t i = r->n; i-- > 0;) {
		const struct text_event *e = &r->event[i];

		if (!e->raised || !e->type[0] || e->warning || e->peer || e->cited || e->listed || lacks_message(e) ||
		    exception_of_python(e->type) || is_of_other_device(e->message) || log_progress_after(r->log, e) ||
		    log_handled(r->log, e))
			continue;
		if (is_like_a_failure(r->log, e->type, e->message))
			return e;
	}
	return NULL;
}

/* A traceback without its exception: what failed is not in the text. */
static const struct text_event *choose_cut(struct reading *r)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct text_event *e = &r->event[i];

		if (lacks_message(e) && (e->gpu || cause_by_itself(r, e)) && !log_progress_after(r->log, e))
			return e;
	}
	return NULL;
}

static void tell_cut(struct verdict *v, const struct text_event *e)
{
	if (lacks_message(e))
		verdict_why(v, pool_printf(&v->pool,
					   "the text ends before its error message: line %llu is the last one of a traceback; add "
					   "what follows, up to the line that names the exception",
					   (unsigned long long)e->line));
	else
		verdict_cap(v, SURE_LIKELY,
			    "the text ends before the message, which is taken from the line that raises it");
}

/* Errors of CUDA, or warnings, that the program survived before something else ended it: only what came later can be the reason. */
static struct text_past past_handled(struct reading *r, struct text_past past)
{
	for (size_t i = 0; i < r->n; i++) {
		const struct text_event *e = &r->event[i];

		if (!lacks_message(e) && event_is_ours(r, e) && log_handled(r->log, e))
			past = log_past_event(past, e);
	}
	return past;
}

/* A C++ line often comes before the traceback of the same error, which says more. */
static const struct text_event *with_traceback(const struct reading *r, const struct text_event *e)
{
	uint32_t code = e && !e->n_frames ? text_code(e->message) : 0;

	for (size_t i = 0; code && i < r->n; i++) {
		const struct text_event *o = &r->event[i];

		if (o != e && o->n_frames && o->order >= e->order && o->order < e->order + NEAR_LINES &&
		    !strcmp(o->who, e->who) && text_code(o->message) == code)
			return o;
	}
	return e;
}

static bool has_warning(const struct reading *r)
{
	for (size_t i = 0; i < r->n; i++)
		if (r->event[i].warning && r->event[i].marked)
			return true;
	return false;
}

/* Evidence: the errors that are not `first`. */
static void tell_others(struct verdict *v, const struct reading *r, const struct text_event *first)
{
	size_t told = 0;

	for (size_t i = 0; i < r->n && told < OTHERS_TOLD; i++) {
		const struct text_event *e = &r->event[i];

		if (e == first || e->warning)
			continue;
		verdict_evidence(v, TEXT_OBSERVER, text_other_error(&v->pool, r->log, first, e));
		told++;
	}
}

static struct verdict *nothing_wrong(const struct reading *r)
{
	struct verdict *v = verdict_new("none");

	v->sure = log_progress(r->log) && !has_warning(r) ? SURE_LIKELY : SURE_POSSIBLE;	/* a text may not say everything */
	tell_others(v, r, NULL);
	return v;
}

/* A number and words that mean different codes prove neither. */
static void weigh_contradiction(struct verdict *v, const char *message)
{
	struct contradiction c;
	const char *told;

	if (!text_contradiction(message, &c))
		return;
	told = pool_printf(&v->pool, "the message contradicts itself: '%s' is %s, '%s' is %s", c.said[0],
			   cuda_error_name(c.code[0]), c.said[1], cuda_error_name(c.code[1]));
	if (v->sure == SURE_POSSIBLE)
		verdict_why(v, told);
	verdict_cap(v, SURE_POSSIBLE, told);
}

/* By the error, or by the failure that the text tells. */
static struct verdict *judge_event(const struct reading *r, const struct text_view *about, const struct text_hit *told)
{
	struct verdict *v = verdict_new("unknown");

	text_observe_failure(&v->c, about, told);
	if (r->beside)
		inputs_observe(&v->c, r->beside);
	verdict_judge(v);
	if (about->event)
		weigh_contradiction(v, about->event->message);
	return v;
}

/* A program often says more than one thing about a failure. If what it says first leaves the cause open, and another line of the same
 * process does not, that one leads. */
static struct verdict *judge_plainest(struct reading *r, struct text_view *about)
{
	struct verdict *v = judge_event(r, about, NULL);
	const struct text_event *first = about->event;

	for (size_t i = 0; first && v->sure == SURE_POSSIBLE && i < r->n; i++) {
		struct text_view plainer = {.log = r->log, .event = &r->event[i], .past = about->past};
		const struct text_event *e = plainer.event;
		struct verdict *other;

		if (e == first || e->run != first->run || strcmp(e->who, first->who) || e->file != first->file ||
		    e->cited || e->in_sentence || !ends_run(r, e))
			continue;
		other = judge_event(r, &plainer, NULL);
		if (other->sure > v->sure && other->n_candidates) {
			verdict_free(v);
			v = other;
			*about = plainer;
		} else {
			verdict_free(other);
		}
	}
	return v;
}

/* No row knows what failed, and nothing says that it was not CUDA: what the words speak for, if that is a failure. NULL: it is not. */
static struct verdict *judge_alike(const struct reading *r, struct text_view *about)
{
	const struct text_hit *trouble = log_trouble(r->log);
	struct verdict *v;

	about->event = choose_alike(r);
	if (!about->event && !(trouble && is_like_a_failure(r->log, "", trouble->text)))
		return NULL;
	v = judge_event(r, about, about->event ? NULL : trouble);
	if (v->n_candidates) {
		verdict_why(v, "cuwhy does not know this message: the causes are those of reports with the same words");
		return v;
	}
	about->event = NULL;
	verdict_free(v);
	return NULL;
}

/* Which error the text is about, and what of it is over; `*earlier`: the failure of a run before that one, NULL = there is none. */
static struct text_view choose_view(struct reading *r, const struct text_event **earlier)
{
	struct text_view about = {.log = r->log, .event = with_traceback(r, choose_event(r))};
	const struct text_event *e;

	*earlier = NULL;
	if (!about.event)
		about.event = choose_unknown(r);
	if (log_document(r->log))
		return about;
	e = about.event;
	if (e && e->warning && log_progress_after(r->log, e)) {	/* the program continued: only what came later can be the reason */
		about.past = log_past_event(about.past, e);
		about.event = e = NULL;
	}
	if (!e)
		about.past = past_handled(r, about.past);
	*earlier = e ? earlier_failure(r, e) : NULL;
	if (*earlier && log_restarted(r->log, *earlier, e) > RESTART_STATEMENT)
		about.past = log_past_runs(r->log, about.past, e);
	return about;
}

/* The verdict about what was chosen, or about what the text tells without an error; NULL: nothing is wrong. */
static struct verdict *judge_view(struct reading *r, struct text_view *about)
{
	struct verdict *v = judge_plainest(r, about);

	if (!v->n_candidates && !about->event) {
		const struct text_hit *told = log_complaint(r->log);

		verdict_free(v);
		about->event = choose_cut(r);
		v = about->event || told ? judge_event(r, about, told) : judge_alike(r, about);
	}
	if (v && about->event && about->event->warning && !v->n_candidates) {	/* a warning that no rule knows */
		verdict_free(v);
		v = NULL;
	}
	return v;
}

static void weigh_event(struct verdict *v, const struct reading *r, const struct text_event *e)
{
	weigh_later(v, r, e);
	if (e->cut)
		tell_cut(v, e);
	if (e->in_sentence)
		verdict_cap(v, SURE_LIKELY, "the text mentions the error without showing it");
	if (e->rank >= 0)
		v->rank = (uint32_t)e->rank;
}

struct verdict *verdict_of_text_beside(const struct text_log *l, const struct inputs_beside *beside,
				       struct text_view *about)
{
	struct reading r = {.log = l, .beside = beside};
	const struct text_event *earlier;
	struct verdict *v;

	r.n = log_events(l, &r.event);
	*about = choose_view(&r, &earlier);
	v = log_document(l) ? NULL : judge_view(&r, about);
	if (!v)
		return nothing_wrong(&r);
	if (earlier)
		weigh_earlier(v, &r, about->event, earlier);
	if (about->event)
		weigh_event(v, &r, about->event);
	tell_others(v, &r, about->event);
	return v;
}

struct verdict *verdict_of_text(const struct text_log *l)
{
	struct text_view about;

	return verdict_of_text_beside(l, NULL, &about);
}
