/* SPDX-License-Identifier: Apache-2.0
 * Reading numbers, in the versions that glibc had before 2.38 (see portable.h): since then, programs that are built with GNU's extensions
 * get functions that also take C23's binary numbers ("0b11"), which nothing here reads.
 */
#include <stdarg.h>
#include <stdio.h>

#include "portable/portable.h"

/* Not by the headers, which give these names to the new functions. */
extern long old_strtol(const char *, char **, int) __asm__("strtol");
extern unsigned long old_strtoul(const char *, char **, int) __asm__("strtoul");
extern long long old_strtoll(const char *, char **, int) __asm__("strtoll");
extern unsigned long long old_strtoull(const char *, char **, int) __asm__("strtoull");
extern int old_vsscanf(const char *, const char *, va_list) __asm__("__isoc99_vsscanf");
extern int old_vfscanf(FILE *, const char *, va_list) __asm__("__isoc99_vfscanf");

HERE long __isoc23_strtol(const char *s, char **end, int base);
HERE unsigned long __isoc23_strtoul(const char *s, char **end, int base);
HERE long long __isoc23_strtoll(const char *s, char **end, int base);
HERE unsigned long long __isoc23_strtoull(const char *s, char **end, int base);
HERE int __isoc23_vsscanf(const char *s, const char *format, va_list args);
HERE int __isoc23_sscanf(const char *s, const char *format, ...);
HERE int __isoc23_vfscanf(FILE *f, const char *format, va_list args);
HERE int __isoc23_fscanf(FILE *f, const char *format, ...);

long __isoc23_strtol(const char *s, char **end, int base)
{
	return old_strtol(s, end, base);
}

unsigned long __isoc23_strtoul(const char *s, char **end, int base)
{
	return old_strtoul(s, end, base);
}

long long __isoc23_strtoll(const char *s, char **end, int base)
{
	return old_strtoll(s, end, base);
}

unsigned long long __isoc23_strtoull(const char *s, char **end, int base)
{
	return old_strtoull(s, end, base);
}

int __isoc23_vsscanf(const char *s, const char *format, va_list args)
{
	return old_vsscanf(s, format, args);
}

int __isoc23_sscanf(const char *s, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = old_vsscanf(s, format, args);
	va_end(args);
	return n;
}

int __isoc23_vfscanf(FILE *f, const char *format, va_list args)
{
	return old_vfscanf(f, format, args);
}

int __isoc23_fscanf(FILE *f, const char *format, ...)
{
	va_list args;
	int n;

	va_start(args, format);
	n = old_vfscanf(f, format, args);
	va_end(args);
	return n;
}
