/* SPDX-License-Identifier: Apache-2.0
 * Evaluates expressions over facts (knowledge/expr.h) with three-valued logic.
 *
 * Unknown propagates, except where the answer cannot depend on it: `false && unknown` is false and
 * `true || unknown` is true. Division by zero is unknown.
 */
#ifndef CUWHY_EXPR_H
#define CUWHY_EXPR_H

#include "knowledge/expr.h"

struct value expr_eval(const struct expr *x, const struct casefile *f);

/* What makes an expression true that is: the words of a says(), or a fact, for which `words` is NULL. What stands after a "!", or
 * on the side of a "||" that does not hold, is no reason. */
typedef void expr_ground_fn(void *arg, const char *words, enum fact_id fact);
void expr_grounds(const struct expr *x, const struct casefile *f, expr_ground_fn *fn, void *arg);

#endif
