/* SPDX-License-Identifier: Apache-2.0
 * Many words at once (see needles.h): the method of Wu and Manber. Each needle has a window of NEEDLE_MIN bytes; the last three
 * bytes under the window say how far it can be moved on without missing any. Most of a log is passed over unseen.
 */
#include "text/needles.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/banned.h"

#define HASH_BITS	15
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
	size_t n;
	uint32_t line;
};

static inline unsigned char fold(unsigned char c)
{
	return c >= 'A' && c <= 'Z' ? c | 0x20 : c;
}

/* Of the three bytes that end at `s`. Setting bit 5 folds the case, and some other characters: it is only a filter. */
static inline uint32_t hash(const char *s)
{
	uint32_t four;

	memcpy(&four, s - 3, sizeof(four));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	four = __builtin_bswap32(four);
#endif
	four = (four >> 8) | 0x202020;
	return (four * 0x9E3779B1u) >> (32 - HASH_BITS);
}

static const char *longest_piece(const char *word, size_t *len)
{
	const char *best = word, *s = word;

	*len = 0;
	while (*s) {
		size_t n = strcspn(s, "*");

		if (n > *len) {
			best = s;
			*len = n;
		}
		s += n;
		s += strspn(s, "*");
	}
	return best;
}

bool needle_ok(const char *word)
{
	size_t len;

	longest_piece(word, &len);
	return len >= NEEDLE_MIN;
}

/* The window that adds fewest new triples: the fewer are known, the further the search jumps. */
static size_t choose_window(const struct needles *n, const struct needle *d)
{
	size_t best = 0, cost = SIZE_MAX;

	for (size_t w = 0; w + NEEDLE_MIN <= d->len; w++) {
		size_t fresh = 0;

		for (size_t i = 3; i < NEEDLE_MIN; i++)
			fresh += n->shift[hash(d->piece + w + i)] == NEEDLE_MIN - 2;
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
	uint32_t h;

	d->window = choose_window(n, d);
	for (size_t i = 2; i < NEEDLE_MIN; i++) {
		/* hash() looks one byte back, and ignores it */
		char four[4] = {0, d->piece[d->window + i - 2], d->piece[d->window + i - 1], d->piece[d->window + i]};
		uint8_t distance = (uint8_t)(NEEDLE_MIN - 1 - i);

		h = hash(four + 3);
		if (distance < n->shift[h])
			n->shift[h] = distance;
		if (!distance) {
			d->next = n->head[h];
			n->head[h] = (uint16_t)which;
		}
	}
}

struct needles *needles_new(const char *const *words, size_t count)
{
	struct needles *n = xcalloc(1, sizeof(*n));

	n->list = xcalloc(count + 1, sizeof(*n->list));
	memset(n->shift, NEEDLE_MIN - 2, sizeof(n->shift));
	memset(n->head, 0xff, sizeof(n->head));
	for (size_t i = 0; i < count && i < NONE; i++) {
		struct needle *d = &n->list[n->n++];

		d->word = words[i];
		d->piece = longest_piece(words[i], &d->len);
		d->next = NONE;
		if (d->len >= NEEDLE_MIN)
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

const char *needle_word(const struct needles *n, size_t which)
{
	return n->list[which].word;
}

static bool same(const char *a, const char *b, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (fold((unsigned char)a[i]) != fold((unsigned char)b[i]))
			return false;
	return true;
}

/* Does the needle's piece lie here, its window ending at `at`? */
static bool piece_at(const struct needle *d, const char *s, const char *end, const char *at)
{
	size_t before = d->window + NEEDLE_MIN - 1;

	return (size_t)(at - s) >= before && (size_t)(end - at) >= d->len - before && same(at - before, d->piece, d->len);
}

const char *needles_find(const struct needles *n, const char *s, const char *end)
{
	const char *p = s + NEEDLE_MIN - 1;

	if (end - s < NEEDLE_MIN)
		return NULL;
	while (p < end) {
		uint32_t h = hash(p);
		size_t jump = n->shift[h];

		if (jump) {
			p += jump;
			continue;
		}
		for (uint16_t i = n->head[h]; i != NONE; i = n->list[i].next)
			if (piece_at(&n->list[i], s, end, p))
				return p;
		p++;
	}
	return NULL;
}

bool needle_matches(const char *pattern, const char *s, size_t len)
{
	size_t n = strcspn(pattern, "*");

	if (!n)
		return !*pattern || needle_matches(pattern + 1, s, len);
	for (size_t i = 0; i + n <= len; i++)
		if (same(s + i, pattern, n))	/* the first place is as good as any: '*' takes the rest */
			return needle_matches(pattern + n, s + i + n, len - i - n);
	return false;
}

void needles_in_line(struct needles *n, const char *s, size_t len, needle_fn *hit, void *arg)
{
	const char *p = s + NEEDLE_MIN - 1, *end = s + len;

	n->line++;
	while (len >= NEEDLE_MIN && p < end) {
		uint32_t h = hash(p);

		if (n->shift[h]) {
			p += n->shift[h];
			continue;
		}
		for (uint16_t i = n->head[h]; i != NONE; i = n->list[i].next) {
			struct needle *d = &n->list[i];

			if (d->seen == n->line || !piece_at(d, s, end, p))
				continue;
			if (d->word[d->len] && !needle_matches(d->word, s, len))
				continue;
			d->seen = n->line;
			hit(arg, i);
		}
		p++;
	}
}
