/* SPDX-License-Identifier: Apache-2.0
 * Secrets in texts (see private.h).
 */
#include "base/private.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/private_parts.h"

#define HOME_SHOWN  "/home/user"
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

void private_remove(struct scan *c, const char *at, size_t n)
{
	const char *end = at + n;

	c->s = end;
	if (!strncmp(at, PRIVATE_REMOVED, strlen(PRIVATE_REMOVED)))
		return;
	if (!c->out.data)
		buf_init(&c->out, SIZE_MAX);
	buf_add(&c->out, c->copied, (size_t)(at - c->copied));
	while (at < end) {
		const char *stop = memchr(at, '\n', (size_t)(end - at));
		size_t line = (size_t)((stop ? stop : end) - at), blanks = strspn(at, " \t");

		buf_add(&c->out, at, blanks < line ? blanks * (n != line) : line);
		buf_adds(&c->out, blanks < line ? PRIVATE_REMOVED : "");
		buf_adds(&c->out, stop ? "\n" : "");
		at = stop ? stop + 1 : end;
	}
	c->copied = end;
	c->times++;
}

static void step(struct scan *c)
{
	size_t skip, n;

	if (*c->s == PRIVATE_REMOVED[0] && !strncmp(c->s, PRIVATE_REMOVED, strlen(PRIVATE_REMOVED))) {
		c->s += strlen(PRIVATE_REMOVED);
		return;
	}
	if (c->value.open && private_in_value(c))
		return;
	n = private_looks_at(c->text, c->s, &skip);
	if (n)
		private_remove(c, c->s + skip, n);
	else if (!private_named(c))
		c->s++;
}

char *private_hide_secrets(char *text, size_t *times)
{
	struct scan c = {.text = text, .s = text, .copied = text};

	while (*c.s)
		step(&c);
	if (times)
		*times += c.times;
	if (!c.out.data)
		return text;
	buf_adds(&c.out, c.copied);
	free(text);
	return buf_take(&c.out);
}

/* `home` where it stands at `s`, or "/home/NAME": its length. */
static size_t home_at(const char *s, const char *home)
{
	static const char *const roots[] = {"/home/", "/Users/"};
	size_t n = home ? strlen(home) : 0;

	if (n && !strncmp(s, home, n) && !private_in_word(s[n]))
		return n;
	for (size_t i = 0; i < COUNT(roots); i++)
		if (!strncmp(s, roots[i], strlen(roots[i])))
			return strlen(roots[i]) + strcspn(s + strlen(roots[i]), "/: \"'\n");
	return 0;
}

char *private_hide_homes(char *text, size_t *times)
{
	const char *home = getenv("HOME"), *s = text, *from = text;
	struct buf b = {0};
	size_t n;

	home = home && home[0] == '/' && strlen(home) > 3 && strcmp(home, "/root") != 0 && strcmp(home, "/home") != 0
		       ? home
		       : NULL;
	while ((s = strchr(s, '/'))) {
		n = home_at(s, home);
		if (n <= strlen("/home/") || !strncmp(s, HOME_SHOWN, n)) {
			s++;
			continue;
		}
		if (!b.data)
			buf_init(&b, SIZE_MAX);
		buf_add(&b, from, (size_t)(s - from));
		buf_adds(&b, HOME_SHOWN);
		from = s = s + n;
		if (times)
			(*times)++;
	}
	if (!b.data)
		return text;
	buf_adds(&b, from);
	free(text);
	return buf_take(&b);
}

char *private_shown(const char *text)
{
	return private_hide_secrets(xstrdup(text), NULL);
}

static json_t *hidden_text(const char *text, bool homes)
{
	char *shown = private_shown(text);
	json_t *after;

	shown = homes ? private_hide_homes(shown, NULL) : shown;
	after = strcmp(shown, text) ? json_string(shown) : NULL;
	free(shown);
	return after;
}

/* A text behind the name of a secret is one, though the text alone says nothing of it. */
static json_t *hidden(const char *name, bool option, const json_t *v, bool homes)
{
	const char *text = json_string_value(v);
	size_t n = name ? strlen(name) : 0;

	if (!text)
		return NULL;
	if (n && private_value(private_name(name, n, option), text, strlen(text), true) &&
	    strcmp(text, PRIVATE_REMOVED) != 0)
		return json_string(PRIVATE_REMOVED);
	return hidden_text(text, homes);
}

/* "--password", whose value is the next word */
static const char *option_name(const json_t *v)
{
	const char *word = json_string_value(v);

	return word && !strncmp(word, "--", 2) && !strpbrk(word, "= ") ? word + 2 : NULL;
}

void private_hide_in(json_t *o, bool homes)
{
	const char *key, *option = NULL;
	json_t *v, *after;
	size_t i;

	json_array_foreach(o, i, v) {
		private_hide_in(v, homes);
		after = hidden(option, true, v, homes);
		option = option_name(v);
		if (after)
			json_array_set_new(o, i, after);
	}
	json_object_foreach(o, key, v) {
		private_hide_in(v, homes);
		after = hidden(key, false, v, homes);
		if (after)
			json_object_set_new(o, key, after);
	}
}
