/* SPDX-License-Identifier: Apache-2.0
 * The verdict as JSON. The keys are a contract: add, never change.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/json_text.h"
#include "write/report_json.h"
#include "write/report_ledger.h"
#include "judge/verdict_priv.h"
#include "compat/cuda_errors.h"

json_t *number_json(double n)
{
	/* beyond this the conversion is not defined; only a damaged recording gets here */
	return n < 0 || n >= 9.2e18 ? json_null() : json_integer((json_int_t)n);
}

json_t *triple_json(const uint32_t v[3])
{
	return json_pack("[I,I,I]", (json_int_t)v[0], (json_int_t)v[1], (json_int_t)v[2]);
}

json_t *line_json(const struct line *l)
{
	json_t *j;

	if (!l->file)
		return json_null();
	j = json_object();
	json_object_set_new(j, "file", json_text(l->file));
	json_object_set_new(j, "line", json_integer(l->number));
	json_object_set_new(j, "function", json_text(l->function ? function_base(l->function) : NULL));
	if (l->function && function_base(l->function) != l->function)
		json_object_set_new(j, "qualname", json_text(l->function));
	return j;
}

static json_t *json_where(const struct verdict *v)
{
	json_t *j = line_json(&v->where), *stack;

	if (!v->where.file)
		return j;
	stack = json_array();
	for (size_t i = 0; i < v->n_stack; i++)
		json_array_append_new(stack, line_json(&v->stack[i]));
	json_object_set_new(j, "stack", stack);
	json_object_set_new(j, "source", json_text(v->where.source));
	if (v->where.library)
		json_object_set_new(j, "library", json_true());
	if (v->replay.file)
		json_object_set_new(j, "replay", line_json(&v->replay));
	for (size_t i = 0; i < v->n_or; i++) {
		if (!i)
			json_object_set_new(j, "or", json_array());
		json_array_append_new(json_object_get(j, "or"), line_json(&v->or[i]));
	}
	if (v->forward.file)
		json_object_set_new(j, "forward", line_json(&v->forward));
	if (v->backward.file)
		json_object_set_new(j, "backward", line_json(&v->backward));
	return j;
}

static json_t *json_error(const struct verdict *v)
{
	json_t *j;

	if (!v->source)
		return json_null();
	j = json_object();
	json_object_set_new(j, "code", v->code ? json_integer(v->code) : json_null());
	json_object_set_new(j, "name", json_text(v->name));
	json_object_set_new(j, "api", json_text(v->api));
	json_object_set_new(j, "string", json_text(v->string));
	json_object_set_new(j, "source", json_text(v->source));
	json_object_set_new(j, "text", json_text(v->text));
	json_object_set_new(j, "count", json_integer(v->count));
	json_object_set_new(j, "sticky", json_boolean(v->code && cuda_error_sticky((uint32_t)v->code)));
	return j;
}

static json_t *json_kernel(const struct verdict *v)
{
	const struct kernel *k = &v->kernel;
	json_t *j;

	if (!k->known)
		return json_null();
	j = json_object();
	json_object_set_new(j, "name", json_text(k->name));
	json_object_set_new(j, "grid", k->dims_known ? triple_json(k->grid) : json_null());
	json_object_set_new(j, "block", k->dims_known ? triple_json(k->block) : json_null());
	json_object_set_new(j, "shared", k->dims_known ? json_integer(k->shared) : json_null());
	json_object_set_new(j, "stream", k->dims_known ? json_integer((json_int_t)k->stream) : json_null());
	return j;
}

static json_t *json_memory(const struct verdict *v)
{
	const struct memory_sums *m = &v->memory;
	json_t *j;

	if (!m->known)
		return json_null();
	j = json_object();
	json_object_set_new(j, "request", number_json(m->request));
	json_object_set_new(j, "free", number_json(m->free));
	json_object_set_new(j, "total", number_json(m->total));
	json_object_set_new(j, "torch_allocated", number_json(m->allocated));
	json_object_set_new(j, "torch_reserved", number_json(m->reserved));
	json_object_set_new(j, "torch_cache", number_json(m->cache));
	json_object_set_new(j, "process_live", number_json(m->live));
	json_object_set_new(j, "process_not_torch", number_json(m->not_torch));
	json_object_set_new(j, "outside", number_json(m->outside));
	if (m->ledger)
		json_object_set_new(j, "ledger", ledger_json(m->ledger));
	return j;
}

static json_t *json_candidates(const struct verdict *v)
{
	json_t *j = json_array();

	for (size_t i = 0; i < v->n_candidates; i++) {
		const struct match *m = &v->candidates[i];

		json_array_append_new(j, json_pack("{s:s,s:s,s:o,s:o}", "cause", m->cause->id, "certainty",
						   certainty_word((enum certainty)m->sure), "because", json_text(m->because),
						   "settle", json_text(m->cause->settle)));
	}
	if (!v->n_candidates && v->source)
		json_array_append_new(j, json_pack("{s:s,s:s}", "cause", v->cause->id, "certainty",
						   certainty_word(v->sure)));
	return j;
}

