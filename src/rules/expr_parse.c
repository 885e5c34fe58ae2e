/* SPDX-License-Identifier: Apache-2.0
 * Parser of expressions: recursive descent, types checked on the way, so that a mistake in a
 * cause file is found when it is loaded and not when its rule is first needed.
 */
#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "rules/expr_parser.h"

#define DEPTH_MAX 64	/* nesting; cause files need five */

const struct expr *parser_fail(struct parser *p, const char *why)
{
	if (!p->failed)
		err_set(p->e, -EINVAL, "%s at '%.*s'", why,
			(int)(p->end - p->at > 40 ? 40 : p->end - p->at), p->at);
	p->failed = true;
	return NULL;
}

void parser_skip_space(struct parser *p)
{
	while (p->at < p->end && isspace((unsigned char)*p->at))
		p->at++;
}

/* Takes `token` when it comes next. */
bool parser_take(struct parser *p, const char *token)
{
	size_t len = strlen(token);

	parser_skip_space(p);
	if ((size_t)(p->end - p->at) < len || memcmp(p->at, token, len))
		return false;
	p->at += len;
	return true;
}

size_t parser_word_length(const struct parser *p)
{
	const char *s = p->at;

	if (s >= p->end || !(isalpha((unsigned char)*s) || *s == '_'))
		return 0;
	while (s < p->end && (isalnum((unsigned char)*s) || *s == '_' || *s == '.'))
		s++;
	return (size_t)(s - p->at);
}

bool parser_take_word(struct parser *p, const char *word)
{
	parser_skip_space(p);
	if (parser_word_length(p) != strlen(word) || memcmp(p->at, word, strlen(word)))
		return false;
	p->at += strlen(word);
	return true;
}

struct expr *parser_node(struct parser *p, enum expr_kind kind, enum value_type type,
			 const struct expr *a, const struct expr *b)
{
	struct expr *x = pool_alloc(p->pool, sizeof(*x));

	x->kind = kind;
	x->type = type;
	x->a = a;
	x->b = b;
	return x;
}

/* A binary operation on two operands of one type; `need` < 0 allows any. */
static const struct expr *binary(struct parser *p, enum expr_kind kind, enum value_type result,
				 int need, const struct expr *a, const struct expr *b)
{
	if (!a || !b)
		return NULL;
	if (a->type != b->type || (need >= 0 && a->type != (enum value_type)need))
		return parser_fail(p, "operands of different or wrong type");
	return parser_node(p, kind, result, a, b);
}

static const struct expr *parse_unary(struct parser *p)
{
	const struct expr *x;

	parser_skip_space(p);
	if (++p->depth > DEPTH_MAX)
		return parser_fail(p, "nested too deeply");
	if (p->at < p->end && *p->at == '!' && !(p->end - p->at > 1 && p->at[1] == '=')) {
		p->at++;
		x = parse_unary(p);
		if (x && x->type != TYPE_FLAG)
			return parser_fail(p, "! needs a yes or no before");
		x = x ? parser_node(p, EXPR_NOT, TYPE_FLAG, x, NULL) : NULL;
	} else if (parser_take(p, "-")) {
		x = parse_unary(p);
		if (x && x->type != TYPE_NUMBER)
			return parser_fail(p, "- needs a number before");
		x = x ? parser_node(p, EXPR_NEGATE, TYPE_NUMBER, x, NULL) : NULL;
	} else {
		x = parser_operand(p);
	}
	p->depth--;
	return x;
}

static const struct expr *parse_product(struct parser *p)
{
	const struct expr *x = parse_unary(p);

	while (x) {
		if (parser_take(p, "*"))
			x = binary(p, EXPR_MUL, TYPE_NUMBER, TYPE_NUMBER, x, parse_unary(p));
		else if (parser_take(p, "/"))
			x = binary(p, EXPR_DIV, TYPE_NUMBER, TYPE_NUMBER, x, parse_unary(p));
		else if (parser_take(p, "%"))
			x = binary(p, EXPR_MOD, TYPE_NUMBER, TYPE_NUMBER, x, parse_unary(p));
		else
			break;
	}
	return x;
}

static const struct expr *parse_sum(struct parser *p)
{
	const struct expr *x = parse_product(p);

	while (x) {
		if (parser_take(p, "+"))
			x = binary(p, EXPR_ADD, TYPE_NUMBER, TYPE_NUMBER, x, parse_product(p));
		else if (parser_take(p, "-"))
			x = binary(p, EXPR_SUB, TYPE_NUMBER, TYPE_NUMBER, x, parse_product(p));
		else
			break;
	}
	return x;
}

/* x in (a, b, c) is x == a || x == b || x == c. */
static const struct expr *parse_in(struct parser *p, const struct expr *x)
{
	const struct expr *any = NULL;

	if (!parser_take(p, "("))
		return parser_fail(p, "in needs a list in parentheses");
	do {
		const struct expr *one = binary(p, EXPR_EQ, TYPE_FLAG, -1, x, parse_sum(p));

		if (!one)
			return NULL;
		any = any ? parser_node(p, EXPR_OR, TYPE_FLAG, any, one) : one;
	} while (parser_take(p, ","));
	if (!parser_take(p, ")"))
		return parser_fail(p, "missing )");
	return any;
}

static const struct expr *parse_comparison(struct parser *p)
{
	static const struct { const char *token; enum expr_kind kind; int need; } ops[] = {
		{ "==", EXPR_EQ, -1 }, { "!=", EXPR_NE, -1 },
		{ "<=", EXPR_LE, TYPE_NUMBER }, { ">=", EXPR_GE, TYPE_NUMBER },
		{ "<", EXPR_LT, TYPE_NUMBER }, { ">", EXPR_GT, TYPE_NUMBER },
	};
	const struct expr *x = parse_sum(p);

	if (!x)
		return NULL;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (parser_take(p, ops[i].token))
			return binary(p, ops[i].kind, TYPE_FLAG, ops[i].need, x, parse_sum(p));
	if (parser_take_word(p, "in"))
		return parse_in(p, x);
	return x;
}

static const struct expr *parse_and(struct parser *p)
{
	const struct expr *x = parse_comparison(p);

	while (x && parser_take(p, "&&"))
		x = binary(p, EXPR_AND, TYPE_FLAG, TYPE_FLAG, x, parse_comparison(p));
	return x;
}

const struct expr *parser_or(struct parser *p)
{
	const struct expr *x = parse_and(p);

	while (x && parser_take(p, "||"))
		x = binary(p, EXPR_OR, TYPE_FLAG, TYPE_FLAG, x, parse_and(p));
	return x;
}

const struct expr *expr_parse(struct pool *pool, const char *text, size_t len, struct err *e)
{
	struct parser p = { .pool = pool, .at = text, .end = text + len, .e = e };
	const struct expr *x = parser_or(&p);

	parser_skip_space(&p);
	if (x && p.at < p.end)
		return parser_fail(&p, "cannot read the rest");
	return x;
}

enum value_type expr_type(const struct expr *x)
{
	return x->type;
}

void expr_says(const struct expr *x, bool all, expr_words_fn *fn, void *arg)
{
	if (!x)
		return;
	if (x->kind == EXPR_SAYS)
		fn(arg, x->value.text);
	if (x->kind == EXPR_NOT && !all)
		return;
	expr_says(x->a, all, fn, arg);
	expr_says(x->b, all, fn, arg);
}
