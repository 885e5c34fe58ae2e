/* SPDX-License-Identifier: Apache-2.0
 * Searches for many words at once (see needles.h), with the Wu-Manber algorithm. Each needle has a window of some bytes; the
 * last three or four bytes under the window say how far it can move without missing a needle. Most of a log is never read.
 */
#include "base/needles.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define HASH_BITS	16
#define SLOTS		(1u << HASH_BITS)
#define NONE		UINT16_MAX

struct needle {
	const char *word;
	const char *piece;	/* its longest part without '*' */
	size_t len;		/* of the piece */
	size_t window;		/* where the window lies in the piece */
	uint16_t next;		/* with the same hash */
	uint32_t seen;		/* number of the last line it was found in */
};

struct needles {
	uint8_t shift[SLOTS];
	uint16_t head[SLOTS];
	struct needle *list;
	size_t n, window;
	uint32_t line;
};

static inline unsigned char fold(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

/* Bytes that are hashed together. */
static inline size_t gram(size_t window)
{
	return window >= NEEDLE_FAST ? 4 : 3;
}

/* Hash of the three or four bytes that end at `s`. Setting bit 5 folds case, and some other characters: it is only a filter. */
static inline uint32_t hash(const char *s, size_t window)
{
	uint32_t four;

	memcpy(&four, s - 3, sizeof(four));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	four = __builtin_bswap32(four);
#endif
	four |= 0x20202020;
	if (gram(window) == 3)
		four >>= 8;
	return (four * 0x9E3779B1u) >> (32 - HASH_BITS);
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

/* The hash of what ends at byte `i` of the piece; a window may begin with it. */
static uint32_t hash_piece(const struct needle *d, size_t i, size_t window)
{
	char four[4] = {i >= 3 ? d->piece[i - 3] : 0, d->piece[i - 2], d->piece[i - 1], d->piece[i]};

	return hash(four + 3, window);
}

/* The window that adds the fewest new hashes: the fewer there are, the farther the search jumps. */
static size_t choose_window(const struct needles *n, const struct needle *d)
{
	size_t best = 0, cost = SIZE_MAX, furthest = n->window - gram(n->window) + 1;

	for (size_t w = 0; w + n->window <= d->len; w++) {
		size_t fresh = 0;

		for (size_t i = gram(n->window) - 1; i < n->window; i++)
			fresh += n->shift[hash_piece(d, w + i, n->window)] == furthest;
		if (fresh < cost) {
			cost = fresh;
			best = w;
		}
	}
	return best;
}

static void enter(struct needles *n, size_t which)
{
	struct needle *d = &n->list[which];

	d->window = choose_window(n, d);
	for (size_t i = gram(n->window) - 1; i < n->window; i++) {
		uint32_t h = hash_piece(d, d->window + i, n->window);
		uint8_t distance = (uint8_t)(n->window - 1 - i);

		if (distance < n->shift[h])
			n->shift[h] = distance;
		if (!distance) {
			d->next = n->head[h];
			n->head[h] = (uint16_t)which;
		}
	}
}

struct needles *needles_new(const char *const *words, size_t count, size_t window)
{
	struct needles *n = xcalloc(1, sizeof(*n));

	n->window = window;
	n->list = xcalloc(count + 1, sizeof(*n->list));
	memset(n->shift, (int)(window - gram(window) + 1), sizeof(n->shift));
	memset(n->head, 0xff, sizeof(n->head));
	for (size_t i = 0; i < count && i < NONE; i++) {
		struct needle *d = &n->list[n->n++];

		d->word = words[i];
		d->piece = longest_piece(words[i], &d->len);
		d->next = NONE;
		if (d->len >= window)
			enter(n, i);
	}
	return n;
}

void needles_free(struct needles *n)
{
	if (!n)
		return;
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

/* Is the needle's piece here, with its window ending at `at`? */
static bool piece_at(const struct needle *d, size_t window, const char *s, const char *end, const char *at)
{
	size_t before = d->window + window - 1;

	return (size_t)(at - s) >= before && (size_t)(end - at) >= d->len - before &&
	       needle_same(at - before, d->piece, d->len);
}

/* Callers pass a constant `window`, so that the compiler specializes the inner loop. */
static inline const char *needle_find(const struct needles *n, const char *s, const char *end, size_t *which,
				      size_t window)
{
	const size_t most = window - gram(window) + 1;
	const char *p = s + window - 1;

	if ((size_t)(end - s) < window)
		return NULL;
	while (p < end) {
		uint32_t h;
		size_t jump;

		/* nearly every step is a full one: doing four at once avoids waiting for each result */
		while (end - p > (ptrdiff_t)(3 * most) && n->shift[hash(p, window)] + n->shift[hash(p + most, window)] +
		       n->shift[hash(p + 2 * most, window)] + n->shift[hash(p + 3 * most, window)] == 4 * (int)most)
			p += 4 * most;
		if (p >= end)
			break;
		h = hash(p, window);
		jump = n->shift[h];
		if (jump) {
			p += jump;
			continue;
		}
		for (uint16_t i = n->head[h]; i != NONE; i = n->list[i].next) {
			if (piece_at(&n->list[i], window, s, end, p)) {
				*which = i;
				return p;
			}
		}
		p++;
	}
	return NULL;
}

const char *needles_find(const struct needles *n, const char *s, const char *end, size_t *which)
{
	return n->window == NEEDLE_FAST ? needle_find(n, s, end, which, NEEDLE_FAST)
					: needle_find(n, s, end, which, NEEDLE_MIN);
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
	const char *p = s + n->window - 1, *end = s + len;

	n->line++;
	while (len >= n->window && p < end) {
		uint32_t h = hash(p, n->window);

		if (n->shift[h]) {
			p += n->shift[h];
			continue;
		}
		for (uint16_t i = n->head[h]; i != NONE; i = n->list[i].next) {
			struct needle *d = &n->list[i];

			if (d->seen == n->line || !piece_at(d, n->window, s, end, p))
				continue;
			if (d->word[d->len] && !needle_matches(d->word, s, len))
				continue;
			d->seen = n->line;
			hit(arg, i);
		}
		p++;
	}
}
