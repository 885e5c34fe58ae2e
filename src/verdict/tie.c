/* SPDX-License-Identifier: Apache-2.0
 * Ties between inputs (see tie.h).
 */
#include "verdict/tie.h"

#include <math.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/pool.h"
#include "case/case.h"

enum tie_how { TIE_SAME, TIE_NEAR, TIE_NAME, TIE_PART, TIE_FILE };
enum tie_weight { TIE_MAY = 1, TIE_HALF, TIE_ALONE };

struct tie {
	enum fact_id a, b;
	enum tie_how how;
	enum tie_weight weight;
	const char *words;
};

#define TIE(a, b, how, weight, words) {FACT_##a, FACT_##b, TIE_##how, TIE_##weight, words},
static const struct tie of_failures[] = {
#include "verdict/ties.def"
};
#define TIE(a, b, how, weight, words) {FACT_##a, FACT_##b, TIE_##how, TIE_##weight, words},
static const struct tie of_machines[] = {
#include "verdict/ties_machine.def"
};

/* Shorter texts match everywhere. */
#define NAME_MIN 3

static const char *last_part(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

static bool begins_alike(const char *a, const char *b)
{
	size_t n = strlen(a) < strlen(b) ? strlen(a) : strlen(b);

	return n >= NAME_MIN && strncasecmp(a, b, n) == 0;
}

/* "" and 0 mean none: nothing to compare. */
static bool fact_is_told(const struct casefile *c, enum fact_id id)
{
	const struct value *v = &c->value[id];

	return v->known && (v->type == TYPE_TEXT ? v->text[0] != '\0' : v->number != 0);
}

static bool agrees(const struct value *a, const struct value *b, enum tie_how how)
{
	if (a->type != TYPE_TEXT)
		return how == TIE_NEAR ? fabs(a->number - b->number) <= fmax(a->number, b->number) / 100
				       : a->number == b->number;
	if (how == TIE_NAME)
		return begins_alike(a->text, b->text);
	if (how == TIE_PART)
		return strcasestr(a->text, b->text) || strcasestr(b->text, a->text);
	return strcmp(how == TIE_FILE ? last_part(a->text) : a->text, how == TIE_FILE ? last_part(b->text) : b->text) ==
	       0;
}

static const char *value_shown(const struct value *v, struct pool *pool)
{
	return v->type == TYPE_TEXT ? pool_printf(pool, "%.60s", v->text) : pool_printf(pool, "%.15g", v->number);
}

#define SHARED_MAX 16

struct weighing {
	int halves;		/* two make a tie */
	bool alone;		/* one of them is enough alone */
	const char *counted[SHARED_MAX];
	size_t n;
	const char *shared;	/* all of them as text; "" = none */
	const char *against;	/* NULL = nothing */
};

static bool is_counted(const struct weighing *w, const char *words)
{
	for (size_t i = 0; i < w->n; i++)
		if (strcmp(w->counted[i], words) == 0)
			return true;
	return false;
}

static void weigh(struct weighing *w, const struct tie *t, const struct casefile *a, const struct casefile *b,
		  struct pool *pool)
{
	if (!fact_is_told(a, t->a) || !fact_is_told(b, t->b))
		return;
	if (agrees(&a->value[t->a], &b->value[t->b], t->how)) {
		if (is_counted(w, t->words) || w->n == SHARED_MAX)
			return;
		w->counted[w->n++] = t->words;
		w->halves += t->weight == TIE_ALONE ? 2 : 1;
		w->alone |= t->weight == TIE_ALONE;
		w->shared = pool_printf(pool, "%s%s%s", w->shared, w->shared[0] ? ", " : "", t->words);
	} else if (t->weight != TIE_MAY && !w->against) {
		w->against = pool_printf(pool, "%s" TIE_DIFFERS "%s, %s", t->words, value_shown(&a->value[t->a], pool),
					 value_shown(&b->value[t->b], pool));
	}
}

static bool is_machine(const struct casefile *c)
{
	return fact_true(c, FACT_machine_is);
}

enum tied case_tied(const struct casefile *a, const struct casefile *b, struct pool *pool, const char **why)
{
	bool machine = is_machine(a) != is_machine(b), turn = machine && is_machine(b);
	const struct tie *list = machine ? of_machines : of_failures;
	size_t n = machine ? sizeof(of_machines) / sizeof(*of_machines) : sizeof(of_failures) / sizeof(*of_failures);
	struct weighing w = {.shared = ""};

	for (size_t i = 0; i < n; i++) {
		weigh(&w, &list[i], turn ? b : a, turn ? a : b, pool);
		if (!machine && list[i].a != list[i].b)	/* a row with two different facts applies in both directions */
			weigh(&w, &list[i], b, a, pool);
	}
	if (w.against)
		*why = w.against;
	else if (w.halves >= 2)
		*why = w.shared;
	else
		*why = w.shared[0] ? pool_printf(pool, "only %s is the same", w.shared) : "nothing ties them together";
	if (w.against || w.halves < 2)
		return TIED_NOT;
	return w.alone ? TIED_SURELY : TIED_PERHAPS;
}
