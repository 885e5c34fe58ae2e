/* SPDX-License-Identifier: Apache-2.0
 * Undresses a text (see clothes.h): progress bars, JSON, HTML and escaped line ends line by line; then, over a window of lines, wrapping
 * (unwrap.h) and prefixes (line.h, prefix.h); then lines that hold several (unfold.h).
 */
#include "read/text/clothes.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "read/text/line.h"
#include "read/text/markup.h"
#include "read/text/prefix.h"
#include "read/text/stream.h"
#include "read/text/unfold.h"
#include "read/text/unwrap.h"

#define WINDOW_LINES	256
#define WINDOW_BYTES	(64u << 10)

struct clothes {
	clothes_fn *line;
	void *arg;
	uint64_t number;		/* of the line being read */
	bool json;			/* the line before it was a string in JSON */
	char text[STREAM_LINE_MAX], plain[STREAM_LINE_MAX], joined[LINE_MAX_KEPT];
	char bytes[WINDOW_BYTES];
	size_t used;
	struct wrapped window[WINDOW_LINES];
	size_t n;
	struct prefixes prefixes;
	struct text_line cleaned, piece;
};

struct clothes *clothes_new(clothes_fn *line, void *arg)
{
	struct clothes *c = xcalloc(1, sizeof(*c));

	c->line = line;
	c->arg = arg;
	return c;
}

void clothes_free(struct clothes *c)
{
	free(c);
}

static void pass_on(struct clothes *c)
{
	struct unfold u = {.at = c->cleaned.text};
	const char *piece;
	size_t indent, len;

	if (!c->cleaned.len) {
		c->line(c->arg, &c->cleaned);
		return;
	}
	len = unfold_next(&u, &piece, &indent);
	if (!*u.at && !u.folds) {	/* one line, as most are */
		c->line(c->arg, &c->cleaned);
		return;
	}
	memcpy(c->piece.who, c->cleaned.who, sizeof(c->piece.who));
	c->piece.rank = c->cleaned.rank;
	c->piece.number = c->cleaned.number;
	while (len) {
		len = len + indent < sizeof(c->piece.text) ? len : sizeof(c->piece.text) - 1 - indent;
		memset(c->piece.text, ' ', indent);
		memcpy(c->piece.text + indent, piece, len);
		c->piece.len = len + indent;
		c->piece.text[c->piece.len] = '\0';
		c->piece.indent = indent;
		c->line(c->arg, &c->piece);
		len = unfold_next(&u, &piece, &indent);
	}
}

/* The line at `i` of the window, with those that were wrapped off it. Returns the index of the next one. */
static size_t clean_at(struct clothes *c, size_t i, const struct wrapping *wrapping)
{
	const struct wrapped *w = &c->window[i];
	size_t next = i + 1, n = w->len < sizeof(c->joined) ? w->len : sizeof(c->joined);
	enum unwrap how = wrapping->width && next < c->n ? unwrap_how(w, &c->window[next], wrapping) : UNWRAP_NOT;

	if (how == UNWRAP_NOT) {
		line_clean(&c->cleaned, w->s, w->len, w->number);
		return next;
	}
	memcpy(c->joined, w->s, n);
	while (how != UNWRAP_NOT) {
		const struct wrapped *tail = &c->window[next];
		size_t len = tail->len;

		while (how == UNWRAP_WORD && n && c->joined[n - 1] == ' ')
			n--;
		if (n + len + 1 > sizeof(c->joined))
			break;
		if (how == UNWRAP_WORD)
			c->joined[n++] = ' ';
		memcpy(c->joined + n, tail->s, len);
		n += len;
		next++;
		how = next < c->n ? unwrap_how(tail, &c->window[next], wrapping) : UNWRAP_NOT;
	}
	line_clean(&c->cleaned, c->joined, n, w->number);
	return next;
}

/* Prefixes are learned from all lines before the first of them is read. */
static void learn_prefixes(struct clothes *c, const struct wrapping *wrapping)
{
	bool common = true, taught = false;

	prefix_common_begin(&c->prefixes);
	for (size_t i = 0, next; i < c->n; i = next) {
		bool teaches = memmem(c->window[i].s, c->window[i].len, "Traceback (most", 15) ||
			       memmem(c->window[i].s, c->window[i].len, "  File \"", 8);

		next = i + 1;
		if (!common && !teaches)
			continue;
		next = clean_at(c, i, wrapping);
		if (teaches)
			prefix_learn(&c->prefixes, &c->cleaned);
		taught |= teaches;
		common = common && prefix_common_line(&c->prefixes, &c->cleaned);
	}
	if (common && !taught)
		prefix_common_end(&c->prefixes);
}

