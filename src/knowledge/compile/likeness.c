/* SPDX-License-Identifier: Apache-2.0
 * Turns the rows of kb/words.def around: from the words of each cause to the causes of each word.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "knowledge/compile/compile.h"

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))
#define HEADS	    (1u << LIKE_HEAD_BITS)

static const struct likeness_row learned[] = {
#define WORDS(cause, words) {cause, words},
#include "kb/words.def"
};

/* A word of a row. */
struct entry {
	const char *s;
	uint32_t hash;
	struct like_weight weight;
};

struct entries {
	struct entry *list;
	size_t n, room;
};

/* "word weight word weight ..." */
static void add_row(struct entries *e, struct arena *a, const char *words, uint16_t row)
{
	uint16_t place = 0;

	for (const char *at = words; *at;) {
		size_t len = strcspn(at, " ");
		char *next;

		e->list = xgrow(e->list, e->n, &e->room, sizeof(*e->list));
		e->list[e->n++] = (struct entry){
			.s = arena_copy(a, at, len),
			.hash = like_hash(at, len),
			.weight = {.row = row, .place = place++, .weight = (int16_t)strtol(at + len, &next, 10)},
		};
		at = next + (*next == ' ');
	}
}

static int by_word(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = x->hash == y->hash ? strcmp(x->s, y->s) : x->hash < y->hash ? -1 : 1;

	return order ? order : x->weight.row != y->weight.row ? x->weight.row - y->weight.row
							      : x->weight.place - y->weight.place;
}

/* Entries that are in order: those of one word, which is the same text for all, lie together. */
static void put_words(struct arena *a, struct like_table *t, const struct entries *e)
{
	struct like_word *words = arena_alloc(a, (e->n + 1) * sizeof(*words));
	struct like_weight *weights = arena_alloc(a, (e->n + 1) * sizeof(*weights));
	uint32_t *head = arena_alloc(a, (HEADS + 1) * sizeof(*head)), n = 0, next = 0;

	for (size_t i = 0; i < e->n; i++) {
		weights[i] = e->list[i].weight;
		if (i && e->list[i].s == e->list[i - 1].s)
			continue;
		for (; next <= e->list[i].hash >> (32 - LIKE_HEAD_BITS); next++)
			head[next] = n;
		words[n].hash = e->list[i].hash;
		words[n].first = (uint32_t)i;
		REF_SET(words[n].s, e->list[i].s);
		n++;
	}
	for (; next <= HEADS; next++)
		head[next] = n;
	words[n].first = (uint32_t)e->n;
	t->n_words = n;
	REF_SET(t->words, words);
	REF_SET(t->weights, weights);
	REF_SET(t->head, head);
}

const struct like_table *likeness_make(struct arena *a, const struct likeness_row *rows, size_t n)
{
	struct like_table *t = arena_alloc(a, sizeof(*t));
	struct like_row *list = arena_alloc(a, n * sizeof(*list));
	struct entries e = {0};

	t->n_rows = (uint32_t)n;
	REF_SET(t->rows, list);
	for (size_t i = 0; i < n; i++) {
		REF_SET(list[i].cause, arena_text(a, rows[i].cause));
		add_row(&e, a, rows[i].words, (uint16_t)i);
	}
	xsort(e.list, e.n, sizeof(*e.list), by_word);
	put_words(a, t, &e);
	free(e.list);
	return t;
}

void likeness_put(struct arena *a, struct kb *kb)
{
	REF_SET(kb->likeness, likeness_make(a, learned, COUNT(learned)));
}
