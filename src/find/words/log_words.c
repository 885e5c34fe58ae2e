/* SPDX-License-Identifier: Apache-2.0
 * The words that a line has, those that rules ask for among them (see log.h).
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/needles.h"
#include "case/known_message.h"
#include "compat/cuda_errors.h"
#include "find/words/log_parts.h"
#include "read/text/line.h"
#include "read/text/said.h"

#define WORDS_MAX	80	/* characters of a known message that are searched for */
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

static int compare_words(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* What makes a line with this message worth reading. A '*' or an anchor is a word of the message, not of a needle. */
static const char *message_needle(struct text_log *l, const struct known_message *m)
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
	return pool_copy(&l->pool, words + best, longest);
}

/* Of a word in the part that is in order. */
static size_t word_index(const struct text_log *l, const char *word)
{
	const char **found = bsearch(&word, l->search.words + l->search.n_fixed, l->search.n_words - l->search.n_fixed,
				     sizeof(*l->search.words), compare_words);

	return found ? (size_t)(found - l->search.words) : l->search.n_words;
}

static void collect_words(struct text_log *l, const char *const *words, size_t n)
{
	struct word_search *w = &l->search;
	size_t start, n_messages;
	const struct known_message *messages = known_messages(&n_messages);

	w->words = xcalloc(COUNT(errors) + COUNT(footers) + COUNT(notes) + n + n_messages + 1, sizeof(*w->words));
	for (size_t i = 0; i < COUNT(errors); i++)
		w->words[w->n_words++] = errors[i];
	w->n_errors = w->n_words;
	for (size_t i = 0; i < COUNT(footers); i++)
		w->words[w->n_words++] = footers[i];
	w->n_fixed = start = w->n_words;
	for (size_t i = 0; i < COUNT(notes); i++)
		w->words[w->n_words++] = notes[i];
	for (size_t i = 0; i < n; i++)
		w->words[w->n_words++] = words[i];
	/* exceptions are found by their tracebacks and names (kb/text_marks.def): the fewer needles, the faster */
	for (size_t i = 0; i < n_messages; i++)
		if (messages[i].logged)
			w->words[w->n_words++] = message_needle(l, &messages[i]);
	xsort(w->words + start, w->n_words - start, sizeof(*w->words), compare_words);
	n = start;
	for (size_t i = start; i < w->n_words; i++)
		if (i == start || strcmp(w->words[i], w->words[n - 1]))
			w->words[n++] = w->words[i];
	w->n_words = n;
}

/* What each of them is there for. */
static void mark_words(struct text_log *l)
{
	struct word_search *w = &l->search;
	size_t n_messages, n = w->n_words;
	const struct known_message *messages = known_messages(&n_messages);

	w->logged = xcalloc(n + 1, sizeof(*w->logged));
	w->asked = xcalloc(n + 1, sizeof(*w->asked));
	memset(w->asked + w->n_fixed, true, n - w->n_fixed);
	for (size_t i = 0; i < COUNT(notes); i++)
		w->asked[word_index(l, notes[i])] = false;
	for (size_t i = 0; i < n_messages; i++) {
		size_t word = messages[i].logged ? word_index(l, message_needle(l, &messages[i])) : n;

		w->logged[word] = word < n;
		w->asked[word] = false;
	}
}

void log_collect_words(struct text_log *l, const char *const *words, size_t n)
{
	struct word_search *w = &l->search;

	collect_words(l, words, n);
	mark_words(l);
	n = w->n_words;
	w->needles = needles_new(w->words, n, NEEDLE_MIN);
	w->fast = needles_new(w->words, n, NEEDLE_FAST);
	w->hit = xcalloc(n + 1, sizeof(*w->hit));
	w->hit_last = xcalloc(n + 1, sizeof(*w->hit_last));
}

void log_release_words(struct text_log *l)
{
	needles_free(l->search.needles);
	needles_free(l->search.fast);
	free(l->search.logged);
	free(l->search.asked);
	free(l->search.words);
	free(l->search.hit);
	free(l->search.hit_last);
}

