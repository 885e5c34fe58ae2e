/* SPDX-License-Identifier: Apache-2.0
 * Which pieces of our knowledge a text uses: rules, messages of packages, words of signs; and answers without some of them.
 *
 * For tests: a piece that one report alone uses may have been written because of it. Without it, the answer is the one that a new
 * report would get (tools/calibrate.py --unseen).
 */
#ifndef CUWHY_KNOWLEDGE_H
#define CUWHY_KNOWLEDGE_H

#include <stdbool.h>
#include <stddef.h>

#define KNOWLEDGE_RULE	  "rule"
#define KNOWLEDGE_MESSAGE "message"
#define KNOWLEDGE_WORDS	  "words"

/* Is told what is used, and says whether it may be. NULL, as in the program itself: everything may be used. */
typedef bool knowledge_fn(const char *kind, const char *of, const char *name);
void knowledge_watch(knowledge_fn *fn);

/* A piece fits the text. False: it is withheld. `of`: the cause of a rule, "" otherwise. */
bool knowledge_use(const char *kind, const char *of, const char *name);

#endif
