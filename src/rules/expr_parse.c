/* SPDX-License-Identifier: Apache-2.0
 * Parser of expressions: recursive descent, types checked on the way, so that a mistake in a
 * cause file is found when it is loaded and not when its rule is first needed.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "rules/expr_node.h"
#include "text/needles.h"

#define DEPTH_MAX 64	/* nesting; cause files need five */

struct parser {
	struct pool *pool;
	const char *at, *end;
	struct err *e;
	bool failed;
	int depth;
};

static const struct expr *parse_or(struct parser *p);

static const struct expr *fail(struct parser *p, const char *why)
{
	if (!p->failed)
		err_set(p->e, -EINVAL, "%s at '%.*s'", why,
			(int)(p->end - p->at > 40 ? 40 : p->end - p->at), p->at);
	p->failed = true;
	return NULL;
}

static void skip_space(struct parser *p)
{
	while (p->at < p->end && isspace((unsigned char)*p->at))
		p->at++;
}

/* Takes `token` when it comes next. */
static bool take(struct parser *p, const char *token)
{
	size_t len = strlen(token);

	skip_space(p);
	if ((size_t)(p->end - p->at) < len || memcmp(p->at, token, len))
		return false;
	p->at += len;
	return true;
}

static size_t word_length(const struct parser *p)
{
	const char *s = p->at;

	if (s >= p->end || !(isalpha((unsigned char)*s) || *s == '_'))
		return 0;
	while (s < p->end && (isalnum((unsigned char)*s) || *s == '_' || *s == '.'))
		s++;
	return (size_t)(s - p->at);
}

static bool take_word(struct parser *p, const char *word)
{
	skip_space(p);
	if (word_length(p) != strlen(word) || memcmp(p->at, word, strlen(word)))
		return false;
	p->at += strlen(word);
	return true;
}

static struct expr *node(struct parser *p, enum expr_kind kind, enum value_type type,
			 const struct expr *a, const struct expr *b)
{
	struct expr *x = pool_alloc(p->pool, sizeof(*x));

	x->kind = kind;
	x->type = type;
	x->a = a;
	x->b = b;
	return x;
}

static const struct expr *constant(struct parser *p, struct value v)
{
	struct expr *x = node(p, EXPR_CONST, v.type, NULL, NULL);

	x->value = v;
	return x;
}

/* A binary operation on two operands of one type; `need` < 0 allows any. */
static const struct expr *binary(struct parser *p, enum expr_kind kind, enum value_type result,
				 int need, const struct expr *a, const struct expr *b)
{
	if (!a || !b)
		return NULL;
	if (a->type != b->type || (need >= 0 && a->type != (enum value_type)need))
		return fail(p, "operands of different or wrong type");
	return node(p, kind, result, a, b);
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
		return fail(p, "not a number");
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
		return fail(p, "text without closing quote");
	p->at++;
	return constant(p, value_text(text));
}

static const struct expr *parse_fact(struct parser *p, enum expr_kind kind)
{
	size_t len;
	struct expr *x;
	int id;

	skip_space(p);
	len = word_length(p);
	id = len ? fact_find(p->at, len) : -1;
	if (id < 0)
		return fail(p, "no such fact");
	p->at += len;
	x = node(p, kind, kind == EXPR_KNOWN ? TYPE_FLAG : fact_type(id), NULL, NULL);
	x->fact = id;
	return x;
}

static const struct expr *parse_known(struct parser *p)
{
	const struct expr *x;

	if (!take(p, "("))
		return fail(p, "known needs a fact in parentheses");
	x = parse_fact(p, EXPR_KNOWN);
	if (x && !take(p, ")"))
		return fail(p, "missing )");
	return x;
}

static const struct expr *parse_call(struct parser *p, enum expr_function function, int n,
				     enum value_type arg, enum value_type result)
{
	const struct expr *a, *b = NULL;
	struct expr *x;

	if (!take(p, "("))
		return fail(p, "a function needs its arguments in parentheses");
	a = parse_or(p);
	if (a && n == 2) {
		if (!take(p, ","))
			return fail(p, "this function has two arguments");
		b = parse_or(p);
		if (!b)
			return NULL;
	}
	if (!a)
		return NULL;
	if (!take(p, ")"))
		return fail(p, "missing )");
	if (a->type != arg || (b && b->type != arg))
		return fail(p, "argument of the wrong type before");
	x = node(p, EXPR_CALL, result, a, b);
	x->function = function;
	return x;
}

