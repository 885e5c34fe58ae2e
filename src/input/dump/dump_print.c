/* SPDX-License-Identifier: Apache-2.0
 * Says what a GPU core dump says.
 */
#include <inttypes.h>
#include <stdio.h>

#include "base/buf.h"
#include "input/dump/culprit.h"
#include "input/dump/dump_print.h"
#include "base/banned.h"

#define PARAMS_SHOWN	64	/* bytes */
#define PARAMS_MAX	32764	/* what a launch can carry */
#define LANES_SHOWN	32	/* one warp */

static const char *verb(const struct culprit *c)
{
	switch (c->insn.kind) {
	case SASS_LOAD:
		return "read";
	case SASS_STORE:
		return "wrote";
	default:
		return "updated";	/* atomics and reductions */
	}
}

static const char *access_name(const struct culprit *c)
{
	static const char *const name[] = {"", "read", "write", "atomic", "reduction", ""};

	return name[c->insn.kind];
}

static void add_dim(struct buf *out, const char *what, const uint32_t dim[3])
{
	buf_printf(out, "%s %ux%ux%u", what, dim[0], dim[1], dim[2]);
}

static void add_pos(struct buf *out, const char *what, const uint32_t pos[3])
{
	buf_printf(out, "%s (%u,%u,%u)", what, pos[0], pos[1], pos[2]);
}

static void add_bytes(struct buf *out, const uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		buf_printf(out, "%02x", p[i]);
}

/* "so+0x190", and the function inside it where that is another one */
static void add_pc(struct buf *out, const struct culprit *c)
{
	if (c->kernel && c->pc >= c->entry)
		buf_printf(out, "%s+0x%" PRIx64, c->kernel, c->kernel_offset);
	else if (c->function)
		buf_printf(out, "%s+0x%" PRIx64, c->function, c->function_offset);
	else
		buf_printf(out, "0x%" PRIx64, c->pc);
}

static void text_kernel(const struct culprit *c, struct buf *out)
{
	if (!c->grid_known)
		return;
	buf_printf(out, "  kernel  %s\n          ", c->kernel_text ? c->kernel_text : "(name unknown)");
	add_dim(out, "grid", c->grid);
	add_dim(out, "  block", c->block);
	buf_printf(out, "  grid id %" PRIu64 "\n", c->grid_id);
	if (c->params.data) {
		buf_printf(out, "  params  %zu bytes: ", c->params.len);
		add_bytes(out, c->params.data, c->params.len < PARAMS_SHOWN ? c->params.len : PARAMS_SHOWN);
		buf_adds(out, c->params.len > PARAMS_SHOWN ? "...\n" : "\n");
	}
}

static void text_threads(const struct culprit *c, struct buf *out)
{
	const struct culprit_lane *l = c->lanes;

	if (c->n_lanes == 0) {
		buf_adds(out, "  thread  unknown: none stands at the instruction any more\n");
		return;
	}
	add_pos(out, "  thread  block", l->block);
	add_pos(out, " thread", l->thread);
	if (c->decoded && l->address_known)
		buf_printf(out, " %s %u byte%s at 0x%" PRIx64 " (%s)%s", verb(c), c->insn.width,
			   c->insn.width == 1 ? "" : "s", l->address, sass_space_name(c->space),
			   c->address_doubtful ? ", unless the load overwrote its address" :
			   c->address_recomputed ? ", recomputed from the code" : "");
	buf_printf(out, "\n          %zu thread%s in %zu warp%s", c->n_lanes, c->n_lanes == 1 ? "" : "s",
		   c->n_warps, c->n_warps == 1 ? "" : "s");
	if (c->address_known && c->address_min != c->address_max)
		buf_printf(out, ", addresses 0x%" PRIx64 " to 0x%" PRIx64, c->address_min, c->address_max);
	buf_adds(out, "\n");
}

static void text_code(const struct culprit *c, struct buf *out)
{
	if (!c->pc_known)
		return;
	buf_printf(out, "  pc      %s", c->pc_exact ? "" : "near ");
	add_pc(out, c);
	if (c->function && c->kernel && c->function_offset != c->kernel_offset)
		buf_printf(out, " in %s", c->function);
	if (c->decoded)
		buf_printf(out, ": %s, %s, %s, %u bytes", c->insn.name, sass_kind_name(c->insn.kind),
			   sass_space_name(c->space), c->insn.width);
	if (c->call_depth)
		buf_printf(out, ", call depth %u", c->call_depth);
	buf_adds(out, "\n");
}

static void text_assertion(const struct assertion *a, struct buf *out)
{
	size_t i;

	if (!a->condition && !a->file)
		return;
	buf_adds(out, "  assert  ");
	if (a->condition)
		buf_printf(out, "`%s`", a->condition);
	for (i = 0; i < a->n_one_of; i++)
		buf_printf(out, "%s`%s`", i ? " or " : "", a->one_of[i]);
	if (!a->condition && !a->n_one_of)
		buf_adds(out, "(condition unknown)");
	if (a->file)
		buf_printf(out, " at %s:%u", a->file, a->line);
	buf_printf(out, "%s%s\n", a->function ? " in " : "", a->function ? a->function : "");
}

