/* SPDX-License-Identifier: Apache-2.0
 * The question whose answer would tell causes apart: a row of kb/questions.def, chosen by the facts that the rules of the causes
 * rest on and that are not known.
 */
#ifndef CUWHY_QUESTION_H
#define CUWHY_QUESTION_H

#include <stddef.h>

struct casefile;
struct cause;

#define QUESTION_CAUSES 3	/* more are not compared */
#define QUESTION_SHOWN	3

struct question {
	const char *text, *command;
	const char *facts;	/* that the answer decides */
	const char *shown[QUESTION_SHOWN];	/* words that the answer has, or facts */
};

/* The one that separates these causes best and that the text does not answer; for a single cause, the one that bears most on it.
 * NULL: none does. `f` NULL: nothing is known. */
const struct question *question_for(const struct cause *const *causes, size_t n, const struct casefile *f);

#endif
