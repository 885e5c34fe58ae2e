/* SPDX-License-Identifier: Apache-2.0
 * Collects the words that logs are searched for (knowledge/words.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "case/known_message.h"
#include "knowledge/compile/compile.h"

#define WORDS_MAX 80	/* characters of a known message that are searched for */

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const char *const errors[] = {
#define MARK_ERROR(words) words,
#define MARK_OOM(framework, words) words,
#include "kb/text_marks.def"
};

static const char *const notes[] = {
#define MARK_NOTE(words) words,
#include "kb/text_marks.def"
};

static const char *const footers[] = {
#define MARK_FOOTER(words) words,
#include "kb/text_marks.def"
};

struct list {
	struct arena *a;
	const char **word;
	size_t n, room;
};

static void add(struct list *l, const char *word)
{
	l->word = xgrow(l->word, l->n, &l->room, sizeof(*l->word));
	l->word[l->n++] = arena_text(l->a, word);
}

static void add_says(void *arg, const struct expr *says)
{
	add(arg, AT(says->text));
}

/* What shows that a question is answered, where it is no fact. */
static void add_questions(struct list *l, const struct kb *kb)
{
	const struct kb_question *q = AT(kb->questions);

	for (size_t i = 0; i < kb->n_questions; i++)
		for (size_t k = 0; k < QUESTION_SHOWN && AT(q[i].shown[k].name); k++)
			if (q[i].shown[k].fact < 0)
				add(l, AT(q[i].shown[k].name));
}

/* What makes a line with this message worth reading. A '*' or an anchor is a word of the message, not of a needle. */
static const char *message_needle(struct arena *a, const struct known_message *m)
{
	char words[WORDS_MAX];
	size_t n = template_words(m->template, words, sizeof(words)), from = 0, best = 0, longest = 0;

	for (size_t i = 0; i <= n; i++) {
		if (i < n && !strchr("*^$", words[i]))
			continue;
		if (i - from > longest) {
			longest = i - from;
			best = from;
		}
		from = i + 1;
	}
	return arena_copy(a, words + best, longest);
}

/* Exceptions are found by their tracebacks and names (kb/text_marks.def): the fewer needles, the faster. */
static void add_messages(struct list *l)
{
	size_t n;
	const struct known_message *m = known_messages(&n);

	for (size_t i = 0; i < n; i++)
		if (m[i].logged)
			add(l, message_needle(l->a, &m[i]));
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

static void sort_once(struct list *l, size_t start)
{
	size_t n = start;

	xsort(l->word + start, l->n - start, sizeof(*l->word), by_text);
	for (size_t i = start; i < l->n; i++)
		if (i == start || strcmp(l->word[i], l->word[n - 1]))
			l->word[n++] = l->word[i];
	l->n = n;
}

/* Of a word in the part that is in order. */
static size_t place_in_order(const struct list *l, size_t start, const char *word)
{
	const char **found = bsearch(&word, l->word + start, l->n - start, sizeof(*l->word), by_text);

	return (size_t)(found - l->word);
}

/* Which of the words are only a rule's, and which are of messages. */
static void set_kinds(struct list *l, struct word_table *t)
{
	bool *logged = arena_alloc(l->a, l->n), *asked = arena_alloc(l->a, l->n);
	size_t n;
	const struct known_message *m = known_messages(&n);

	REF_SET(t->logged, logged);
	REF_SET(t->asked, asked);
	memset(asked + t->n_fixed, true, l->n - t->n_fixed);
	for (size_t i = 0; i < COUNT(notes); i++)
		asked[place_in_order(l, t->n_fixed, notes[i])] = false;
	for (size_t i = 0; i < n; i++)
		if (m[i].logged) {
			size_t word = place_in_order(l, t->n_fixed, message_needle(l->a, &m[i]));

			logged[word] = true;
			asked[word] = false;
		}
}

static void number_says(void *arg, const struct expr *says)
{
	((struct expr *)says)->word = (uint16_t)word_find(arg, AT(says->text));
}

/* Error phrases first, then footers, then the words of rules in order, each once. */
void words_make(struct arena *a, struct kb *kb)
{
	struct word_table *t = arena_alloc(a, sizeof(*t));
	struct list l = {.a = a};
	struct word *list;

	REF_SET(kb->words, t);
	for (size_t i = 0; i < COUNT(errors); i++)
		add(&l, errors[i]);
	t->n_errors = (uint32_t)l.n;
	for (size_t i = 0; i < COUNT(footers); i++)
		add(&l, footers[i]);
	t->n_fixed = (uint32_t)l.n;
	for (size_t i = 0; i < COUNT(notes); i++)
		add(&l, notes[i]);
	for (const struct kb_sign *s = AT(kb->signs); s; s = AT(s->next))
		expr_says(AT(s->expr), add_says, &l);
	add_questions(&l, kb);
	add_messages(&l);
	sort_once(&l, t->n_fixed);
	t->n = (uint32_t)l.n;
	REF_SET(t->list, list = arena_alloc(a, (l.n + 1) * sizeof(*list)));
	for (size_t i = 0; i < l.n; i++)
		REF_SET(list[i].text, l.word[i]);
	set_kinds(&l, t);
	for (const struct kb_sign *s = AT(kb->signs); s; s = AT(s->next))
		expr_says(AT(s->expr), number_says, t);
	REF_SET(t->in_line, needle_table_make(a, l.word, l.n, NEEDLE_MIN));
	REF_SET(t->fast, needle_table_make(a, l.word, l.n, NEEDLE_FAST));
	free(l.word);
}
