/* SPDX-License-Identifier: Apache-2.0
 * Expressions over facts, as written in kb/causes and kb/signs: parsed once, typed, evaluated with
 * three-valued logic.
 *
 *   facts by dotted name, numbers, "texts", true, false, ( )
 *   sign.some_name      a sign of kb/signs: true or false, according to its expression
 *   threshold.some_name                                  a number of kb/limits.def
 *   cuda.illegal_address, x in cuda_set.illegal_access   codes of kb/cuda_errors.def, sets of kb/error_sets.def
 *   * / %   + -   < <= > >= == !=   x in (a, b, c)   !   &&   ||
 *   known(fact)  contains(text, text)  matches(text, glob)  ceil floor abs  min max
 *   says("words", ...)  the text passed to cuwhy explain contains one of them, ignoring case; '*' matches anything on the
 *                       line. False when there is no text
 *
 * Unknown propagates, except where the answer cannot depend on it: `false && unknown` is false and
 * `true || unknown` is true. Division by zero is unknown.
 */
#ifndef CUWHY_EXPR_H
#define CUWHY_EXPR_H

#include "case/case.h"

struct err;
struct expr;

/* Where an expression appears decides what must have a name in it. */
enum expr_place {
	EXPR_FREE,	/* anything goes: in signs, in kb/checks.def */
	EXPR_SENTENCE,	/* of a cause file: phrases are signs, CUDA's codes have names */
	EXPR_RULE,	/* of a cause file, or the guard of a sentence: numbers to compare with have names, too */
};

struct expr_scope {
	enum expr_place place;
	/* The expression of a sign. NULL with the reason in `e`. */
	const struct expr *(*sign)(void *arg, const char *name, size_t len, struct err *e);
	void *arg;
};

/* NULL with the reason in `e`. `len` bytes of text; the result lives in the pool. Without a scope: anything except
 * signs. */
const struct expr *expr_parse(struct pool *pool, const char *text, size_t len, struct err *e);
const struct expr *expr_parse_in(const struct expr_scope *scope, struct pool *pool, const char *text, size_t len,
				 struct err *e);
/* The number of kb/limits.def; false = there is none of that name. */
bool expr_threshold(const char *name, size_t len, double *value);

enum value_type expr_type(const struct expr *x);
struct value expr_eval(const struct expr *x, const struct casefile *f);

/* Every text in a says(), including those of its signs. */
typedef void expr_words_fn(void *arg, const char *words);
void expr_says(const struct expr *x, expr_words_fn *fn, void *arg);

/* What makes an expression true that is: the words of a says(), or a fact, for which `words` is NULL. What stands after a "!", or on the side
 * of a "||" that does not hold, is no ground. */
typedef void expr_ground_fn(void *arg, const char *words, enum fact_id fact);
void expr_grounds(const struct expr *x, const struct casefile *f, expr_ground_fn *fn, void *arg);

#endif
