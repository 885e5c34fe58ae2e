/* SPDX-License-Identifier: Apache-2.0
 * The verdict as JSON. The keys are a contract: add, never change. Plain facts are there because their rows in
 * src/case/case.def have a key; what has a structure of its own follows here.
 */
#include <string.h>

#include "base/json.h"
#include "base/private.h"
#include "cuwhy/format.h"
#include "verdict/verdict.h"
#include "verdict/rules/question.h"
#include "show/report.h"
#include "show/report_json.h"
#include "show/report_ledger.h"
#include "show/report_live.h"

static json_t *number_json(double n)
{
	/* beyond this the conversion is not defined; only a damaged recording gets here */
	return n <= -9.2e18 || n >= 9.2e18 ? json_null() : json_integer((json_int_t)n);
}

/* Sentences say what a thread did, the contract names the access. */
static json_t *access_json(const char *said)
{
	if (said && !strcmp(said, "wrote"))
		return json_text("write");
	if (said && !strcmp(said, "updated"))
		return json_text("atomic");
	return json_text(said);
}

static json_t *fact_json(const struct casefile *c, enum fact_id id)
{
	const struct value *v = &c->value[id];

	if (id == FACT_fault_access)
		return access_json(fact_text_or_null(c, id));
	if (id == FACT_error_code && fact_number(c, id, 0) == 0)
		return json_null();
	if (id == FACT_growth_settled && !v->known)
		return json_null();
	switch (v->type) {
	case TYPE_FLAG: return json_boolean(fact_true(c, id));
	case TYPE_TEXT: return json_text(fact_text_or_null(c, id));
	case TYPE_TRIPLE: return v->known ? json_triple(v->triple) : json_null();
	default: return v->known ? number_json(v->number) : json_null();
	}
}

/* The row of a fact, by the last part of its key. */
static struct json_row fact_row(const struct casefile *c, enum fact_id id)
{
	const char *key = fact_json_key(id), *dot = strrchr(key, '.');

	return J_VALUE(dot ? dot + 1 : key, fact_json(c, id));
}

/* The facts whose keys are "object.key". */
static json_t *facts_json(const struct casefile *c, const char *object)
{
	size_t len = strlen(object);
	json_t *j = json_object();

	for (int i = 0; i < FACT_COUNT; i++) {
		const char *key = fact_json_key((enum fact_id)i);

		if (!strncmp(key, object, len) && key[len] == '.' && !strchr(key + len + 1, '.'))
			JSON_ADD(j, fact_row(c, (enum fact_id)i));
	}
	return j;
}

json_t *line_json(const struct line *l)
{
	const char *base = l->function ? function_base(l->function) : NULL;

	if (!l->file)
		return json_null();
	return JSON_OF(J_TEXT("file", l->file), J_INT("line", l->number), J_TEXT("function", base),
		       J_IF(base != l->function, J_TEXT("qualname", l->function)));
}

json_t *lines_json(const struct line *l, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, line_json(&l[i]));
	return list;
}

/* The row of a line that is left out when it is not known. */
static struct json_row line_row_if_known(const char *key, const struct line *l)
{
	return J_IF(l->file, J_VALUE(key, line_json(l)));
}

static json_t *where_json(const struct casefile *c)
{
	const struct line *where = &c->line[LINE_where];
	json_t *j = line_json(where);

	if (where->file)
		JSON_ADD(j, J_VALUE("stack", lines_json(c->stack, c->n_stack)), J_TEXT("source", where->source),
			 J_IF(where->library, J_BOOL("library", true)),
			 line_row_if_known("replay", &c->line[LINE_replay]),
			 J_IF(c->n_or, J_VALUE("or", lines_json(c->or, c->n_or))),
			 line_row_if_known("forward", &c->line[LINE_forward]),
			 line_row_if_known("backward", &c->line[LINE_backward]));
	return j;
}

static json_t *standing_json(const struct casefile *c)
{
	static const struct field members[] = {F_ALWAYS(TEXT, "pc", struct standing, pc),
					       F_ALWAYS(NUMBER, "threads", struct standing, threads), F_END};
	static const struct fields place = {members, sizeof(struct standing), NULL};

	if (!c->n_standing)
		return json_null();
	return JSON_OF(J_INT("threads", fact_number(c, FACT_fault_threads, 0)), J_INT("warps", c->warps),
		       J_INT("blocks", c->blocks), J_INT("elsewhere", c->elsewhere),
		       J_VALUE("places", fields_write_list(&place, c->standing, c->n_standing)));
}

