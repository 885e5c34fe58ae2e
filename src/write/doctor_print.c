/* SPDX-License-Identifier: Apache-2.0
 * The doctor's answer as text and as JSON.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "input/machine/observe.h"
#include "judge/doctor_priv.h"
#include "base/json.h"
#include "write/report_json.h"
#include "write/report_wrap.h"
#include "judge/verdict.h"
#include "write/report.h"

#define LABEL_COLUMNS 20

static const char *const words[] = {[DOCTOR_OK] = "OK", [DOCTOR_WARN] = "WARN", [DOCTOR_FAIL] = "FAIL", [DOCTOR_UNKNOWN] = "?"};

/* --- text ------------------------------------------------------------------------------------- */

static void print_verdict(struct wrap *w, const struct verdict *v)
{
	char *heading = xasprintf("cuwhy: %s", v->title);

	wrap_heading(w, heading);
	free(heading);
	putc('\n', w->out);
	wrap_said(w, "WHY", v->why);
	wrap_said(w, "FIX", v->fix);
	wrap_label(w, "SURE");
	wrap_printf(w, "%s%s%s (%s)", certainty_word(v->sure), v->because ? ": " : "", v->because ? v->because : "", v->cause->id);
	w->label = NULL;
	putc('\n', w->out);
}

/* Text comes from files of the machine: control characters are made harmless. */
static void put_plain(FILE *out, const char *text)
{
	for (; *text; text++)
		putc((unsigned char)*text < ' ' || *text == 127 ? '?' : *text, out);
}

static void print_check(FILE *out, const struct doctor_check *c)
{
	fprintf(out, "  %-4s  %-*s", words[c->status], LABEL_COLUMNS, c->label);
	put_plain(out, c->text);
	if (c->cause)
		fprintf(out, "  [%s]", c->cause);
	putc('\n', out);
	if (c->command) {
		fprintf(out, "  %-4s  %-*s$ ", "", LABEL_COLUMNS, "");
		put_plain(out, c->command);
		putc('\n', out);
	}
}

static void count(const struct doctor *d, size_t n[4])
{
	memset(n, 0, 4 * sizeof(*n));
	for (size_t i = 0; i < d->n_checks; i++)
		n[d->check[i].status]++;
}

const char *doctor_title(const struct doctor *d)
{
	const struct verdict *v = d->verdict;

	if (strcmp(v->cause->id, "unknown") == 0)
		return "this machine could not be judged";
	if (strcmp(v->cause->id, "none") != 0)
		return v->title;
	return fact_true(d->facts, FACT_torch_found) ? "this machine, its driver and its PyTorch go together"
						      : "this machine and its driver are able to run CUDA programs";
}

static void print_heading(struct wrap *w, const struct doctor *d)
{
	const char *title = doctor_title(d);
	char *heading = title != d->verdict->title ? xasprintf("cuwhy: %s", title) : NULL;

	if (heading) {
		wrap_heading(w, heading);
		putc('\n', w->out);
	} else {
		print_verdict(w, d->verdict);
	}
	free(heading);
}

/* --- what to install -------------------------------------------------------------------------- */

static struct compat_choice *choose(const struct machine *m, size_t *n, struct compat_ask *ask, int *cc)
{
	struct compat_choice *list = xcalloc(COMPAT_CHOICES_MAX, sizeof(*list));
	size_t index;

	machine_ask(m, machine_env(m, &index), cc, ask);
	*n = ask->n_cc ? compat_recommend(ask, list, COMPAT_CHOICES_MAX) : 0;
	return list;
}

static bool fits(const struct compat_choice *c)
{
	return c->fit < COMPAT_FIT_PYTHON;
}

#define OTHERS_SHOWN 3
#define REFUSED_SHOWN 8

static bool said_before(const struct compat_choice *list, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (!fits(&list[k]) && strcmp(list[k].wheel->variant, list[i].wheel->variant) == 0 && strcmp(list[k].why, list[i].why) == 0)
			return true;
	return false;
}

