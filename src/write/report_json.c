/* SPDX-License-Identifier: Apache-2.0
 * The verdict as JSON. The keys are a contract: add, never change. Plain facts are there because their rows in
 * src/case/case.def have a key; what has a structure of its own follows here.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/json.h"
#include "compat/cuda_errors.h"
#include "cuwhy/format.h"
#include "input/dump/observe.h"
#include "judge/verdict.h"
#include "write/report.h"
#include "write/report_json.h"
#include "write/report_ledger.h"

/* --- plain facts --------------------------------------------------------------------------------- */

json_t *number_json(double n)
{
	/* beyond this the conversion is not defined; only a damaged recording gets here */
	return n < 0 || n >= 9.2e18 ? json_null() : json_integer((json_int_t)n);
}

static json_t *triple_json(const uint32_t v[3])
{
	return json_pack("[I,I,I]", (json_int_t)v[0], (json_int_t)v[1], (json_int_t)v[2]);
}

/* Sentences say what a thread did, the contract names the access. */
static json_t *access_json(const char *said)
{
	return json_text(!said ? NULL : !strcmp(said, "wrote") ? "write" : !strcmp(said, "updated") ? "atomic" : said);
}

static json_t *fact_json(const struct casefile *c, enum fact_id id)
{
	const struct value *v = &c->value[id];

	if (id == FACT_fault_access)
		return access_json(fact_text_or_null(c, id));
	if (id == FACT_error_code && fact_number(c, id, 0) == 0)
		return json_null();
	switch (v->type) {
	case TYPE_FLAG: return json_boolean(fact_true(c, id));
	case TYPE_TEXT: return json_text(fact_text_or_null(c, id));
	case TYPE_TRIPLE: return v->known ? triple_json(v->triple) : json_null();
	default: return v->known ? number_json(v->number) : json_null();
	}
}

static void put_fact(json_t *to, const struct casefile *c, enum fact_id id)
{
	const char *key = fact_json_key(id), *dot = strrchr(key, '.');

	json_object_set_new(to, dot ? dot + 1 : key, fact_json(c, id));
}

/* The facts whose keys are "object.key". */
static json_t *facts_json(const struct casefile *c, const char *object)
{
	size_t len = strlen(object);
	json_t *j = json_object();

	for (int i = 0; i < FACT_COUNT; i++) {
		const char *key = fact_json_key((enum fact_id)i);

		if (!strncmp(key, object, len) && key[len] == '.' && !strchr(key + len + 1, '.'))
			put_fact(j, c, (enum fact_id)i);
	}
	return j;
}

/* --- lines --------------------------------------------------------------------------------------- */

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

static json_t *lines_json(const struct line *l, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, line_json(&l[i]));
	return list;
}

static json_t *json_where(const struct casefile *c)
{
	static const struct { const char *key; enum line_id id; } beside[] = {{"forward", LINE_forward}, {"backward", LINE_backward}};
	const struct line *where = &c->line[LINE_where];
	json_t *j = line_json(where);

	if (!where->file)
		return j;
	json_object_set_new(j, "stack", lines_json(c->stack, c->n_stack));
	json_object_set_new(j, "source", json_text(where->source));
	if (where->library)
		json_object_set_new(j, "library", json_true());
	if (c->line[LINE_replay].file)
		json_object_set_new(j, "replay", line_json(&c->line[LINE_replay]));
	if (c->n_or)
		json_object_set_new(j, "or", lines_json(c->or, c->n_or));
	for (size_t i = 0; i < sizeof(beside) / sizeof(beside[0]); i++)
		if (c->line[beside[i].id].file)
			json_object_set_new(j, beside[i].key, line_json(&c->line[beside[i].id]));
	return j;
}

/* --- the fault ----------------------------------------------------------------------------------- */

static json_t *json_standing(const struct casefile *c)
{
	json_t *places = json_array();

	if (!c->n_standing) {
		json_decref(places);
		return json_null();
	}
	for (size_t i = 0; i < c->n_standing; i++)
		json_array_append_new(places, json_pack("{s:o,s:I}", "pc", json_text(c->standing[i].pc), "threads",
							(json_int_t)c->standing[i].threads));
	return json_pack("{s:I,s:I,s:I,s:I,s:o}", "threads", (json_int_t)fact_number(c, FACT_fault_threads, 0), "warps", (json_int_t)c->warps,
			 "blocks", (json_int_t)c->blocks, "elsewhere", (json_int_t)c->elsewhere, "places", places);
}

static json_t *json_piece(const struct piece_line *p)
{
	char address[32];
	json_t *j;

	if (!p->known)
		return json_null();
	j = json_object();
	snprintf(address, sizeof(address), "0x%llx", (unsigned long long)p->address);
	json_object_set_new(j, "address", json_string(address));
	json_object_set_new(j, "size", number_json((double)p->size));
	json_object_set_new(j, "device", p->device >= 0 ? json_integer(p->device) : json_null());
	json_object_set_new(j, "made", line_json(&p->made));
	json_object_set_new(j, "freed", line_json(&p->freed));
	json_object_set_new(j, "freed_after", json_boolean(p->freed_after));
	return j;
}

