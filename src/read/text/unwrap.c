/* SPDX-License-Identifier: Apache-2.0
 * Undoes wrapping (see unwrap.h). No line is wider than the width, and a line that was cut is as wide as that, or its next word would have been.
 */
#include "read/text/unwrap.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/str.h"
#include "read/text/exception.h"
#include "read/text/said.h"

#define WIDTH_MIN	50
#define WIDTH_MAX	240
#define RAGGED		30	/* columns that may stay free at the end of a line */
#define ALIKE		4	/* characters at the beginning */

unsigned unwrap_columns(const char *s, size_t len)
{
	unsigned n = 0;

	if (len > 16 * WIDTH_MAX)	/* no program wraps there */
		return (unsigned)len;
	for (size_t i = 0; i < len; i++) {
		if (s[i] == 033 && i + 1 < len && s[i + 1] == '[')
			while (i + 1 < len && !isalpha((unsigned char)s[i]))
				i++;
		else
			n += ((unsigned char)s[i] & 0xc0) != 0x80;
	}
	return n;
}

/* Tables and boxes are as wide as they are. */
static bool is_table(const struct wrapped *w)
{
	return w->len && (strchr("|+=-", w->s[0]) || (unsigned char)w->s[0] == 0xe2);
}

/* A line that begins a new thought, whatever came before it. */
static bool begins_line(const char *s, size_t len)
{
	char line[96];
	size_t n = 0, name;

	while (len && *s == ' ')
		s++, len--;
	n = len < sizeof(line) - 1 ? len : sizeof(line) - 1;
	memcpy(line, s, n);
	line[n] = '\0';
	if (says(line, SAID_begins_line))
		return true;
	return strchr("|+=#*<{", line[0]) || (exception_line(line, false, &name) && line[name] == ':');
}

/* Both have the same prefix: what is cut off has none. */
static bool begin_alike(const struct wrapped *a, const struct wrapped *b)
{
	size_t n = 0;

	while (n < ALIKE && n < a->len && n < b->len &&
	       (a->s[n] == b->s[n] || (isdigit((unsigned char)a->s[n]) && isdigit((unsigned char)b->s[n]))))
		n++;
	return n == ALIKE && a->s[0] != ' ';
}

/* The first word of `b` had no room on `a`'s line. */
static bool had_no_room(const struct wrapped *a, const struct wrapped *b, unsigned width)
{
	const char *space = memchr(b->s, ' ', b->len);
	size_t word = space ? (size_t)(space - b->s) : b->len;

	return word && a->columns + 1 + word > width && a->columns + RAGGED >= width;
}

/* "Driver Version: 535": a field, not the rest of a sentence. */
static bool is_field(const struct wrapped *b)
{
	const char *colon = memchr(b->s, ':', b->len < 40 ? b->len : 40);

	return colon && isupper((unsigned char)b->s[0]) && colon + 1 < b->s + b->len && colon[1] == ' ';
}

static bool may_follow(const struct wrapped *a, const struct wrapped *b)
{
	return a->len && b->len && !is_table(a) && !begin_alike(a, b) && !begins_line(b->s, b->len);
}

/* Does a sentence go on? Code and shell commands end with other characters. */
static bool goes_on(const struct wrapped *a, const struct wrapped *b)
{
	char end = a->s[a->len - 1], next = b->s[0];

	if (end == ':' && next == '[')	/* "block: [0,0,0]" of an assertion */
		return true;
	return (isalnum((unsigned char)end) || strchr(",-'` ", end)) &&
	       (isalnum((unsigned char)next) || strchr("(`'\"", next));
}

static bool is_usual(unsigned width)
{
	return width == 80 || width == 100 || width == 120 || width == 132 || width == 160;
}

/* Lines that end at words are a bit narrower than the terminal, whose width this is. 0: there is none of about this width. */
static unsigned nearly_usual(unsigned width)
{
	if (width > 66 && width <= 80)
		return 80;
	if (width > 90 && width <= 100)
		return 100;
	return width > 110 && width <= 120 ? 120 : 0;
}

static bool is_nearly_usual(unsigned width)
{
	return nearly_usual(width) != 0;
}

/* Is it narrower than the terminal because the next word had no room there? */
static bool at_words(const struct wrapped *a, const struct wrapped *b, unsigned width)
{
	return !is_usual(width) && is_nearly_usual(width) && had_no_room(a, b, nearly_usual(width)) && goes_on(a, b);
}

struct wrapping unwrap_find(const struct wrapped *list, size_t n)
{
	struct wrapping w = {0};
	unsigned full = 0, cut = 0, words = 0, whole = 0;

	for (size_t i = 0; i < n; i++) {
		if (is_table(&list[i]) || list[i].columns < w.width)
			continue;
		full = list[i].columns == w.width ? full + 1 : 1;
		w.width = list[i].columns;
	}
	if (w.width < WIDTH_MIN || w.width > WIDTH_MAX)
		return (struct wrapping){0};
	for (size_t i = 0; i + 1 < n; i++) {
		whole += begin_alike(&list[i], &list[i + 1]) && had_no_room(&list[i], &list[i + 1], w.width);
		if (!may_follow(&list[i], &list[i + 1]))
			continue;
		if (list[i].columns == w.width && !at_words(&list[i], &list[i + 1], w.width) &&
		    (is_usual(w.width) || full > (is_nearly_usual(w.width) ? 3u : 1u)))
			cut++;
		else if (had_no_room(&list[i], &list[i + 1], w.width) && goes_on(&list[i], &list[i + 1]))
			words += 1 + (is_nearly_usual(w.width) && !isupper((unsigned char)list[i + 1].s[0]));
	}
	/* one may be a coincidence; where words are kept whole, several lines may be as wide as the widest; where most lines that are
	 * as long are whole, nothing was wrapped */
	w.words = words > 1 && 2 * words >= cut && words >= whole;
	return w.words || cut ? w : (struct wrapping){0};
}

enum unwrap unwrap_how(const struct wrapped *a, const struct wrapped *b, const struct wrapping *w)
{
	if (a->columns > w->width || !may_follow(a, b))
		return UNWRAP_NOT;
	if (w->words)
		return had_no_room(a, b, w->width) && !is_field(b) ? UNWRAP_WORD : UNWRAP_NOT;
	return a->columns == w->width ? UNWRAP_CUT : UNWRAP_NOT;
}
