/* SPDX-License-Identifier: Apache-2.0
 * What only a text can fulfill: a rule need not say so (see compile.h).
 */
#include "case/case.h"
#include "knowledge/compile/compile.h"

static bool is_of_text(const struct expr *x)
{
	return fact_group((enum fact_id)x->fact) == GROUP_text;
}

/* Is there a fact of a text in it? It is not known where there is no text, and what is computed from it is not, either. */
static bool needs_text(const struct expr *x)
{
	if (!x)
		return false;
	if (x->kind == EXPR_FACT)
		return is_of_text(x);
	return x->kind != EXPR_KNOWN && x->kind != EXPR_SAYS && x->kind != EXPR_SIGN &&
	       (needs_text(AT(x->a)) || needs_text(AT(x->b)));
}

static bool asks_for_text(const struct expr *x)
{
	return x->kind == EXPR_FACT && x->fact == FACT_text_is;
}

/* `asking` does not count `text.is` itself. */
static bool only_of_text(const struct expr *x, bool asking)
{
	const struct expr *a = AT(x->a), *b = AT(x->b);

	switch (x->kind) {
	case EXPR_SAYS: return true;
	case EXPR_SIGN: return only_of_text(a, asking);
	case EXPR_KNOWN: return is_of_text(x);
	case EXPR_AND: return only_of_text(a, asking) || only_of_text(b, asking);
	case EXPR_OR: return only_of_text(a, asking) && only_of_text(b, asking);
	case EXPR_NOT: return a->kind == EXPR_FACT && is_of_text(a) && !asks_for_text(a);
	default: return !(asking && asks_for_text(x)) && needs_text(x);
	}
}

bool expr_only_of_text(const struct expr *x)
{
	return only_of_text(x, false);
}

static bool has_asked(const struct expr *x)
{
	return x->kind == EXPR_AND ? has_asked(AT(x->a)) || has_asked(AT(x->b)) : asks_for_text(x);
}

bool expr_asks_in_vain(const struct expr *x)
{
	return has_asked(x) && only_of_text(x, true);
}