/* Whose memory the address is: PyTorch's block, and the driver's allocation around it. */
static json_t *json_fault_memory(const struct casefile *c)
{
	json_t *j;

	if (!fact_text(c, FACT_address_in)[0])
		return json_null();
	j = json_object();
	put_fact(j, c, FACT_address_in);
	json_object_set_new(j, "block", json_piece(&c->block));
	json_object_set_new(j, "segment", json_piece(&c->segment));
	put_fact(j, c, FACT_address_param);
	put_fact(j, c, FACT_address_param_byte);
	put_fact(j, c, FACT_fault_device);
	return j;
}

static json_t *json_fault(const struct casefile *c)
{
	json_t *j;

	if (!case_observed(c, GROUP_fault))
		return json_null();
	j = facts_json(c, "fault");
	json_object_set_new(j, "running", json_standing(c));
	json_object_set_new(j, "assert", case_observed(c, GROUP_assert) ? facts_json(c, "fault.assert") : json_null());
	json_object_set_new(j, "memory", json_fault_memory(c));
	return j;
}

static json_t *json_kernel(const struct casefile *c)
{
	return fact_known(c, FACT_kernel_name) || fact_known(c, FACT_kernel_grid) ? facts_json(c, "kernel") : json_null();
}

static json_t *json_memory(const struct casefile *c)
{
	json_t *j;

	if (!fact_true(c, FACT_oom_is) && !fact_true(c, FACT_masked_oom))
		return json_null();
	j = facts_json(c, "memory");
	if (c->ledger)
		json_object_set_new(j, "ledger", ledger_json(c->ledger));
	return j;
}

/* --- what was judged ----------------------------------------------------------------------------- */

static json_t *json_candidates(const struct verdict *v)
{
	json_t *j = json_array();

	for (size_t i = 0; i < v->n_candidates; i++) {
		const struct match *m = &v->candidates[i];

		json_array_append_new(j, json_pack("{s:s,s:s,s:o,s:o}", "cause", m->cause->id, "certainty",
						   certainty_word((enum certainty)m->sure), "because", json_text(m->because),
						   "settle", json_text(m->cause->settle)));
	}
	if (!v->n_candidates && case_observed(&v->c, GROUP_error))
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

static json_t *json_waiting(const struct casefile *c)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->n_waiting; i++) {
		const struct waiting *w = &c->waiting[i];
		json_t *j = w->line.file ? line_json(&w->line) : json_pack("{s:n,s:n}", "file", "line");

		json_object_set_new(j, "stack", lines_json(w->stack, w->n_stack));
		json_object_set_new(j, "tid", json_integer(w->tid));
		json_object_set_new(j, "api", json_text(w->api));
		json_object_set_new(j, "seconds", json_integer((json_int_t)w->seconds));
		json_object_set_new(j, "polls", json_boolean(w->polls));
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *json_suspects(const struct casefile *c)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->n_suspects; i++) {
		const struct suspect_line *s = &c->suspects[i];
		json_t *j = s->line.file ? line_json(&s->line) : json_object();

		json_object_set_new(j, "kernel", json_text(s->kernel));
		json_object_set_new(j, "launches", json_integer(s->launches));
		json_array_append_new(list, j);
	}
	return list;
}

json_t *verdict_json(const struct verdict *v)
{
	const struct casefile *c = &v->c;
	json_t *j = json_object();

	json_object_set_new(j, "schema", json_integer(1));
	json_object_set_new(j, "cause", json_text(v->cause->id));
	json_object_set_new(j, "certainty", json_text(certainty_word(v->sure)));
	json_object_set_new(j, "title", json_text(v->title));
	json_object_set_new(j, "because", json_text(v->because));
	json_object_set_new(j, "error", case_observed(c, GROUP_error) ? facts_json(c, "error") : json_null());
	json_object_set_new(j, "where", json_where(c));
	json_object_set_new(j, "noticed", line_json(&c->line[LINE_noticed]));
	json_object_set_new(j, "forward", line_json(&c->line[LINE_forward]));
	json_object_set_new(j, "backward", line_json(&c->line[LINE_backward]));
	json_object_set_new(j, "kernel", json_kernel(c));
	json_object_set_new(j, "fault", json_fault(c));
	json_object_set_new(j, "memory", json_memory(c));
	json_object_set_new(j, "capture", line_json(&c->line[LINE_capture]));
	put_fact(j, c, FACT_torch_node);
	json_object_set_new(j, "suspects", json_suspects(c));
	json_object_set_new(j, "waiting", json_waiting(c));
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
	json_object_set_new(j, "simulated", json_boolean(fact_true(c, FACT_process_sim)));
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