static void needle_hit(void *arg, size_t which)
{
	struct text_log *l = arg;

	if (l->search.n_found < COUNT(l->search.found))
		l->search.found[l->search.n_found++] = which;
}

/* A constant is spelled as it is declared, and is not the middle of another name: not `test_cuda_error_check`, `CudaErrorsTest`. */
static bool is_written_so(const char *word, const char *text)
{
	for (const char *s = word; *s; s++)
		if (!isalpha((unsigned char)*s) && *s != '_')
			return true;	/* words of a sentence */
	for (const char *at = text; (at = strstr(at, word)) != NULL; at++)
		if (at == text || (!isalnum((unsigned char)at[-1]) && at[-1] != '_'))
			return true;
	return false;
}

static void note_hit(struct text_log *l, size_t which)
{
	struct text_hit *h = &l->search.hit[which];

	if (which < l->search.n_errors && !is_written_so(l->search.words[which], l->here.line->text))
		return;
	l->here.error |= which < l->search.n_errors;
	l->search.hit_last[which] = l->here.line->order;
	if (!h->count++) {
		h->line = l->here.line->number;
		h->file = l->input.file;
		h->text = pool_copy(&l->pool, line_words(l->here.line), strnlen(line_words(l->here.line), 400));
	}
}

bool log_found_message(const struct text_log *l)
{
	for (size_t i = 0; i < l->search.n_found; i++)
		if (l->search.logged[l->search.found[i]] && known_message_logged(line_words(l->here.line)))
			return true;
	return false;
}

static bool found_error(const struct text_log *l)
{
	for (size_t i = 0; i < l->search.n_found; i++)
		if (l->search.found[i] < l->search.n_errors)
			return true;
	return log_found_message(l);
}

bool log_is_fallback(const char *s)
{
	return says(s, SAID_fallback) && !says(s, SAID_from_the_start);
}

bool log_find_words(struct text_log *l, bool code)
{
	bool error;

	l->search.n_found = 0;
	l->here.error = l->here.fine = l->here.exception = false;
	needles_in_line(l->search.needles, l->here.line->text, l->here.line->len, needle_hit, l);
	for (size_t i = 0; i < l->search.n_found; i++)
		if (l->search.found[i] >= l->search.n_errors && l->search.found[i] < l->search.n_fixed)
			return false;
	error = found_error(l);
	if (code && error && quoted_code(line_words(l->here.line)))
		return true;
	for (size_t i = 0; i < l->search.n_found; i++)
		note_hit(l, l->search.found[i]);
	l->here.error |= log_found_message(l);
	l->here.fine = error && (says(l->here.line->text, SAID_fine) || log_is_fallback(l->here.line->text));
	if (l->here.fine)
		l->here.error = false;
	return true;
}

/* It is among the words without an order, too, which know better whether it is meant. */
static bool is_twice(const struct text_log *l, size_t which)
{
	for (size_t i = 0; which >= l->search.n_fixed && i < l->search.n_fixed; i++)
		if (!strcmp(l->search.words[i], l->search.words[which]))
			return true;
	return false;
}

static int compare_hits(const void *a, const void *b)
{
	return strcmp(((const struct text_hit *)a)->words, ((const struct text_hit *)b)->words);
}

size_t log_hits(const struct text_log *l, struct text_past past, struct pool *pool, const struct text_hit **list)
{
	struct text_hit *hits;
	size_t n = 0;

	for (size_t i = 0; i < l->search.n_words; i++)
		n += l->search.hit[i].count != 0;
	*list = hits = pool_alloc(pool, (n + 1) * sizeof(*hits));
	n = 0;
	for (size_t i = 0; i < l->search.n_words; i++)
		if (l->search.hit[i].count && !is_over(past, l->search.hit_last[i]) && !is_twice(l, i))
			hits[n++] = (struct text_hit){.count = l->search.hit[i].count, .line = l->search.hit[i].line,
						      .text = pool_strdup(pool, l->search.hit[i].text),
						      .file = pool_strdup(pool, l->search.hit[i].file),
						      .words = pool_strdup(pool, l->search.words[i])};
	xsort(hits, n, sizeof(*hits), compare_hits);
	return n;
}
