/* SPDX-License-Identifier: Apache-2.0
 * Finding kernels in CUDA source: `__global__ void __launch_bounds__(256) name(…`. The preprocessor does not run, so a kernel whose
 * name a macro makes is found under the macro's name.
 */
#include "sim/nvrtc/nvrtc.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Behind a comment, a string or a character at `s`; NULL if there is none. */
static const char *skip_text(const char *s)
{
	const char *end;

	if (s[0] == '/' && s[1] == '/')
		return s + strcspn(s, "\n");
	if (s[0] == '/' && s[1] == '*') {
		end = strstr(s + 2, "*/");
		return end ? end + 2 : s + strlen(s);
	}
	/* in a number such as 1'000 the sign separates digits; a character is short */
	if (s[0] != '"' && !(s[0] == '\'' && s[1] && (s[1] == '\\' || s[2] == '\'')))
		return NULL;
	for (end = s + 1; *end && *end != s[0] && *end != '\n'; end++)
		if (end[0] == '\\' && end[1])
			end++;
	return *end ? end + 1 : end;
}

/* The next token that is code: a word or one character. Its length, 0 at the end. */
static size_t next_token(const char **at)
{
	const char *s = *at, *behind;
	size_t n = 0;

	while (*s && ((behind = skip_text(s)) || isspace((unsigned char)*s)))
		s = behind ? behind : s + 1;
	while (is_word(s[n]))
		n++;
	*at = s;
	return n || !*s ? n : 1;
}

/* Behind the parenthesis that closes the one at `s`. */
static const char *skip_parentheses(const char *s)
{
	int depth = 0;
	size_t n;

	while ((n = next_token(&s)) > 0) {
		depth += (*s == '(') - (*s == ')');
		s += n;
		if (depth == 0)
			break;
	}
	return s;
}

static bool is(const char *token, size_t n, const char *word)
{
	return n == strlen(word) && !memcmp(token, word, n);
}

/* Words that take arguments of their own between __global__ and the name. */
static bool takes_arguments(const char *token, size_t n)
{
	static const char *const words[] = {"__launch_bounds__", "__cluster_dims__", "__block_size__",
					    "__maxnreg__", "__attribute__", "alignas"};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (is(token, n, words[i]))
			return true;
	return false;
}

/* What follows __global__, up to the name before the parameters. */
static bool read_declaration(const char **at, struct rtc_kernel *kernel)
{
	const char *s = *at, *name = NULL;
	size_t n, length = 0;

	for (; (n = next_token(&s)) > 0 && *s != '(' && *s != ';' && *s != '{'; s += n) {
		if (takes_arguments(s, n)) {
			if (is(s, n, "__launch_bounds__"))
				kernel->bounds = strtoul(s + n + strspn(s + n, " \t\n("), NULL, 10);
			s = skip_parentheses(s + n);
			n = 0;
		} else if (is_word(*s)) {
			name = s;
			length = n;
		}
	}
	*at = s;
	if (*s != '(' || !name || length >= sizeof(kernel->name))
		return false;
	snprintf(kernel->name, sizeof(kernel->name), "%.*s", (int)length, name);
	return true;
}

bool rtc_next_kernel(const char **at, struct rtc_kernel *kernel)
{
	size_t n;

	while ((n = next_token(at)) > 0) {
		bool global = is(*at, n, "__global__");

		*at += n;
		*kernel = (struct rtc_kernel){0};
		if (global && read_declaration(at, kernel))
			return true;
	}
	return false;
}
