/* SPDX-License-Identifier: Apache-2.0
 * The verdict about a text: its first error that comes from CUDA or that a rule knows.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "case/message.h"
#include "compat/cuda_errors.h"
#include "find/words/contradiction.h"
#include "read/text/exception.h"
#include "find/words/likeness.h"
#include "find/words/log.h"
#include "find/words/observe.h"
#include "verdict/process.h"
#include "verdict/text.h"
#include "verdict/verdict.h"

#define NEAR_LINES 100
/* Of a cause to none, by the words of the text and by those of the line alone, as logarithms of odds. Of 353 clean logs and unrelated
 * failures, left out of what was learned, none gets beyond both; with 1 and 1 three do, for two failures more in 1,300. */
#define LEAD_TEXT  2.0
#define LEAD_LINE  1.0

/* The cause that the error message alone matches, without the lines around it; NULL: none. */
static const struct cause *cause_by_itself(struct text_log *l, const struct text_event *e)
{
	struct pool pool = {0};
	struct casefile *f = xcalloc(1, sizeof(*f));
	const struct cause *cause;
	struct matches m;

	case_init(f, &pool);
	text_observe(f, l, e);
	f->says = NULL;
	rules_match(&m, kb_get(), f, &pool);
	cause = m.n ? m.list[0].cause : NULL;
	pool_release(&pool);
	free(f);
	return cause;
}

