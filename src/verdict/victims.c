/* SPDX-License-Identifier: Apache-2.0
 * Processes that failed because another one did: peers that lost it, parents that re-raised its exception,
 * siblings that were ended after it. A process with its own CUDA failure is never one of them.
 */
#include <signal.h>
#include <string.h>

#include "case/message.h"
#include "verdict/verdict.h"

enum victim_where { VICTIM_TYPE, VICTIM_TEXT };
enum victim_who { VICTIM_ANY, VICTIM_KIN };

static const struct sign {
	enum victim_where where;
	enum victim_who who;
	const char *needle, *why;
} signs[] = {
#define VICTIM(where, who, needle, why)	{VICTIM_##where, VICTIM_##who, needle, why},
#include "verdict/victims.def"
};

static bool matches(const struct sign *s, const char *type, const char *text)
{
	if (s->where == VICTIM_TYPE)
		return type && !strcmp(type, s->needle);
	return text && strstr(text, s->needle);
}

static const struct sign *sign_of(const struct verdict *v)
{
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (matches(&signs[i], v->end_type, v->end_text))
			return &signs[i];
	return NULL;
}

bool victim_speaks(const struct verdict *v)
{
	return !v->own && sign_of(v);
}

const char *victim_words_in(const char *type, const char *text)
{
	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]); i++)
		if (matches(&signs[i], type, text))
			return signs[i].why;
	return NULL;
}

const char *victim_words(const struct verdict *v)
{
	const struct sign *s = v->own ? NULL : sign_of(v);

	return s ? s->why : NULL;
}

static bool is_sibling(const struct verdict *v, const struct verdict *of)
{
	return v->ppid && v->ppid == of->ppid;
}

static bool is_kin(const struct verdict *v, const struct verdict *of)
{
	return is_sibling(v, of) || (v->ppid && v->ppid == of->pid) || (of->ppid && of->ppid == v->pid);
}

/* By its status; while its parent has not asked for that, by the exception that nothing caught. */
static bool ended_badly(const struct verdict *v)
{
	return v->exit_known ? v->exit || v->signal : v->end_type != NULL;
}

#define CHECK_MIN 8	/* bytes of a check's message: a shorter one may be in any text */

/* In ascending order of evidence. */
enum carried { CARRIES_NOT, CARRIES_LINE, CARRIES_ERROR, CARRIES_BOTH };

/* Do the messages name the error: its code, the message of PyTorch's check, CUDA in a forked child? */
static bool words_tell(const char *words, const struct casefile *c)
{
	uint32_t code = (uint32_t)fact_number(c, FACT_error_code, 0);
	const char *check = fact_text(c, FACT_check_message);

	return (code && message_has_code(words, code)) || (strlen(check) >= CHECK_MIN && strstr(words, check)) ||
	       (!strcmp(fact_text(c, FACT_error_source), "fork") && strstr(words, "forked subprocess"));
}

static bool words_have_line(const char *words, const struct line *l)
{
	return l->file && message_has_line(words, l->file, l->number);
}

/* It failed, had something to say about it, and there is no failure of its own. */
static bool may_carry(const struct verdict *v)
{
	return !v->own && v->end_words && ended_badly(v);
}

/* Was `v` ended by an exception that it raised for the failure `of` of another process? Pools, DataLoaders and launchers
 * do: the exception has the child's message, and the traceback that the child printed. */
static enum carried carries(const struct verdict *v, const struct verdict *of)
{
	bool line, error;

	if (!may_carry(v) || !of->own || v->pid == of->pid || v->ended_ns < of->time_ns)
		return CARRIES_NOT;
	line = words_have_line(v->end_words, &of->c.line[LINE_where]) ||
	       words_have_line(v->end_words, &of->c.line[LINE_noticed]);
	error = words_tell(v->end_words, &of->c);
	if (line)
		return error ? CARRIES_BOTH : CARRIES_LINE;
	return error && is_kin(v, of) ? CARRIES_ERROR : CARRIES_NOT;
}

static enum carried carried_by_the_ended(const struct verdict *v, struct verdict *const *list, size_t n)
{
	enum carried best = CARRIES_NOT, found;

	for (size_t i = 0; i < n; i++) {
		found = list[i] ? carries(v, list[i]) : CARRIES_NOT;
		best = found > best ? found : best;
	}
	return best;
}

