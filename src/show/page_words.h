/* SPDX-License-Identifier: Apache-2.0
 * Texts that are stored once per page and referred to by number: lines of code, kernel names.
 */
#ifndef CUWHY_PAGE_WORDS_H
#define CUWHY_PAGE_WORDS_H

#include <jansson.h>

struct place;

struct page_words {
	json_t *list, *index;
};

void page_words_init(struct page_words *w);
void page_words_release(struct page_words *w);

/* The number in the list; -1 for NULL, and when the list is full: add the most important first. */
int page_words_add(struct page_words *w, const char *text);

/* "train.py:32 in step"; -1 if the place is not known. */
int page_words_place(struct page_words *w, const struct place *p, const char *cwd);

#endif