static json_t *piece_json(const struct piece_line *p)
{
	if (!p->known)
		return json_null();
	return JSON_OF(J_HEX("address", p->address), J_VALUE("size", number_json((double)p->size)),
		       J_INT_OR_NULL("device", p->device >= 0, p->device), J_VALUE("made", line_json(&p->made)),
		       J_VALUE("freed", line_json(&p->freed)), J_BOOL("freed_after", p->freed_after));
}

/* Whose memory the address is: PyTorch's block, and the driver's allocation around it. */
static json_t *fault_memory_json(const struct casefile *c)
{
	if (!fact_text(c, FACT_address_in)[0])
		return json_null();
	return JSON_OF(fact_row(c, FACT_address_in), J_VALUE("block", piece_json(&c->block)),
		       J_VALUE("segment", piece_json(&c->segment)), fact_row(c, FACT_address_param),
		       fact_row(c, FACT_address_param_name), fact_row(c, FACT_address_param_byte),
		       fact_row(c, FACT_fault_device));
}

static json_t *fault_json(const struct casefile *c)
{
	json_t *j;

	if (!case_observed(c, GROUP_fault))
		return json_null();
	j = facts_json(c, "fault");
	JSON_ADD(j, J_VALUE("running", standing_json(c)),
		 J_VALUE("element", fact_known(c, FACT_fault_element) ? facts_json(c, "fault.element") : json_null()),
		 J_VALUE("view", fact_known(c, FACT_fault_view_sizes) ? facts_json(c, "fault.view") : json_null()),
		 J_VALUE("assert", case_observed(c, GROUP_assert) ? facts_json(c, "fault.assert") : json_null()),
		 J_VALUE("memory", fault_memory_json(c)));
	return j;
}

static json_t *kernel_json(const struct casefile *c)
{
	return fact_known(c, FACT_kernel_name) || fact_known(c, FACT_kernel_grid) ? facts_json(c, "kernel") : json_null();
}

static json_t *growth_json(const struct casefile *c)
{
	json_t *j;

	if (!fact_known(c, FACT_growth_bytes))
		return json_null();
	j = facts_json(c, "memory.growth");
	JSON_ADD(j, J_VALUE("elsewhere",
			    fact_known(c, FACT_growth_gpu) ? facts_json(c, "memory.growth.elsewhere") : json_null()));
	return j;
}

json_t *holders_json(const struct casefile *c)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->n_holders; i++) {
		const struct holder_seen *h = &c->holders[i];

		json_array_append_new(
			list, JSON_OF(J_TEXT("path", h->path), J_TEXT("kind", h->kind[0] ? h->kind : NULL),
				J_INT_OR_NULL("length", h->length, h->length), J_INT("tensors", h->tensors),
				J_INT("blocks", h->blocks), J_INT("bytes", h->bytes), J_INT("graph_bytes", h->graph),
				J_INT("gradient_bytes", h->gradients), J_IF(h->used, J_INT("used_bytes", h->used)),
				      J_IF(h->of.file, J_VALUE("variable_of", line_json(&h->of))),
				      J_IF(h->made.file, J_VALUE("allocated", line_json(&h->made)))));
	}
	return list;
}

json_t *unheld_json(const struct casefile *c)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->n_unheld; i++) {
		const struct unheld_seen *u = &c->unheld[i];

		json_array_append_new(list, JSON_OF(J_TEXT("what", u->what), J_INT("bytes", u->bytes),
						    J_INT("blocks", u->blocks),
						    J_IF(u->made.file, J_VALUE("allocated", line_json(&u->made)))));
	}
	return JSON_OF(J_INT("bytes", c->unheld_bytes), J_INT("blocks", c->unheld_blocks),
		       J_BOOL("whole", c->holders_whole), J_VALUE("list", list));
}