static void flush(struct clothes *c)
{
	struct wrapping wrapping = unwrap_find(c->window, c->n);

	learn_prefixes(c, &wrapping);
	for (size_t i = 0; i < c->n;) {
		i = clean_at(c, i, &wrapping);
		prefix_strip(&c->prefixes, &c->cleaned);
		pass_on(c);
	}
	c->n = c->used = 0;
}

static void keep(struct clothes *c, const char *s, size_t len)
{
	if (c->n == WINDOW_LINES || c->used + len > WINDOW_BYTES)
		flush(c);
	memcpy(c->bytes + c->used, s, len);
	c->window[c->n++] = (struct wrapped){
		.s = c->bytes + c->used, .len = len, .number = c->number, .columns = unwrap_columns(s, len)};
	c->used += len;
}

/* Each part that ends with `end`. */
static void split(struct clothes *c, const char *s, size_t len, const char *end,
		  void (*fn)(struct clothes *, const char *, size_t))
{
	for (;;) {
		const char *at = memmem(s, len, end, strlen(end));
		size_t n = at ? (size_t)(at - s) : len;

		fn(c, s, n);
		if (!at)
			return;
		s = at + strlen(end);
		len -= n + strlen(end);
	}
}

/* "#012" is the end of a line to syslog. */
static void take_plain(struct clothes *c, const char *s, size_t len)
{
	if (memmem(s, len, "#012", 4))
		split(c, s, len, "#012", keep);
	else
		keep(c, s, len);
}

static void take_marked_up(struct clothes *c, const char *s, size_t len)
{
	size_t n = markup_html(s, len, c->plain);

	if (n == len + 1)
		take_plain(c, s, len);
	else if (n || !len)
		split(c, c->plain, n, "\n", take_plain);
}

static void take_json_text(void *arg, const char *s, size_t len)
{
	struct clothes *c = arg;

	len -= len && s[len - 1] == '\n';
	split(c, s, len, "\n", take_marked_up);
}

/* A part of a JSON string that begins before what we see of it: the backslashes before its quotes go. */
static void take_escaped(struct clothes *c, const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++)
		if (s[i] != '\\' || i + 1 == len || s[i + 1] != '"')
			c->text[n++] = s[i];
	take_marked_up(c, c->text, n);
}

/* Are there line ends written as "\\n"? Windows paths have the same two characters. */
static bool has_escaped_ends(const char *s, size_t len)
{
	static const char *const marks[] = {"Traceback (most recent call last):\\n", "\\n  File \\\"", "\\n  File \"",
					    "\\nCUDA kernel errors might"};

	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++)
		if (memmem(s, len, marks[i], strlen(marks[i])))
			return true;
	return false;
}

static void take_shown(struct clothes *c, const char *s, size_t len)
{
	size_t color = line_color(s, len);	/* a terminal's, around a line of a file that has none */
	bool was = c->json;

	c->json = memchr(s, '"', len) && markup_json(s + color, len - color, c->text, take_json_text, c);
	if (c->json)
		return;
	if (was && markup_json_brackets(s + color, len - color))
		keep(c, "", 0);		/* the end of a list of lines */
	else if (has_escaped_ends(s, len))
		split(c, s, len, "\\n", take_escaped);
	else
		take_marked_up(c, s, len);
}

void clothes_begin(struct clothes *c)
{
	c->n = c->used = 0;
	c->json = false;
	c->prefixes.n = 0;
}

/* Progress bars overwrite themselves with '\r': what they wrote last is what the user saw. */
void clothes_line(struct clothes *c, const char *s, size_t len, uint64_t number)
{
	c->number = number;
	if (len && s[len - 1] == '\r')
		len--;
	if (!len)
		keep(c, "", 0);
	while (len) {
		const char *cr = memchr(s, '\r', len);
		size_t n = cr ? (size_t)(cr - s) : len;

		if (n)
			take_shown(c, s, n);
		s += n + (cr != NULL);
		len -= n + (cr != NULL);
	}
}

void clothes_end(struct clothes *c)
{
	flush(c);
}
