/* SPDX-License-Identifier: Apache-2.0
 * A bundle of the doctor in a page: the machine in a few lines, and every fact that was judged. The checks are in the
 * verdict.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input/machine/observe.h"
#include "input/machine/machine.h"
#include "judge/doctor.h"
#include "base/json_text.h"
#include "write/page_priv.h"
#include "write/report_json.h"

#define GPUS_MAX	64
#define ENVS_MAX	16

static void put(json_t *list, const char *label, json_t *value)
{
	json_array_append_new(list, json_pack("[s,o]", label, value));
}

static json_t *described(const char *name, int cc)
{
	char text[160];

	snprintf(text, sizeof(text), "%s, compute capability %d.%d", name, cc / 10, cc % 10);
	return json_text(text);
}

static void put_gpus(json_t *list, const struct machine *m)
{
	size_t n = machine_gpus(m);
	char label[32];

	for (size_t i = 0; i < n && i < GPUS_MAX; i++) {
		struct machine_gpu g;

		machine_gpu(m, i, &g);
		snprintf(label, sizeof(label), "GPU %zu", i);
		if (g.name && g.cc)
			put(list, label, described(g.name, g.cc));
		else
			put(list, label, json_text(g.name ? g.name : "name not known"));
	}
	if (!n)
		put(list, "GPUs", json_text("none is known"));
}

static void put_fact(json_t *list, const char *label, const struct casefile *f, enum fact_id id)
{
	if (fact_known(f, id) && fact_text(f, id)[0])
		put(list, label, json_text(fact_text(f, id)));
}

static void put_environments(json_t *list, const struct machine *m)
{
	for (size_t i = 0; i < m->envs.n_envs && i < ENVS_MAX; i++)
		if (m->envs.env[i].prefix)
			put(list, i ? "another Python" : "Python", json_text(m->envs.env[i].prefix));
}

/* Names and values, as `cuwhy doctor --json` has them. */
static json_t *facts_list(const struct casefile *f)
{
	json_t *all = known_facts_json(f), *list = json_array(), *v;
	const char *name;

	json_object_foreach(all, name, v) {
		char *text = json_is_string(v) ? NULL : json_dumps(v, JSON_ENCODE_ANY);

		json_array_append_new(list, json_pack("[s,o]", name, json_text(text ? text : json_string_value(v))));
		free(text);
	}
	json_decref(all);
	return list;
}

void page_add_machine(struct page *p, const struct doctor *d, const struct machine *m)
{
	json_t *list = json_array(), *detail;

	put_gpus(list, m);
	put_fact(list, "driver", doctor_facts(d), FACT_driver_release);
	put_fact(list, "PyTorch", doctor_facts(d), FACT_torch_version);
	put_environments(list, m);
	put(list, "made by", json_text(m->made_by ? m->made_by : "not known"));
	detail = json_pack("{s:o,s:o}", "environment", list, "facts", facts_list(doctor_facts(d)));
	json_array_append_new(p->processes, json_pack("{s:n,s:n,s:o}", "pid", "rank", "detail", detail));
	p->n_processes++;
	p->n_details++;
	json_object_set_new(p->data, "title", json_text(doctor_title(d)));
}

void page_set_checks(struct page *p, const struct doctor *d)
{
	const struct doctor_check *list;
	size_t n = doctor_checks(d, &list);

	json_object_set_new(json_object_get(p->data, "verdict"), "checks", checks_json(list, n));
}