static json_t *memory_json(const struct casefile *c)
{
	json_t *j;

	if (!fact_true(c, FACT_oom_is) && !fact_true(c, FACT_masked_oom))
		return json_null();
	j = facts_json(c, "memory");
	JSON_ADD(j, J_VALUE("fits", fact_known(c, FACT_oom_fits_percent) ? facts_json(c, "memory.fits") : json_null()),
		 J_VALUE("would_fit", fact_true(c, FACT_room_known) ? facts_json(c, "memory.would_fit") : json_null()),
		 J_VALUE("options", fact_known(c, FACT_options_of) ? facts_json(c, "memory.options") : json_null()),
		 J_VALUE("growth", growth_json(c)),
		 J_VALUE("other_gpu", fact_known(c, FACT_spare_index) ? facts_json(c, "memory.other_gpu") : json_null()),
		 J_IF(c->n_holders, J_VALUE("holders", holders_json(c))),
		 J_IF(c->holders, J_VALUE("unheld", unheld_json(c))),
		 J_IF(c->ledger, J_VALUE("ledger", ledger_json(c->ledger))));
	return j;
}

static json_t *waiting_json(const struct casefile *c)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->n_waiting; i++) {
		const struct waiting *w = &c->waiting[i];
		json_t *j = w->line.file ? line_json(&w->line) : JSON_OF(J_NULL("file"), J_NULL("line"));

		JSON_ADD(j, J_VALUE("stack", lines_json(w->stack, w->n_stack)), J_INT("tid", w->tid),
			 J_TEXT("api", w->api), J_INT("seconds", w->seconds), J_BOOL("polls", w->polls));
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *suspects_json(const struct casefile *c)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->n_suspects; i++) {
		const struct suspect_line *s = &c->suspects[i];
		json_t *j = s->line.file ? line_json(&s->line) : json_object();

		JSON_ADD(j, J_TEXT("kernel", s->kernel), J_INT("launches", s->launches));
		json_array_append_new(list, j);
	}
	return list;
}

static json_t *tensors_json(const struct casefile *c)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->n_tensors; i++) {
		const struct tensor_seen *x = &c->tensors[i];
		json_t *shape = json_array();

		for (size_t k = 0; k < x->n_dims; k++)
			json_array_append_new(shape, json_integer(x->dim[k]));
		json_array_append_new(list, JSON_OF(J_TEXT("name", x->name), J_TEXT("dtype", x->dtype),
						    J_VALUE("shape", shape), J_TEXT("device", x->device),
						    J_BOOL("in_line", x->used)));
	}
	return list;
}

static json_t *candidates_json(const struct verdict *v)
{
	json_t *j = json_array();

	for (size_t i = 0; i < v->n_candidates; i++) {
		const struct match *m = &v->candidates[i];

		json_array_append_new(j, JSON_OF(J_TEXT("cause", AT(m->cause->id)),
						 J_TEXT("certainty", certainty_word((enum certainty)m->sure)),
				   J_TEXT("because", m->because), J_TEXT("rule", m->when ? AT(m->when->id) : NULL),
				   J_IF(m->tied, J_BOOL("tied", true)), J_TEXT("settle", AT(m->cause->settle))));
	}
	if (!v->n_candidates && case_observed(&v->c, GROUP_error))
		json_array_append_new(
			j, JSON_OF(J_TEXT("cause", AT(v->cause->id)), J_TEXT("certainty", certainty_word(v->sure))));
	return j;
}

static json_t *unchecked_json(const struct verdict *v)
{
	json_t *j = json_array();

	for (size_t i = 0; i < v->n_unchecked; i++)
		json_array_append_new(j, json_text(v->unchecked[i]));
	return j;
}

static json_t *why_json(const struct said *s)
{
	json_t *j = json_array();

	for (; s; s = s->next)
		json_array_append_new(j, json_text(s->text));
	return j;
}

static json_t *evidence_json(const struct said *s)
{
	json_t *j = json_array();

	for (; s; s = s->next)
		json_array_append_new(j, JSON_OF(J_TEXT("source", s->source), J_TEXT("text", s->text)));
	return j;
}

static json_t *fix_json(const struct said *s)
{
	json_t *j = json_array();

	for (; s; s = s->next)
		json_array_append_new(j, JSON_OF(J_TEXT("text", s->text), J_TEXT("command", s->command)));
	return j;
}

static json_t *question_json(const struct kb_question *q)
{
	return q ? JSON_OF(J_TEXT("text", AT(q->text)), J_TEXT("command", AT(q->command))) : json_null();
}

