/* SPDX-License-Identifier: Apache-2.0
 * Expressions over facts, as written in kb/causes: parsed once, typed, evaluated with
 * three-valued logic.
 *
 *   facts by dotted name, numbers, "texts", true, false, ( )
 *   * / %   + -   < <= > >= == !=   x in (a, b, c)   !   &&   ||
 *   known(fact)  contains(text, text)  matches(text, glob)  ceil floor abs  min max
 *   says("words", ...)  one of them is in the text that cuwhy explain was given; '*' is anything on the line, case
 *                       does not matter. False when there is no text
 *
 * Unknown spreads, except where the answer cannot depend on it: `false && unknown` is false and
 * `true || unknown` is true. Division by zero is unknown.
 */
#ifndef CUWHY_EXPR_H
#define CUWHY_EXPR_H

#include "case/case.h"

struct err;
struct expr;

/* NULL with the reason in `e`. `len` bytes of text; the result lives in the pool. */
const struct expr *expr_parse(struct pool *pool, const char *text, size_t len, struct err *e);
enum value_type expr_type(const struct expr *x);
struct value expr_eval(const struct expr *x, const struct casefile *f);

/* Every text in a says(), also behind a "!" when `all`. */
typedef void expr_words_fn(void *arg, const char *words);
void expr_says(const struct expr *x, bool all, expr_words_fn *fn, void *arg);

#endif
