/* SPDX-License-Identifier: Apache-2.0
 * Which words of a table a text has (see phrases.h).
 */
#include "base/phrases.h"

#include <ctype.h>
#include <string.h>

#define ANY_DIGIT 0	/* among the first characters: no text has this one */

/* What a row looks for first. */
static unsigned char first_of(const char *words)
{
	words += strspn(words, "^<");
	if (*words == '#')
		return ANY_DIGIT;
	return (unsigned char)words[*words == '\\'];
}

/* Which characters may be the second one, by their last five bits: large and small letters have the same. */
static uint32_t seconds_of(const char *words)
{
	words += strspn(words, "^<");
	words += 1 + (*words == '\\');
	words += *words == '\\';
	return strchr("*#<$", *words) ? UINT32_MAX : 1u << (*words & 31);
}

static void add_pairs(struct phrases *p, const char *words)
{
	unsigned char first = first_of(words);

	for (unsigned char c = '0'; first == ANY_DIGIT && c <= '9'; c++)
		p->pair[c & 31] |= seconds_of(words);
	if (first != ANY_DIGIT)
		p->pair[first & 31] |= seconds_of(words);
}

/* Longer words come first in a chain: where "warning" stands, "warn" was not said. */
static void link_row(struct phrases *p, uint16_t i)
{
	uint16_t *at = &p->head[tolower(first_of(p->row[i - 1].words))];

	while (*at && strlen(p->row[*at - 1].words) >= strlen(p->row[i - 1].words))
		at = &p->row[*at - 1].next;
	p->row[i - 1].next = *at;
	add_pairs(p, p->row[i - 1].words);
	*at = i;
}

static void make_ready(struct phrases *p)
{
	p->anchored = true;
	for (size_t i = 0; i < p->n; i++) {
		p->anchored &= p->row[i].words[0] == '^';
		link_row(p, (uint16_t)(i + 1));
	}
	for (int c = 'A'; c <= 'Z'; c++)
		p->head[c] = p->head[tolower(c)];
	p->ready = true;
}

static bool same_letter(char a, char b, bool exact)
{
	return a == b || (!exact && tolower((unsigned char)a) == tolower((unsigned char)b));
}

/* Where the words end that begin at `s`; NULL: they are not there. */
static const char *end_of_words(const char *w, bool exact, const char *text, const char *s, const char *end)
{
	for (; *w; w++) {
		const char *after;

		if (*w == '*') {
			for (after = NULL; !after && s <= end; s++)
				after = end_of_words(w + 1, exact, text, s, end);
			return after;
		}
		if (*w == '$' && !w[1])
			return strspn(s, " ") >= (size_t)(end - s) ? s : NULL;
		if (*w == '<') {
			if (s > text && isalpha((unsigned char)s[-1]))
				return NULL;
			continue;
		}
		if (s == end)
			return NULL;
		if (*w == '#' ? !isdigit((unsigned char)*s) : !same_letter(*(w += *w == '\\'), *s, exact))
			return NULL;
		s++;
	}
	return s;
}

static const char *row_at(const struct phrase *r, const struct phrase_scan *scan)
{
	if (r->words[0] != '^')
		return end_of_words(r->words, r->exact, scan->text, scan->at, scan->end);
	return scan->at == scan->text ? end_of_words(r->words + 1, r->exact, scan->text, scan->at, scan->end) : NULL;
}

struct phrase_scan phrase_scan(const char *s, size_t len)
{
	return (struct phrase_scan){.text = s, .at = s - 1, .end = s + len};
}

/* The first row to try at a character: digits have two chains, of which the one of any digit comes last. */
static uint16_t chain_at(const struct phrases *p, unsigned char c)
{
	return p->head[c] || !isdigit(c) ? p->head[c] : p->head[ANY_DIGIT];
}

static uint16_t chain_on(const struct phrases *p, uint16_t row, unsigned char c)
{
	if (p->row[row - 1].next || !isdigit(c) || first_of(p->row[row - 1].words) == ANY_DIGIT)
		return p->row[row - 1].next;
	return p->head[ANY_DIGIT];
}

/* What follows the end of a text may be read: it is a part of a string. */
static const char *next_place(const struct phrases *p, const struct phrase_scan *scan)
{
	const char *s = scan->at + 1, *end = p->anchored && scan->end > scan->text ? scan->text + 1 : scan->end;

	while (s < end && !(p->pair[*s & 31] >> (s[1] & 31) & 1))
		s++;
	return s;
}

const struct phrase *phrase_next(struct phrases *p, struct phrase_scan *scan)
{
	if (!p->ready)
		make_ready(p);
	for (;;) {
		if (scan->row)
			scan->row = chain_on(p, scan->row, (unsigned char)*scan->at);
		while (!scan->row) {
			scan->at = next_place(p, scan);
			if (scan->at >= scan->end || (p->anchored && scan->at > scan->text))
				return NULL;
			scan->row = chain_at(p, (unsigned char)*scan->at);
		}
		scan->after = row_at(&p->row[scan->row - 1], scan);
		if (scan->after)
			return &p->row[scan->row - 1];
	}
}

const struct phrase *phrase_in(struct phrases *p, const char *s, size_t len)
{
	struct phrase_scan scan = phrase_scan(s, len);

	return phrase_next(p, &scan);
}

const struct phrase *phrase_whole(struct phrases *p, const char *s, size_t len)
{
	struct phrase_scan scan = phrase_scan(s, len);

	if (!p->ready)
		make_ready(p);
	scan.at = s;
	for (uint16_t i = len ? chain_at(p, (unsigned char)*s) : 0; i; i = chain_on(p, i, (unsigned char)*s))
		if (row_at(&p->row[i - 1], &scan) == s + len)
			return &p->row[i - 1];
	return NULL;
}

const char *phrase_after(struct phrases *p, const char *s, size_t *i)
{
	for (; *i < p->n; ++*i) {
		const struct phrase *r = &p->row[*i];
		struct phrase_scan scan = phrase_scan(s, strlen(s));
		unsigned char first = (unsigned char)tolower(first_of(r->words));

		while (++scan.at < scan.end) {
			if (tolower((unsigned char)*scan.at) != first)
				continue;
			scan.after = row_at(r, &scan);
			if (scan.after) {
				++*i;
				return scan.after;
			}
		}
	}
	return NULL;
}
