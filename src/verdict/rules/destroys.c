/* SPDX-License-Identifier: Apache-2.0
 * Commands that must not be pasted on a guess (see destroys.h): the list is kb/destructive.def.
 */
#include "verdict/rules/destroys.h"

#include <ctype.h>
#include <string.h>

#include "base/pool.h"
#include "base/str.h"

static const char *const destructive[] = {
#define DESTROYS(words) words,
#include "kb/destructive.def"
};

/* What a word of a command ends at. '-' and '/' belong to words: --rm is not rm. */
static bool is_between(char c)
{
	return c == '\0' || isspace((unsigned char)c) || strchr(";&|()`'\"", c) != NULL;
}

static bool has_words(const char *command, const char *words)
{
	size_t len = strlen(words);
	bool begins = words[len - 1] == '*';

	len -= begins;
	for (const char *at = command; *at; at++)
		if ((at == command || is_between(at[-1])) && !strncmp(at, words, len) && (begins || is_between(at[len])))
			return true;
	return false;
}

bool command_destroys(const char *command)
{
	for (size_t i = 0; i < sizeof(destructive) / sizeof(*destructive); i++)
		if (has_words(command, destructive[i]))
			return true;
	return false;
}

const char *fix_to_confirm(const char *text, struct pool *pool)
{
	const char *or = str_starts(text, "or ") ? "or, " : str_starts(text, "and ") ? "and, " : "";

	return pool_printf(pool, "%sonce this is confirmed: %s", or, text + (or[0] ? strlen(or) - 1 : 0));
}
