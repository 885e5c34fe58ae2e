/* SPDX-License-Identifier: Apache-2.0
 * Texts opened as an input: several files may be read into one.
 */
#ifndef CUWHY_INPUT_TEXT_H
#define CUWHY_INPUT_TEXT_H

#include <stddef.h>

#include "find/words/observe.h"

struct err;

/* The words that rules look for, so that a text is searched for all of them at once. `*words` is the caller's (free). Set once,
 * before the first text is opened: rules know texts, texts do not know rules. */
typedef size_t text_words_fn(const char ***words);
void text_words_from(text_words_fn *fn);

struct text_source {
	struct text_log *log;
	struct text_view about;	/* what it adds to the case of another input */
};

struct text_source *text_source_new(void);
int text_source_read(struct text_source *s, const char *path, struct err *e);

#endif
