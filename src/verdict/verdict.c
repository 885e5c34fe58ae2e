/* SPDX-License-Identifier: Apache-2.0
 * Makes verdicts: applies the rules to a case, takes the text from the cause's file, and joins the verdicts of a run.
 */
#include "verdict/verdict.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/str.h"
#include "case/assert.h"
#include "cuwhy/format.h"
#include "find/fault/observe_dump.h"
#include "find/memory/observe_snapshot.h"
#include "find/words/observe.h"
#include "verdict/rules/destroys.h"
#include "verdict/rules/expr.h"
#include "verdict/rules/question.h"

_Static_assert((int)SURE_CERTAIN == (int)KB_CERTAIN && (int)SURE_POSSIBLE == (int)KB_POSSIBLE, "one scale of certainty");

#define CANDIDATES_MAX 8

const char *certainty_word(enum certainty c)
{
	static const char *const words[] = {"possible", "likely", "certain"};

	return words[c];
}

struct verdict *verdict_new(const char *cause)
{
	struct verdict *v = xcalloc(1, sizeof(*v));

	case_init(&v->c, &v->pool);
	v->cause = kb_find(kb_get(), cause);
	if (!v->cause)
		BUG("a cause without a file");
	v->title = AT(v->cause->title);
	v->rank = CW_UNKNOWN;
	v->exit = -1;
	v->sure = SURE_CERTAIN;
	return v;
}

static void free_list(struct verdict *v)
{
	while (v) {
		struct verdict *next = v->next;

		v->next = NULL;
		verdict_free(v);
		v = next;
	}
}

void verdict_free(struct verdict *v)
{
	if (!v)
		return;
	free_list(v->notes);
	free_list(v->others);
	pool_release(&v->pool);
	free(v);
}

void verdict_append(struct verdict **list, struct verdict *v)
{
	while (*list)
		list = &(*list)->next;
	*list = v;
}

static void say(struct pool *pool, struct said **list, const char *source, const char *text, const char *command)
{
	struct said *s = pool_alloc(pool, sizeof(*s));

	*s = (struct said){.source = source, .text = text, .command = command};
	while (*list)
		list = &(*list)->next;
	*list = s;
}

void verdict_evidence(struct verdict *v, const char *source, const char *text)
{
	say(&v->pool, &v->evidence, source, text, NULL);
}

