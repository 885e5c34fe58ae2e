/* SPDX-License-Identifier: Apache-2.0
 * Evaluates an expression over facts, in three-valued logic (see expr.h).
 */
#include <fnmatch.h>
#include <math.h>
#include <string.h>

#include "case/knowledge.h"
#include "verdict/rules/expr_node.h"

/* Neither true nor false. In &&, "does not apply" wins over "unknown", because the result can never become true; in
 * ||, it loses. */
static struct value undecided(const struct expr *x, struct value a, struct value b)
{
	bool none = !value_applies(a) || !value_applies(b),
	     all = (a.known || !value_applies(a)) && (b.known || !value_applies(b));

	return none && (x->kind != EXPR_OR || all) ? value_inapplicable(x->type) : value_unknown(x->type);
}

static struct value expr_logic(const struct expr *x, const struct casefile *f)
{
	/* the value that decides on its own: false for &&, true for || */
	bool decides = x->kind == EXPR_OR;
	struct value a = expr_eval(x->a, f), b;

	if (a.known && (a.number != 0) == decides)
		return value_flag(decides);
	b = expr_eval(x->b, f);
	if (b.known && (b.number != 0) == decides)
		return value_flag(decides);
	return a.known && b.known ? value_flag(!decides) : undecided(x, a, b);
}

static struct value arithmetic(enum expr_kind kind, double a, double b)
{
	double r;

	if ((kind == EXPR_DIV || kind == EXPR_MOD) && b == 0)
		return value_unknown(TYPE_NUMBER);
	switch (kind) {
	case EXPR_ADD: r = a + b; break;
	case EXPR_SUB: r = a - b; break;
	case EXPR_MUL: r = a * b; break;
	case EXPR_DIV: r = a / b; break;
	default: r = fmod(a, b); break;
	}
	return isfinite(r) ? value_number(r) : value_unknown(TYPE_NUMBER);
}

static struct value expr_compare(enum expr_kind kind, struct value a, struct value b)
{
	double d = a.type == TYPE_TEXT ? strcmp(a.text, b.text) : a.number - b.number;

	switch (kind) {
	case EXPR_EQ: return value_flag(d == 0);
	case EXPR_NE: return value_flag(d != 0);
	case EXPR_LT: return value_flag(d < 0);
	case EXPR_LE: return value_flag(d <= 0);
	case EXPR_GT: return value_flag(d > 0);
	default: return value_flag(d >= 0);
	}
}

/* A value computed from an absent one is absent in a sentence; a comparison with it is an ordinary answer. */
static struct value mark_absent(struct value v, bool absent)
{
	v.absent = absent;
	return v;
}

static struct value call_value(const struct expr *x, struct value a, struct value b)
{
	switch (x->function) {
	case CALL_contains: return value_flag(strstr(a.text, b.text) && knowledge_use(KNOWLEDGE_WORDS, "", b.text));
	case CALL_matches:
		return value_flag(!fnmatch(b.text, a.text, 0) && knowledge_use(KNOWLEDGE_WORDS, "", b.text));
	case CALL_ceil: return value_number(ceil(a.number));
	case CALL_floor: return value_number(floor(a.number));
	case CALL_abs: return value_number(fabs(a.number));
	case CALL_min: return value_number(fmin(a.number, b.number));
	case CALL_max: return value_number(fmax(a.number, b.number));
	default: return value_unknown(x->type);
	}
}

static struct value call(const struct expr *x, const struct casefile *f)
{
	struct value a = expr_eval(x->a, f), b = x->b ? expr_eval(x->b, f) : a;

	if (!a.known || !b.known)
		return undecided(x, a, b);
	return mark_absent(call_value(x, a, b), a.absent || b.absent);
}

static struct value operate(const struct expr *x, const struct casefile *f)
{
	struct value a = expr_eval(x->a, f), b = x->b ? expr_eval(x->b, f) : a;

	if (!a.known || !b.known)
		return undecided(x, a, b);
	if (x->kind == EXPR_NOT)
		return value_flag(a.number == 0);
	if (x->kind == EXPR_NEGATE)
		return mark_absent(value_number(-a.number), a.absent);
	if (x->kind >= EXPR_EQ && x->kind <= EXPR_GE)
		return expr_compare(x->kind, a, b);
	return mark_absent(arithmetic(x->kind, a.number, b.number), a.absent || b.absent);
}

struct value expr_eval(const struct expr *x, const struct casefile *f)
{
	switch (x->kind) {
	case EXPR_CONST: return x->value;
	case EXPR_FACT: return fact_value(f, x->fact);
	case EXPR_KNOWN: return value_flag(fact_known(f, x->fact));
	case EXPR_AND:
	case EXPR_OR: return expr_logic(x, f);
	case EXPR_CALL: return call(x, f);
	case EXPR_SAYS:
		return value_flag(case_hit(f, x->value.text) &&
				  knowledge_use(KNOWLEDGE_WORDS, "", x->value.text));
	case EXPR_SIGN: return expr_eval(x->a, f);
	default: return operate(x, f);
	}
}

static bool holds(const struct expr *x, const struct casefile *f)
{
	struct value v = expr_eval(x, f);

	return v.known && v.number != 0;
}

void expr_grounds(const struct expr *x, const struct casefile *f, expr_ground_fn *fn, void *arg)
{
	bool either = x && x->kind == EXPR_OR;

	if (!x || x->kind == EXPR_NOT)
		return;
	if (x->kind == EXPR_SAYS)
		fn(arg, x->value.text, x->fact);
	if (x->kind == EXPR_FACT || x->kind == EXPR_KNOWN)
		fn(arg, NULL, x->fact);
	if (!either || holds(x->a, f))
		expr_grounds(x->a, f, fn, arg);
	if (!either || holds(x->b, f))
		expr_grounds(x->b, f, fn, arg);
}
