/* SPDX-License-Identifier: Apache-2.0
 * Commands, statements and sentences that start a program again (see log.h).
 */
#include "find/words/log.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "read/text/exception.h"
#include "read/text/line.h"
#include "read/text/said.h"

#define PROMPT_WORDS	4	/* "mira@box MINGW64 ~/sd $" */
#define SENTENCE_MAX	400

static const char *skip_spaces(const char *s)
{
	return s + strspn(s, " ");
}

static const char *skip_word(const char *s)
{
	return skip_spaces(s + strcspn(s, " "));
}

static bool word_is(const char *s, enum said_list list)
{
	return says_just(s, strcspn(s, " "), list);
}

/* "(base) ", "(venv) (main) " */
static const char *skip_environments(const char *s)
{
	while (*s == '(' && strcspn(s, " )") < 40 && s[strcspn(s, " )")] == ')')
		s = skip_spaces(s + strcspn(s, " )") + 1);
	return s;
}

/* "mira@box:~/sd$ ", "[mira@box sd]$ ", "mira@box sd % ", "~/sd$ ", "/workspace# ": what follows. */
static const char *skip_bash(const char *s)
{
	size_t first = strcspn(s, " ");
	int words = memchr(s, '@', first) ? PROMPT_WORDS : *s == '~' || *s == '/' ? 1 : 0;

	for (; words > 0 && *s; words--) {
		size_t len = strcspn(s, " ");

		if (len && s[len] && strchr("$#%>", s[len - 1]))
			return skip_spaces(s + len);
		s = skip_word(s);
	}
	return NULL;
}

/* "C:\Users\x>", "PS D:\x> " */
static const char *skip_windows(const char *s)
{
	const char *end;

	s += str_starts(s, "PS ") ? 3 : 0;
	if (!isalpha((unsigned char)s[0]) || s[1] != ':' || s[2] != '\\')
		return NULL;
	end = strchr(s, '>');
	return end ? skip_spaces(end + 1) : NULL;
}

/* "➜  sd git:(main) ✗ " */
static const char *skip_arrow(const char *s)
{
	const char *after;

	if (!says_at(s, SAID_prompt_arrow, &after))
		return NULL;
	s = skip_word(skip_spaces(after));
	if (says(s, SAID_prompt_branch))
		s = skip_word(s);
	return says_at(s, SAID_prompt_cross, &after) ? skip_spaces(after) : s;
}

/* What follows a shell's prompt; NULL: there is none. */
static const char *skip_prompt(const char *s)
{
	const char *after;

	s = skip_environments(s);
	if (says_at(s, SAID_prompt, &after))
		return skip_spaces(after);
	after = skip_bash(s);
	if (!after)
		after = skip_windows(s);
	return after ? after : skip_arrow(s);
}

/* "CUDA_VISIBLE_DEVICES=0 sudo time python …": the program's name. */
static const char *skip_wrappers(const char *s)
{
	for (;;) {
		size_t name = strspn(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");

		if ((name && s[name] == '=') || word_is(s, SAID_wrapper))
			s = skip_word(s);
		else
			return s;
	}
}

static const char *base_name(const char *s)
{
	size_t len = strcspn(s, " ");

	for (size_t i = len; i-- > 0;)
		if (s[i] == '/' || s[i] == '\\')
			return s + i + 1;
	return s;
}

/* Commands that look at a machine, change it, or move around: what they print belongs to the failure before them. */
static bool only_looks(const char *s)
{
	return word_is(s, SAID_tool) || says(s, SAID_tool_call);
}

static bool starts_program(const char *command)
{
	const char *s = base_name(skip_wrappers(command));

	return (isalpha((unsigned char)*s) || *s == '.') && !only_looks(s);
}

/* Without a prompt: only what starts Python programs, with the program. */
static bool is_bare_command(const char *s)
{
	const char *name = base_name(skip_wrappers(s));

	if (!word_is(name, SAID_starter) || only_looks(name) || (*s && strchr(":.?!,", s[strlen(s) - 1])))
		return false;
	return says(name, SAID_started);
}

static bool is_command(const char *s)
{
	const char *command = skip_prompt(s);

	if (command)
		return starts_program(command[0] == '!' ? command + 1 : command);
	s += *s == '!';			/* a notebook's */
	s += str_starts(s, "+ ") ? 2 : 0;	/* set -x */
	return is_bare_command(s);
}

/* A cell of a notebook that failed: "RuntimeError     Traceback (most recent call last)". */
static bool begins_output(struct restarts *r, const char *s)
{
	size_t name = strcspn(s, " ");
	bool chained = r->chained;

	if (*s)
		r->chained = says(s, SAID_chained);
	return !chained && exception_name(s, name) && says(skip_word(s), SAID_traceback);
}

static enum restart statement(struct restarts *r, const char *s)
{
	unsigned long cell;
	bool again;
	char *end;

	if (begins_output(r, s))
		return RESTART_STATEMENT;
	if (says(s, SAID_python_prompt))
		return s[4] == '!' ? RESTART_PROGRAM : RESTART_STATEMENT;
	if (!says(s, SAID_notebook_prompt))
		return RESTART_NOT;
	cell = strtoul(s + 4, &end, 10);
	if (!str_starts(end, "]:"))
		return RESTART_NOT;
	s = skip_spaces(end + 2);
	if (*s == '!')
		return is_bare_command(s + 1) ? RESTART_PROGRAM : RESTART_NOT;
	again = cell < r->cell;
	r->cell = cell;
	return again ? RESTART_PROGRAM : RESTART_STATEMENT;
}

static bool is_told(const struct text_line *line)
{
	const char *s = line->text + strspn(line->text, " *_#");	/* "**EDIT:** now …" */

	if (line->len > SENTENCE_MAX || line->indent > 3)
		return false;
	return says(s, SAID_tried_again);
}

enum restart restart_line(struct restarts *r, const struct text_line *line, bool failed)
{
	const char *s = line_words(line);
	enum restart kind = statement(r, s);

	if (kind || !failed)
		return failed ? kind : RESTART_NOT;
	if (is_command(s))
		return RESTART_PROGRAM;
	return is_told(line) ? RESTART_TOLD : RESTART_NOT;
}
