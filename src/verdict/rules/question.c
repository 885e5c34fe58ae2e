/* SPDX-License-Identifier: Apache-2.0
 * Chooses the question that tells causes apart (see question.h).
 */
#include "verdict/rules/question.h"

#include <string.h>

#include "knowledge/kb.h"
#include "verdict/rules/expr.h"

#define CONDITIONS_MAX 256
#define HASH_START 14695981039346656037ull

/* A condition that the answer would decide, and the rules that rest on it. */
struct condition {
	uint64_t hash, rules;
};

/* What one question has to do with one cause. */
struct stake {
	const struct casefile *f;
	const uint32_t *facts;			/* a bit for each that the answer decides */
	uint32_t signs;				/* read the signs that the question names (their bit), not only facts */
	uint64_t rule;				/* the bit of the rule being read */
	uint64_t rules;				/* all of them */
	struct condition condition[CONDITIONS_MAX];	/* each once */
	size_t n;
};

static uint64_t hash_bytes(uint64_t h, const void *data, size_t n)
{
	for (const unsigned char *s = data; n--; s++)
		h = (h ^ *s) * 1099511628211ull;
	return h;
}

static uint64_t hash_expr(uint64_t h, const struct expr *x)
{
	if (!x)
		return h;
	h = hash_bytes(h, &x->kind, sizeof(x->kind));
	if (x->kind == EXPR_FACT || x->kind == EXPR_KNOWN)
		h = hash_bytes(h, &x->fact, sizeof(x->fact));
	if (x->kind == EXPR_CALL)
		h = hash_bytes(h, &x->function, sizeof(x->function));
	if (x->kind == EXPR_SAYS || (x->kind == EXPR_CONST && x->type == TYPE_TEXT))
		h = hash_bytes(h, AT(x->text), strlen(AT(x->text)));
	else if (x->kind == EXPR_CONST)
		h = hash_bytes(h, &x->number, sizeof(x->number));
	return hash_expr(hash_expr(h, AT(x->a)), AT(x->b));
}

/* Does the text already say so? A flag that is not set, 0 and "" mean that it does not mention it. */
static bool is_said(const struct casefile *f, enum fact_id id)
{
	struct value v = f ? fact_value(f, id) : value_unknown(TYPE_FLAG);

	return v.known && (v.type == TYPE_TEXT ? v.text[0] != '\0' : v.number != 0);
}

static bool is_answered(const struct kb_question *q, const struct casefile *f)
{
	for (size_t i = 0; f && i < QUESTION_SHOWN && AT(q->shown[i].name); i++) {
		int id = q->shown[i].fact;

		if (id >= 0 ? is_said(f, (enum fact_id)id) : case_hit(f, AT(q->shown[i].name)) != NULL)
			return true;
	}
	return false;
}

static bool decides_facts(const struct stake *s, const struct expr *x)
{
	if (!x)
		return false;
	if ((x->kind == EXPR_FACT || x->kind == EXPR_KNOWN) && (s->facts[x->fact / 32] >> x->fact % 32 & 1) &&
	    !is_said(s->f, (enum fact_id)x->fact))
		return true;
	return decides_facts(s, AT(x->a)) || decides_facts(s, AT(x->b));
}

static bool decides_sign(const struct stake *s, const struct kb_sign *sign)
{
	struct value v;

	if (!(sign->questions & s->signs))
		return false;
	v = s->f ? expr_eval(AT(sign->expr), s->f) : value_unknown(TYPE_FLAG);
	return !v.known || v.number == 0;
}

static void stake_add(struct stake *s, uint64_t hash)
{
	size_t i = 0;

	while (i < s->n && s->condition[i].hash != hash)
		i++;
	if (i == CONDITIONS_MAX)
		return;
	s->n += i == s->n;
	s->condition[i].hash = hash;
	s->condition[i].rules |= s->rule;
}

/* "text.asserts == 0", "shared.by == \"\"": that there is none of it. */
static bool says_none(const struct expr *x)
{
	const struct expr *b = AT(x->b);

	return x->kind == EXPR_EQ && b->kind == EXPR_CONST && (b->type == TYPE_TEXT ? !AT(b->text)[0] : b->number == 0);
}

/* Only what must hold: a rule often begins with what must not, so that it does not speak about other failures. */
static void stake_expr(struct stake *s, const struct expr *x, bool negated)
{
	if (!x)
		return;
	if (x->kind == EXPR_AND || x->kind == EXPR_OR) {
		stake_expr(s, AT(x->a), negated);
		stake_expr(s, AT(x->b), negated);
	} else if (x->kind == EXPR_NOT) {
		stake_expr(s, AT(x->a), !negated);
	} else if (x->kind == EXPR_SIGN && !decides_sign(s, AT(x->sign))) {
		stake_expr(s, AT(x->a), negated);
	} else if (negated == says_none(x) && (x->kind == EXPR_SIGN || decides_facts(s, x))) {
		stake_add(s, hash_expr(HASH_START, x));
	}
}

static void stake_when(struct stake *s, const struct when *list)
{
	for (const struct when *w = list; w; w = AT(w->next)) {
		s->rule = s->rule << 1 | s->rule >> 63;
		s->rules |= s->rule;
		stake_expr(s, AT(w->expr), false);
	}
}

static void stake_read(struct stake *s, const struct kb_question *q, const struct cause *c, const struct casefile *f,
		       bool signs)
{
	*s = (struct stake){.f = f,
			    .facts = AT(q->facts),
			    .signs = signs ? 1u << (q - AT(kb_get()->questions)) : 0,
			    .rule = 1ull << 63};
	stake_when(s, AT(c->when));
	stake_when(s, AT(c->evidence));
}

/* The share of a cause's rules that rest on what the answer decides and what the other cause does not rest on. */
static double stake_apart(const struct stake *s, const struct stake *other)
{
	uint64_t rules = 0;

	for (size_t i = 0; i < s->n; i++) {
		size_t k = 0;

		while (other && k < other->n && other->condition[k].hash != s->condition[i].hash)
			k++;
		if (!other || k == other->n)
			rules |= s->condition[i].rules;
	}
	return s->rules ? (double)__builtin_popcountll(rules) / __builtin_popcountll(s->rules) : 0;
}

/* How well the answer tells the causes apart, over all pairs of them; 0: not at all. */
static double question_worth(const struct kb_question *q, const struct cause *const *causes, size_t n,
			     const struct casefile *f, bool signs)
{
	struct stake stake[QUESTION_CAUSES];
	double worth = 0;

	for (size_t i = 0; i < n; i++) {
		stake_read(&stake[i], q, causes[i], f, signs);
		for (size_t k = 0; k < i; k++)
			worth += stake_apart(&stake[i], &stake[k]) + stake_apart(&stake[k], &stake[i]);
	}
	return n == 1 ? stake_apart(&stake[0], NULL) : worth;
}

const struct kb_question *question_for(const struct cause *const *causes, size_t n, const struct casefile *f)
{
	const struct kb_question *list = AT(kb_get()->questions), *best = NULL;
	double most = 0;

	if (n > QUESTION_CAUSES)
		n = QUESTION_CAUSES;
	/* what can be observed comes first; then what other words may say */
	for (int signs = 0; signs < 1 + (n > 1) && !best; signs++)
		for (size_t i = 0; n && i < kb_get()->n_questions; i++) {
			double worth = is_answered(&list[i], f) ? 0 : question_worth(&list[i], causes, n, f, signs);

			if (worth > most) {
				most = worth;
				best = &list[i];
			}
		}
	return best;
}
