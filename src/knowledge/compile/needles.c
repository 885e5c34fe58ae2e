/* SPDX-License-Identifier: Apache-2.0
 * Makes the table of needles that base/needles.c searches with.
 */
#include <string.h>

#include "base/needle_parts.h"
#include "knowledge/compile/compile.h"

/* A table while it is made. */
struct maker {
	struct needle_table *t;
	uint8_t *has;
	uint16_t *head;
	struct gram *grams;
	uint16_t n_grams;
};

static size_t longest_piece(const char *word, size_t *len)
{
	const char *best = word, *s = word + (*word == '^');

	*len = 0;
	while (*s) {
		size_t n = needle_piece_length(s);

		if (n > *len) {
			best = s;
			*len = n;
		}
		s += n;
		s += strspn(s, "*$");
	}
	return (size_t)(best - word);
}

bool needle_ok(const char *word)
{
	size_t len;

	longest_piece(word, &len);
	return len >= NEEDLE_MIN;
}

static uint32_t hash_piece(const struct maker *m, const struct needle *d, size_t at)
{
	const char *piece = AT(d->word) + d->piece;

	return needle_hash(m->t->factor, needle_load_before(piece + at, piece + d->len));
}

/* The window that adds the fewest new hashes: the fewer there are, the fewer looks are followed by a comparison. */
static size_t choose_window(const struct maker *m, const struct needle *d)
{
	size_t best = 0, fewest = NEEDLE_STRIDE + 1;

	for (size_t w = 0; w + m->t->window <= d->len && fewest; w++) {
		size_t fresh = 0;

		for (size_t i = 0; i < NEEDLE_STRIDE; i++)
			fresh += !m->has[needle_slot(hash_piece(m, d, w + i))];
		if (fresh < fewest) {
			fewest = fresh;
			best = w;
		}
	}
	return best;
}

static void enter(struct maker *m, struct needle *d, size_t which)
{
	d->window = (uint16_t)choose_window(m, d);
	for (size_t i = 0; i < NEEDLE_STRIDE; i++) {
		struct gram *g = &m->grams[m->n_grams];
		uint16_t *head;

		*g = (struct gram){.hash = hash_piece(m, d, d->window + i),
				   .needle = (uint16_t)which,
				   .at = (uint16_t)(d->window + i)};
		head = &m->head[needle_head(g->hash)];
		g->next = *head;
		*head = m->n_grams++;
		m->has[needle_slot(g->hash)] = 1;
	}
}

const struct needle_table *needle_table_make(struct arena *a, const char *const *words, size_t n, size_t window)
{
	struct maker m = {.t = arena_alloc(a, sizeof(*m.t))};
	struct needle *list;

	m.t->n = (uint32_t)(n < NEEDLE_NONE / NEEDLE_STRIDE ? n : NEEDLE_NONE / NEEDLE_STRIDE);
	m.t->window = (uint32_t)window;
	m.t->factor = 0x9e3779b97f4a7c15u << (64 - 8 * needle_gram_length(window));
	REF_SET(m.t->has, m.has = arena_alloc(a, NEEDLE_SLOTS));
	REF_SET(m.t->head, m.head = arena_alloc(a, NEEDLE_HEADS * sizeof(*m.head)));
	REF_SET(m.t->grams, m.grams = arena_alloc(a, (NEEDLE_STRIDE * n + 1) * sizeof(*m.grams)));
	REF_SET(m.t->list, list = arena_alloc(a, (n + 1) * sizeof(*list)));
	memset(m.head, 0xff, NEEDLE_HEADS * sizeof(*m.head));
	for (size_t i = 0; i < m.t->n; i++) {
		size_t len;

		REF_SET(list[i].word, arena_text(a, words[i]));
		list[i].piece = (uint16_t)longest_piece(words[i], &len);
		list[i].len = (uint16_t)len;
		if (len >= window)
			enter(&m, &list[i], i);
	}
	return m.t;
}
