/* SPDX-License-Identifier: Apache-2.0
 * Operands of expressions: numbers, texts, facts, calls (see expr_parse.c).
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "rules/expr_parser.h"
#include "base/needles.h"

static const struct expr *constant(struct parser *p, struct value v)
{
	struct expr *x = parser_node(p, EXPR_CONST, v.type, NULL, NULL);

	x->value = v;
	return x;
}

static const struct expr *parse_number(struct parser *p)
{
	char digits[64];
	char *stop;
	size_t n = 0;
	double v;

	while (n + 1 < sizeof(digits) && p->at + n < p->end &&
	       (isalnum((unsigned char)p->at[n]) || p->at[n] == '.')) {
		digits[n] = p->at[n];
		n++;
	}
	digits[n] = '\0';
	v = strtod(digits, &stop);
	if (!n || *stop || v != v)
		return parser_fail(p, "not a number");
	p->at += n;
	return constant(p, value_number(v));
}

static const struct expr *parse_string(struct parser *p)
{
	char *text = pool_alloc(p->pool, (size_t)(p->end - p->at) + 1);
	size_t n = 0;

	for (p->at++; p->at < p->end && *p->at != '"'; p->at++) {
		if (*p->at == '\\' && p->at + 1 < p->end)
			p->at++;
		text[n++] = *p->at;
	}
	if (p->at >= p->end)
		return parser_fail(p, "text without closing quote");
	p->at++;
	return constant(p, value_text(text));
}

static const struct expr *parse_fact(struct parser *p, enum expr_kind kind)
{
	size_t len;
	struct expr *x;
	int id;

	parser_skip_space(p);
	len = parser_word_length(p);
	id = len ? fact_find(p->at, len) : -1;
	if (id < 0)
		return parser_fail(p, "no such fact");
	if (fact_type((enum fact_id)id) == TYPE_TRIPLE && kind == EXPR_FACT)
		return parser_fail(p, "three numbers cannot be compared");
	p->at += len;
	x = parser_node(p, kind, kind == EXPR_KNOWN ? TYPE_FLAG : fact_type(id), NULL, NULL);
	x->fact = id;
	return x;
}

static const struct expr *parse_known(struct parser *p)
{
	const struct expr *x;

	if (!parser_take(p, "("))
		return parser_fail(p, "known needs a fact in parentheses");
	x = parse_fact(p, EXPR_KNOWN);
	if (x && !parser_take(p, ")"))
		return parser_fail(p, "missing )");
	return x;
}

static const struct expr *parse_call(struct parser *p, enum expr_function function, int n,
				     enum value_type arg, enum value_type result)
{
	const struct expr *a, *b = NULL;
	struct expr *x;

	if (!parser_take(p, "("))
		return parser_fail(p, "a function needs its arguments in parentheses");
	a = parser_or(p);
	if (a && n == 2) {
		if (!parser_take(p, ","))
			return parser_fail(p, "this function has two arguments");
		b = parser_or(p);
		if (!b)
			return NULL;
	}
	if (!a)
		return NULL;
	if (!parser_take(p, ")"))
		return parser_fail(p, "missing )");
	if (a->type != arg || (b && b->type != arg))
		return parser_fail(p, "argument of the wrong type before");
	x = parser_node(p, EXPR_CALL, result, a, b);
	x->function = function;
	return x;
}

/* says("a", "b") is says("a") || says("b"). */
static const struct expr *parse_says(struct parser *p)
{
	const struct expr *any = NULL, *words;
	struct expr *one;

	if (!parser_take(p, "("))
		return parser_fail(p, "says needs texts in parentheses");
	do {
		parser_skip_space(p);
		words = p->at < p->end && *p->at == '"' ? parse_string(p) : parser_fail(p, "says needs texts");
		if (!words)
			return NULL;
		if (!needle_ok(words->value.text))
			return parser_fail(p, "says needs six characters in a row before");
		one = parser_node(p, EXPR_SAYS, TYPE_FLAG, NULL, NULL);
		one->value = words->value;
		any = any ? parser_node(p, EXPR_OR, TYPE_FLAG, any, one) : one;
	} while (parser_take(p, ","));
	if (!parser_take(p, ")"))
		return parser_fail(p, "missing )");
	return any;
}

static const struct expr *parse_word(struct parser *p)
{
	if (parser_take_word(p, "true"))
		return constant(p, value_flag(true));
	if (parser_take_word(p, "false"))
		return constant(p, value_flag(false));
	if (parser_take_word(p, "known"))
		return parse_known(p);
	if (parser_take_word(p, "says"))
		return parse_says(p);
#define X(name, n, arg, result)         \
	if (parser_take_word(p, #name))        \
		return parse_call(p, CALL_##name, n, TYPE_##arg, TYPE_##result);
	EXPR_FUNCTIONS(X)
#undef X
	return parse_fact(p, EXPR_FACT);
}

const struct expr *parser_operand(struct parser *p)
{
	const struct expr *x;

	parser_skip_space(p);
	if (p->at >= p->end)
		return parser_fail(p, "expression ends too early");
	if (parser_take(p, "(")) {
		x = parser_or(p);
		if (x && !parser_take(p, ")"))
			return parser_fail(p, "missing )");
		return x;
	}
	if (*p->at == '"')
		return parse_string(p);
	if (isdigit((unsigned char)*p->at))
		return parse_number(p);
	return parse_word(p);
}
