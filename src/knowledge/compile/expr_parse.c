/* SPDX-License-Identifier: Apache-2.0
 * Parser of expressions: recursive descent, types checked on the way, so that a mistake in a
 * cause file is found when it is loaded and not when its rule is first needed.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "compat/cuda_errors.h"
#include "knowledge/compile/compile.h"

#define DEPTH_MAX 64	/* nesting depth; cause files need five */

struct parser {
	struct arena *arena;
	const struct expr_scope *scope;
	const char *at, *end;
	struct err *e;
	bool failed;
	int depth;
};

static const struct expr *parse_or(struct parser *p);

static const struct expr *parser_fail(struct parser *p, const char *why)
{
	if (!p->failed)
		err_set(p->e, -EINVAL, "%s at '%.*s'", why,
			(int)(p->end - p->at > 40 ? 40 : p->end - p->at), p->at);
	p->failed = true;
	return NULL;
}

static void parser_skip_space(struct parser *p)
{
	while (p->at < p->end && isspace((unsigned char)*p->at))
		p->at++;
}

/* Consumes `token` if it comes next. */
static bool parser_take(struct parser *p, const char *token)
{
	size_t len = strlen(token);

	parser_skip_space(p);
	if ((size_t)(p->end - p->at) < len || memcmp(p->at, token, len))
		return false;
	p->at += len;
	return true;
}

static size_t parser_word_length(const struct parser *p)
{
	const char *s = p->at;

	if (s >= p->end || !(isalpha((unsigned char)*s) || *s == '_'))
		return 0;
	while (s < p->end && (isalnum((unsigned char)*s) || *s == '_' || *s == '.'))
		s++;
	return (size_t)(s - p->at);
}

static bool parser_take_word(struct parser *p, const char *word)
{
	parser_skip_space(p);
	if (parser_word_length(p) != strlen(word) || memcmp(p->at, word, strlen(word)))
		return false;
	p->at += strlen(word);
	return true;
}

static struct expr *parser_node(struct parser *p, enum expr_kind kind, enum value_type type,
				const struct expr *a, const struct expr *b)
{
	struct expr *x = arena_alloc(p->arena, sizeof(*x));

	x->kind = (uint8_t)kind;
	x->type = (uint8_t)type;
	REF_SET(x->a, a);
	REF_SET(x->b, b);
	return x;
}

static const struct expr *parser_number(struct parser *p, enum value_type type, double number)
{
	struct expr *x = parser_node(p, EXPR_CONST, type, NULL, NULL);

	x->number = number;
	return x;
}

static const struct expr *parser_text(struct parser *p, enum expr_kind kind, enum value_type type, const char *text)
{
	struct expr *x = parser_node(p, kind, type, NULL, NULL);

	REF_SET(x->text, text);
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
	return parser_number(p, TYPE_NUMBER, v);
}

/* NULL: it has no end. */
static const char *parse_quoted(struct parser *p)
{
	char *text = xmalloc((size_t)(p->end - p->at) + 1);
	const char *kept;
	size_t n = 0;

	for (p->at++; p->at < p->end && *p->at != '"'; p->at++) {
		if (*p->at == '\\' && p->at + 1 < p->end)
			p->at++;
		text[n++] = *p->at;
	}
	text[n] = '\0';
	kept = arena_text(p->arena, text);
	free(text);
	if (p->at >= p->end)
		return parser_fail(p, "text without closing quote"), NULL;
	p->at++;
	return kept;
}

static const struct expr *parse_string(struct parser *p)
{
	const char *text = parse_quoted(p);

	return text ? parser_text(p, EXPR_CONST, TYPE_TEXT, text) : NULL;
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
	x->fact = (uint16_t)id;
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
	a = parse_or(p);
	if (a && n == 2) {
		if (!parser_take(p, ","))
			return parser_fail(p, "this function has two arguments");
		b = parse_or(p);
		if (!b)
			return NULL;
	}
	if (!a)
		return NULL;
	if (!parser_take(p, ")"))
		return parser_fail(p, "missing )");
	if (a->type != arg || (b && b->type != arg))
		return parser_fail(p, "argument of the wrong type, before the text");
	x = parser_node(p, EXPR_CALL, result, a, b);
	x->function = (uint8_t)function;
	return x;
}

