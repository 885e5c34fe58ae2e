/* SPDX-License-Identifier: Apache-2.0
 * The words that a log is searched for: those of errors, of notes and of rules; and which were found (see log.h).
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "input/text/log_priv.h"
#include "base/banned.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const char *const errors[] = {
#define MARK_ERROR(words) words,
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

static const char *const fine[] = {
#define MARK_FINE(words) words,
#include "kb/text_marks.def"
	NULL
};

bool line_has_any(const char *s, const char *const *words)
{
	for (; *words; words++)
		if (strcasestr(s, *words))
			return true;
	return false;
}

static int compare_words(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Words of errors first, then footers, then those of rules in order, each once. */
void log_collect_words(struct text_log *l, const char *const *words, size_t n)
{
	size_t start;

	l->words = xcalloc(COUNT(errors) + COUNT(footers) + COUNT(notes) + n + 1, sizeof(*l->words));
	for (size_t i = 0; i < COUNT(errors); i++)
		l->words[l->n_words++] = errors[i];
	l->n_errors = l->n_words;
	for (size_t i = 0; i < COUNT(footers); i++)
		l->words[l->n_words++] = footers[i];
	l->n_fixed = start = l->n_words;
	for (size_t i = 0; i < COUNT(notes); i++)
		l->words[l->n_words++] = notes[i];
	for (size_t i = 0; i < n; i++)
		l->words[l->n_words++] = words[i];
	qsort(l->words + start, l->n_words - start, sizeof(*l->words), compare_words);
	n = start;
	for (size_t i = start; i < l->n_words; i++)
		if (i == start || strcmp(l->words[i], l->words[n - 1]))
			l->words[n++] = l->words[i];
	l->n_words = n;
}

static void take_hit(void *arg, size_t which)
{
	struct text_log *l = arg;

	if (l->n_found < COUNT(l->found))
		l->found[l->n_found++] = which;
}

static void note_hit(struct text_log *l, size_t which)
{
	struct text_hit *h = &l->hit[which];

	l->error_here |= which < l->n_errors;
	if (!h->count++) {
		h->line = l->line.number;
		h->file = l->file;
		h->text = pool_copy(&l->pool, line_words(&l->line), strnlen(line_words(&l->line), 400));
	}
}

/* The words that are in the line. False when it is PyTorch's footer, which is evidence of nothing. */
bool log_find_words(struct text_log *l)
{
	l->n_found = 0;
	l->error_here = false;
	needles_in_line(l->needles, l->line.text, l->line.len, take_hit, l);
	for (size_t i = 0; i < l->n_found; i++)
		if (l->found[i] >= l->n_errors && l->found[i] < l->n_fixed)
			return false;
	for (size_t i = 0; i < l->n_found; i++)
		note_hit(l, l->found[i]);
	if (l->error_here && line_has_any(l->line.text, fine))
		l->error_here = false;
	return true;
}

const struct text_hit *log_hit(const struct text_log *l, const char *word)
{
	size_t low = l->n_fixed, high = l->n_words;

	for (size_t i = 0; i < l->n_fixed; i++)
		if (!strcmp(l->words[i], word))
			return l->hit[i].count ? &l->hit[i] : NULL;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		int d = strcmp(word, l->words[mid]);

		if (!d)
			return l->hit[mid].count ? &l->hit[mid] : NULL;
		if (d < 0)
			high = mid;
		else
			low = mid + 1;
	}
	return NULL;
}
