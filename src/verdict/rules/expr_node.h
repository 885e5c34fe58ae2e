/* SPDX-License-Identifier: Apache-2.0
 * The tree of an expression: private to the parser and the evaluator.
 */
#ifndef CUWHY_EXPR_NODE_H
#define CUWHY_EXPR_NODE_H

#include "verdict/rules/expr.h"

/* Functions: name, number of arguments, type of its arguments, type of its result. */
#define EXPR_FUNCTIONS(X)               \
	X(contains, 2, TEXT, FLAG)      \
	X(matches, 2, TEXT, FLAG)       \
	X(ceil, 1, NUMBER, NUMBER)      \
	X(floor, 1, NUMBER, NUMBER)     \
	X(abs, 1, NUMBER, NUMBER)       \
	X(min, 2, NUMBER, NUMBER)       \
	X(max, 2, NUMBER, NUMBER)

enum expr_function {
#define X(name, n, arg, result) CALL_##name,
	EXPR_FUNCTIONS(X)
#undef X
	CALL_COUNT
};

enum expr_kind {
	EXPR_CONST, EXPR_FACT, EXPR_KNOWN, EXPR_NOT, EXPR_NEGATE, EXPR_AND, EXPR_OR,
	EXPR_ADD, EXPR_SUB, EXPR_MUL, EXPR_DIV, EXPR_MOD,
	EXPR_EQ, EXPR_NE, EXPR_LT, EXPR_LE, EXPR_GT, EXPR_GE, EXPR_CALL, EXPR_SAYS,
	EXPR_SIGN,
};

struct expr {
	enum expr_kind kind;
	enum value_type type;
	struct value value;		/* CONST, SAYS */
	bool named;			/* CONST: written as a name */
	enum fact_id fact;		/* FACT, KNOWN */
	enum expr_function function;	/* CALL */
	const struct expr *a, *b;	/* SIGN: a is its expression */
};

#endif
