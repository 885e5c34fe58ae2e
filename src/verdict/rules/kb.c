/* SPDX-License-Identifier: Apache-2.0
 * The knowledge base linked into the program (see kb.h, kb_blob.S).
 */
#include "verdict/rules/kb.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"

void kb_free(struct kb *kb)
{
	if (!kb)
		return;
	pool_release(&kb->pool);
	free(kb);
}

const struct cause *kb_find(const struct kb *kb, const char *id)
{
	for (const struct cause *c = kb->first; c; c = c->next)
		if (!strcmp(c->id, id))
			return c;
	return NULL;
}

const struct kb_sign *kb_find_sign(const struct kb *kb, const char *name, size_t len)
{
	size_t low = 0, high = kb->n_signs;

	while (low < high) {
		size_t mid = low + (high - low) / 2;
		const struct kb_sign *s = kb->sign[mid];
		int order = strncmp(s->name, name, len);

		if (!order && !s->name[len])
			return s;
		if (order < 0)
			low = mid + 1;
		else
			high = mid;
	}
	return NULL;
}

extern const char cuwhy_kb_start[], cuwhy_kb_end[];

const char *kb_blob(size_t *len)
{
	*len = (size_t)(cuwhy_kb_end - cuwhy_kb_start);
	return cuwhy_kb_start;
}

static struct kb *linked;

/* A file of kb has a mistake: no bug to report, but something to mend for whoever built this. */
static void __attribute__((noreturn)) built_wrong(const struct err *e)
{
	fprintf(stderr, "cuwhy: this program was built with a mistake in it: %s\n", e->msg);
	if (e->hint[0])
		fprintf(stderr, "hint: %s\n", e->hint);
	exit(2);
}

static void free_linked(void)
{
	kb_free(linked);
	linked = NULL;
}

const struct kb *kb_get(void)
{
	struct err e = {0};
	const char *blob;
	size_t len;

	if (linked)
		return linked;
	blob = kb_blob(&len);
	linked = kb_parse(blob, len, &e);
	if (!linked)
		built_wrong(&e);
	atexit(free_linked);
	return linked;
}

struct word_list {
	const char **list;
	size_t n, cap;
};

static void add_word(void *arg, const char *words)
{
	struct word_list *w = arg;

	w->list = xgrow(w->list, w->n, &w->cap, sizeof(*w->list));
	w->list[w->n++] = words;
}

size_t kb_words(const struct kb *kb, const char ***words)
{
	struct word_list w = {0};

	for (const struct kb_sign *s = kb->signs; s; s = s->next)
		expr_says(s->expr, add_word, &w);
	*words = w.list;
	return w.n;
}
