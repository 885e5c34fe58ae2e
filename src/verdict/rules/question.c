/* SPDX-License-Identifier: Apache-2.0
 * Chooses the question that tells causes apart (see question.h).
 */
#include "verdict/rules/question.h"

#include <string.h>

#include "base/str.h"
#include "verdict/rules/expr_node.h"
#include "verdict/rules/kb.h"

#define CONDITIONS_MAX 256
#define HASH_START 14695981039346656037ull

static const struct question questions[] = {
#define QUESTION(text, command, facts, ...) {text, command, facts, {__VA_ARGS__}},
#include "kb/questions.def"
};

/* A condition that the answer would decide, and the rules that rest on it. */
struct condition {
	uint64_t hash, rules;
};

/* What one question has to do with one cause. */
struct stake {
	const struct kb *kb;
	const struct casefile *f;
	const char *facts;
	bool signs;				/* read the signs that the question names, not only facts */
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
	if ((x->kind == EXPR_CONST || x->kind == EXPR_SAYS) && x->value.text)
		h = hash_bytes(h, x->value.text, strlen(x->value.text));
	else if (x->kind == EXPR_CONST)
		h = hash_bytes(h, &x->value.number, sizeof(x->value.number));
	return hash_expr(hash_expr(h, x->a), x->b);
}

/* Is the name one of the list, or in a group of the list ("others.")? "x.is" only says whether there is any of it. */
static bool is_listed(const char *list, const char *name)
{
	for (const char *s = list; *s; s += strspn(s, " ")) {
		size_t n = strcspn(s, " ");

		if (!strncmp(s, name, n) && (!name[n] || (s[n - 1] == '.' && strcmp(name + n, "is") != 0)))
			return true;
		s += n;
	}
	return false;
}

/* Does the text already say so? A flag that is not set, 0 and "" mean that it does not mention it. */
static bool is_said(const struct casefile *f, enum fact_id id)
{
	struct value v = f ? fact_value(f, id) : value_unknown(TYPE_FLAG);

	return v.known && (v.type == TYPE_TEXT ? v.text[0] != '\0' : v.number != 0);
}

static enum fact_id fact_named(const char *name)
{
	int i = 0;

	while (i < FACT_COUNT && strcmp(fact_name((enum fact_id)i), name) != 0)
		i++;
	return (enum fact_id)i;
}

static bool is_answered(const struct question *q, const struct casefile *f)
{
	for (size_t i = 0; f && i < QUESTION_SHOWN && q->shown[i]; i++) {
		enum fact_id id = fact_named(q->shown[i]);

		if (id < FACT_COUNT ? is_said(f, id) : case_hit(f, q->shown[i]) != NULL)
			return true;
	}
	return false;
}

size_t question_words(const char **list)
{
	size_t n = 0;

	for (size_t i = 0; i < sizeof(questions) / sizeof(questions[0]); i++)
		for (size_t k = 0; k < QUESTION_SHOWN && questions[i].shown[k]; k++)
			if (fact_named(questions[i].shown[k]) == FACT_COUNT) {
				if (list)
					list[n] = questions[i].shown[k];
				n++;
			}
	return n;
}

static bool decides_facts(const struct stake *s, const struct expr *x)
{
	if (!x)
		return false;
	if ((x->kind == EXPR_FACT || x->kind == EXPR_KNOWN) && is_listed(s->facts, fact_name(x->fact)) &&
	    !is_said(s->f, x->fact))
		return true;
	return decides_facts(s, x->a) || decides_facts(s, x->b);
}

/* "signs/nccl" for kb/signs/nccl.kb. */
static bool decides_sign(const struct stake *s, const struct expr *sign)
{
	struct value v = s->f ? expr_eval(sign, s->f) : value_unknown(TYPE_FLAG);
	char file[64];

	if (v.known && v.number != 0)
		return false;
	for (const struct kb_sign *k = s->kb->signs; k; k = k->next)
		if (k->expr == sign) {
			str_copy(file, sizeof(file), str_starts(k->file, "kb/") ? k->file + 3 : k->file);
			file[strcspn(file, ".")] = '\0';
			return is_listed(s->facts, file);
		}
	return false;
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
	return x->kind == EXPR_EQ && x->b->kind == EXPR_CONST && x->b->value.number == 0 &&
	       (!x->b->value.text || !x->b->value.text[0]);
}

/* Only what must hold: a rule often begins with what must not, so that it does not speak about other failures. */
static void stake_expr(struct stake *s, const struct expr *x, bool negated)
{
	if (!x)
		return;
	if (x->kind == EXPR_AND || x->kind == EXPR_OR) {
		stake_expr(s, x->a, negated);
		stake_expr(s, x->b, negated);
	} else if (x->kind == EXPR_NOT) {
		stake_expr(s, x->a, !negated);
	} else if (x->kind == EXPR_SIGN && !(s->signs && decides_sign(s, x->a))) {
		stake_expr(s, x->a, negated);
	} else if (negated == says_none(x) && (x->kind == EXPR_SIGN || decides_facts(s, x))) {
		stake_add(s, hash_expr(HASH_START, x));
	}
}

static void stake_when(struct stake *s, const struct when *list)
{
	for (const struct when *w = list; w; w = w->next) {
		s->rule = s->rule << 1 | s->rule >> 63;
		s->rules |= s->rule;
		stake_expr(s, w->expr, false);
	}
}

static void stake_read(struct stake *s, const struct question *q, const struct kb *kb, const struct cause *c,
		       const struct casefile *f, bool signs)
{
	*s = (struct stake){.kb = kb, .f = f, .facts = q->facts, .signs = signs, .rule = 1ull << 63};
	stake_when(s, c->when);
	stake_when(s, c->evidence);
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
static double question_worth(const struct question *q, const struct kb *kb, const struct cause *const *causes, size_t n,
			     const struct casefile *f, bool signs)
{
	struct stake stake[QUESTION_CAUSES];
	double worth = 0;

	for (size_t i = 0; i < n; i++) {
		stake_read(&stake[i], q, kb, causes[i], f, signs);
		for (size_t k = 0; k < i; k++)
			worth += stake_apart(&stake[i], &stake[k]) + stake_apart(&stake[k], &stake[i]);
	}
	return n == 1 ? stake_apart(&stake[0], NULL) : worth;
}

const struct question *question_for(const struct kb *kb, const struct cause *const *causes, size_t n,
				    const struct casefile *f)
{
	const struct question *best = NULL;
	double most = 0;

	if (n > QUESTION_CAUSES)
		n = QUESTION_CAUSES;
	/* what can be observed comes first; then what other words may say */
	for (int signs = 0; signs < 1 + (n > 1) && !best; signs++)
		for (size_t i = 0; n && i < sizeof(questions) / sizeof(questions[0]); i++) {
			double worth = is_answered(&questions[i], f) ? 0 : question_worth(&questions[i], kb, causes, n, f, signs);

			if (worth > most) {
				most = worth;
				best = &questions[i];
			}
		}
	return best;
}
