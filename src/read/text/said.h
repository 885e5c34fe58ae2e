/* SPDX-License-Identifier: Apache-2.0
 * What words of a log mean: asks the lists of kb/log.def. Vocabulary stands there; what stays in C is how lines are built.
 */
#ifndef CUWHY_TEXT_SAID_H
#define CUWHY_TEXT_SAID_H

#include <stdbool.h>
#include <stddef.h>

enum said_list {
#define LIST(list) SAID_##list,
#define SAID(list, words)
#define WRITTEN(list, words)
#include "kb/log.def"
	SAID_LISTS
};

/* The text has words of the list. */
bool says(const char *s, enum said_list list);
bool says_in(const char *s, size_t len, enum said_list list);
/* Where the first of them is, and what follows it; NULL: there is none. */
const char *says_at(const char *s, enum said_list list, const char **after);
/* The same from `at` on, a place in the text. */
const char *says_on(const char *s, const char *at, enum said_list list, const char **after);
/* All of it is a row of the list. */
bool says_just(const char *s, size_t len, enum said_list list);
/* What follows the words of each row that the text has, the first row of the list first: begin with *i = 0; NULL: no more. */
const char *says_before(const char *s, enum said_list list, size_t *i);
/* The rows, as they stand in the list. */
size_t said_rows(enum said_list list);
const char *said_words(enum said_list list, size_t i);

#endif
