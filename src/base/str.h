/* SPDX-License-Identifier: Apache-2.0
 * Small string helpers.
 */
#ifndef CUWHY_STR_H
#define CUWHY_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

bool str_starts(const char *s, const char *prefix);
bool str_ends(const char *s, const char *suffix);

/* Where `what` begins, in letters of either case; NULL if it is not there. Made for lines and words, many of each: strcasestr() studies a
 * word longer than it takes to look for it. */
const char *str_find_case(const char *s, const char *what);

/* Always ends with a NUL; false when it did not fit. */
bool str_copy(char *to, size_t size, const char *from);

/* Every byte that is not part of a UTF-8 sequence becomes '?'. */
void str_make_utf8(char *s);

/* The length of the UTF-8 character at `s`, of which `n` > 0 bytes are there, and its code. A byte that is not part of one is
 * STR_INVALID, of length 1. 0: the end of it is missing. */
#define STR_INVALID UINT32_MAX
size_t str_character(const char *s, size_t n, uint32_t *code);

/* Text of others, to be shown: a file name can set a terminal's title, clear it, or make a line read backward. Characters that
 * control a terminal (ESC and its like, also as C1) or reorder text are not harmless; line ends and tabs are. */
bool str_harmless(uint32_t code);

/* Whatever is not harmless becomes '?'. The length; `to` may be `s`. */
size_t str_plain(char *to, const char *s, size_t n);
void str_make_plain(char *s);

/* The same, and it stays on one line. */
void str_make_line(char *s);

/* For sentences in which something may be missing. */
static inline const char *str_given(const char *s)
{
	return s ? s : "";
}

static inline const char *str_if(bool given, const char *words)
{
	return given ? words : "";
}

/* A decimal number and nothing else. */
bool str_u64(const char *s, uint64_t *value);

/* "24GiB", "24G", "512M", "1.5T" into bytes, K being 1024; false when it is no size. */
bool str_bytes(const char *s, uint64_t *bytes);

/* "12.5s", "250ms", "5m", "1h" into nanoseconds; false when it is no time. */
bool str_time(const char *s, uint64_t *ns);

/* Edits (insert, delete, replace, swap neighbors) from one word to the other. */
size_t str_distance(const char *a, const char *b);

/* The candidate that was most likely meant (NULL-terminated list), or NULL if none is close. */
const char *str_nearest(const char *word, const char *const *candidates);

#endif