/* The next best, and why not the rest: a reason is told once for each variant, at the newest release that it is true of. */
static void print_others(FILE *out, const struct compat_choice *list, size_t n)
{
	size_t good = 0, bad = 0;

	for (size_t i = 0; i < n; i++) {
		bool fit = fits(&list[i]);

		if ((i == 0 && fit) || (fit && ++good > OTHERS_SHOWN) || (!fit && (said_before(list, i) || ++bad > REFUSED_SHOWN)))
			continue;
		fprintf(out, "    %-4s PyTorch %-5s %-6s %s\n", fit ? "or" : "not", list[i].wheel->release, list[i].wheel->variant,
			list[i].why);
	}
	if (good > OTHERS_SHOWN)
		fprintf(out, "    and %zu more that fit\n", good - OTHERS_SHOWN);
}

static void print_driver_advice(FILE *out, const struct doctor *d, const struct compat_ask *ask)
{
	const char *newest = fact_text(d->facts, FACT_driver_newest), *gpu = fact_text(d->facts, FACT_gpu_name);

	if (!newest[0])
		return;
	if (!ask->driver.major)
		fprintf(out, "  driver: install one of branch %s, the newest that supports %s\n", newest, ask->n_cc > 1 ? "these GPUs" : gpu);
	else if (fact_known(d->facts, FACT_driver_newer) && !fact_true(d->facts, FACT_driver_newer))
		fprintf(out, "  driver: %s is of the newest branch that supports %s\n", fact_text(d->facts, FACT_driver_release),
			ask->n_cc > 1 ? "these GPUs" : gpu);
	else
		fprintf(out, "  driver: %s is installed; up to branch %s support %s\n", fact_text(d->facts, FACT_driver_release), newest,
			ask->n_cc > 1 ? "these GPUs" : gpu);
}

static void print_recommend(FILE *out, const struct doctor *d, const struct machine *m)
{
	int cc[MACHINE_GPUS_MAX];
	struct compat_choice *list;
	struct compat_ask ask;
	char command[256];
	size_t n;

	list = choose(m, &n, &ask, cc);
	fputs("\nrecommended for this machine:\n", out);
	print_driver_advice(out, d, &ask);
	if (!ask.n_cc)
		fputs("  no GPU is known here, so no CUDA build of PyTorch can be recommended\n", out);
	else if (n && fits(&list[0]))
		fprintf(out, "  PyTorch %s for CUDA %d.%d (%s): %s\n    $ %s\n", list[0].wheel->release, list[0].wheel->cuda / 1000,
			list[0].wheel->cuda % 1000 / 10, list[0].wheel->variant, list[0].why,
			compat_wheel_command(list[0].wheel, command, sizeof(command)));
	else
		fputs("  no published build of PyTorch fits\n", out);
	print_others(out, list, n);
	free(list);
}

void doctor_text(FILE *out, const struct doctor *d, const struct machine *m, const struct text_style *style, bool recommend)
{
	struct wrap w;
	size_t n[4];

	wrap_init(&w, out, style);
	print_heading(&w, d);
	for (size_t i = 0; i < d->n_checks; i++)
		print_check(out, &d->check[i]);
	count(d, n);
	fprintf(out, "\n  %zu OK, %zu WARN, %zu FAIL", n[DOCTOR_OK], n[DOCTOR_WARN], n[DOCTOR_FAIL]);
	if (n[DOCTOR_UNKNOWN])
		fprintf(out, ", %zu could not be checked", n[DOCTOR_UNKNOWN]);
	putc('\n', out);
	if (recommend)
		print_recommend(out, d, m);
}

/* --- JSON ------------------------------------------------------------------------------------- */

json_t *checks_json(const struct doctor_check *c, size_t n)
{
	json_t *list = json_array();

	for (const struct doctor_check *end = c + n; c < end; c++) {
		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o, s:o, s:o}", "id", c->id, "label", c->label, "status",
						      words[c->status], "text", json_text(c->text), "cause", json_text(c->cause),
						      "command", json_text(c->command)));
	}
	return list;
}

