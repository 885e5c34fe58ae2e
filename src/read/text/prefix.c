/* SPDX-License-Identifier: Apache-2.0
 * Learns the prefixes of lines (see prefix.h).
 */
#include "read/text/prefix.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "read/text/line.h"
#include "read/text/said.h"

#define COMMON_LINES 3	/* fewer may begin alike by chance */

/* The shape of s[0, len): digits as '#', several spaces as one unless they end it, where one is kept for the prefix. False: it has none. */
static bool shape_of(char *to, size_t size, const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		char c = isdigit((unsigned char)s[i]) ? '#' : s[i];

		if (s[i] == '#' || n + 1 >= size)
			return false;
		if ((c == '#' || c == ' ') && n && to[n - 1] == c)
			continue;
		to[n++] = c;
	}
	to[n] = '\0';
	return n >= 2 && strspn(to, " #") < n;
}

/* How much of the line the shape covers; 0 = it does not fit. */
static size_t shape_fits(const char *shape, const char *s)
{
	const char *at = s;

	for (; *shape; shape++) {
		if (!*at && shape[0] == ' ' && !shape[1])	/* nothing follows it */
			break;
		if (*shape == '#') {
			if (!isdigit((unsigned char)*at))
				return 0;
			while (isdigit((unsigned char)*at))
				at++;
			continue;
		}
		if (*at++ != *shape)
			return 0;
		while (*shape == ' ' && shape[1] && *at == ' ')
			at++;
	}
	return (size_t)(at - s);
}

static void learn(struct prefixes *p, const char *s, size_t len)
{
	char *shape = p->shape[p->n % PREFIX_SHAPES];

	for (size_t i = 0; i < p->n && i < PREFIX_SHAPES; i++)
		if (shape_fits(p->shape[i], s) == len)
			return;
	if (shape_of(shape, PREFIX_SHAPE_MAX, s, len))
		p->n++;
	else
		shape[0] = '\0';
}

void prefix_learn(struct prefixes *p, const struct text_line *l)
{
	static const char header[] = "Traceback (most recent call last):";
	const char *at;
	unsigned number;

	if (str_ends(l->text, header)) {
		at = l->text + l->len - (sizeof(header) - 1);
	} else {
		at = strstr(l->text, "  File \"");
		if (!at || !strstr(at, "\", line ") || sscanf(strstr(at, "\", line "), "\", line %u", &number) != 1)
			return;
	}
	if (at > l->text && !memchr(l->text, '"', (size_t)(at - l->text)))
		learn(p, l->text, (size_t)(at - l->text));
}

void prefix_common_begin(struct prefixes *p)
{
	p->common[0] = '\0';
	p->lines = 0;
	p->error = false;
}

/* Does a prefix of this length end with a sign that separates it from what follows? */
static bool separates(const char *shape, size_t n)
{
	static const char signs[] = "]|:>-~)";

	n -= n > 1 && shape[n - 1] == ' ';
	return n && strchr(signs, shape[n - 1]);
}

bool prefix_common_line(struct prefixes *p, const struct text_line *l)
{
	char shape[PREFIX_SHAPE_MAX];
	size_t n = 0, len = l->len < PREFIX_SHAPE_MAX - 1 ? l->len : PREFIX_SHAPE_MAX - 1;

	if (!l->len)
		return true;
	if (memchr(l->text, '#', len))	/* part of the shape itself */
		len = (size_t)((const char *)memchr(l->text, '#', len) - l->text);
	if (!shape_of(shape, sizeof(shape), l->text, len))
		shape[0] = '\0';
	if (separates(shape, strlen(shape)))	/* nothing follows the prefix */
		return true;
	p->error |= says(l->text, SAID_in_trouble);	/* other texts are not worth the risk: lists and tables begin alike, too */
	if (!p->lines++)
		str_copy(p->common, sizeof(p->common), shape);
	while (p->common[n] && p->common[n] == shape[n])
		n++;
	p->common[n] = '\0';
	if (p->lines > 1 && !shape[n])	/* the same line again and again is no prefix of it */
		p->common[0] = '\0', n = 0;
	return n >= 3;
}

/* A prefix ends with a sign that separates it from what follows, not within a word. */
void prefix_common_end(struct prefixes *p)
{
	size_t n = strlen(p->common);

	while (n && !separates(p->common, n))
		n--;
	p->common[n] = '\0';
	if (n < 3 || p->lines < COMMON_LINES || !p->error)
		return;
	if (says(p->common, SAID_in_series))
		return;
	str_copy(p->shape[p->n++ % PREFIX_SHAPES], PREFIX_SHAPE_MAX, p->common);
}

/* The word of the prefix that names a process: "[pod/train-3/main]", "worker-3"; times and places in files have a colon. */
static void take_who(struct text_line *l, size_t len)
{
	const char *s = l->text, *end = s + len;

	while (s < end && !l->who[0]) {
		size_t n = strcspn(s, " |");
		bool letter = false, digit = false;

		n = n < (size_t)(end - s) ? n : (size_t)(end - s);
		for (size_t i = 0; i < n; i++) {
			letter |= isalpha((unsigned char)s[i]) != 0;
			digit |= isdigit((unsigned char)s[i]) != 0;
		}
		if (letter && digit && !memchr(s, ':', n)) {
			size_t kept = n < sizeof(l->who) - 1 ? n : sizeof(l->who) - 1;

			memcpy(l->who, s + n - kept, kept);
			l->who[kept] = '\0';
		}
		s += n + 1;
	}
}

void prefix_strip(const struct prefixes *p, struct text_line *l)
{
	for (size_t i = 0; i < p->n && i < PREFIX_SHAPES; i++) {
		size_t n = p->shape[i][0] ? shape_fits(p->shape[i], l->text) : 0;

		if (!n)
			continue;
		take_who(l, n);
		l->prefixed = true;
		memmove(l->text, l->text + n, l->len - n + 1);
		l->len -= n;
		l->indent = strspn(l->text, " ");
		if (l->indent == l->len)
			l->indent = l->len = 0, l->text[0] = '\0';
		return;
	}
}
