/* SPDX-License-Identifier: Apache-2.0
 * Texts opened as an input: several files may be read into one.
 */
#ifndef CUWHY_INPUT_TEXT_H
#define CUWHY_INPUT_TEXT_H

#include "find/words/observe.h"

struct err;

struct text_source {
	struct text_log *log;
	struct text_view about;	/* what it adds to the case of another input */
};

struct text_source *text_source_new(void);
/* What a process printed, and what it raised (NULL: nothing). */
struct text_source *text_source_of_words(const char *printed, const char *raised);
void text_source_free(struct text_source *s);
int text_source_read(struct text_source *s, const char *path, struct err *e);

#endif
