/* SPDX-License-Identifier: Apache-2.0
 * Lines that failing kernels print (see printed_assert.h).
 */
#include "find/words/printed_assert.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"

static const char *find_words(const char *s, const char *what, size_t *len)
{
	const char *at = strstr(s, what);

	*len = strlen(what);
	return at;
}

/* Where the condition begins and ends: quoted with ` and ' or two `, or not at all: forums drop the quotes. */
static const char *condition_of(const char *s, size_t *len)
{
	size_t skip;
	const char *at = find_words(s, "Assertion `", &skip), *end;

	if (!at)
		at = find_words(s, "Assertion '", &skip);
	if (!at && strstr(s, " failed"))
		at = find_words(s, "Assertion ", &skip);
	if (!at)
		return NULL;
	at += skip;
	end = strstr(at, "` failed");
	if (!end)
		end = strstr(at, "' failed");
	if (!end)
		end = strstr(at, " failed");
	*len = end ? (size_t)(end - at) : strlen(at);
	return at;
}

/* "a/b/Loss.cu:103: " -> the file and the line. */
static void read_place(struct text_assert *a, struct pool *pool, const char *s, const char *end)
{
	const char *colon = s;

	while ((colon = memchr(colon, ':', (size_t)(end - colon))) != NULL) {
		if (isdigit((unsigned char)colon[1]) || (colon[1] == ' ' && isdigit((unsigned char)colon[2])))
			break;
		colon++;
	}
	if (!colon || colon == s)
		return;
	a->file = pool_copy(pool, s, (size_t)(colon - s) < 200 ? (size_t)(colon - s) : 200);
	a->source_line = (uint32_t)strtoul(colon + 1, NULL, 10);
}

/* Between the line number and "block:": the function with its parameters. */
static void read_function(struct text_assert *a, struct pool *pool, const char *s, const char *end)
{
	const char *block = strstr(s, ": block: ["), *from, *thread;

	if (!block || block > end)	/* people shorten the line */
		block = strstr(s, ": Assertion ");
	if (!block || block > end)
		return;
	from = block;
	while (from > s && !(from[-1] == ' ' && from - 2 >= s && (from[-2] == ':')))
		from--;
	a->function = pool_copy(pool, from, (size_t)(block - from) < 300 ? (size_t)(block - from) : 300);
	thread = strstr(block, "thread: [");
	if (thread && strchr(thread, ']'))
		a->thread = pool_copy(pool, block + 2, (size_t)(strchr(thread, ']') + 1 - block - 2));
}

static bool same_assert(const struct text_assert *a, const char *s, const char *condition, size_t len)
{
	return strlen(a->condition) == len && !memcmp(a->condition, condition, len) && (!a->file || strstr(s, a->file));
}

/* Host programs assert too: "prog: file.c:12: main: Assertion `x' failed." has no thread, and closes the quote differently.
 * People may keep only the last part of a kernel's line. */
static bool is_kernels(const char *s, const char *condition, size_t len)
{
	return strstr(s, "thread: [") || strstr(s, ".cu") ||
	       ((str_starts(s, "Assertion `") || str_starts(s, "Assertion '")) && condition[len] == condition[-1]);
}

bool printed_asserts_line(struct printed_asserts *all, struct pool *pool, const struct text_line *line)
{
	size_t len;
	const char *s = line_words(line), *condition = condition_of(s, &len);
	struct text_assert *a;

	if (!condition || !is_kernels(s, condition, len))
		return false;
	for (size_t i = all->from; i < all->n; i++) {
		if (same_assert(&all->list[i], s, condition, len)) {
			all->list[i].count++;
			return true;
		}
	}
	if (all->n == PRINTED_ASSERTS_MAX)
		return true;
	a = &all->list[all->n++];
	*a = (struct text_assert){.condition = pool_copy(pool, condition, len),
				  .count = 1,
				  .line = line->number,
				  .order = line->order,
				  .rank = line->rank};
	read_place(a, pool, s, condition);
	read_function(a, pool, s, condition);
	return true;
}