/* The failure that ended `v` although its own process survived it; NULL if there is none, or if a process that ended with
 * its failure fits as well. `*at` is the index of its process. Of several that fit equally well, the last one. */
static struct verdict *find_survived(const struct verdict *v, struct verdict *const *list, size_t n, size_t *at)
{
	enum carried best = carried_by_the_ended(v, list, n), found;
	struct verdict *which = NULL;

	for (size_t i = 0; i < n; i++) {
		for (struct verdict *note = list[i] ? list[i]->notes : NULL; note; note = note->next) {
			found = carries(v, note);
			if (found < best || (found == best && (!which || note->time_ns < which->time_ns)))
				continue;
			best = found;
			which = note;
			*at = i;
		}
	}
	return which;
}

static void verdict_remove(struct verdict **list, struct verdict *v)
{
	while (*list != v)
		list = &(*list)->next;
	*list = v->next;
	v->next = NULL;
}

long verdict_promote(struct verdict **list, size_t n)
{
	struct verdict *note, *process;
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		/* asked whenever one of thousands of processes has ended: most are not worth a look at all the others */
		note = list[i] && may_carry(list[i]) ? find_survived(list[i], list, n, &at) : NULL;
		if (!note || verdict_failed(list[at]))
			continue;
		process = list[at];
		verdict_remove(&process->notes, note);
		note->notes = process->notes;
		process->notes = NULL;
		verdict_evidence(note, "process",
				 pool_printf(&note->pool, "process %u raised it again and ended", list[i]->pid));
		verdict_free(process);
		list[at] = note;
		return (long)at;
	}
	return -1;
}

/* Why `v` failed because of `of`; NULL if it did not. */
/* Siblings are ended by their parent: torchrun, mp.spawn; a parent is ended by something else. */
static bool ended_with(const struct verdict *v, const struct verdict *of)
{
	return (v->signal == SIGTERM || v->signal == SIGKILL) && !v->end_type && is_kin(v, of) && of->ppid != v->pid;
}

/* Do the last words of `v` speak of `of`? `s`: their sign, or NULL. */
static bool sign_fits(const struct verdict *v, const struct sign *s, const struct verdict *of)
{
	return s && (s->who == VICTIM_ANY || is_kin(v, of));
}

/* Did `v` fail because of `of`? */
static bool is_victim(const struct verdict *v, const struct sign *s, const struct verdict *of)
{
	if (!of->own || v == of || v->pid == of->pid || v->ended_ns < of->time_ns)
		return false;
	return sign_fits(v, s, of) || carries(v, of) || ended_with(v, of);
}

static const char *victim_reason(struct verdict *v, const struct sign *s, const struct verdict *of)
{
	if (sign_fits(v, s, of))
		return s->why;
	if (carries(v, of))
		return "it re-raised its exception";
	return pool_printf(&v->pool, "it was ended by signal %d", v->signal);
}

/* The failure whose message and line it repeats; then a parent is the victim of its own child; otherwise the first
 * failure is to blame. */
static bool is_better(const struct verdict *v, const struct verdict *of, const struct verdict *than)
{
	enum carried carried = carries(v, of);

	if (!than || carried > carries(v, than))
		return true;
	if (carried < carries(v, than))
		return false;
	if ((of->ppid == v->pid) != (than->ppid == v->pid))
		return of->ppid == v->pid;
	return of->time_ns < than->time_ns;
}

/* It has no CUDA failure of its own: what its exception says is the other process's. */
static void forget_cause(struct verdict *v)
{
	v->cause = kb_find(kb_get(), "none");
	v->sure = SURE_CERTAIN;
	v->because = NULL;
	v->why = v->fix = NULL;
	v->n_candidates = v->n_unchecked = 0;
}

bool verdict_blame(struct verdict *v, struct verdict *const *list, size_t n)
{
	const struct sign *s = sign_of(v);
	const struct verdict *of = NULL;
	const char *why;

	if (v->own || !ended_badly(v))
		return false;
	for (size_t i = 0; i < n; i++)
		if (list[i] && is_victim(v, s, list[i]) && is_better(v, list[i], of))
			of = list[i];
	if (!of)
		return false;
	why = victim_reason(v, s, of);
	forget_cause(v);
	v->victim_of = of->pid;
	v->victim_why = why;
	v->title = pool_printf(&v->pool, "process %u failed because process %u did: %s", v->pid, of->pid, why);
	return true;
}
