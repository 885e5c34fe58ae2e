/* SPDX-License-Identifier: Apache-2.0
 * Judges a machine (see doctor.h). Checks are rows of kb/checks.def, their failures are causes of kb/causes.
 */
#include "verdict/doctor.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "find/host/observe.h"
#include "verdict/verdict.h"
#include "verdict/rules/destroys.h"
#include "verdict/rules/expr.h"
#include "verdict/rules/rules.h"
#include "verdict/rules/template.h"

static const struct { const char *id, *label, *needs; bool essential; } checks[] = {
#define CHECK(id, label, needs, essential) {#id, label, needs, essential},
#define FINE(id, when, text)
#define NONE(id, when, text)
#define UNKNOWN(id, text)
#include "kb/checks.def"
#undef CHECK
#undef FINE
#undef NONE
#undef UNKNOWN
};
#define N_CHECKS (sizeof(checks) / sizeof(checks[0]))

/* What they say is in the knowledge base (struct kb_check), in the same order. */
static const struct { const char *id; enum doctor_status status; } rows[] = {
#define CHECK(id, label, needs, essential)
#define FINE(id, when, text) {#id, DOCTOR_OK},
#define NONE(id, when, text) {#id, DOCTOR_NONE},
#define UNKNOWN(id, text) {#id, DOCTOR_UNKNOWN},
#include "kb/checks.def"
#undef CHECK
#undef FINE
#undef NONE
#undef UNKNOWN
};
#define N_ROWS (sizeof(rows) / sizeof(rows[0]))

const char *const doctor_status_words[] = {[DOCTOR_OK] = "OK",	   [DOCTOR_WARN] = "WARN", [DOCTOR_FAIL] = "FAIL",
					   [DOCTOR_NONE] = "NONE", [DOCTOR_UNKNOWN] = "?", NULL};

static int check_index(const char *id)
{
	for (size_t i = 0; i < N_CHECKS; i++)
		if (strcmp(checks[i].id, id) == 0)
			return (int)i;
	return -1;
}

int doctor_check_place(const char *id)
{
	int i = id ? check_index(id) : -1;

	return i < 0 ? (int)N_CHECKS : i;
}

/* "gpu module" has "module" in it. */
static bool check_needs(size_t i, const char *id)
{
	const char *at = checks[i].needs;
	size_t len = strlen(id);

	for (; *at; at += strspn(at, " ")) {
		size_t n = strcspn(at, " ");

		if (n == len && memcmp(at, id, n) == 0)
			return true;
		at += n;
	}
	return false;
}

/* What was found for one of the GPUs. */
struct finding {
	struct casefile *f;
	struct matches m;
	bool failed[N_CHECKS];		/* with evidence that leaves no doubt, or nearly none */
	struct match *first[N_CHECKS];	/* the most certain cause of each check; NULL = none */
};

static bool depends_on_failed(const struct finding *x, size_t i)
{
	for (size_t k = 0; k < N_CHECKS; k++)
		if (x->failed[k] && k != i && check_needs(i, checks[k].id))
			return true;
	return false;
}

static void sort_matches(struct finding *x)
{
	for (size_t i = 0; i < x->m.n; i++) {
		struct match *c = &x->m.list[i];
		int at = check_index(AT(c->cause->check));

		if (at < 0)
			BUG("a cause of a check that does not exist");
		if (!x->first[at])
			x->first[at] = c;
	}
	/* in the order of the checks: what needs a failed one is settled after it */
	for (size_t i = 0; i < N_CHECKS; i++) {
		if (depends_on_failed(x, i))
			x->first[i] = NULL;
		x->failed[i] = x->first[i] && x->first[i]->sure > KB_POSSIBLE;
	}
}

static void judge_gpu(struct finding *x, const struct machine *m, size_t gpu, struct pool *pool)
{
	*x = (struct finding){.f = pool_alloc(pool, sizeof(*x->f))};
	case_init(x->f, pool);
	facts_of_machine(x->f, m, gpu);
	rules_match_checks(&x->m, kb_get(), x->f, pool);
	sort_matches(x);
}

/* The gravest of all; of equals the one whose check comes first. */
static const struct match *gravest(const struct finding *x)
{
	const struct match *best = NULL;

	for (size_t i = 0; i < N_CHECKS; i++) {
		const struct match *c = x->first[i];

		if (c && (!best || (best->sure == KB_POSSIBLE && c->sure > KB_POSSIBLE)))
			best = c;
	}
	return best;
}

static bool is_worse(const struct finding *x, const struct finding *than)
{
	const struct match *a = gravest(x), *b = gravest(than);

	if (!a || !b)
		return a && !b;
	return a->sure > b->sure;
}

static void first_command(void *arg, const char *text, const char *command)
{
	const char **to = arg;

	(void)text;
	if (!*to)
		*to = command;
}

static void line_of_cause(struct doctor *d, struct doctor_check *c, const struct match *m)
{
	c->status = m->sure > KB_POSSIBLE ? DOCTOR_FAIL : DOCTOR_WARN;
	c->cause = AT(m->cause->id);
	c->text = cause_headline(m->cause, &d->verdict->c, &d->verdict->pool);
	advice_each(AT(m->cause->fix), &d->verdict->c, &d->verdict->pool, first_command, &c->command);
	if (m->sure < KB_CERTAIN && c->command && command_destroys(c->command))
		c->command = NULL;
}