/* says("a", "b") is says("a") || says("b"). */
static const struct expr *parse_says(struct parser *p)
{
	const struct expr *any = NULL, *one;
	const char *words;

	if (!parser_take(p, "("))
		return parser_fail(p, "says needs texts in parentheses");
	do {
		parser_skip_space(p);
		if (p->at >= p->end || *p->at != '"')
			return parser_fail(p, "says needs texts");
		words = parse_quoted(p);
		if (!words)
			return NULL;
		if (!needle_ok(words))
			return parser_fail(p, "says needs six characters in a row, before the text");
		one = parser_text(p, EXPR_SAYS, TYPE_FLAG, words);
		any = any ? parser_node(p, EXPR_OR, TYPE_FLAG, any, one) : one;
	} while (parser_take(p, ","));
	if (!parser_take(p, ")"))
		return parser_fail(p, "missing )");
	return any;
}

/* A sign works as if its expression were written here in parentheses. */
static const struct expr *parse_sign(struct parser *p, const char *name, size_t len)
{
	const struct kb_sign *sign;
	struct expr *x;

	if (!p->scope->sign)
		return parser_fail(p, "signs cannot be used here");
	sign = p->scope->sign(p->scope->arg, name, len, p->e);
	if (!sign) {
		p->failed = true;	/* the error is already set */
		return NULL;
	}
	p->at = name + len;
	x = parser_node(p, EXPR_SIGN, TYPE_FLAG, AT(sign->expr), NULL);
	REF_SET(x->sign, sign);
	return x;
}

/* The rest of the next word, after a prefix such as "cuda."; NULL = it does not have this prefix. */
static const char *parser_name_behind(const struct parser *p, const char *prefix, size_t *len)
{
	size_t all = parser_word_length(p), skip = strlen(prefix);

	if (all <= skip || memcmp(p->at, prefix, skip) != 0)
		return NULL;
	*len = all - skip;
	return p->at + skip;
}

static const struct expr *named_number(struct parser *p, const char *end, double number)
{
	struct expr *x = parser_node(p, EXPR_CONST, TYPE_NUMBER, NULL, NULL);

	x->number = number;
	x->named = true;
	p->at = end;
	return x;
}

static const struct expr *parse_code(struct parser *p, const char *name, size_t len)
{
	int code = cuda_code_find(name, len);

	return code < 0 ? parser_fail(p, "no such code in kb/cuda_errors.def") : named_number(p, name + len, code);
}

bool expr_threshold(const char *name, size_t len, double *value)
{
	static const struct {
		const char *name;
		double value;
	} limits[] = {
#define LIMIT(name, value, reason) {#name, value},
#include "kb/limits.def"
#undef LIMIT
	};

	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		if (!strncmp(limits[i].name, name, len) && !limits[i].name[len]) {
			*value = limits[i].value;
			return true;
		}
	}
	return false;
}

static const struct expr *parse_threshold(struct parser *p, const char *name, size_t len)
{
	double value;

	return expr_threshold(name, len, &value) ? named_number(p, name + len, value)
						 : parser_fail(p, "no such number in kb/limits.def");
}