bool check_status(const char *word, enum doctor_status *status)
{
	for (size_t i = 0; word && i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(word, words[i]) == 0) {
			*status = (enum doctor_status)i;
			return true;
		}
	return false;
}

json_t *known_facts_json(const struct casefile *f)
{
	json_t *o = json_object();

	for (int i = 0; i < FACT_COUNT; i++) {
		const struct value *v = &f->value[i];
		json_t *j;

		if (!v->known)
			continue;
		if (v->type == TYPE_TEXT)
			j = json_text(v->text);
		else if (v->type == TYPE_FLAG)
			j = json_boolean(v->number != 0);
		else
			j = v->number == (double)(json_int_t)v->number ? json_integer((json_int_t)v->number) : json_real(v->number);
		json_object_set_new(o, fact_name((enum fact_id)i), j);
	}
	return o;
}

static void add_details(json_t *o, const struct gpu_details *d)
{
#define DETAIL(field, text) json_object_set_new(o, #field, d->field >= 0 ? json_integer(d->field) : json_null());
#include "probe/details.def"
#undef DETAIL
}

static json_t *json_gpus(const struct machine *m)
{
	json_t *list = json_array(), *o;
	size_t n = machine_gpus(m);
	struct machine_gpu g;

	for (size_t i = 0; i < n; i++) {
		machine_gpu(m, i, &g);
		o = json_pack("{s:I, s:o}", "index", (json_int_t)g.index, "name", json_text(g.name));
		json_object_set_new(o, "capability", g.cc ? json_sprintf("%d.%d", g.cc / 10, g.cc % 10) : json_null());
		json_object_set_new(o, "uuid", json_text(g.nvml && g.nvml->card.uuid[0] ? g.nvml->card.uuid : NULL));
		json_object_set_new(o, "pci", json_text(g.nvml && g.nvml->card.pci[0] ? g.nvml->card.pci : g.host ? g.host->address : NULL));
		json_object_set_new(o, "total", json_bytes(g.nvml ? g.nvml->card.total : USAGE_UNKNOWN));
		json_object_set_new(o, "used", json_bytes(g.nvml ? g.nvml->card.used : USAGE_UNKNOWN));
		if (g.nvml) {
			json_object_set_new(o, "processes", g.nvml->holders_known ? json_integer((json_int_t)g.nvml->n) : json_null());
			add_details(o, &g.nvml->details);
		}
		json_object_set_new(o, "ordinal", g.ordinal >= 0 ? json_integer(g.ordinal) : json_null());
		json_array_append_new(list, o);
	}
	return list;
}

static json_t *json_recommend(const struct machine *m)
{
	int cc[MACHINE_GPUS_MAX];
	struct compat_choice *list;
	struct compat_ask ask;
	char command[256];
	json_t *a = json_array();
	size_t n;

	list = choose(m, &n, &ask, cc);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(a, json_pack("{s:s, s:s, s:b, s:s, s:s}", "release", list[i].wheel->release, "variant",
						   list[i].wheel->variant, "fits", (int)fits(&list[i]), "why", list[i].why, "command",
						   compat_wheel_command(list[i].wheel, command, sizeof(command))));
	free(list);
	return a;
}

int doctor_json(FILE *out, const struct doctor *d, const struct machine *m, bool recommend)
{
	json_t *o = verdict_json(d->verdict);
	int rc;

	json_object_set_new(o, "checks", checks_json(d->check, d->n_checks));
	json_object_set_new(o, "gpus", json_gpus(m));
	json_object_set_new(o, "facts", known_facts_json(d->facts));
	if (recommend)
		json_object_set_new(o, "recommend", json_recommend(m));
	rc = json_dumpf(o, out, JSON_COMPACT);
	json_decref(o);
	putc('\n', out);
	return rc || ferror(out) ? -1 : 0;
}
