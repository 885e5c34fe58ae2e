/* SPDX-License-Identifier: Apache-2.0
 * Text of web pages (see markup.h). A page's tags are told from "<module>" and from C++ by their names.
 */
#include "read/text/markup.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum tag { TAG_NONE, TAG_INLINE, TAG_LINE };

static const struct { const char *name; enum tag kind; } tags[] = {
	{"span", TAG_INLINE}, {"code", TAG_INLINE}, {"font", TAG_INLINE}, {"strong", TAG_INLINE}, {"em", TAG_INLINE},
	{"samp", TAG_INLINE}, {"mark", TAG_INLINE}, {"kbd", TAG_INLINE}, {"a", TAG_INLINE}, {"b", TAG_INLINE},
	{"i", TAG_INLINE}, {"tt", TAG_INLINE}, {"br", TAG_LINE}, {"p", TAG_LINE}, {"div", TAG_LINE}, {"pre", TAG_LINE},
	{"tr", TAG_LINE}, {"td", TAG_LINE}, {"th", TAG_LINE}, {"li", TAG_LINE}, {"ul", TAG_LINE}, {"ol", TAG_LINE},
	{"table", TAG_LINE}, {"tbody", TAG_LINE}, {"html", TAG_LINE}, {"body", TAG_LINE}, {"head", TAG_LINE},
	{"blockquote", TAG_LINE}, {"section", TAG_LINE}, {"article", TAG_LINE}, {"h1", TAG_LINE}, {"h2", TAG_LINE},
	{"h3", TAG_LINE}, {"details", TAG_LINE}, {"summary", TAG_LINE},
};

/* The tag at s[0] == '<', and its length. "vector<a>" is C++: a short name needs a blank or a tag before it. */
static enum tag tag_at(const char *s, size_t len, bool after_word, size_t *length)
{
	size_t from = 1 + (len > 1 && s[1] == '/'), n = from;
	const char *end;

	while (n < len && n < 16 && isalnum((unsigned char)s[n]))
		n++;
	if (n == from || n == len || !strchr(" />\t", s[n]) || (n - from == 1 && after_word && s[n] == '>' && from == 1))
		return TAG_NONE;
	for (size_t i = 0; i < sizeof(tags) / sizeof(tags[0]); i++) {
		if (strlen(tags[i].name) != n - from || strncasecmp(tags[i].name, s + from, n - from) != 0)
			continue;
		end = memchr(s, '>', len);
		if (!end || end - s > 400)
			return TAG_NONE;
		*length = (size_t)(end - s) + 1;
		return tags[i].kind;
	}
	return TAG_NONE;
}

static const struct { const char *name; char c; } entities[] = {
	{"&lt;", '<'},	  {"&gt;", '>'},     {"&amp;", '&'},	{"&quot;", '"'}, {"&apos;", '\''},
	{"&nbsp;", ' '},  {"&#x27;", '\''},  {"&#x2F;", '/'},	{"&#x60;", '`'}, {"&ldquo;", '"'},
	{"&rdquo;", '"'}, {"&lsquo;", '\''}, {"&rsquo;", '\''},
};

/* The entity at s[0] == '&' as one character; 0 when it is none. */
static char entity_at(const char *s, size_t len, size_t *length)
{
	size_t n = 2;
	int c = 0;

	for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++) {
		*length = strlen(entities[i].name);
		if (*length <= len && !strncasecmp(s, entities[i].name, *length))
			return entities[i].c;
	}
	if (len < 4 || s[1] != '#')
		return 0;
	for (; n < len && n < 6 && isdigit((unsigned char)s[n]); n++)
		c = c * 10 + s[n] - '0';
	*length = n + 1;
	if (n == 2 || n == len || s[n] != ';')
		return 0;
	return c == 160 ? ' ' : c >= ' ' && c < 127 ? (char)c : '?';
}

/* A line that has only the number of the next one, in a column of its own. */
static size_t drop_number(const char *to, size_t n)
{
	size_t from = n;

	while (from && isdigit((unsigned char)to[from - 1]))
		from--;
	return from == 0 || to[from - 1] == '\n' ? from : n;
}

size_t markup_html(const char *s, size_t len, char *to)
{
	size_t n = 0, length = 1;
	bool any = false;

	if (!memchr(s, '<', len) && !memchr(s, '&', len))
		return len + 1;
	for (size_t i = 0; i < len; i += length) {
		enum tag tag = TAG_NONE;
		char c = s[i];

		length = 1;
		if (c == '<')
			tag = tag_at(s + i, len - i, i && (isalnum((unsigned char)s[i - 1]) || s[i - 1] == '_'), &length);
		else if (c == '&' && (c = entity_at(s + i, len - i, &length)) == 0)
			c = '&', length = 1;
		any |= tag != TAG_NONE || length > 1;
		if (tag == TAG_NONE) {
			to[n++] = c;
		} else if (tag == TAG_LINE) {
			n = drop_number(to, n);
			if (n && to[n - 1] != '\n')
				to[n++] = '\n';
		}
	}
	while (any && n && to[n - 1] == '\n')
		n--;
	return any ? n : len + 1;
}