static bool event_is_ours(struct text_log *l, const struct text_event *e)
{
	return e->marked || message_is_cuda(e->message) || text_code(e->message) || cause_by_itself(l, e);
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
static bool ends_run(struct text_log *l, const struct text_event *e)
{
	return !e->warning && !e->peer && !is_question(e) && !lacks_message(e) && event_is_ours(l, e) &&
	       !log_handled(l, e);
}

/* Nothing that is typed into the same process repairs it: its CUDA context is lost, or its machine or its installation is at fault. */
static bool lasts(struct text_log *l, const struct text_event *e)
{
	const struct cause *cause = cause_by_itself(l, e);

	return cuda_error_sticky(text_code(e->message)) == 1 || (cause && AT(cause->check));
}

/* Something was started again after `e`, and `later` is how that failed. */
static bool gives_way(struct text_log *l, const struct text_event *e, const struct text_event *later)
{
	enum restart by = later->order > e->order ? log_restarted(l, e, later) : RESTART_NOT;

	return by && ends_run(l, later) && (by != RESTART_STATEMENT || !lasts(l, e));
}

static bool is_superseded(struct text_log *l, const struct text_event *e)
{
	const struct text_event *list;
	size_t n = log_events(l, &list);

	for (size_t i = 0; i < n; i++)
		if (gives_way(l, e, &list[i]))
			return true;
	return false;
}

/* The last failure of an earlier run, with another cause; NULL: there is none. */
static const struct text_event *earlier_failure(struct text_log *l, const struct text_event *e)
{
	const struct text_event *list, *found = NULL;
	size_t n = log_events(l, &list);

	for (size_t i = 0; i < n; i++)
		if (&list[i] != e && list[i].order < e->order && log_restarted(l, &list[i], e) && ends_run(l, &list[i]) &&
		    (!found || found->order < list[i].order) && cause_by_itself(l, &list[i]) != cause_by_itself(l, e))
			found = &list[i];
	return found;
}

/* The failure of an earlier run stays a candidate: that it was repaired is only what somebody says. */
static void offer_earlier(struct verdict *v, struct text_log *l, const struct text_event *earlier)
{
	const struct cause *cause = cause_by_itself(l, earlier);
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
static void weigh_earlier(struct verdict *v, struct text_log *l, const struct text_event *e,
			  const struct text_event *earlier)
{
	verdict_why(v, text_other_error(&v->c, l, e, earlier));
	if (log_restarted(l, earlier, e) == RESTART_PROGRAM)
		return;
	offer_earlier(v, l, earlier);
	verdict_doubt(v, "the text has an earlier error, and only suggests that it was repaired");
}

/* A later run got past it, and failed in a way that is not CUDA's. */
static void weigh_later(struct verdict *v, struct text_log *l, const struct text_event *e)
{
	const struct text_event *list;
	size_t n = log_events(l, &list);

	for (size_t i = 0; i < n; i++) {
		const struct text_event *later = &list[i];

		if (later->order < e->order || log_restarted(l, e, later) < RESTART_TOLD || !later->raised ||
		    later->warning || later->peer || strstr(later->type, "Interrupt"))
			continue;
		verdict_why(v, text_other_error(&v->c, l, e, later));
		verdict_doubt(v, "a later run in the text failed with another error, so this one may be repaired");
		return;
	}
}

/* The first error that was not handled; reports of another process's end, questions and warnings, only if there is nothing better. */
static const struct text_event *choose_event(struct text_log *l)
{
	const struct text_event *list;
	size_t n = log_events(l, &list);

	for (int round = 0; round < 4; round++) {
		const struct text_event *first = NULL;

		for (size_t i = 0; i < n; i++) {
			int when = list[i].warning ? 3 : is_question(&list[i]) || list[i].cited ? 2 : list[i].peer ? 1 : 0;

			if (when == round && !lacks_message(&list[i]) && is_earlier(&list[i], first) &&
			    event_is_ours(l, &list[i]) && !log_handled(l, &list[i]) && !is_superseded(l, &list[i]))
				first = &list[i];
		}
		if (first)
			return first;
	}
	return NULL;
}

/* No cause is known for it, but it speaks of a GPU, and nothing shows that the program went on. */
static const struct text_event *choose_unknown(struct text_log *l)
{
	const struct text_event *list;
	size_t n = log_events(l, &list);

	for (size_t i = 0; i < n; i++)
		if (list[i].gpu && list[i].type[0] && !list[i].warning && !lacks_message(&list[i]) &&
		    !strstr(list[i].type, "Interrupt") && !log_progress_after(l, &list[i]) && !log_handled(l, &list[i]))
			return &list[i];
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
static const struct text_event *choose_alike(struct text_log *l)
{
	const struct text_event *list;
	size_t n = log_events(l, &list);

	for (size_t i = n; i-- > 0;) {
		const struct text_event *e = &list[i];

		if (!e->raised || !e->type[0] || e->warning || e->peer || e->cited || e->listed || lacks_message(e) ||
		    exception_of_python(e->type) || is_of_other_device(e->message) || log_progress_after(l, e) ||
		    log_handled(l, e))
			continue;
		if (is_like_a_failure(l, e->type, e->message))
			return e;
	}
	return NULL;
}

/* A traceback without its exception: what failed is not in the text. */
static const struct text_event *choose_cut(struct text_log *l)
{
	const struct text_event *list;
	size_t n = log_events(l, &list);

	for (size_t i = 0; i < n; i++)
		if (lacks_message(&list[i]) && (list[i].gpu || cause_by_itself(l, &list[i])) &&
		    !log_progress_after(l, &list[i]))
			return &list[i];
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
		verdict_doubt(v, "the text ends before the message, which is taken from the line that raises it");
}

/* Errors of CUDA, or warnings, that the program outlived before something else ended it: only what came later can be the reason. */
static void forget_handled(struct text_log *l)
{
	const struct text_event *list;
	size_t n = log_events(l, &list);

	for (size_t i = 0; i < n; i++)
		if (!lacks_message(&list[i]) && event_is_ours(l, &list[i]) && log_handled(l, &list[i]))
			log_since(l, &list[i]);
}

/* A C++ line often comes before the traceback of the same error, which says more. */
static const struct text_event *with_traceback(const struct text_log *l, const struct text_event *e)
{
	const struct text_event *list;
	size_t n = log_events(l, &list);
	uint32_t code = e && !e->n_frames ? text_code(e->message) : 0;

	for (size_t i = 0; code && i < n; i++)
		if (&list[i] != e && list[i].n_frames && list[i].order >= e->order &&
		    list[i].order < e->order + NEAR_LINES && !strcmp(list[i].who, e->who) &&
		    text_code(list[i].message) == code)
			return &list[i];
	return e;
}

static bool has_warning(const struct text_log *l)
{
	const struct text_event *list;
	size_t n = log_events(l, &list);

	for (size_t i = 0; i < n; i++)
		if (list[i].warning && list[i].marked)
			return true;
	return false;
}

static struct verdict *nothing_wrong(const struct text_log *l)
{
	struct verdict *v = verdict_new("none");

	v->sure = log_progress(l) && !has_warning(l) ? SURE_LIKELY : SURE_POSSIBLE;	/* a text may not say everything */
	text_tell_others(&v->c, l, NULL);
	verdict_take_evidence(v);
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
	while (v->sure > SURE_POSSIBLE)
		verdict_lower(v, v->sure == SURE_LIKELY ? told : NULL);
}

/* By the error, or by the failure that the text tells; NULL: it has none. */
static struct verdict *judge_event(struct text_log *l, const struct text_event *e, const struct text_hit *told,
				   const struct process_also *also)
{
	struct verdict *v = verdict_new("unknown");

	text_observe(&v->c, l, e);
	text_liken(&v->c, l);
	v->c.like_place = told || (e && !e->cut && !e->warning) ? LIKE_FIRST
			  : e && e->cut			       ? LIKE_BEHIND_UNKNOWN
								: LIKE_BEHIND_RULES;
	if (told)
		text_tell_complaint(&v->c, told);
	if (also)
		also->observe(&v->c, also->arg);
	verdict_judge(v);
	if (e)
		weigh_contradiction(v, e->message);
	return v;
}

/* A program often says more than one thing about a failure. If what it says first leaves the cause open, and another line of the same
 * process does not, that one leads. */
static struct verdict *judge_plainest(struct text_log *l, const struct text_event **chosen,
				      const struct process_also *also)
{
	struct verdict *v = judge_event(l, *chosen, NULL, also);
	const struct text_event *first = *chosen, *list;
	size_t n = log_events(l, &list);

	for (size_t i = 0; first && v->sure == SURE_POSSIBLE && i < n; i++) {
		const struct text_event *e = &list[i];
		struct verdict *other;

		if (e == first || e->run != first->run || strcmp(e->who, first->who) || e->file != first->file ||
		    e->cited || e->in_sentence || !ends_run(l, e))
			continue;
		other = judge_event(l, e, NULL, also);
		if (other->sure > v->sure && other->n_candidates) {
			verdict_free(v);
			v = other;
			*chosen = e;
		} else {
			verdict_free(other);
		}
	}
	return v;
}

/* No row knows what failed, and nothing says that it was not CUDA: what the words speak for, if that is a failure. NULL: it is not. */
static struct verdict *judge_alike(struct text_log *l, const struct text_event **chosen, const struct process_also *also)
{
	const struct text_hit *trouble = log_trouble(l);
	struct verdict *v;

	*chosen = choose_alike(l);
	if (!*chosen && !(trouble && is_like_a_failure(l, "", trouble->text)))
		return NULL;
	v = judge_event(l, *chosen, *chosen ? NULL : trouble, also);
	if (v->n_candidates) {
		verdict_why(v, "cuwhy does not know this message: the causes are those of reports with the same words");
		return v;
	}
	*chosen = NULL;
	verdict_free(v);
	return NULL;
}

struct verdict *verdict_of_text_and(struct text_log *l, const struct process_also *also, const struct text_event **chosen)
{
	const struct text_event *e = with_traceback(l, choose_event(l)), *earlier;
	const struct text_hit *told;
	struct verdict *v;

	if (!e)
		e = choose_unknown(l);
	if (log_document(l)) {
		*chosen = e;
		return nothing_wrong(l);
	}
	if (e && e->warning && log_progress_after(l, e)) {	/* the program continued: only what came later can be the reason */
		log_since(l, e);
		e = NULL;
	}
	if (!e)
		forget_handled(l);
	earlier = e ? earlier_failure(l, e) : NULL;
	if (earlier && log_restarted(l, earlier, e) > RESTART_STATEMENT)
		log_since_run(l, e);
	v = judge_plainest(l, &e, also);
	if (!v->n_candidates && !e) {
		verdict_free(v);
		e = choose_cut(l);
		told = log_complaint(l);
		v = e || told ? judge_event(l, e, told, also) : judge_alike(l, &e, also);
	}
	if (v && e && e->warning && !v->n_candidates) {	/* a warning that no rule knows */
		verdict_free(v);
		v = NULL;
	}
	*chosen = e;
	if (!v)
		return nothing_wrong(l);
	if (earlier)
		weigh_earlier(v, l, e, earlier);
	if (e)
		weigh_later(v, l, e);
	if (e && e->cut)
		tell_cut(v, e);
	if (e && e->in_sentence)
		verdict_doubt(v, "the text mentions the error without showing it");
	if (e && e->rank >= 0)
		v->rank = (uint32_t)e->rank;
	text_tell_others(&v->c, l, e);
	verdict_take_evidence(v);
	return v;
}

struct verdict *verdict_of_text(struct text_log *l)
{
	const struct text_event *chosen;

	return verdict_of_text_and(l, NULL, &chosen);
}
