/* SPDX-License-Identifier: Apache-2.0
 * Allocation for the CLI: never NULL; the program exits with status 2 when out of memory.
 * The recorder does not use this.
 */
#ifndef CUWHY_MEM_H
#define CUWHY_MEM_H

#include <stdarg.h>
#include <stddef.h>

void *xmalloc(size_t size);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *old, size_t n, size_t size);	/* n * size is checked for overflow */
char *xstrdup(const char *s);
char *xasprintf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *xvasprintf(const char *fmt, va_list args) __attribute__((format(printf, 1, 0)));

/* Makes room for one more element in an array with `n` of `*cap` in use: doubles it if full. */
void *xgrow(void *array, size_t n, size_t *cap, size_t size);

/* A bug in cuwhy: says so, asks for a report, and aborts. */
#define BUG(what) bug_at(__FILE__, __LINE__, (what))
void bug_at(const char *file, int line, const char *what) __attribute__((noreturn));

#endif
