/* SPDX-License-Identifier: Apache-2.0
 * Expressions over facts, as written in kb/causes: parsed once, typed, evaluated with
 * three-valued logic.
 *
 *   facts by dotted name, numbers, "texts", true, false, ( )
 *   * / %   + -   < <= > >= == !=   x in (a, b, c)   !   &&   ||
 *   known(fact)  contains(text, text)  matches(text, glob)  ceil floor abs  min max
 *
 * Unknown spreads, except where the answer cannot depend on it: `false && unknown` is false and
 * `true || unknown` is true. Division by zero is unknown.
 */
#ifndef CUWHY_EXPR_H
#define CUWHY_EXPR_H

#include "facts/facts.h"

struct err;
struct expr;

/* NULL with the reason in `e`. `len` bytes of text; the result lives in the pool. */
const struct expr *expr_parse(struct pool *pool, const char *text, size_t len, struct err *e);
enum value_type expr_type(const struct expr *x);
struct value expr_eval(const struct expr *x, const struct facts *f);

#endif
