/* SPDX-License-Identifier: Apache-2.0
 * An expression over facts, as it is after cuwhy was built: a typed tree. kb/causes, kb/signs and kb/checks.def have them in this language,
 * which knowledge/compile/expr_parse.c reads and verdict/rules/expr_eval.c evaluates:
 *
 *   facts by dotted name, numbers, "texts", true, false, ( )
 *   sign.some_name      a sign of kb/signs: true or false, according to its expression
 *   threshold.some_name                                  a number of kb/limits.def
 *   cuda.illegal_address, x in cuda_set.illegal_access   codes of kb/cuda_errors.def, sets of kb/error_sets.def
 *   * / %   + -   < <= > >= == !=   x in (a, b, c)   !   &&   ||
 *   known(fact)  contains(text, text)  matches(text, glob)  ceil floor abs  min max
 *   says("words", ...)  the text passed to cuwhy explain contains one of them, ignoring case; '*' matches anything on the
 *                       line. False when there is no text
 */
#ifndef CUWHY_KNOWLEDGE_EXPR_H
#define CUWHY_KNOWLEDGE_EXPR_H

#include "base/ref.h"
#include "case/case.h"

struct kb_sign;

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
	uint8_t kind;		/* enum expr_kind */
	uint8_t type;		/* enum value_type */
	uint8_t function;	/* CALL: enum expr_function */
	bool named;		/* CONST: written as a name */
	uint16_t fact;		/* FACT, KNOWN: enum fact_id */
	uint16_t word;		/* SAYS: its number in knowledge/words.h */
	REF(const struct expr) a, b;	/* SIGN: a is its expression */
	union {
		double number;			/* CONST: a number or a flag */
		REF(const char) text;		/* CONST: a text; SAYS: the words */
		REF(const struct kb_sign) sign;	/* SIGN */
	};
};

static inline enum value_type expr_type(const struct expr *x)
{
	return (enum value_type)x->type;
}

#endif
