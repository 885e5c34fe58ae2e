/* SPDX-License-Identifier: Apache-2.0
 * The doctor's answer as text and as JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/private.h"
#include "find/host/observe.h"
#include "verdict/doctor.h"
#include "base/json.h"
#include "show/recommend.h"
#include "show/report_json.h"
#include "show/report_wrap.h"
#include "verdict/verdict.h"
#include "show/report.h"

#define LABEL_COLUMNS 20

static void print_doctor_verdict(struct wrap *w, const struct verdict *v)
{
	char *heading = xasprintf("cuwhy: %s", v->title);

	wrap_heading(w, heading);
	free(heading);
	putc('\n', w->out);
	wrap_said(w, "WHY", v->why, SIZE_MAX);
	wrap_said(w, "FIX", v->fix, SIZE_MAX);
	wrap_label(w, "CONFIDENCE");
	wrap_printf(w, "%s%s%s (%s)", certainty_word(v->sure), v->because ? ": " : "", v->because ? v->because : "",
		    AT(v->cause->id));
	w->label = NULL;
	putc('\n', w->out);
}

static void print_check(FILE *out, const struct doctor_check *c)
{
	fprintf(out, "  %-4s  %-*s", doctor_status_words[c->status], LABEL_COLUMNS, c->label);
	fputs(c->text, out);
	if (c->cause)
		fprintf(out, "  [%s]", c->cause);
	putc('\n', out);
	if (c->command) {
		fprintf(out, "  %-4s  %-*s$ ", "", LABEL_COLUMNS, "");
		fprintf(out, "%s\n", c->command);
	}
}

static void count_checks(const struct doctor *d, size_t n[DOCTOR_STATUSES])
{
	memset(n, 0, DOCTOR_STATUSES * sizeof(*n));
	for (size_t i = 0; i < d->n_checks; i++)
		n[d->check[i].status]++;
}

static void print_heading(struct wrap *w, const struct doctor *d)
{
	const char *title = doctor_title(d);
	char *heading = title != d->verdict->title ? xasprintf("cuwhy: %s", title) : NULL;

	if (heading) {
		wrap_heading(w, heading);
		putc('\n', w->out);
	} else {
		print_doctor_verdict(w, d->verdict);
	}
	free(heading);
}

static struct compat_choice *choose_wheels(const struct machine *m, size_t *n, struct compat_ask *ask, int *cc)
{
	struct compat_choice *list = xcalloc(COMPAT_CHOICES_MAX, sizeof(*list));
	size_t index;

	machine_ask(m, machine_env(m, &index), cc, ask);
	*n = ask->n_cc ? compat_recommend(ask, list, COMPAT_CHOICES_MAX) : 0;
	return list;
}

static void print_driver_advice(FILE *out, const struct doctor *d, const struct compat_ask *ask)
{
	const char *newest = fact_text(&d->verdict->c, FACT_driver_newest),
		   *gpu = fact_text(&d->verdict->c, FACT_gpu_name);

	if (!newest[0])
		return;
	if (!ask->driver.major)
		fprintf(out, "  driver: install one of branch %s, the newest that supports %s\n", newest,
			ask->n_cc > 1 ? "these GPUs" : gpu);
	else if (fact_known(&d->verdict->c, FACT_driver_newer) && !fact_true(&d->verdict->c, FACT_driver_newer))
		fprintf(out, "  driver: %s is of the newest branch that supports %s\n",
			fact_text(&d->verdict->c, FACT_driver_release), ask->n_cc > 1 ? "these GPUs" : gpu);
	else
		fprintf(out, "  driver: %s is installed; up to branch %s support %s\n",
			fact_text(&d->verdict->c, FACT_driver_release), newest, ask->n_cc > 1 ? "these GPUs" : gpu);
}

static void print_recommend(FILE *out, const struct doctor *d, const struct machine *m)
{
	int cc[MACHINE_GPUS_MAX];
	struct compat_choice *list;
	struct compat_ask ask;
	size_t n;

	list = choose_wheels(m, &n, &ask, cc);
	fputs("\nrecommended for this machine:\n", out);
	print_driver_advice(out, d, &ask);
	if (!ask.n_cc)
		fputs("  no GPU is known here; name the one to install for: cuwhy doctor --recommend --gpu 'RTX 4090'\n", out);
	else
		recommend_print(out, list, n, false);
	free(list);
}

void doctor_text(FILE *out, const struct doctor *d, const struct machine *m, const struct text_style *style,
		 bool recommend)
{
	struct wrap w;
	size_t n[DOCTOR_STATUSES];

	wrap_init(&w, out, style);
	print_heading(&w, d);
	for (size_t i = 0; i < d->n_checks; i++)
		print_check(out, &d->check[i]);
	count_checks(d, n);
	fprintf(out, "\n  %zu OK, %zu WARN, %zu FAIL", n[DOCTOR_OK], n[DOCTOR_WARN], n[DOCTOR_FAIL]);
	if (n[DOCTOR_NONE])
		fprintf(out, ", %zu NONE", n[DOCTOR_NONE]);
	if (n[DOCTOR_UNKNOWN])
		fprintf(out, ", %zu could not be checked", n[DOCTOR_UNKNOWN]);
	putc('\n', out);
	if (recommend)
		print_recommend(out, d, m);
}

json_t *checks_json(const struct doctor_check *c, size_t n)
{
	static const struct field members[] = {F_ALWAYS(TEXT, "id", struct doctor_check, id),
					       F_ALWAYS(TEXT, "label", struct doctor_check, label),
					       F_WORD(struct doctor_check, status, doctor_status_words, -1),
					       F_ALWAYS(TEXT, "text", struct doctor_check, text),
					       F_ALWAYS(TEXT, "cause", struct doctor_check, cause),
					       F_ALWAYS(TEXT, "command", struct doctor_check, command),
					       F_END};
	static const struct fields check = {members, sizeof(struct doctor_check), NULL};

	return fields_write_list(&check, c, n);
}

static json_t *known_fact_json(const struct value *v)
{
	if (v->type == TYPE_TEXT)
		return json_text(v->text);
	if (v->type == TYPE_FLAG)
		return json_boolean(v->number != 0);
	return v->number == (double)(json_int_t)v->number ? json_integer((json_int_t)v->number) : json_real(v->number);
}

json_t *known_facts_json(const struct casefile *f)
{
	json_t *o = json_object();

	for (int i = 0; i < FACT_COUNT; i++)
		JSON_ADD(o, J_IF(f->value[i].known, J_VALUE(fact_name((enum fact_id)i), known_fact_json(&f->value[i]))));
	return o;
}

static void add_details(json_t *o, const struct gpu_details *d)
{
	const struct json_row rows[] = {
#define DETAIL(field, text) J_INT_OR_NULL(#field, d->field >= 0, d->field),
#include "probe/details.def"
#undef DETAIL
		{.key = NULL}};

	json_rows_add(o, rows);
}

static json_t *gpu_json(const struct machine_gpu *g)
{
	const struct gpu_card *card = g->nvml ? &g->nvml->card : NULL;
	json_t *o = JSON_OF(J_INT("index", g->index), J_TEXT("name", g->name),
			    J_VALUE("capability", g->cc ? json_sprintf("%d.%d", g->cc / 10, g->cc % 10) : json_null()),
			    J_TEXT("uuid", card && card->uuid[0] ? card->uuid : NULL),
			    J_TEXT("pci", card && card->pci[0] ? card->pci : g->host ? g->host->address : NULL),
			    J_BYTES("total", card ? card->total : USAGE_UNKNOWN),
			    J_BYTES("used", card ? card->used : USAGE_UNKNOWN));

	if (g->nvml) {
		JSON_ADD(o, J_INT_OR_NULL("processes", g->nvml->holders_known, g->nvml->n));
		add_details(o, &g->nvml->details);
	}
	JSON_ADD(o, J_INT_OR_NULL("ordinal", g->ordinal >= 0, g->ordinal));
	return o;
}

static json_t *gpus_json(const struct machine *m)
{
	json_t *list = json_array();
	size_t n = machine_gpus(m);
	struct machine_gpu g;

	for (size_t i = 0; i < n; i++) {
		machine_gpu(m, i, &g);
		json_array_append_new(list, gpu_json(&g));
	}
	return list;
}

static json_t *recommend_of_machine(const struct machine *m)
{
	int cc[MACHINE_GPUS_MAX];
	struct compat_choice *list;
	struct compat_ask ask;
	json_t *a;
	size_t n;

	list = choose_wheels(m, &n, &ask, cc);
	a = recommend_json(list, n, false);
	free(list);
	return a;
}

int doctor_json(FILE *out, const struct doctor *d, const struct machine *m, bool recommend)
{
	json_t *o = verdict_json(d->verdict);
	int rc;

	JSON_ADD(o, J_VALUE("checks", checks_json(d->check, d->n_checks)), J_VALUE("gpus", gpus_json(m)),
		 J_VALUE("facts", known_facts_json(&d->verdict->c)),
		 J_IF(recommend, J_VALUE("recommend", recommend_of_machine(m))));
	private_hide_in(o, false);
	rc = json_write(out, o, JSON_COMPACT);
	json_decref(o);
	putc('\n', out);
	return rc || ferror(out) ? -1 : 0;
}
