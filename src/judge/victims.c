/* SPDX-License-Identifier: Apache-2.0
 * Processes that failed because another one did: peers that lost it, parents that re-raised its exception,
 * siblings that were ended after it. A process with its own CUDA failure is never one of them.
 */
#include <signal.h>
#include <string.h>

#include "judge/verdict.h"

enum victim_where { VICTIM_TYPE, VICTIM_TEXT };
enum victim_who { VICTIM_ANY, VICTIM_KIN };

static const struct sign {
	enum victim_where where;
	enum victim_who who;
	const char *needle, *why;
} signs[] = {
#define VICTIM(where, who, needle, why)	{VICTIM_##where, VICTIM_##who, needle, why},
#include "judge/victims.def"
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

static bool is_sibling(const struct verdict *v, const struct verdict *of)
{
	return v->ppid && v->ppid == of->ppid;
}

static bool is_kin(const struct verdict *v, const struct verdict *of)
{
	return is_sibling(v, of) || (v->ppid && v->ppid == of->pid) || (of->ppid && of->ppid == v->pid);
}

/* Siblings are ended by their parent: torchrun, mp.spawn; a parent is ended by something else. */
static bool ended_with(const struct verdict *v, const struct verdict *of)
{
	return (v->signal == SIGTERM || v->signal == SIGKILL) && !v->end_type && is_kin(v, of) && of->ppid != v->pid;
}

/* Did `v`, whose last words have the sign `s` (or NULL), fail because of `of`? */
static bool is_victim(const struct verdict *v, const struct sign *s, const struct verdict *of)
{
	if (!of->own || v == of || v->pid == of->pid || v->ended_ns < of->time_ns)
		return false;
	return s ? s->who == VICTIM_ANY || is_kin(v, of) : ended_with(v, of);
}

/* A parent is the victim of its own child; otherwise the first failure is to blame. */
static bool is_better(const struct verdict *v, const struct verdict *of, const struct verdict *than)
{
	if (!than)
		return true;
	if ((of->ppid == v->pid) != (than->ppid == v->pid))
		return of->ppid == v->pid;
	return of->time_ns < than->time_ns;
}

bool verdict_blame(struct verdict *v, struct verdict *const *list, size_t n)
{
	const struct sign *s = sign_of(v);
	const struct verdict *of = NULL;
	const char *why;

	if (v->own || !v->exit_known || (!v->exit && !v->signal))
		return false;
	for (size_t i = 0; i < n; i++)
		if (list[i] && is_victim(v, s, list[i]) && is_better(v, list[i], of))
			of = list[i];
	if (!of)
		return false;
	why = s ? s->why : pool_printf(&v->pool, "it was ended by signal %d", v->signal);
	v->victim_of = of->pid;
	v->victim_why = why;
	v->title = pool_printf(&v->pool, "process %u failed because process %u did: %s", v->pid, of->pid, why);
	return true;
}