static char *sentence_of_row(struct doctor *d, size_t row)
{
	return template_expand(AT(AT(kb_get()->checks)[row].text), &d->verdict->c, &d->verdict->pool);
}

/* False: the check does not apply to this machine. */
static bool line_of_rows(struct doctor *d, struct doctor_check *c)
{
	const struct expr *when;
	bool unknown = false;
	struct value v;
	char *text;

	c->text = "could not be checked";
	for (size_t i = 0; i < N_ROWS; i++) {
		if (strcmp(rows[i].id, c->id) != 0)
			continue;
		when = AT(AT(kb_get()->checks)[i].when);
		v = when ? expr_eval(when, &d->verdict->c) : value_flag(true);
		unknown |= !v.known;
		text = v.known && v.number != 0 ? sentence_of_row(d, i) : NULL;
		if (!text)
			continue;
		c->text = text;
		if (!when)
			continue;	/* that is said only when no other row holds */
		c->status = rows[i].status;
		return true;
	}
	c->status = DOCTOR_UNKNOWN;
	return unknown;
}

/* False: a check that is essential could not be made. */
static bool make_lines(struct doctor *d, const struct finding *x)
{
	bool blind = false;

	d->check = pool_alloc(&d->verdict->pool, (N_CHECKS + 1) * sizeof(*d->check));
	for (size_t i = 0; i < N_CHECKS; i++) {
		struct doctor_check *c = &d->check[d->n_checks];

		*c = (struct doctor_check){.id = checks[i].id, .label = checks[i].label};
		if (x->first[i])
			line_of_cause(d, c, x->first[i]);
		else if (depends_on_failed(x, i) || !line_of_rows(d, c))
			continue;
		if (c->status == DOCTOR_UNKNOWN && checks[i].essential)
			blind = true;
		d->n_checks++;
	}
	return !blind;
}

static void add_candidates(struct doctor *d, const struct finding *x, const struct match *lead)
{
	struct verdict *v = d->verdict;

	v->candidates = pool_alloc(&v->pool, (N_CHECKS + 1) * sizeof(*v->candidates));
	v->candidates[v->n_candidates++] = *lead;
	for (size_t i = 0; i < N_CHECKS; i++)
		if (x->first[i] && x->first[i] != lead)
			v->candidates[v->n_candidates++] = *x->first[i];
}

static void fill_verdict(struct doctor *d, const struct finding *x, bool blind)
{
	const struct match *lead = gravest(x);
	struct verdict *v = d->verdict;

	if (lead) {
		verdict_of_cause(v, lead, &v->c);
		add_candidates(d, x, lead);
		for (size_t i = 0; i < d->n_checks; i++)
			if (d->check[i].status != DOCTOR_UNKNOWN)
				verdict_evidence(v, d->check[i].id, d->check[i].text);
	} else if (blind) {
		v->cause = kb_find(kb_get(), "unknown");
		v->sure = SURE_POSSIBLE;
		v->title = "the driver of this machine could not be checked";
	}
}

struct doctor *doctor_judge(const struct machine *m)
{
	struct doctor *d = xcalloc(1, sizeof(*d));
	size_t n = machine_gpus(m);
	struct finding worst = {.f = NULL}, x;
	struct machine_gpu g;
	bool seen;

	d->verdict = verdict_new("none");
	for (size_t i = 0; i < n && i < MACHINE_GPUS_MAX; i++) {
		machine_gpu(m, i, &g);
		if (m->cuda.n && !g.cuda)
			continue;	/* hidden from programs: it need not work */
		judge_gpu(&x, m, i, &d->verdict->pool);
		if (!worst.f || is_worse(&x, &worst))
			worst = x;
	}
	if (!worst.f)
		judge_gpu(&worst, m, n ? 0 : SIZE_MAX, &d->verdict->pool);
	d->verdict->c = *worst.f;
	seen = make_lines(d, &worst);
	fill_verdict(d, &worst, !seen);
	return d;
}

struct verdict *doctor_take_verdict(struct doctor *d)
{
	struct verdict *v = d->verdict;

	d->verdict = NULL;
	d->n_checks = 0;	/* their words are the verdict's */
	return v;
}

void doctor_free(struct doctor *d)
{
	if (!d)
		return;
	verdict_free(d->verdict);
	free(d);
}

const char *doctor_title(const struct doctor *d)
{
	const struct verdict *v = d->verdict;

	if (strcmp(AT(v->cause->id), "unknown") == 0)
		return "this machine could not be checked";
	if (strcmp(AT(v->cause->id), "none") != 0)
		return v->title;
	return fact_true(&v->c, FACT_torch_found) ? "this machine, its driver and its PyTorch work together"
						  : "this machine and its driver are able to run CUDA programs";
}

int doctor_exit(const struct doctor *d)
{
	const char *cause = verdict_cause(d->verdict);

	return strcmp(cause, "none") == 0 ? 0 : strcmp(cause, "unknown") == 0 ? 2 : 1;
}
