/* SPDX-License-Identifier: Apache-2.0
 * Lines of code on a page, from the files as they are now.
 */
#ifndef CUWHY_PAGE_SOURCE_H
#define CUWHY_PAGE_SOURCE_H

#include <stdint.h>

#include <jansson.h>

struct source_book;
struct verdict;

/* The lines that a verdict names, with their neighbors; `since_ns` = when the program began, 0 = not known. */
json_t *page_sources(const struct verdict *v, struct source_book *from, uint64_t since_ns);

/* Without neighbors: lines that reasons and advice name as "file:line", and the caller of the line that failed. */
json_t *page_quotes(const struct verdict *v, struct source_book *from);
json_t *page_callers(const struct verdict *v, struct source_book *from);

/* Reads all of these, so that they can be kept with the recording. */
void page_note_sources(const struct verdict *v, struct source_book *from);

#endif