static json_t *json_evidence(const struct verdict *v)
{
	json_t *j = json_array();

	for (const struct said *s = v->evidence; s; s = s->next)
		json_array_append_new(
			j, json_pack("{s:o,s:o}", "source", json_text(s->source), "text", json_text(s->text)));
	return j;
}

static json_t *json_said(const struct said *s, bool commands)
{
	json_t *j = json_array();

	for (; s; s = s->next)
		json_array_append_new(j, commands ? json_pack("{s:o,s:o}", "text", json_text(s->text), "command",
							      json_text(s->command))
						  : json_text(s->text));
	return j;
}

static json_t *json_process(const struct verdict *v)
{
	json_t *j = json_object();

	json_object_set_new(j, "pid", v->pid ? json_integer(v->pid) : json_null());
	json_object_set_new(j, "rank", v->rank == CW_UNKNOWN ? json_null() : json_integer(v->rank));
	json_object_set_new(j, "exit", v->exit_known && v->exit >= 0 ? json_integer(v->exit) : json_null());
	json_object_set_new(j, "signal", v->signal ? json_integer(v->signal) : json_null());
	json_object_set_new(j, "command", json_text(v->command));
	return j;
}

static json_t *json_list(const struct verdict *v);

static json_t *json_ids(const char *const *ids, size_t n)
{
	json_t *j = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(j, json_text(ids[i]));
	return j;
}

static json_t *json_waiting(const struct verdict *v)
{
	json_t *list = json_array();

	for (size_t i = 0; i < v->n_waiting; i++) {
		const struct waiting *w = &v->waiting[i];
		json_t *j = w->line.file ? line_json(&w->line) : json_pack("{s:n,s:n}", "file", "line");
		json_t *stack = json_array();

		for (size_t k = 0; k < w->n_stack; k++)
			json_array_append_new(stack, line_json(&w->stack[k]));
		json_object_set_new(j, "stack", stack);
		json_object_set_new(j, "tid", json_integer(w->tid));
		json_object_set_new(j, "api", json_text(w->api));
		json_object_set_new(j, "seconds", json_integer((json_int_t)w->seconds));
		json_object_set_new(j, "polls", json_boolean(w->polls));
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *json_suspects(const struct verdict *v)
{
	json_t *list = json_array();

	for (size_t i = 0; i < v->n_suspects; i++) {
		const struct suspect_line *s = &v->suspects[i];
		json_t *j = s->line.file ? line_json(&s->line) : json_object();

		json_object_set_new(j, "kernel", json_text(s->kernel));
		json_object_set_new(j, "launches", json_integer(s->launches));
		json_array_append_new(list, j);
	}
	return list;
}

json_t *verdict_json(const struct verdict *v)
{
	json_t *j = json_object();

	json_object_set_new(j, "schema", json_integer(1));
	json_object_set_new(j, "cause", json_text(v->cause->id));
	json_object_set_new(j, "certainty", json_text(certainty_word(v->sure)));
	json_object_set_new(j, "title", json_text(v->title));
	json_object_set_new(j, "because", json_text(v->because));
	json_object_set_new(j, "error", json_error(v));
	json_object_set_new(j, "where", json_where(v));
	json_object_set_new(j, "noticed", line_json(&v->noticed));
	json_object_set_new(j, "forward", line_json(&v->forward));
	json_object_set_new(j, "backward", line_json(&v->backward));
	json_object_set_new(j, "kernel", json_kernel(v));
	json_object_set_new(j, "fault", fault_json(&v->fault));
	json_object_set_new(j, "memory", json_memory(v));
	json_object_set_new(j, "capture", line_json(&v->capture));
	json_object_set_new(j, "node", json_text(v->node));
	json_object_set_new(j, "suspects", json_suspects(v));
	json_object_set_new(j, "waiting", json_waiting(v));
	json_object_set_new(j, "candidates", json_candidates(v));
	json_object_set_new(j, "unchecked", json_ids(v->unchecked, v->n_unchecked));
	json_object_set_new(j, "why", json_said(v->why, false));
	json_object_set_new(j, "evidence", json_evidence(v));
	json_object_set_new(j, "fix", json_said(v->fix, true));
	json_object_set_new(j, "process", json_process(v));
	if (v->victim_of) {
		json_object_set_new(j, "victim", json_true());
		json_object_set_new(j, "victim_of", json_integer(v->victim_of));
		json_object_set_new(j, "victim_because", json_text(v->victim_why));
	}
	if (v->n_checks)
		json_object_set_new(j, "checks", checks_json(v->checks, v->n_checks));
	json_object_set_new(j, "simulated", json_boolean(v->sim));
	json_object_set_new(j, "notes", json_list(v->notes));
	json_object_set_new(j, "others", json_list(v->others));
	return j;
}

static json_t *json_list(const struct verdict *v)
{
	json_t *j = json_array();

	for (; v; v = v->next)
		json_array_append_new(j, verdict_json(v));
	return j;
}

int report_json(FILE *out, const struct verdict *v, bool indent)
{
	json_t *j = verdict_json(v);
	int rc = json_dumpf(j, out, indent ? JSON_INDENT(2) : JSON_COMPACT);

	json_decref(j);
	putc('\n', out);
	return rc || ferror(out) ? -1 : 0;
}
