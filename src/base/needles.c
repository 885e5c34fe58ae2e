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

#define STRIDE		3	/* bytes from one look to the next, and grams of a window */
#define SLOT_BITS	18	/* few of the slots have a gram, and they fit into the second level of the cache */
#define SLOTS		(1u << SLOT_BITS)
#define HEAD_BITS	12	/* the list of a gram is looked up by this much of its hash */
#define NONE		UINT16_MAX

struct gram {
	uint32_t hash;
	uint16_t needle;
	uint16_t at;		/* where it begins in the needle's piece */
	uint16_t next;		/* with the same beginning of the hash */
};

struct needle {
	const char *word;
	const char *piece;	/* its longest part without '*' */
	size_t len;		/* of the piece */
	size_t window;		/* where the window lies in the piece */
	uint32_t seen;		/* number of the last line it was found in */
	bool muted;
};

struct needles {
	uint8_t *has;		/* of each slot: some gram has it. NULL: nothing was searched for yet */
	uint16_t head[1u << HEAD_BITS];
	struct gram *grams;
	size_t n_grams;
	struct needle *list;
	size_t n, window;
	uint64_t factor;	/* of the hash */
	uint32_t line;
};

static inline unsigned char fold(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

/* Eight bytes, the first one lowest. */
static inline uint64_t load(const char *s)
{
	uint64_t eight;

	memcpy(&eight, s, sizeof(eight));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	eight = __builtin_bswap64(eight);
#endif
	return eight;
}

/* The same near the end of the text, where fewer bytes follow. */
static inline uint64_t load_before(const char *s, const char *end)
{
	char eight[8] = {0};

	memcpy(eight, s, (size_t)(end - s) < sizeof(eight) ? (size_t)(end - s) : sizeof(eight));
	return load(eight);
}

/* Of the gram that begins these bytes: the factor shifts those behind it out. Setting bit 5 folds case, and some other characters: it is
 * only a filter. */
static inline uint32_t hash(uint64_t factor, uint64_t eight)
{
	return (uint32_t)((eight | 0x2020202020202020u) * factor >> 32);
}

static inline uint32_t slot(uint32_t h)
{
	return h >> (32 - SLOT_BITS);
}

static inline size_t gram_length(const struct needles *n)
{
	return n->window - (STRIDE - 1);
}

/* What is up to the next '*', without an anchor at its end. */
static size_t piece_length(const char *s)
{
	size_t n = strcspn(s, "*");

	return n && !s[n] && s[n - 1] == '$' ? n - 1 : n;
}

static const char *longest_piece(const char *word, size_t *len)
{
	const char *best = word, *s = word + (*word == '^');

	*len = 0;
	while (*s) {
		size_t n = piece_length(s);

		if (n > *len) {
			best = s;
			*len = n;
		}
		s += n;
		s += strspn(s, "*$");
	}
	return best;
}

bool needle_ok(const char *word)
{
	size_t len;

	longest_piece(word, &len);
	return len >= NEEDLE_MIN;
}

static uint32_t hash_piece(const struct needles *n, const struct needle *d, size_t at)
{
	return hash(n->factor, load_before(d->piece + at, d->piece + d->len));
}

/* The window that adds the fewest new hashes: the fewer there are, the fewer looks are followed by a comparison. */
static size_t choose_window(const struct needles *n, const struct needle *d)
{
	size_t best = 0, fewest = STRIDE + 1;

	for (size_t w = 0; w + n->window <= d->len && fewest; w++) {
		size_t fresh = 0;

		for (size_t i = 0; i < STRIDE; i++)
			fresh += !n->has[slot(hash_piece(n, d, w + i))];
		if (fresh < fewest) {
			fewest = fresh;
			best = w;
		}
	}
	return best;
}

static void enter(struct needles *n, size_t which)
{
	struct needle *d = &n->list[which];

	d->window = choose_window(n, d);
	for (size_t i = 0; i < STRIDE; i++) {
		struct gram *g = &n->grams[n->n_grams];
		uint16_t *head;

		*g = (struct gram){.hash = hash_piece(n, d, d->window + i),
				   .needle = (uint16_t)which,
				   .at = (uint16_t)(d->window + i)};
		head = &n->head[g->hash >> (32 - HEAD_BITS)];
		g->next = *head;
		*head = (uint16_t)n->n_grams++;
		n->has[slot(g->hash)] = 1;
	}
}

/* Before the first search. Short logs are read whole, and need no search for the lines that matter. */
static void prepare(struct needles *n)
{
	n->has = xcalloc(SLOTS, 1);
	n->grams = xcalloc(STRIDE * n->n + 1, sizeof(*n->grams));
	memset(n->head, 0xff, sizeof(n->head));
	for (size_t i = 0; i < n->n; i++)
		if (n->list[i].len >= n->window)
			enter(n, i);
}

struct needles *needles_new(const char *const *words, size_t count, size_t window)
{
	struct needles *n = xcalloc(1, sizeof(*n));

	n->window = window;
	n->factor = 0x9e3779b97f4a7c15u << (64 - 8 * gram_length(n));
	n->list = xcalloc(count + 1, sizeof(*n->list));
	for (size_t i = 0; i < count && i < NONE / STRIDE; i++) {
		struct needle *d = &n->list[n->n++];

		d->word = words[i];
		d->piece = longest_piece(words[i], &d->len);
	}
	return n;
}

void needles_free(struct needles *n)
{
	if (!n)
		return;
	free(n->has);
	free(n->grams);
	free(n->list);
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

	return (size_t)(at - s) >= g->at && (size_t)(end - at) >= d->len - g->at &&
	       needle_same(at - g->at, d->piece, d->len);
}

/* The first gram of the list with this hash; NULL: none. */
static const struct gram *gram_of(const struct needles *n, uint16_t i, uint32_t h)
{
	while (i != NONE && n->grams[i].hash != h)
		i = n->grams[i].next;
	return i == NONE ? NULL : &n->grams[i];
}

static const struct gram *first_gram(const struct needles *n, uint32_t h)
{
	return gram_of(n, n->head[h >> (32 - HEAD_BITS)], h);
}

static const struct gram *next_gram(const struct needles *n, const struct gram *g)
{
	return gram_of(n, g->next, g->hash);
}

/* Does some gram have the slot of the one at `p`? At least eight bytes follow. */
static inline uint8_t look(const uint8_t *has, uint64_t factor, const char *p)
{
	return has[slot(hash(factor, load(p)))];
}

/* The next place from `p` on, in steps, where a gram may be; `end` = none. */
static const char *next_look(const struct needles *n, const char *p, const char *end, uint32_t *h)
{
	const uint64_t factor = n->factor;
	const uint8_t *has = n->has;

	/* nearly every look is in vain: four at once avoid waiting for each result */
	while (end - p >= 3 * STRIDE + 8 && !(look(has, factor, p) | look(has, factor, p + STRIDE) |
					      look(has, factor, p + 2 * STRIDE) | look(has, factor, p + 3 * STRIDE)))
		p += 4 * STRIDE;
	for (; end - p >= (ptrdiff_t)gram_length(n); p += STRIDE) {
		*h = hash(factor, end - p >= 8 ? load(p) : load_before(p, end));
		if (has[slot(*h)])
			return p;
	}
	return end;
}

const char *needles_find(struct needles *n, const char *s, const char *end, size_t *which)
{
	uint32_t h;

	if (!n->has)
		prepare(n);
	for (const char *p = next_look(n, s, end, &h); p < end; p = next_look(n, p + STRIDE, end, &h)) {
		const char *first = NULL;

		/* of several, the one whose window begins first: it does not depend on where the looks happen to be */
		for (const struct gram *g = first_gram(n, h); g; g = next_gram(n, g)) {
			const struct needle *d = &n->list[g->needle];
			const char *window = p - g->at + d->window;

			if (!d->muted && (!first || window < first || (window == first && g->needle < *which)) &&
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
	n->list[which].muted = muted;
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
	size_t n = piece_length(pattern);

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
	n = piece_length(++pattern);
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

	if (!n->has)
		prepare(n);
	n->line++;
	for (const char *p = next_look(n, s, end, &h); p < end; p = next_look(n, p + STRIDE, end, &h)) {
		for (const struct gram *g = first_gram(n, h); g; g = next_gram(n, g)) {
			struct needle *d = &n->list[g->needle];

			if (d->seen == n->line || !gram_fits(n, g, s, end, p))
				continue;
			if (d->word[d->len] && !needle_matches(d->word, s, len))
				continue;
			d->seen = n->line;
			hit(arg, g->needle);
		}
	}
}
