/* SPDX-License-Identifier: Apache-2.0
 * The question whose answer would tell causes apart: a row of kb/questions.def, chosen by the facts that the rules of the causes
 * rest on and that are not known.
 */
#ifndef CUWHY_QUESTION_H
#define CUWHY_QUESTION_H

#include <stddef.h>

struct casefile;
struct cause;
struct kb_question;

#define QUESTION_CAUSES 3	/* more are not compared */

/* The one that separates these causes best and that the text does not answer; for a single cause, the one that bears most on it.
 * NULL: none does. `f` NULL: nothing is known. */
const struct kb_question *question_for(const struct cause *const *causes, size_t n, const struct casefile *f);

#endif
