/* SPDX-License-Identifier: Apache-2.0
 * Searches for many words at once (see needles.h). Each needle has a window: some bytes of its longest piece. Three grams of the
 * window, which begin at its first, second and third byte, go into a table, and the text is looked at every three bytes only: wherever
 * a window lies, one of its grams begins there. Nearly every look is a hash and one byte of the table.
 *
 * Grams of six bytes are rare where those of four ("loss", "step", "info") are in every line of a log; a longer step with shorter
 * grams, as in the algorithm of Wu and Manber, takes fewer looks but stops at many of them.
 */
#include "base/needles.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/needle_parts.h"

struct needles {
	const uint8_t *has;
	const uint16_t *head;
	const struct gram *grams;
	const struct needle *list;
	size_t n, window;
	uint64_t factor;
	uint32_t line;
	uint32_t *seen;		/* of each needle: number of the last line it was found in */
	bool *muted;
};

static inline unsigned char fold(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

struct needles *needles_new(const struct needle_table *t)
{
	struct needles *n = xcalloc(1, sizeof(*n));

	n->has = AT(t->has);
	n->head = AT(t->head);
	n->grams = AT(t->grams);
	n->list = AT(t->list);
	n->n = t->n;
	n->window = t->window;
	n->factor = t->factor;
	n->seen = xcalloc(n->n + 1, sizeof(*n->seen));
	n->muted = xcalloc(n->n + 1, sizeof(*n->muted));
	return n;
}

void needles_free(struct needles *n)
{
	if (!n)
		return;
	free(n->seen);
	free(n->muted);
	free(n);
}

size_t needles_count(const struct needles *n)
{
	return n->n;
}

static bool needle_same(const char *a, const char *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (fold((unsigned char)a[i]) != fold((unsigned char)b[i]))
			return false;
	return true;
}

/* Is the needle of this gram here, with its gram at `at`? */
static bool gram_fits(const struct needles *n, const struct gram *g, const char *s, const char *end, const char *at)
{
	const struct needle *d = &n->list[g->needle];

	return (size_t)(at - s) >= g->at && (size_t)(end - at) >= (size_t)(d->len - g->at) &&
	       needle_same(at - g->at, AT(d->word) + d->piece, d->len);
}

/* The first gram of the list with this hash; NULL: none. */
static const struct gram *gram_of(const struct needles *n, uint16_t i, uint32_t h)
{
	while (i != NEEDLE_NONE && n->grams[i].hash != h)
		i = n->grams[i].next;
	return i == NEEDLE_NONE ? NULL : &n->grams[i];
}

static const struct gram *first_gram(const struct needles *n, uint32_t h)
{
	return gram_of(n, n->head[needle_head(h)], h);
}

static const struct gram *next_gram(const struct needles *n, const struct gram *g)
{
	return gram_of(n, g->next, g->hash);
}

/* Does some gram have the slot of the one at `p`? At least eight bytes follow. */
static inline uint8_t look(const uint8_t *has, uint64_t factor, const char *p)
{
	return has[needle_slot(needle_hash(factor, needle_load(p)))];
}

/* The next place from `p` on, in steps, where a gram may be; `end` = none. */
static const char *next_look(const struct needles *n, const char *p, const char *end, uint32_t *h)
{
	const uint64_t factor = n->factor;
	const uint8_t *has = n->has;

	/* nearly every lookup finds nothing: four at once avoid waiting for each result */
	while (end - p >= 3 * NEEDLE_STRIDE + 8 && !(look(has, factor, p) | look(has, factor, p + NEEDLE_STRIDE) |
		 look(has, factor, p + 2 * NEEDLE_STRIDE) | look(has, factor, p + 3 * NEEDLE_STRIDE)))
		p += 4 * NEEDLE_STRIDE;
	for (; end - p >= (ptrdiff_t)needle_gram_length(n->window); p += NEEDLE_STRIDE) {
		*h = needle_hash(factor, end - p >= 8 ? needle_load(p) : needle_load_before(p, end));
		if (has[needle_slot(*h)])
			return p;
	}
	return end;
}

const char *needles_find(struct needles *n, const char *s, const char *end, size_t *which)
{
	uint32_t h;

	for (const char *p = next_look(n, s, end, &h); p < end; p = next_look(n, p + NEEDLE_STRIDE, end, &h)) {
		const char *first = NULL;

		/* of several, the one whose window begins first: it does not depend on where the looks happen to be */
		for (const struct gram *g = first_gram(n, h); g; g = next_gram(n, g)) {
			const struct needle *d = &n->list[g->needle];
			const char *window = p - g->at + d->window;

			if (!n->muted[g->needle] &&
			    (!first || window < first || (window == first && g->needle < *which)) &&
			    gram_fits(n, g, s, end, p)) {
				first = window;
				*which = g->needle;
			}
		}
		if (first)
			return first;
	}
	return NULL;
}

void needles_mute(struct needles *n, size_t which, bool muted)
{
	n->muted[which] = muted;
}

static size_t without_spaces(const char *s, size_t len)
{
	while (len && s[len - 1] == ' ')
		len--;
	return len;
}

/* The pieces of a pattern, one after the other. */
static bool pieces_match(const char *pattern, const char *s, size_t len)
{
	size_t n = needle_piece_length(pattern);

	if (pattern[n] == '$') {
		len = without_spaces(s, len);
		return len >= n && needle_same(s + len - n, pattern, n);
	}
	if (!n)
		return !*pattern || pieces_match(pattern + 1, s, len);
	for (size_t i = 0; i + n <= len; i++)
		if (needle_same(s + i, pattern, n))	/* the first match is as good as any: '*' covers the rest */
			return pieces_match(pattern + n, s + i + n, len - i - n);
	return false;
}

bool needle_matches(const char *pattern, const char *s, size_t len)
{
	size_t n;

	if (*pattern != '^')
		return pieces_match(pattern, s, len);
	for (; len && *s == ' '; len--)
		s++;
	n = needle_piece_length(++pattern);
	if (len < n || !needle_same(s, pattern, n))
		return false;
	if (pattern[n] == '$')	/* one piece is the whole line */
		return !without_spaces(s + n, len - n);
	return pieces_match(pattern + n, s + n, len - n);
}

void needles_in_line(struct needles *n, const char *s, size_t len, needle_fn *hit, void *arg)
{
	const char *end = s + len;
	uint32_t h;

	n->line++;
	for (const char *p = next_look(n, s, end, &h); p < end; p = next_look(n, p + NEEDLE_STRIDE, end, &h)) {
		for (const struct gram *g = first_gram(n, h); g; g = next_gram(n, g)) {
			const char *word = AT(n->list[g->needle].word);

			if (n->seen[g->needle] == n->line || !gram_fits(n, g, s, end, p))
				continue;
			if (word[n->list[g->needle].len] && !needle_matches(word, s, len))
				continue;
			n->seen[g->needle] = n->line;
			hit(arg, g->needle);
		}
	}
}
