/* SPDX-License-Identifier: Apache-2.0
 * Messages inside JSON (see markup.h). Not a parser: a line may be a part of an object, and may be cut off.
 */
#include "read/text/markup.h"

#include <string.h>

#define KEY_MAX 32

/* Values that are messages even when they have one line only. */
static bool is_message_key(const char *key)
{
	static const char *const keys[] = {"log", "message", "msg", "text", "exc_info", "exception", "stack_trace",
					   "stacktrace", "stack", "traceback", "error", "err", "detail", "details",
					   "textPayload", "event", "body", "source", "MESSAGE", "@message"};

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!strcmp(key, keys[i]))
			return true;
	return false;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* What a backslash and this letter stand for. */
static char escaped(char c)
{
	switch (c) {
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case 'b':
	case 'f':
		return ' ';
	default:
		return c;
	}
}

static bool read_hex(const char *s, size_t len, unsigned *value)
{
	*value = 0;
	if (len < 4)
		return false;
	for (size_t i = 0; i < 4; i++) {
		int digit = hex_digit(s[i]);

		if (digit < 0)
			return false;
		*value = *value * 16 + (unsigned)digit;
	}
	return true;
}

static size_t put_utf8(char *to, unsigned c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c >= 0xd800 && c < 0xe000) {	/* half of a pair: what matters to us is in the first plane */
		to[0] = '?';
		return 1;
	}
	to[0] = (char)(0xe0 | c >> 12);
	to[1] = (char)(0x80 | (c >> 6 & 0x3f));
	to[2] = (char)(0x80 | (c & 0x3f));
	return 3;
}

/* Decodes the string that follows an opening quote. Returns where it ends, behind the closing quote if it has one. */
static size_t read_string(const char *s, size_t len, char *to, size_t *n, bool *closed)
{
	size_t i = 0;
	unsigned c;

	*n = 0;
	*closed = false;
	while (i < len && s[i] != '"') {
		if (s[i] != '\\' || i + 1 == len) {
			to[(*n)++] = s[i++];
			continue;
		}
		c = (unsigned char)s[i + 1];
		if (c == 'u' && read_hex(s + i + 2, len - i - 2, &c)) {
			*n += put_utf8(to + *n, c);
			i += 6;
			continue;
		}
		if (c != 'r')
			to[(*n)++] = escaped((char)c);
		i += 2;
	}
	*closed = i < len;
	return i + *closed;
}

static size_t skip_spaces(const char *s, size_t i, size_t len)
{
	while (i < len && (s[i] == ' ' || s[i] == '\t' || s[i] == '\r'))
		i++;
	return i;
}

/* The messages among the strings from `i` on. */
static bool tell_messages(const char *s, size_t i, size_t len, char *room, markup_fn *fn, void *arg)
{
	char key[KEY_MAX] = "";
	bool any = false, closed;
	size_t n;

	for (;;) {
		const char *quote = i < len ? memchr(s + i, '"', len - i) : NULL;

		if (!quote)
			return any;
		i = (size_t)(quote - s) + 1;
		i += read_string(s + i, len - i, room, &n, &closed);
		i = skip_spaces(s, i, len);
		if (i < len && s[i] == ':') {
			n = n < sizeof(key) - 1 ? n : sizeof(key) - 1;
			memcpy(key, room, n);
			key[n] = '\0';
		} else if (strcmp(key, "evalue") != 0 && (is_message_key(key) || memchr(room, '\n', n))) {
			fn(arg, room, n);	/* the "evalue" of notebooks is in the traceback, too */
			any = true;
		}
	}
}

static bool begins_object(const char *s, size_t i, size_t len)
{
	size_t next = i < len ? skip_spaces(s, i + 1, len) : len;

	return next < len && ((s[i] == '{' && s[next] == '"') || (s[i] == '[' && (s[next] == '"' || s[next] == '{')));
}

bool markup_json(const char *s, size_t len, char *room, markup_fn *fn, void *arg)
{
	size_t i = skip_spaces(s, 0, len), n, end;
	const char *object;
	bool closed;

	if (begins_object(s, i, len))
		return tell_messages(s, i, len, room, fn, arg);
	if (i < len && s[i] == '"') {
		end = skip_spaces(s, i + 1 + read_string(s + i + 1, len - i - 1, room, &n, &closed), len);
		if (closed && end < len && s[end] == ':')
			return tell_messages(s, i, len, room, fn, arg);
		end += end < len && s[end] == ',';
		if (!closed || skip_spaces(s, end, len) < len)
			return false;
		fn(arg, room, n);
		return true;
	}
	/* behind a logger's prefix */
	object = memmem(s, len < 160 ? len : 160, "{\"", 2);
	return object && memchr(object, '}', (size_t)(s + len - object)) &&
	       tell_messages(s, (size_t)(object - s), len, room, fn, arg);
}

bool markup_json_brackets(const char *s, size_t len)
{
	size_t i = 0;

	while (i < len && strchr(" \t\r[]{},", s[i]) && s[i])
		i++;
	return i == len && len && (memchr(s, ']', len) || memchr(s, '}', len) || memchr(s, '{', len));
}
