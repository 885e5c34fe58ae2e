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

/* Always ends with a NUL; false when it did not fit. */
bool str_copy(char *to, size_t size, const char *from);

/* Every byte that is not part of a UTF-8 sequence becomes '?'. */
void str_make_utf8(char *s);

/* A decimal number and nothing else. */
bool str_u64(const char *s, uint64_t *value);

/* "12.5s", "250ms", "5m", "1h" into nanoseconds; false when it is no time. */
bool str_time(const char *s, uint64_t *ns);

/* Edits (insert, delete, replace, swap neighbors) from one word to the other. */
size_t str_distance(const char *a, const char *b);

/* The candidate that was most likely meant (NULL-terminated list), or NULL if none is close. */
const char *str_nearest(const char *word, const char *const *candidates);

#endif
