/* SPDX-License-Identifier: Apache-2.0
 * Tells conditions, files and names of functions apart (see assert_text.h).
 */
#include "input/dump/assert_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/banned.h"

#define SCAN_MAX	((size_t)16 << 20)	/* bytes of a section that are looked at */
#define STRINGS_MAX	4096

/* ---- what a string looks like ----------------------------------------------------------------------- */

static bool ends_with(const char *s, size_t n, const char *end)
{
	size_t len = strlen(end);

	return n > len && memcmp(s + n - len, end, len) == 0;
}

/* A path, or a name with the ending of a source file. */
static bool is_file(const char *s, size_t n)
{
	static const char *const ends[] = {".cu", ".cuh", ".h", ".hpp", ".cpp", ".cc", ".c", ".inl", ".inc", ".py",
					   ".hip"};
	size_t i;

	for (i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (ends_with(s, n, ends[i]))
			return !memchr(s, '(', n) && !memchr(s, '<', n) && !memchr(s, '>', n) && !memchr(s, '=', n);
	return false;
}

/* "name", "operator()", "~name" */
static bool is_identifier(const char *s, size_t n)
{
	size_t i = n && s[0] == '~' ? 1 : 0;

	if (n > 8 && memcmp(s, "operator", 8) == 0 && !isalnum((unsigned char)s[8]) && s[8] != '_')
		return true;
	if (i >= n || isdigit((unsigned char)s[i]))
		return false;
	for (; i < n; i++)
		if (!isalnum((unsigned char)s[i]) && s[i] != '_' && s[i] != '<' && s[i] != '>')
			return false;
	return true;
}

/* "void gather(float *, int) [with T = float]": has parameters, and no operator between operands. */
static bool is_signature(const char *s, size_t n)
{
	static const char *const operators[] = {" && ", " || ", " < ", " > ", " <= ", " >= ", " == ", " != ", " + ",
						" - ", "!"};
	size_t i;

	if (!memchr(s, '(', n) || !memchr(s, ' ', n) || (s[n - 1] != ')' && s[n - 1] != ']'))
		return false;
	for (i = 0; i < sizeof(operators) / sizeof(operators[0]); i++)
		if (memmem(s, n, operators[i], strlen(operators[i])))
			return false;
	return isalpha((unsigned char)s[0]) || s[0] == '_';
}

/* ---- choosing --------------------------------------------------------------------------------------- */

static bool begins(const char *name, uint64_t max, const char *with)
{
	size_t n = strlen(with);

	return name && max >= n && memcmp(name, with, n) == 0;
}

void text_group_symbol(struct text_group *g, const char *name, uint64_t max)
{
	static const char *const names[] = {"__unnamed_", "__PRETTY_FUNCTION__", "__func__", "__FUNCTION__",
					    "assertFunc_"};
	bool function = false;
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		function |= begins(name, max, names[i]);
	if (function)
		g->n_functions++;
	else
		g->n_others++;
}

struct strings {
	const char *text[STRINGS_MAX];	/* borrowed, of the group's length */
	size_t n;
	bool more;
};

/* Strings of exactly this length: what is before is not a character. */
static void find_strings(struct strings *s, struct bytes data, size_t len)
{
	size_t most = data.len < SCAN_MAX ? data.len : SCAN_MAX, from = 0, i;

	for (i = 0; i < most; i++) {
		if (text_is_char(data.data[i]))
			continue;
		if (data.data[i] == '\0' && i - from == len && s->n < STRINGS_MAX)
			s->text[s->n++] = (const char *)data.data + from;
		else if (data.data[i] == '\0' && i - from == len)
			s->more = true;
		from = i + 1;
	}
}

/* "at::native::gather<float>(float*)" and "gather": the same function? */
static bool is_own(const struct text_group *g, const char *s, size_t n)
{
	const char *at = g->own_name;

	while (at && (at = strstr(at, s)) != NULL) {
		bool begun = at == g->own_name || !(isalnum((unsigned char)at[-1]) || at[-1] == '_');

		if (begun && !isalnum((unsigned char)at[n]) && at[n] != '_')
			return true;
		at++;
	}
	return false;
}

static bool may_be(const struct text_group *g, const char *s, size_t n, size_t n_names)
{
	bool file = is_file(s, n), name = !file && (is_identifier(s, n) || is_signature(s, n));

	switch (g->role) {
	case TEXT_FILE:
		return file;
	case TEXT_FUNCTION:
		return name;
	default:
		/* a condition can look like a name, when there are more such strings than names of functions */
		return !file && (!name || n_names > g->n_functions);
	}
}

static bool is_new(const char *const *choice, size_t n, const char *text)
{
	size_t i;

	for (i = 0; i < n; i++)
		if (strcmp(choice[i], text) == 0)
			return false;
	return true;
}

size_t text_group_choose(const struct text_group *g, struct bytes data, const char *choice[TEXT_CHOICES])
{
	size_t len = g->size ? (size_t)g->size - 1 : 0, i, n_names = 0, n = 0;
	struct strings *s = xcalloc(1, sizeof(*s));

	if (len && data.data)
		find_strings(s, data, len);
	for (i = 0; i < s->n; i++)
		n_names += !is_file(s->text[i], len) &&
			   (is_identifier(s->text[i], len) || is_signature(s->text[i], len));
	for (i = 0; i < s->n && n <= TEXT_CHOICES; i++) {
		if (!may_be(g, s->text[i], len, n_names))
			continue;
		/* of several names the asserting function's own is meant */
		if (g->role == TEXT_FUNCTION && is_own(g, s->text[i], len)) {
			choice[0] = s->text[i];
			n = 1;
			break;
		}
		if (!is_new(choice, n < TEXT_CHOICES ? n : TEXT_CHOICES, s->text[i]))
			continue;
		if (n < TEXT_CHOICES)
			choice[n] = s->text[i];
		n++;
	}
	n = s->more || n > TEXT_CHOICES ? 0 : n;
	free(s);
	return n;
}