static json_t *process_json(const struct verdict *v)
{
	json_t *j = JSON_OF(J_INT_OR_NULL("pid", v->pid, v->pid), J_INT_OR_NULL("rank", v->rank != CW_UNKNOWN, v->rank),
			    J_INT_OR_NULL("exit", v->exit_known && v->exit >= 0, v->exit),
			    J_INT_OR_NULL("signal", v->signal, v->signal), J_TEXT("command", v->command));

	json_object_update_new(j, facts_json(&v->c, "process"));
	return j;
}

static json_t *verdict_list_json(const struct verdict *v)
{
	json_t *j = json_array();

	for (; v; v = v->next)
		json_array_append_new(j, verdict_json(v));
	return j;
}

static json_t *not_finite_json(const struct casefile *c)
{
	json_t *j = facts_json(c, "number");

	JSON_ADD(j, J_VALUE("where", line_json(&c->line[LINE_number])),
		 J_VALUE("made", line_json(&c->line[LINE_number_made])));
	return j;
}

static json_t *whole_json(const struct verdict *v)
{
	const struct casefile *c = &v->c;

	return JSON_OF(J_INT("schema", 1),
		       J_TEXT("cause", AT(v->cause->id)),
		       J_TEXT("certainty", certainty_word(v->sure)),
		       J_TEXT("title", v->title),
		       J_TEXT("because", v->because),
		       J_VALUE("error", case_observed(c, GROUP_error) ? facts_json(c, "error") : json_null()),
		       J_VALUE("where", where_json(c)),
		       line_row_if_known("asked", &c->line[LINE_asked]),
		       J_VALUE("noticed", line_json(&c->line[LINE_noticed])),
		       J_VALUE("forward", line_json(&c->line[LINE_forward])),
		       J_VALUE("backward", line_json(&c->line[LINE_backward])),
		       J_VALUE("kernel", kernel_json(c)),
		       J_VALUE("fault", fault_json(c)),
		       J_VALUE("memory", memory_json(c)),
		       J_VALUE("capture", line_json(&c->line[LINE_capture])),
		       J_IF(fact_known(c, FACT_turn_number), J_VALUE("turn", facts_json(c, "turn"))),
		       J_IF(fact_known(c, FACT_number_value), J_VALUE("number", not_finite_json(c))),
		       fact_row(c, FACT_torch_node),
		       J_VALUE("suspects", suspects_json(c)),
		       J_IF(c->n_tensors, J_VALUE("tensors", tensors_json(c))),
		       J_IF(c->n_tensors, J_BOOL("tensors_late", c->tensors_late)),
		       J_VALUE("waiting", waiting_json(c)),
		       J_IF(c->live, J_VALUE("live", live_json(c->live))),
		       J_VALUE("candidates", candidates_json(v)),
		       J_VALUE("question", question_json(verdict_question(v))),
		       J_VALUE("unchecked", unchecked_json(v)),
		       J_VALUE("why", why_json(v->why)),
		       J_VALUE("evidence", evidence_json(v->evidence)),
		       J_VALUE("fix", fix_json(v->fix)),
		       J_VALUE("process", process_json(v)),
		       J_IF(v->ending_unknown, J_TEXT("ending", "unknown")),
		       J_IF(v->victim_of, J_BOOL("victim", true)),
		       J_IF(v->victim_of, J_INT("victim_of", v->victim_of)),
		       J_IF(v->victim_of, J_TEXT("victim_because", v->victim_why)),
		       J_IF(v->n_checks, J_VALUE("checks", checks_json(v->checks, v->n_checks))),
		       J_IF(case_observed(c, GROUP_versions), J_VALUE("versions", facts_json(c, "versions"))),
		       J_BOOL("simulated", fact_true(c, FACT_process_sim)),
		       J_IF(verdict_damage(v), J_TEXT("damaged", verdict_damage(v))),
		       J_VALUE("notes", verdict_list_json(v->notes)),
		       J_VALUE("others", verdict_list_json(v->others)));
}

json_t *verdict_json(const struct verdict *v)
{
	json_t *j = whole_json(v);

	private_hide_in(j, false);
	return j;
}

int report_json(FILE *out, const struct verdict *v, bool indent)
{
	json_t *j = verdict_json(v);
	int rc = json_write(out, j, indent ? JSON_INDENT(2) : JSON_COMPACT);

	json_decref(j);
	putc('\n', out);
	return rc || ferror(out) ? -1 : 0;
}
