/* SPDX-License-Identifier: Apache-2.0
 * Allocation that does not fail: without memory, all the CLI can do is exit.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static void *checked(void *p)
{
	if (p)
		return p;
	fputs("cuwhy: out of memory\n", stderr);
	exit(2);
}

void *xmalloc(size_t size)
{
	return checked(malloc(size ? size : 1));
}

void *xcalloc(size_t n, size_t size)
{
	return checked(calloc(n ? n : 1, size ? size : 1));
}

void *xrealloc(void *old, size_t n, size_t size)
{
	if (size && n > SIZE_MAX / size)
		return checked(NULL);
	return checked(realloc(old, n && size ? n * size : 1));
}

char *xstrdup(const char *s)
{
	return checked(strdup(s));
}

char *xvasprintf(const char *fmt, va_list args)
{
	char *s = NULL;

	return checked(vasprintf(&s, fmt, args) < 0 ? NULL : s);
}

char *xasprintf(const char *fmt, ...)
{
	va_list args;
	char *s;

	va_start(args, fmt);
	s = xvasprintf(fmt, args);
	va_end(args);
	return s;
}

void *xgrow(void *array, size_t n, size_t *cap, size_t size)
{
	if (n < *cap)
		return array;
	*cap = *cap ? *cap * 2 : 16;
	return xrealloc(array, *cap, size);
}

void bug_at(const char *file, int line, const char *what)
{
	fprintf(stderr, "cuwhy: internal error at %s:%d: %s\n", file, line, what);
	fputs("hint: this is a bug in cuwhy; please report it with the command that you ran\n",
	      stderr);
	abort();
}