void verdict_take_evidence(struct verdict *v)
{
	struct said **tail = &v->evidence;

	while (*tail)
		tail = &(*tail)->next;
	*tail = v->c.evidence;
	v->c.evidence = NULL;
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

/* Until the cause is certain, a fix that takes something away is named, but there is nothing to paste. */
static void hold_back(struct verdict *v)
{
	for (struct said *s = v->sure < SURE_CERTAIN ? v->fix : NULL; s; s = s->next)
		if (s->command && command_destroys(s->command)) {
			s->text = fix_to_confirm(s->text, &v->pool);
			s->command = NULL;
		}
}

void verdict_of_cause(struct verdict *v, const struct match *m, const struct casefile *c)
{
	if (m) {
		v->cause = m->cause;
		v->sure = (enum certainty)m->sure;
		v->because = m->because ? pool_strdup(&v->pool, m->because) : NULL;
	}
	v->title = cause_headline(v->cause, c, &v->pool);
	advice_each(AT(v->cause->why), c, &v->pool, add_why, v);
	advice_each(AT(v->cause->fix), c, &v->pool, add_fix, v);
	hold_back(v);
}

static bool evidence_is_told(const struct verdict *v, const char *text)
{
	for (const struct said *s = v->evidence; s; s = s->next)
		if (strcmp(s->text, text) == 0)
			return true;
	return false;
}

/* A line of the text that a rule is based on. The one with the error itself is shown anyway. */
static void tell_line(struct verdict *v, const char *text)
{
	const char *error = pool_printf(&v->pool, "%s line %.0f: ", fact_text(&v->c, FACT_text_file),
					fact_number(&v->c, FACT_text_line, 0));

	if (evidence_is_told(v, text))
		return;
	verdict_evidence(v, TEXT_OBSERVER, text);
	if (!str_starts(text, error))
		add_why(v, text, NULL);
}

static void tell_ground(void *arg, const char *words, enum fact_id fact)
{
	struct verdict *v = arg;
	const struct text_hit *hit = words ? case_hit(&v->c, words) : NULL;
	const char *place = words ? NULL : fact_place(&v->c, fact);

	if (hit && strcmp(hit->file, WORDS_RAISED) == 0)
		return;		/* the exception has been told */
	if (hit && strcmp(hit->file, WORDS_PRINTED) == 0)
		place = pool_printf(&v->pool, "it printed: %.*s", TEXT_SHOWN_MAX, hit->text);
	else if (hit)
		place = pool_printf(&v->pool, "%s line %llu: %.*s", hit->file, (unsigned long long)hit->line,
				    TEXT_SHOWN_MAX, hit->text);
	if (place)
		tell_line(v, place);
}

/* A setting that a sentence rests on: what it says about it can be looked up. */
static void tell_setting(void *arg, const char *words, enum fact_id fact)
{
	if (!words && fact_group(fact) == GROUP_set)
		tell_ground(arg, NULL, fact);
}

static bool holds(const struct expr *x, const struct casefile *c)
{
	struct value v = expr_eval(x, c);

	return v.known && v.number != 0;
}

static void tell_settings(struct verdict *v, const struct advice *list)
{
	for (const struct advice *a = list; a; a = AT(a->next))
		if (AT(a->guard) && holds(AT(a->guard), &v->c))
			expr_grounds(AT(a->guard), &v->c, tell_setting, v);
}

/* First the rule's reason, then what was observed, then the lines of text that the rule and the evidence for and against it are based on. */
static void fill_evidence(struct verdict *v)
{
	const struct match *m = v->n_candidates ? &v->candidates[0] : NULL;

	if (v->because)
		verdict_evidence(v, "rule", v->because);
	verdict_take_evidence(v);
	if (m && m->when)
		expr_grounds(AT(m->when->expr), &v->c, tell_ground, v);
	for (const struct when *w = m ? AT(m->cause->evidence) : NULL; w; w = AT(w->next))
		if (holds(AT(w->expr), &v->c))
			expr_grounds(AT(w->expr), &v->c, tell_ground, v);
	tell_settings(v, AT(v->cause->why));
	tell_settings(v, AT(v->cause->fix));
}

static void add_because(struct verdict *v, const char *joint, const char *why)
{
	v->because = pool_printf(&v->pool, "%s%s%s", v->because ? v->because : "", v->because ? joint : "", why);
}

void verdict_cap(struct verdict *v, enum certainty most, const char *why)
{
	if (v->sure <= most)
		return;
	v->sure = most;
	add_because(v, "; but ", why);
	for (size_t i = 0; i < v->n_candidates; i++)
		if ((enum certainty)v->candidates[i].sure > most)
			v->candidates[i].sure = (enum sureness)most;
	hold_back(v);
}

void verdict_doubt_end(struct verdict *v, const char *why)
{
	v->ending_unknown = true;
	if (v->sure < SURE_CERTAIN)
		add_because(v, "; ", why);
	verdict_cap(v, SURE_LIKELY, why);
}

static void weigh_contradictions(struct verdict *v)
{
	for (size_t i = 0; i < v->c.n_contradictions; i++) {
		verdict_evidence(v, "contradiction", v->c.contradiction[i]);
		add_why(v, v->c.contradiction[i], NULL);
		verdict_cap(v, SURE_LIKELY, v->c.contradiction[i]);
	}
}

/* Any figure of a damaged input may be wrong, not only those that cannot be true: each candidate is a step less certain. */
void verdict_tell_damage(struct verdict *v)
{
	const char *damage = verdict_damage(v);

	if (!damage)
		return;
	verdict_evidence(v, "damage", damage);
	if (v->sure > SURE_POSSIBLE)
		v->sure--;
	add_because(v, "; but ", damage);
	for (size_t i = 0; i < v->n_candidates; i++)
		if (v->candidates[i].sure > KB_POSSIBLE)
			v->candidates[i].sure--;
	hold_back(v);
}

void verdict_judge(struct verdict *v)
{
	struct matches m;

	assert_facts_complete(&v->c);
	rules_match(&m, kb_get(), &v->c, &v->pool);
	v->candidates = m.list;
	v->n_candidates = m.n < CANDIDATES_MAX ? m.n : CANDIDATES_MAX;
	v->unchecked = pool_alloc(&v->pool, (m.n_unchecked + 1) * sizeof(*v->unchecked));
	for (size_t k = 0; k < m.n_unchecked; k++)
		v->unchecked[v->n_unchecked++] = AT(m.unchecked[k]->id);
	v->sure = SURE_POSSIBLE;
	verdict_of_cause(v, m.n ? &m.list[0] : NULL, &v->c);
	if (v->cause->blames >= 0)
		case_blame(&v->c, (enum blamed_id)v->cause->blames);
	fill_evidence(v);
	if (v->n_candidates > 1 && v->candidates[1].sure == KB_CERTAIN &&
	    !order_is_over(&v->candidates[0], &v->candidates[1]))
		verdict_cap(v, SURE_LIKELY,
			    pool_printf(&v->pool, "%s would be as certain", AT(v->candidates[1].cause->id)));
	weigh_contradictions(v);
	verdict_tell_damage(v);
}

const char *verdict_damage(const struct verdict *v)
{
	const char *damage = fact_text_or_null(&v->c, FACT_process_damaged);

	return damage ? damage : fact_text_or_null(&v->c, FACT_snapshot_damaged);
}

const char *verdict_cause(const struct verdict *v)
{
	return AT(v->cause->id);
}

const char *verdict_title(const struct verdict *v)
{
	return v->title;
}

size_t verdict_notes(const struct verdict *v)
{
	size_t n = 0;

	for (const struct verdict *x = v->notes; x; x = x->next)
		n++;
	return n;
}

uint32_t verdict_pid(const struct verdict *v)
{
	return v->pid;
}

uint64_t verdict_time_ns(const struct verdict *v)
{
	return v->time_ns;
}

bool verdict_failed(const struct verdict *v)
{
	return strcmp(AT(v->cause->id), "none") != 0;
}

const struct kb_question *verdict_question(const struct verdict *v)
{
	const struct cause *causes[QUESTION_CAUSES];
	size_t n = 0;

	const char *by = fact_origin(&v->c, FACT_text_is);

	/* a recording has all of the words: no part was left out when they were copied */
	if (v->sure == SURE_CERTAIN || !fact_true(&v->c, FACT_text_is) || !verdict_failed(v) ||
	    (by && !strcmp(by, EXCEPTION_OBSERVER)))
		return NULL;
	for (; n < v->n_candidates && n < QUESTION_CAUSES; n++)
		causes[n] = v->candidates[n].cause;
	return question_for(causes, n, &v->c);
}

/* A verdict with what decides its place, found out once: there may be thousands. */
struct place_of_verdict {
	struct verdict *v;
	bool failed, victim;
	uint64_t time_ns;
	size_t given;		/* the program that was started comes first */
};

/* Failures before "none"; those that report another process's death last; otherwise by time. */
static int by_place(const void *a, const void *b)
{
	const struct place_of_verdict *x = a, *y = b;

	if (x->failed != y->failed)
		return x->failed ? -1 : 1;
	if (x->failed && x->victim != y->victim)
		return x->victim ? 1 : -1;
	if (x->failed && x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return x->given < y->given ? -1 : x->given > y->given;
}

static void sort_verdicts(struct verdict **list, size_t n)
{
	struct place_of_verdict *place = xcalloc(n, sizeof(*place));

	for (size_t i = 0; i < n; i++)
		place[i] = (struct place_of_verdict){list[i], verdict_failed(list[i]), victim_speaks(list[i]),
						     list[i]->time_ns, i};
	xsort(place, n, sizeof(*place), by_place);
	for (size_t i = 0; i < n; i++)
		list[i] = place[i].v;
	free(place);
}

static void move_notes(struct verdict *to, struct verdict *from)
{
	verdict_append(&to->notes, from->notes);
	from->notes = NULL;
}

/* Does this process show that whatever had started `v` went on behind its end? Itself, or by another process that it started then. */
static const char *went_on(const struct verdict *x, const struct verdict *v)
{
	if (verdict_failed(x) || x->victim_of || x->used_ns <= v->ended_ns)
		return NULL;
	if (x->pid == v->ppid)
		return "which started this one, went on";
	return x->ppid == v->ppid && x->pid != v->pid && x->began_ns > v->ended_ns
		       ? "which was started after this one had ended, went on"
		       : NULL;
}

/* A child that died of it failed, but its parent may have expected that. One that lost its context is another matter: programs do not plan for
 * that. */
static void doubt_child(struct verdict *v, struct verdict *const *list, size_t n)
{
	if (!verdict_failed(v) || !v->own || fact_true(&v->c, FACT_error_sticky))
		return;
	for (size_t i = 0; i < n; i++) {
		const char *how = went_on(list[i], v);

		if (how && !v->ending_unknown)
			verdict_doubt_end(
				v, pool_printf(&v->pool,
					       "process %u, %s to use the GPU: that failure may have been expected",
					       list[i]->pid, how));
	}
}

void verdict_ended_well(struct verdict *all)
{
	for (struct verdict *v = all; v; v = v == all ? all->others : v->next)
		if (verdict_failed(v) && v->own && v->exit != 0 && !v->ending_unknown &&
		    !fact_true(&v->c, FACT_error_sticky))
			verdict_doubt_end(
				v, "the program that was started ended well: it may have expected that a child fails");
}

struct verdict *verdict_join(struct verdict **list, size_t n)
{
	struct verdict *first;

	if (!n)
		return verdict_new("none");
	while (verdict_promote(list, n) >= 0)
		;
	for (size_t i = 0; i < n; i++)
		verdict_blame(list[i], list, n);
	for (size_t i = 0; i < n; i++)
		doubt_child(list[i], list, n);
	sort_verdicts(list, n);
	first = list[0];
	for (size_t i = 1; i < n; i++) {
		if (verdict_failed(list[i]) || list[i]->victim_of) {
			verdict_append(&first->others, list[i]);
		} else {
			move_notes(first, list[i]);
			verdict_free(list[i]);
		}
	}
	return first;
}

static int weight(const struct verdict *v)
{
	if (!verdict_failed(v))
		return -2;
	/* what is wrong with a machine comes after any failure that nothing ties to it */
	if (fact_true(&v->c, FACT_machine_is) && !case_observed(&v->c, GROUP_error))
		return -1;
	if (!strcmp(AT(v->cause->id), "unknown"))
		return 0;
	return 1 + (int)v->sure * 2 + !case_is_from(&v->c, TEXT_OBSERVER);	/* a recording beats a text */
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

struct verdict *verdict_of_dump(const struct culprit *k)
{
	struct verdict *v = verdict_new("unknown");

	dump_observe(&v->c, k);
	verdict_judge(v);
	return v;
}

struct verdict *verdict_of_snapshot(const struct snapshot *s, const struct snap_lines *l, const struct snap_device *d)
{
	struct verdict *v = verdict_new(d->oom.found ? "unknown" : "none");

	if (!d->oom.found)
		return v;
	snapshot_observe(&v->c, s, l, d);
	verdict_judge(v);
	return v;
}
