/* SPDX-License-Identifier: Apache-2.0
 * Failures that the environment may have caused: the doctor's finding about the machine becomes the verdict.
 */
#include <string.h>

#include "compat/cuda_errors.h"
#include "verdict/doctor.h"
#include "verdict/verdict.h"

bool verdict_wants_machine(const struct verdict *v)
{
	if (fact_true(&v->c, FACT_process_sim) || strcmp(AT(v->cause->id), "none") == 0)
		return false;
	if (strcmp(AT(v->cause->id), "unknown") == 0)
		return cuda_error_in((uint32_t)fact_number(&v->c, FACT_error_code, 0), SET_ENVIRONMENTAL);
	return AT(v->cause->check) && strcmp(AT(v->cause->check), "memory") != 0 &&
	       strcmp(AT(v->cause->check), "health") != 0;
}

static const char *adopt_text(struct verdict *v, const char *text)
{
	return text ? pool_strdup(&v->pool, text) : NULL;
}

static struct said *keep_said(struct verdict *v, const struct said *from)
{
	struct said *first = NULL, **tail = &first;

	for (; from; from = from->next) {
		*tail = pool_alloc(&v->pool, sizeof(**tail));
		(*tail)->source = adopt_text(v, from->source);
		(*tail)->text = adopt_text(v, from->text);
		(*tail)->command = adopt_text(v, from->command);
		tail = &(*tail)->next;
	}
	return first;
}

static bool is_said(const struct said *list, const char *text)
{
	for (; list; list = list->next)
		if (strcmp(list->text, text) == 0)
			return true;
	return false;
}

/* The failure's sentences after the machine's: two views of one cause. */
static void append_own(struct said *machine, struct said **list, struct said *own)
{
	struct said **tail = list;

	*list = machine;
	while (*tail)
		tail = &(*tail)->next;
	while (own) {
		struct said *next = own->next;

		own->next = NULL;
		if (!is_said(*list, own->text)) {
			*tail = own;
			tail = &own->next;
		}
		own = next;
	}
}

static bool is_candidate(const struct verdict *v, const struct cause *c)
{
	for (size_t i = 0; i < v->n_candidates; i++)
		if (v->candidates[i].cause == c)
			return true;
	return v->cause == c;
}

/* Does the doctor's finding explain this failure? A message that names its cause is not overruled by some other problem of
 * the machine; but a failure that any lower layer could cause explains nothing by itself. */
static bool explains(const struct verdict *v, const struct verdict *found)
{
	int mine, theirs;

	if (found->sure == SURE_POSSIBLE || strcmp(AT(found->cause->id), "none") == 0 || !AT(found->cause->check))
		return false;
	if (is_candidate(v, found->cause) || strcmp(AT(v->cause->id), "unknown") == 0)
		return true;
	mine = doctor_check_place(AT(v->cause->check));
	theirs = doctor_check_place(AT(found->cause->check));
	if (v->sure == SURE_CERTAIN || (v->sure == SURE_LIKELY && mine > doctor_check_place("runtime")))
		return mine == theirs;
	return theirs <= mine || v->sure == SURE_POSSIBLE;
}

static void keep_checks(struct verdict *v, const struct doctor *d)
{
	v->checks = pool_alloc(&v->pool, (d->n_checks + 1) * sizeof(*v->checks));
	v->n_checks = d->n_checks;
	for (size_t i = 0; i < d->n_checks; i++) {
		const struct doctor_check *c = &d->check[i];

		v->checks[i] = (struct doctor_check){.id = adopt_text(v, c->id),
						     .label = adopt_text(v, c->label),
						     .status = c->status,
						     .text = adopt_text(v, c->text),
						     .cause = adopt_text(v, c->cause),
						     .command = adopt_text(v, c->command)};
	}
}

bool verdict_adopt(struct verdict *v, const struct doctor *d)
{
	const struct verdict *found = d->verdict;

	keep_checks(v, d);
	if (!explains(v, found)) {
		if (found->sure != SURE_POSSIBLE && strcmp(AT(found->cause->id), "none") != 0)
			verdict_evidence(v, "doctor",
					 pool_printf(&v->pool, "cuwhy doctor also says: %s (%s)", found->title,
						     AT(found->cause->id)));
		return false;
	}
	if (v->cause == found->cause) {
		append_own(keep_said(v, found->why), &v->why, v->why);
		v->sure = found->sure > v->sure ? found->sure : v->sure;
		v->title = strcmp(v->title, AT(v->cause->title)) != 0 ? v->title : adopt_text(v, found->title);
	} else {
		v->why = keep_said(v, found->why);
		v->sure = found->sure;
		v->title = adopt_text(v, found->title);
	}
	v->cause = found->cause;
	v->because = adopt_text(v, found->because);
	v->fix = keep_said(v, found->fix);
	v->candidates = pool_alloc(&v->pool, (found->n_candidates + 1) * sizeof(*v->candidates));
	v->n_candidates = 0;
	for (size_t i = 0; i < found->n_candidates; i++) {
		if (found->candidates[i].sure == KB_POSSIBLE)
			continue;	/* a warning about the machine is not a cause of this failure */
		v->candidates[v->n_candidates] = found->candidates[i];
		v->candidates[v->n_candidates++].because = NULL;
	}
	v->n_unchecked = 0;
	for (const struct said *s = found->evidence; s; s = s->next)
		verdict_evidence(v, "doctor", pool_printf(&v->pool, "%s: %s", s->source, s->text));
	return true;
}
