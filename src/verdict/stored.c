/* SPDX-License-Identifier: Apache-2.0
 * Restores the verdict that was written when the program ended: the doctor checked the machine then, and re-analysis may
 * happen on a different machine. The file is not trusted: causes must be known, and texts are sanitized.
 */
#include <string.h>

#include <jansson.h>

#include "base/str.h"
#include "verdict/doctor.h"
#include "verdict/verdict.h"

#define LIST_MAX	64	/* per list: we write far fewer */

static const char *text_of(struct verdict *v, const json_t *o)
{
	const char *text = json_string_value(o);
	char *copy = text ? pool_strdup(&v->pool, text) : NULL;

	if (copy)
		str_make_plain(copy);
	return copy;
}

static const char *member(struct verdict *v, const json_t *o, const char *key)
{
	return text_of(v, json_object_get(o, key));
}

static size_t length(const json_t *list)
{
	size_t n = json_array_size(list);

	return n < LIST_MAX ? n : LIST_MAX;
}

/* Each is a sentence, or an object with the sentence and its source or command. */
static struct said *said_of(struct verdict *v, const json_t *list)
{
	struct said *first = NULL, **tail = &first;

	for (size_t i = 0; i < length(list); i++) {
		const json_t *o = json_array_get(list, i);
		struct said s = {.source = member(v, o, "source"),
				 .text = json_is_string(o) ? text_of(v, o) : member(v, o, "text"),
				 .command = member(v, o, "command")};

		if (!s.text)
			continue;
		*tail = pool_alloc(&v->pool, sizeof(**tail));
		**tail = s;
		tail = &(*tail)->next;
	}
	return first;
}

static enum certainty certainty_of(const json_t *o)
{
	const char *word = json_string_value(json_object_get(o, "certainty"));

	for (int c = SURE_CERTAIN; word && c > SURE_POSSIBLE; c--)
		if (strcmp(word, certainty_word((enum certainty)c)) == 0)
			return (enum certainty)c;
	return SURE_POSSIBLE;
}

static const struct cause *cause_of(const json_t *o)
{
	const char *id = json_string_value(json_object_get(o, "cause"));

	return id ? kb_find(kb_get(), id) : NULL;
}

/* The rule that matched; NULL if this cuwhy does not have it. */
static const struct when *rule_of(const struct cause *cause, const json_t *o)
{
	const char *id = json_string_value(json_object_get(o, "rule"));
	const struct when *w = cause && id ? AT(cause->when) : NULL;

	while (w && strcmp(AT(w->id), id) != 0)
		w = AT(w->next);
	return w;
}

static void restore_candidates(struct verdict *v, const json_t *list)
{
	v->candidates = pool_alloc(&v->pool, (length(list) + 1) * sizeof(*v->candidates));
	v->n_candidates = v->n_unchecked = 0;
	for (size_t i = 0; i < length(list); i++) {
		const json_t *o = json_array_get(list, i);
		struct match m = {.cause = cause_of(o),
				  .sure = (enum sureness)certainty_of(o),
				  .because = member(v, o, "because"),
				  .tied = json_is_true(json_object_get(o, "tied"))};

		m.when = rule_of(m.cause, o);
		if (m.cause)
			v->candidates[v->n_candidates++] = m;
	}
}

static bool check_status(const json_t *word, enum doctor_status *status)
{
	for (int i = 0; json_is_string(word) && doctor_status_words[i]; i++)
		if (strcmp(json_string_value(word), doctor_status_words[i]) == 0) {
			*status = (enum doctor_status)i;
			return true;
		}
	return false;
}

static void restore_checks(struct verdict *v, const json_t *list)
{
	v->checks = pool_alloc(&v->pool, (length(list) + 1) * sizeof(*v->checks));
	v->n_checks = 0;
	for (size_t i = 0; i < length(list); i++) {
		const json_t *o = json_array_get(list, i);
		struct doctor_check c = {.id = member(v, o, "id"), .label = member(v, o, "label"), .text = member(v, o, "text"),
					 .cause = member(v, o, "cause"), .command = member(v, o, "command")};

		if (c.id && c.label && c.text && check_status(json_object_get(o, "status"), &c.status))
			v->checks[v->n_checks++] = c;
	}
}

static bool is_same_failure(const struct verdict *v, const json_t *stored)
{
	return json_integer_value(json_object_get(json_object_get(stored, "process"), "pid")) == v->pid &&
	       json_integer_value(json_object_get(json_object_get(stored, "error"), "code")) ==
		       (json_int_t)fact_number(&v->c, FACT_error_code, 0);
}

bool verdict_restore(struct verdict *v, const json_t *stored)
{
	const struct cause *cause = cause_of(stored);
	const char *title = member(v, stored, "title");

	if (!cause || !title || strcmp(AT(v->cause->id), "none") == 0 || !is_same_failure(v, stored))
		return false;
	restore_checks(v, json_object_get(stored, "checks"));
	if (!v->n_checks)
		return false;
	v->cause = cause;
	v->sure = certainty_of(stored);
	v->title = title;
	v->because = member(v, stored, "because");
	v->why = said_of(v, json_object_get(stored, "why"));
	v->fix = said_of(v, json_object_get(stored, "fix"));
	v->evidence = said_of(v, json_object_get(stored, "evidence"));
	restore_candidates(v, json_object_get(stored, "candidates"));
	return true;
}
