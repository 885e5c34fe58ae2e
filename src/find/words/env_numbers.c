/* SPDX-License-Identifier: Apache-2.0
 * Numbers of a program that a text mentions: values of names, shapes of tensors, how many threads a block has, large numbers by themselves.
 */
#include "find/words/env.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "read/text/said.h"

/* "n = 65536": what a name in a shape stands for. */
static void read_name(struct text_env *e, const char *s)
{
	size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
	const char *at = s + n;
	char *end;
	double value;

	if (!n || n >= sizeof(e->name[0].name) || isdigit((unsigned char)*s) || e->n_names == ENV_NAMES)
		return;
	at += strspn(at, " ");
	if (*at != '=' || !isdigit((unsigned char)at[1 + strspn(at + 1, " ")]))
		return;
	value = strtod(at + 1, &end);
	end += strspn(end, " ");
	if ((*end && *end != '#') || value < 0 || value > 1e12)
		return;
	memcpy(e->name[e->n_names].name, s, n);
	e->name[e->n_names].name[n] = '\0';
	e->name[e->n_names++].value = value;
}

/* A number, or a name with a known value. False when it is neither. */
static bool read_size(const struct text_env *e, const char *s, double *size, const char **end)
{
	size_t n = 0;
	char *after;

	if (isdigit((unsigned char)*s)) {
		*size = (double)strtoull(s, &after, 10);
		*end = after;
		return true;
	}
	while (isalnum((unsigned char)s[n]) || s[n] == '_')
		n++;
	for (size_t i = 0; i < e->n_names; i++)
		if (n && strlen(e->name[i].name) == n && !memcmp(e->name[i].name, s, n)) {
			*size = e->name[i].value;
			*end = s + n;
			return true;
		}
	return false;
}

/* "190x64x64x2933", "[1, 70000, 8, 32]", "(65536, 512)": at least two sizes. Returns what follows. */
static const char *read_shape(struct text_env *e, const char *line, const char *s)
{
	bool indexes = *s == '[' && s > line && (isalnum((unsigned char)s[-1]) || strchr("_])", s[-1]));	/* inputs[0] */
	double product = 1, largest = 0;
	int n = 0;
	bool listed = *s == '(' || *s == '[';
	const char *end;
	double size;

	s += listed;
	while (n < 8 && (listed || isdigit((unsigned char)*s)) && read_size(e, s, &size, &end)) {
		product *= size;
		largest = size > largest ? size : largest;
		n++;
		s = end;
		if (listed && *s == ',')
			s += 1 + (s[1] == ' ');
		else if (!listed && (*s == 'x' || *s == '*') && isdigit((unsigned char)s[1]))
			s++;
		else
			break;
	}
	if (n < (listed ? 1 : 2) || (listed && *s != ')' && *s != ']' && !(*s == ' ' || isalpha((unsigned char)*s))))
		return s;
	if (product == 0 && listed && !indexes)
		e->empty_here = true;
	if (n >= 2 && product > e->elements)
		e->elements = product;
	if (largest > e->largest)
		e->largest = largest;
	return s;
}

/* "batch 131072", "batch_size=70000", "shape[0] = 65536", "bs: 100000", "numel 3000000000". */
static void read_counts(struct text_env *e, const char *s, enum said_list words)
{
	const char *at;

	for (size_t row = 0; (at = says_before(s, words, &row)) != NULL;) {
		double n;

		at += strcspn(at, " =:");
		at += strspn(at, " =:(");
		if (!isdigit((unsigned char)*at))
			continue;
		n = strtod(at, NULL);
		if (n > e->largest && n < 1e13)
			e->largest = n;
		if (n == 0 && at[1] != '.' && !isdigit((unsigned char)at[1]) && words == SAID_count_of_all)
			e->empty_here = true;
	}
}

static void read_tensors(struct text_env *e, const char *s)
{
	const char *at = s;

	e->empty_here = false;
	if (says(s, SAID_no_tensors))
		return;
	while ((at = strpbrk(at, "(["))) {
		const char *next = isdigit((unsigned char)at[1]) || (e->n_names && isalpha((unsigned char)at[1]))
					   ? read_shape(e, s, at)
					   : at + 1;

		at = next > at ? next : at + 1;
	}
	for (at = s; (at = strchr(at, 'x')) != NULL; at++) {
		const char *from = at;

		while (from > s && isdigit((unsigned char)from[-1]))
			from--;
		if (from < at && isdigit((unsigned char)at[1]) &&
		    !(from > s && (isalnum((unsigned char)from[-1]) || from[-1] == '_')) &&
		    !(at - from == 1 && *from == '0'))
			at = read_shape(e, s, from) - 1;
	}
	read_counts(e, s, SAID_count);
	read_counts(e, s, SAID_count_of_all);
}

/* "70000", "131,072", by itself: not part of a word, a path, a float or a time. */
static void read_large_numbers(struct text_env *e, const char *s)
{
	static const char around[] = "_.:/-+#@$%\\";

	if (strlen(s) > 400 || str_starts(s, "File \""))
		return;
	for (const char *at = s; *at; at++) {
		double n = 0;
		const char *from = at;
		size_t digits = 0;

		if (!isdigit((unsigned char)*at))
			continue;
		for (; isdigit((unsigned char)*at) ||
		       (*at == ',' && digits && isdigit((unsigned char)at[1]) && isdigit((unsigned char)at[2]) &&
			isdigit((unsigned char)at[3]) && !isdigit((unsigned char)at[4]));
		     at++)
			if (*at != ',') {
				n = n * 10 + (*at - '0');
				digits++;
			}
		if ((from == s || (!isalnum((unsigned char)from[-1]) && !strchr(around, from[-1]))) &&
		    !isalnum((unsigned char)*at) && (!*at || !strchr("_:/\\%", *at)) &&
		    !(*at == '.' && isdigit((unsigned char)at[1])) && digits <= 10 && n > e->number)
			e->number = n;
		if (!*at)
			break;
	}
	if (says(s, SAID_over_int))
		e->largest = e->largest < 2147483648.0 ? 2147483648.0 : e->largest;
}

/* "kernel<<<grid, 2048>>>", "block=(32,64,1)": threads per block. */
static void read_launch(struct text_env *e, const char *s)
{
	const char *at = strstr(s, "<<<"), *end = at ? strstr(at, ">>>") : NULL;
	double threads = 0;
	int x = 0, y = 1, z = 1;

	if (end && (at = memchr(at, ',', (size_t)(end - at))) != NULL)
		threads = strtod(at + 1 + strspn(at + 1, " "), NULL);
	else if ((at = strstr(s, "block=(")) != NULL && sscanf(at, "block=(%d,%d,%d", &x, &y, &z) >= 1)
		threads = (double)x * y * z;
	if (threads > e->block && threads < 1e9)
		e->block = threads;
}

void env_read_numbers(struct text_env *e, const char *s)
{
	read_name(e, s);
	read_launch(e, s);
	read_tensors(e, s);
	read_large_numbers(e, s);
}
