/* SPDX-License-Identifier: Apache-2.0
 * Names of exceptions in lines (see exception.h).
 */
#include "read/text/exception.h"

#include <ctype.h>
#include <string.h>

#include "read/text/said.h"

/* Letters, digits, '_' and '.', as the name of an exception has them. Its length. */
static size_t exception_name_length(const char *s)
{
	size_t n = 0;

	if (!isalpha((unsigned char)*s) && *s != '_')
		return 0;
	while (isalnum((unsigned char)s[n]) || s[n] == '_' || s[n] == '.')
		n++;
	return n;
}

bool exception_name(const char *s, size_t n)
{
	return says_in(s, n, SAID_exception_end);
}

/* "TrainingFailed": the name of a class, of two words at least. */
static bool is_class_name(const char *s, size_t n)
{
	size_t words = 0;

	for (size_t i = 0; i + 1 < n; i++)
		words += isupper((unsigned char)s[i]) && islower((unsigned char)s[i + 1]);
	return words > 1 && isupper((unsigned char)*s);
}

bool exception_line(const char *s, bool in_traceback, size_t *name)
{
	size_t n = exception_name_length(s), after = n;

	if (!n)
		return false;
	if (s[after] == '(' && exception_name(s, n) && strchr(s + after, ')'))
		after += strcspn(s + after, ")") + 1;
	if (s[after] && s[after] != ':')
		return false;
	if (s[after] == ':' && s[after + 1] && s[after + 1] != ' ')
		return false;
	*name = n;
	return exception_name(s, n) ||
	       (in_traceback && s[after] == ':' && strchr(s, '.') != NULL && strchr(s, '.') < s + n) ||
	       (in_traceback && is_class_name(s, n)) || (in_traceback && !s[after] && isupper((unsigned char)*s));
}

const char *exception_within(const char *s, size_t *name)
{
	for (const char *at = s; (at = strchr(at, ':')) != NULL; at++) {
		const char *from = at;

		while (from > s && (isalnum((unsigned char)from[-1]) || from[-1] == '_' || from[-1] == '.'))
			from--;
		*name = (size_t)(at - from);
		if (at[1] == ' ' && *name > 5 && exception_name(from, *name))
			return from;
	}
	return NULL;
}

bool exception_of_python(const char *type)
{
	return says_just(type, strlen(type), SAID_python_exception);
}
