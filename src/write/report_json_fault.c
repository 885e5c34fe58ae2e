/* SPDX-License-Identifier: Apache-2.0
 * What a core dump shows of a fault, as JSON (see report_json.c).
 */
#include "base/json_text.h"
#include "write/report_json.h"
#include "judge/verdict_priv.h"

static json_t *json_standing(const struct fault *f)
{
	json_t *places = json_array();

	if (!f->n_standing) {
		json_decref(places);
		return json_null();
	}
	for (size_t i = 0; i < f->n_standing; i++)
		json_array_append_new(places, json_pack("{s:o,s:I}", "pc", json_text(f->standing[i].pc), "threads",
							(json_int_t)f->standing[i].threads));
	return json_pack("{s:I,s:I,s:I,s:I,s:o}", "threads", (json_int_t)f->threads, "warps", (json_int_t)f->warps,
			 "blocks", (json_int_t)f->blocks, "elsewhere", (json_int_t)f->elsewhere, "places", places);
}

static json_t *json_assert(const struct fault *f)
{
	json_t *j;

	if (!f->asserted)
		return json_null();
	j = json_object();
	json_object_set_new(j, "condition", json_text(f->condition));
	json_object_set_new(j, "one_of", json_text(f->one_of));
	json_object_set_new(j, "file", json_text(f->file));
	json_object_set_new(j, "line", f->line ? json_integer(f->line) : json_null());
	json_object_set_new(j, "function", json_text(f->function));
	return j;
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
static json_t *json_fault_memory(const struct fault *f)
{
	json_t *j;

	if (!f->in)
		return json_null();
	j = json_object();
	json_object_set_new(j, "in", json_text(f->in));
	json_object_set_new(j, "block", json_piece(&f->piece));
	json_object_set_new(j, "segment", json_piece(&f->segment));
	json_object_set_new(j, "parameter", f->param >= 0 ? json_integer(f->param) : json_null());
	json_object_set_new(j, "parameter_byte", f->param_byte >= 0 ? json_integer(f->param_byte) : json_null());
	json_object_set_new(j, "device", f->device >= 0 ? json_integer(f->device) : json_null());
	return j;
}

json_t *fault_json(const struct fault *f)
{
	char address[32];
	json_t *j;

	if (!f->known)
		return json_null();
	j = json_object();
	snprintf(address, sizeof(address), "0x%llx", (unsigned long long)f->address);
	json_object_set_new(j, "block", f->lane_known ? triple_json(f->block) : json_null());
	json_object_set_new(j, "thread", f->lane_known ? triple_json(f->thread) : json_null());
	json_object_set_new(j, "threads", json_integer((json_int_t)f->threads));
	json_object_set_new(j, "address", f->address_known ? json_string(address) : json_null());
	json_object_set_new(j, "access", json_text(f->access));
	json_object_set_new(j, "bytes", f->access ? json_integer(f->bytes) : json_null());
	json_object_set_new(j, "space", json_text(f->space));
	json_object_set_new(j, "instruction", json_text(f->instruction));
	json_object_set_new(j, "pc", json_text(f->pc));
	json_object_set_new(j, "exception", json_text(f->exception));
	json_object_set_new(j, "running", json_standing(f));
	json_object_set_new(j, "assert", json_assert(f));
	json_object_set_new(j, "memory", json_fault_memory(f));
	return j;
}
