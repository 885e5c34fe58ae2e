/* SPDX-License-Identifier: Apache-2.0
 * The times in a log: which of two files failed first, and whether they can be of one run.
 */
#ifndef CUWHY_TEXT_STAMP_H
#define CUWHY_TEXT_STAMP_H

#include <stdbool.h>
#include <stddef.h>

/* The time that begins a line, behind a prefix at most: "2025-03-04 11:12:13,123", "2025-03-04T11:12:13.5Z". Seconds since 1970; a
 * time without a zone is taken for UTC. */
bool stamp_of_line(const char *s, size_t len, double *seconds);

#endif