void culprit_text(const struct culprit *c, struct buf *out)
{
	buf_printf(out, "%s", culprit_fault_text(c->fault));
	if (c->exception)
		buf_printf(out, " (exception %u, %s)", c->exception, c->exception_name);
	buf_adds(out, "\n");
	if (c->exception_text && c->exception_text[0])
		buf_printf(out, "  driver  %s\n", c->exception_text);
	buf_printf(out, "  device  %u: %s, %s\n", c->device, c->device_name, c->sm_type);
	if (c->source == CULPRIT_NOWHERE)
		return;
	text_kernel(c, out);
	text_assertion(&c->assertion, out);
	text_threads(c, out);
	text_code(c, out);
	if (c->n_other)
		buf_printf(out, "  also    %zu threads of other kernels have an exception\n", c->n_other);
}

/* --- JSON ------------------------------------------------------------------------------------- */

static json_t *three(const uint32_t v[3])
{
	return json_pack("[I,I,I]", (json_int_t)v[0], (json_int_t)v[1], (json_int_t)v[2]);
}

/* Names come from the file; bytes that are no UTF-8 make no string. */
static json_t *string(const char *s)
{
	json_t *j = s ? json_string(s) : NULL;

	return j ? j : json_null();
}

static json_t *hex(uint64_t v)
{
	return json_sprintf("0x%" PRIx64, v);
}

static json_t *bytes(const uint8_t *p, size_t n)
{
	struct buf b;
	json_t *j;

	buf_init(&b, 2 * PARAMS_MAX + 1);
	add_bytes(&b, p, n);
	j = json_string(b.data ? b.data : "");
	buf_release(&b);
	return j;
}

static json_t *lane_json(const struct culprit_lane *l)
{
	json_t *j = json_pack("{s:o,s:o}", "block", three(l->block), "thread", three(l->thread));

	if (l->address_known)
		json_object_set_new(j, "address", hex(l->address));
	return j;
}

static json_t *kernel_json(const struct culprit *c)
{
	size_t n = c->params.len < PARAMS_MAX ? c->params.len : PARAMS_MAX;
	json_t *j = json_pack("{s:o,s:o,s:o,s:o,s:I}", "name", string(c->kernel_text), "symbol",
			      string(c->kernel), "grid", three(c->grid), "block", three(c->block), "grid_id",
			      (json_int_t)c->grid_id);

	if (c->params.data)
		json_object_set_new(j, "params", bytes(c->params.data, n));
	return j;
}

static json_t *assertion_json(const struct assertion *a)
{
	return json_pack("{s:o,s:o,s:o,s:o}", "condition", string(a->condition), "file", string(a->file), "line",
			 a->line ? json_integer(a->line) : json_null(), "function", string(a->function));
}

/* The keys of "fault" in a verdict, and more. */
static json_t *fault_json(const struct culprit *c)
{
	json_t *j = json_object(), *lanes;
	struct buf pc;
	size_t i;

	if (c->n_kept) {
		json_object_set_new(j, "block", three(c->lanes[0].block));
		json_object_set_new(j, "thread", three(c->lanes[0].thread));
		if (c->lanes[0].address_known)
			json_object_set_new(j, "address", hex(c->lanes[0].address));
	}
	if (c->decoded) {
		json_object_set_new(j, "access", json_string(access_name(c)));
		json_object_set_new(j, "bytes", json_integer(c->insn.width));
		json_object_set_new(j, "space", json_string(sass_space_name(c->space)));
		json_object_set_new(j, "instruction", json_string(c->insn.name));
	}
	if (c->pc_known) {
		buf_init(&pc, 1 << 16);
		add_pc(&pc, c);
		json_object_set_new(j, "pc", string(pc.data));
		buf_release(&pc);
		json_object_set_new(j, "pc_exact", json_boolean(c->pc_exact));
		json_object_set_new(j, "function", string(c->function));
	}
	if (c->code_known)
		json_object_set_new(j, "code", bytes(c->code, sizeof(c->code)));
	if (c->address_doubtful)
		json_object_set_new(j, "address_doubtful", json_true());
	if (c->address_recomputed)
		json_object_set_new(j, "address_recomputed", json_string(c->address_unchecked ? "unchecked" : "checked"));
	if (c->fault == FAULT_ASSERT)
		json_object_set_new(j, "assert", assertion_json(&c->assertion));
	json_object_set_new(j, "threads", json_integer((json_int_t)c->n_lanes));
	lanes = json_array();
	for (i = 0; i < c->n_kept && i < LANES_SHOWN; i++)
		json_array_append_new(lanes, lane_json(&c->lanes[i]));
	json_object_set_new(j, "lanes", lanes);
	return j;
}

json_t *culprit_json(const struct culprit *c)
{
	json_t *j = json_object();

	json_object_set_new(j, "kind", json_string(culprit_fault_id(c->fault)));
	json_object_set_new(j, "exception",
			    json_pack("{s:I,s:s,s:o}", "code", (json_int_t)c->exception, "name",
				      c->exception_name, "text", string(c->exception_text)));
	json_object_set_new(j, "device",
			    json_pack("{s:I,s:o,s:o,s:I}", "ordinal", (json_int_t)c->device, "name",
				      string(c->device_name), "type", string(c->sm_type), "arch",
				      (json_int_t)c->arch));
	if (c->grid_known)
		json_object_set_new(j, "kernel", kernel_json(c));
	json_object_set_new(j, "fault", fault_json(c));
	return j;
}