static bool is_phrase_function(const char *word, size_t len)
{
	static const char *const names[] = {"says", "contains", "matches"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (len == strlen(names[i]) && !memcmp(word, names[i], len))
			return true;
	return false;
}

/* A fact, or a name with the prefix of its table. */
static const struct expr *parse_dotted_word(struct parser *p)
{
	const char *name;
	size_t len;

	if ((name = parser_name_behind(p, "sign.", &len)) != NULL)
		return parse_sign(p, name, len);
	if ((name = parser_name_behind(p, "cuda.", &len)) != NULL)
		return parse_code(p, name, len);
	if ((name = parser_name_behind(p, "threshold.", &len)) != NULL)
		return parse_threshold(p, name, len);
	return parse_fact(p, EXPR_FACT);
}

static const struct expr *parse_word(struct parser *p)
{
	size_t len = parser_word_length(p);

	if (memchr(p->at, '.', len))
		return parse_dotted_word(p);
	if (p->scope->place != EXPR_FREE && is_phrase_function(p->at, len))
		return parser_fail(p, "phrases belong in a sign (kb/signs), which the rule uses as sign.name");
	if (parser_take_word(p, "true"))
		return parser_number(p, TYPE_FLAG, true);
	if (parser_take_word(p, "false"))
		return parser_number(p, TYPE_FLAG, false);
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

static const struct expr *parse_operand(struct parser *p)
{
	const struct expr *x;

	parser_skip_space(p);
	if (p->at >= p->end)
		return parser_fail(p, "expression ends too early");
	if (parser_take(p, "(")) {
		x = parse_or(p);
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

static bool holds_cuda_code(const struct expr *x)
{
	return x->kind == EXPR_FACT && (x->fact == FACT_error_code || x->fact == FACT_driver_init);
}

/* A number that means nothing unless you know the table by heart: 700. */
static bool is_bare_code(const struct expr *code, const struct expr *number)
{
	return holds_cuda_code(code) && number->kind == EXPR_CONST && !number->named && number->number != 0;
}

/* A number to compare or calculate with, without a documented reason: 134217728. */
static bool is_bare_threshold(enum expr_kind kind, const struct expr *x)
{
	if (x->kind == EXPR_NEGATE)
		x = AT(x->a);
	return kind != EXPR_EQ && kind != EXPR_NE && x->kind == EXPR_CONST && x->type == TYPE_NUMBER && !x->named &&
	       x->number != 0 && x->number != 1;
}

/* A binary operation on two operands of one type; `need` < 0 allows any. */
static const struct expr *parser_binary(struct parser *p, enum expr_kind kind, enum value_type result, int need,
					const struct expr *a, const struct expr *b)
{
	if (!a || !b)
		return NULL;
	if (a->type != b->type || (need >= 0 && a->type != (enum value_type)need))
		return parser_fail(p, "operands of different or wrong type");
	if (p->scope->place != EXPR_FREE && (is_bare_code(a, b) || is_bare_code(b, a)))
		return parser_fail(p, "a CUDA error code needs its name (cuda.name, cuda_set.name), before the text");
	if (p->scope->place == EXPR_RULE && (is_bare_threshold(kind, a) || is_bare_threshold(kind, b)))
		return parser_fail(
			p, "a number needs its name and reason (kb/limits.def, threshold.name), before the text");
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
			return parser_fail(p, "! needs true or false, before the text");
		x = x ? parser_node(p, EXPR_NOT, TYPE_FLAG, x, NULL) : NULL;
	} else if (parser_take(p, "-")) {
		x = parse_unary(p);
		if (x && x->type != TYPE_NUMBER)
			return parser_fail(p, "- needs a number, before the text");
		x = x ? parser_node(p, EXPR_NEGATE, TYPE_NUMBER, x, NULL) : NULL;
	} else {
		x = parse_operand(p);
	}
	p->depth--;
	return x;
}

static const struct expr *parse_product(struct parser *p)
{
	const struct expr *x = parse_unary(p);

	while (x) {
		if (parser_take(p, "*"))
			x = parser_binary(p, EXPR_MUL, TYPE_NUMBER, TYPE_NUMBER, x, parse_unary(p));
		else if (parser_take(p, "/"))
			x = parser_binary(p, EXPR_DIV, TYPE_NUMBER, TYPE_NUMBER, x, parse_unary(p));
		else if (parser_take(p, "%"))
			x = parser_binary(p, EXPR_MOD, TYPE_NUMBER, TYPE_NUMBER, x, parse_unary(p));
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
			x = parser_binary(p, EXPR_ADD, TYPE_NUMBER, TYPE_NUMBER, x, parse_product(p));
		else if (parser_take(p, "-"))
			x = parser_binary(p, EXPR_SUB, TYPE_NUMBER, TYPE_NUMBER, x, parse_product(p));
		else
			break;
	}
	return x;
}

/* x in cuda_set.name is x == a || x == b for the codes in it. */
static const struct expr *parse_in_set(struct parser *p, const struct expr *x, const char *name, size_t len)
{
	int set = cuda_error_set_find(name, len);
	const struct expr *any = NULL;
	const uint16_t *codes;
	size_t n;

	if (set < 0)
		return parser_fail(p, "no such set in kb/error_sets.def");
	if (x->type != TYPE_NUMBER)
		return parser_fail(p, "only a number can be in a set of codes");
	p->at = name + len;
	n = cuda_error_set_codes((enum cuda_error_set)set, &codes);
	for (size_t i = 0; i < n; i++) {
		const struct expr *one =
			parser_node(p, EXPR_EQ, TYPE_FLAG, x, parser_number(p, TYPE_NUMBER, codes[i]));

		any = any ? parser_node(p, EXPR_OR, TYPE_FLAG, any, one) : one;
	}
	return any;
}

/* x in (a, b, c) is x == a || x == b || x == c. */
static const struct expr *parse_in(struct parser *p, const struct expr *x)
{
	const struct expr *any = NULL;
	const char *name;
	size_t len;

	parser_skip_space(p);
	if ((name = parser_name_behind(p, "cuda_set.", &len)) != NULL)
		return parse_in_set(p, x, name, len);
	if (!parser_take(p, "("))
		return parser_fail(p, "in needs a list in parentheses");
	do {
		const struct expr *one = parser_binary(p, EXPR_EQ, TYPE_FLAG, -1, x, parse_sum(p));

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
		{"==", EXPR_EQ, -1},	      {"!=", EXPR_NE, -1},	   {"<=", EXPR_LE, TYPE_NUMBER},
		{">=", EXPR_GE, TYPE_NUMBER}, {"<", EXPR_LT, TYPE_NUMBER}, {">", EXPR_GT, TYPE_NUMBER},
	};
	const struct expr *x = parse_sum(p);

	if (!x)
		return NULL;
	for (size_t i = 0; i < sizeof(ops) / sizeof(ops[0]); i++)
		if (parser_take(p, ops[i].token))
			return parser_binary(p, ops[i].kind, TYPE_FLAG, ops[i].need, x, parse_sum(p));
	if (parser_take_word(p, "in"))
		return parse_in(p, x);
	return x;
}

static const struct expr *parse_and(struct parser *p)
{
	const struct expr *x = parse_comparison(p);

	while (x && parser_take(p, "&&"))
		x = parser_binary(p, EXPR_AND, TYPE_FLAG, TYPE_FLAG, x, parse_comparison(p));
	return x;
}

static const struct expr *parse_or(struct parser *p)
{
	const struct expr *x = parse_and(p);

	while (x && parser_take(p, "||"))
		x = parser_binary(p, EXPR_OR, TYPE_FLAG, TYPE_FLAG, x, parse_and(p));
	return x;
}

const struct expr *expr_parse(const struct expr_scope *scope, struct arena *a, const char *text, size_t len,
			      struct err *e)
{
	static const struct expr_scope anywhere = {0};
	struct parser p = {.arena = a, .scope = scope ? scope : &anywhere, .at = text, .end = text + len, .e = e};
	const struct expr *x = parse_or(&p);

	parser_skip_space(&p);
	if (x && p.at < p.end)
		return parser_fail(&p, "cannot parse the rest,");
	return x;
}

void expr_says(const struct expr *x, expr_words_fn *fn, void *arg)
{
	if (!x)
		return;
	if (x->kind == EXPR_SAYS)
		fn(arg, x);
	expr_says(AT(x->a), fn, arg);
	expr_says(AT(x->b), fn, arg);
}
