/* SPDX-License-Identifier: Apache-2.0
 * Rules about words: they hold wherever the words come from (see compile.h).
 */
#include "case/case.h"
#include "knowledge/compile/compile.h"

/* What an error says is the same in a recording. */
static bool is_of_words(const struct expr *x)
{
	return fact_group((enum fact_id)x->fact) == GROUP_text || x->fact == FACT_error_text ||
	       x->fact == FACT_masked_status;
}

/* Is there such a fact in it? It is unknown or empty where there are no words, and what is computed from it is not true. */
static bool needs_words(const struct expr *x)
{
	if (!x)
		return false;
	if (x->kind == EXPR_FACT)
		return is_of_words(x);
	return x->kind != EXPR_KNOWN && x->kind != EXPR_SAYS && x->kind != EXPR_SIGN &&
	       (needs_words(AT(x->a)) || needs_words(AT(x->b)));
}

static bool asks_for_text(const struct expr *x)
{
	return x->kind == EXPR_FACT && x->fact == FACT_text_is;
}

/* `asking` does not count `text.is` itself. */
static bool only_of_words(const struct expr *x, bool asking)
{
	const struct expr *a = AT(x->a), *b = AT(x->b);

	switch (x->kind) {
	case EXPR_SAYS: return true;
	case EXPR_SIGN: return only_of_words(a, asking);
	case EXPR_KNOWN: return is_of_words(x);
	case EXPR_AND: return only_of_words(a, asking) || only_of_words(b, asking);
	case EXPR_OR: return only_of_words(a, asking) && only_of_words(b, asking);
	case EXPR_NOT: return a->kind == EXPR_FACT && is_of_words(a) && !asks_for_text(a);
	default: return !(asking && asks_for_text(x)) && needs_words(x);
	}
}

bool expr_only_of_words(const struct expr *x)
{
	return only_of_words(x, false);
}

static bool has_asked(const struct expr *x)
{
	return x->kind == EXPR_AND ? has_asked(AT(x->a)) || has_asked(AT(x->b)) : asks_for_text(x);
}

bool expr_asks_in_vain(const struct expr *x)
{
	return has_asked(x) && only_of_words(x, true);
}