/* says("a", "b") is says("a") || says("b"). */
static const struct expr *parse_says(struct parser *p)
{
	const struct expr *any = NULL, *words;
	struct expr *one;

	if (!take(p, "("))
		return fail(p, "says needs texts in parentheses");
	do {
		skip_space(p);
		words = p->at < p->end && *p->at == '"' ? parse_string(p) : fail(p, "says needs texts");
		if (!words)
			return NULL;
		if (!needle_ok(words->value.text))
			return fail(p, "says needs six characters in a row before");
		one = node(p, EXPR_SAYS, TYPE_FLAG, NULL, NULL);
		one->value = words->value;
		any = any ? node(p, EXPR_OR, TYPE_FLAG, any, one) : one;
	} while (take(p, ","));
	if (!take(p, ")"))
		return fail(p, "missing )");
	return any;
}

static const struct expr *parse_word(struct parser *p)
{
	if (take_word(p, "true"))
		return constant(p, value_flag(true));
	if (take_word(p, "false"))
		return constant(p, value_flag(false));
	if (take_word(p, "known"))
		return parse_known(p);
	if (take_word(p, "says"))
		return parse_says(p);
#define X(name, n, arg, result)         \
	if (take_word(p, #name))        \
		return parse_call(p, CALL_##name, n, TYPE_##arg, TYPE_##result);
	EXPR_FUNCTIONS(X)
#undef X
	return parse_fact(p, EXPR_FACT);
}

static const struct expr *parse_primary(struct parser *p)
{
	const struct expr *x;

	skip_space(p);
	if (p->at >= p->end)
		return fail(p, "expression ends too early");
	if (take(p, "(")) {
		x = parse_or(p);
		if (x && !take(p, ")"))
			return fail(p, "missing )");
		return x;
	}
	if (*p->at == '"')
		return parse_string(p);
	if (isdigit((unsigned char)*p->at))
		return parse_number(p);
	return parse_word(p);
}

static const struct expr *parse_unary(struct parser *p)
{
	const struct expr *x;

	skip_space(p);
	if (++p->depth > DEPTH_MAX)
		return fail(p, "nested too deeply");
	if (p->at < p->end && *p->at == '!' && !(p->end - p->at > 1 && p->at[1] == '=')) {
		p->at++;
		x = parse_unary(p);
		if (x && x->type != TYPE_FLAG)
			return fail(p, "! needs a yes or no before");
		x = x ? node(p, EXPR_NOT, TYPE_FLAG, x, NULL) : NULL;
	} else if (take(p, "-")) {
		x = parse_unary(p);
		if (x && x->type != TYPE_NUMBER)
			return fail(p, "- needs a number before");
		x = x ? node(p, EXPR_NEGATE, TYPE_NUMBER, x, NULL) : NULL;
	} else {
		x = parse_primary(p);
	}
	p->depth--;
	return x;
}

static const struct expr *parse_product(struct parser *p)
{
	const struct expr *x = parse_unary(p);

	while (x) {
		if (take(p, "*"))
			x = binary(p, EXPR_MUL, TYPE_NUMBER, TYPE_NUMBER, x, parse_unary(p));
		else if (take(p, "/"))
			x = binary(p, EXPR_DIV, TYPE_NUMBER, TYPE_NUMBER, x, parse_unary(p));
		else if (take(p, "%"))
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
		if (take(p, "+"))
			x = binary(p, EXPR_ADD, TYPE_NUMBER, TYPE_NUMBER, x, parse_product(p));
		else if (take(p, "-"))
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

	if (!take(p, "("))
		return fail(p, "in needs a list in parentheses");
	do {
		const struct expr *one = binary(p, EXPR_EQ, TYPE_FLAG, -1, x, parse_sum(p));

		if (!one)
			return NULL;
		any = any ? node(p, EXPR_OR, TYPE_FLAG, any, one) : one;
	} while (take(p, ","));
	if (!take(p, ")"))
		return fail(p, "missing )");
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
		if (take(p, ops[i].token))
			return binary(p, ops[i].kind, TYPE_FLAG, ops[i].need, x, parse_sum(p));
	if (take_word(p, "in"))
		return parse_in(p, x);
	return x;
}

static const struct expr *parse_and(struct parser *p)
{
	const struct expr *x = parse_comparison(p);

	while (x && take(p, "&&"))
		x = binary(p, EXPR_AND, TYPE_FLAG, TYPE_FLAG, x, parse_comparison(p));
	return x;
}

static const struct expr *parse_or(struct parser *p)
{
	const struct expr *x = parse_and(p);

	while (x && take(p, "||"))
		x = binary(p, EXPR_OR, TYPE_FLAG, TYPE_FLAG, x, parse_and(p));
	return x;
}

const struct expr *expr_parse(struct pool *pool, const char *text, size_t len, struct err *e)
{
	struct parser p = { .pool = pool, .at = text, .end = text + len, .e = e };
	const struct expr *x = parse_or(&p);

	skip_space(&p);
	if (x && p.at < p.end)
		return fail(&p, "cannot read the rest");
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
