/* SPDX-License-Identifier: Apache-2.0
 * Reads kb/questions.def: which facts the answer to each question decides.
 */
#include <string.h>

#include "knowledge/compile/compile.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const struct { const char *text, *command, *facts, *shown[QUESTION_SHOWN]; } rows[] = {
#define QUESTION(text, command, facts, ...) {text, command, facts, {__VA_ARGS__}},
#include "kb/questions.def"
};

/* Is the name one of the list, or in a group of the list ("others.")? "x.is" only says whether there is any of it. */
static bool is_listed(const char *list, const char *name)
{
	for (const char *s = list; *s; s += strspn(s, " ")) {
		size_t n = strcspn(s, " ");

		if (!strncmp(s, name, n) && (!name[n] || (s[n - 1] == '.' && strcmp(name + n, "is") != 0)))
			return true;
		s += n;
	}
	return false;
}

static const uint32_t *facts_of(struct arena *a, const char *list)
{
	uint32_t *set = arena_alloc(a, FACT_WORDS * sizeof(*set));

	for (unsigned id = 0; id < FACT_COUNT; id++)
		if (is_listed(list, fact_name((enum fact_id)id)))
			set[id / 32] |= 1u << id % 32;
	return set;
}

/* "signs/nccl" of a question's list is kb/signs/nccl.kb. */
static bool is_of_file(const char *list, const struct kb_sign *s)
{
	const char *file = AT(s->file) + strlen("kb/");
	size_t len = strcspn(file, ".");

	for (; (list = strstr(list, "signs/")) != NULL; list++)
		if (strcspn(list, " ") == len && !strncmp(list, file, len))
			return true;
	return false;
}

static void put_shown(struct arena *a, struct kb_question *q, const char *const *shown)
{
	for (size_t i = 0; i < QUESTION_SHOWN && shown[i]; i++) {
		int fact = fact_find(shown[i], strlen(shown[i]));

		q->shown[i].fact = (int32_t)fact;
		REF_SET(q->shown[i].name, arena_text(a, shown[i]));
	}
}

void questions_put(struct arena *a, struct kb *kb)
{
	struct kb_question *list = arena_alloc(a, COUNT(rows) * sizeof(*list));

	_Static_assert(COUNT(rows) <= 32, "a sign has a bit for each question");
	kb->n_questions = COUNT(rows);
	REF_SET(kb->questions, list);
	for (unsigned i = 0; i < COUNT(rows); i++) {
		REF_SET(list[i].text, arena_text(a, rows[i].text));
		REF_SET(list[i].command, arena_text(a, rows[i].command));
		REF_SET(list[i].facts, facts_of(a, rows[i].facts));
		put_shown(a, &list[i], rows[i].shown);
		for (struct kb_sign *s = OWN(kb->signs); s; s = OWN(s->next))
			s->questions |= (uint32_t)is_of_file(rows[i].facts, s) << i;
	}
}
