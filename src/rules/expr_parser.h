/* SPDX-License-Identifier: Apache-2.0
 * An expression that is being parsed: shared by the parsers of operators and of operands, by nobody else.
 */
#ifndef CUWHY_EXPR_PARSER_H
#define CUWHY_EXPR_PARSER_H

#include "rules/expr_node.h"

struct err;

struct parser {
	struct pool *pool;
	const char *at, *end;
	struct err *e;
	bool failed;
	int depth;
};

/* NULL; the first reason counts. */
const struct expr *parser_fail(struct parser *p, const char *why);

bool parser_take(struct parser *p, const char *token);		/* this comes next: it is taken */
bool parser_take_word(struct parser *p, const char *word);
void parser_skip_space(struct parser *p);
size_t parser_word_length(const struct parser *p);		/* of the word that comes next; 0 = none does */
struct expr *parser_node(struct parser *p, enum expr_kind kind, enum value_type type, const struct expr *a, const struct expr *b);

/* A whole expression; expr_parse.c. */
const struct expr *parser_or(struct parser *p);
/* A number, a text, a fact, a call or an expression in parentheses; expr_operand.c. */
const struct expr *parser_operand(struct parser *p);

#endif
