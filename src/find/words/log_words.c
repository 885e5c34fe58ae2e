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

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

void log_begin_words(struct text_log *l)
{
	struct word_search *w = &l->search;

	w->words = words_get();
	w->needles = needles_new(AT(w->words->in_line));
	w->fast = needles_new(AT(w->words->fast));
	w->hit = xcalloc(w->words->n + 1, sizeof(*w->hit));
	w->hit_last = xcalloc(w->words->n + 1, sizeof(*w->hit_last));
}

void log_release_words(struct text_log *l)
{
	needles_free(l->search.needles);
	needles_free(l->search.fast);
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

	if (which < l->search.words->n_errors && !is_written_so(word_text(l->search.words, which), l->here.line->text))
		return;
	l->here.error |= which < l->search.words->n_errors;
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
		if (AT(l->search.words->logged)[l->search.found[i]] && known_message_logged(line_words(l->here.line)))
			return true;
	return false;
}

static bool found_error(const struct text_log *l)
{
	for (size_t i = 0; i < l->search.n_found; i++)
		if (l->search.found[i] < l->search.words->n_errors)
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
		if (l->search.found[i] >= l->search.words->n_errors && l->search.found[i] < l->search.words->n_fixed)
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
	for (size_t i = 0; which >= l->search.words->n_fixed && i < l->search.words->n_fixed; i++)
		if (!strcmp(word_text(l->search.words, i), word_text(l->search.words, which)))
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

	for (size_t i = 0; i < l->search.words->n; i++)
		n += l->search.hit[i].count != 0;
	*list = hits = pool_alloc(pool, (n + 1) * sizeof(*hits));
	n = 0;
	for (size_t i = 0; i < l->search.words->n; i++)
		if (l->search.hit[i].count && !is_over(past, l->search.hit_last[i]) && !is_twice(l, i))
			hits[n++] = (struct text_hit){.count = l->search.hit[i].count, .line = l->search.hit[i].line,
						      .text = pool_strdup(pool, l->search.hit[i].text),
						      .file = pool_strdup(pool, l->search.hit[i].file),
						      .words = word_text(l->search.words, i)};
	xsort(hits, n, sizeof(*hits), compare_hits);
	return n;
}
