/* SPDX-License-Identifier: Apache-2.0
 * The culprit of a GPU core dump as a text, for tests that compare it and for a fuzzer that must read all of it.
 */
#ifndef CUWHY_TEST_CULPRIT_TEXT_H
#define CUWHY_TEST_CULPRIT_TEXT_H

#include <inttypes.h>

#include "base/buf.h"
#include "find/fault/culprit.h"

#define PARAMS_SHOWN	64	/* bytes */

static inline const char *culprit_verb(const struct culprit *c)
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

static inline void culprit_add_dim(struct buf *out, const char *what, const uint32_t dim[3])
{
	buf_printf(out, "%s %ux%ux%u", what, dim[0], dim[1], dim[2]);
}

static inline void culprit_add_pos(struct buf *out, const char *what, const uint32_t pos[3])
{
	buf_printf(out, "%s (%u,%u,%u)", what, pos[0], pos[1], pos[2]);
}

static inline void culprit_add_bytes(struct buf *out, const uint8_t *p, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		buf_printf(out, "%02x", p[i]);
}

/* "so+0x190", and the function inside it where that is another one */
static inline void culprit_add_pc(struct buf *out, const struct culprit *c)
{
	if (c->kernel && c->pc >= c->entry)
		buf_printf(out, "%s+0x%" PRIx64, c->kernel, c->kernel_offset);
	else if (c->function)
		buf_printf(out, "%s+0x%" PRIx64, c->function, c->function_offset);
	else
		buf_printf(out, "0x%" PRIx64, c->pc);
}

static inline void culprit_text_kernel(const struct culprit *c, struct buf *out)
{
	if (!c->grid_known)
		return;
	buf_printf(out, "  kernel  %s\n          ", c->kernel_text ? c->kernel_text : "(name unknown)");
	culprit_add_dim(out, "grid", c->grid);
	culprit_add_dim(out, "  block", c->block);
	buf_printf(out, "  grid id %" PRIu64 "\n", c->grid_id);
	if (c->params.data) {
		buf_printf(out, "  params  %zu bytes: ", c->params.len);
		culprit_add_bytes(out, c->params.data, c->params.len < PARAMS_SHOWN ? c->params.len : PARAMS_SHOWN);
		buf_adds(out, c->params.len > PARAMS_SHOWN ? "...\n" : "\n");
	}
}

static inline void culprit_text_threads(const struct culprit *c, struct buf *out)
{
	const struct culprit_lane *l = c->lanes;

	if (c->n_lanes == 0) {
		buf_adds(out, "  thread  unknown: none is at the instruction anymore\n");
		return;
	}
	culprit_add_pos(out, "  thread  block", l->block);
	culprit_add_pos(out, " thread", l->thread);
	if (c->decoded && l->address_known)
		buf_printf(out, " %s %u byte%s at 0x%" PRIx64 " (%s)%s", culprit_verb(c), c->insn.width,
			   c->insn.width == 1 ? "" : "s", l->address, sass_space_name(c->space),
			   c->address_doubtful	   ? ", unless the load overwrote its address"
			   : c->address_recomputed ? ", recomputed from the code"
						   : "");
	buf_printf(out, "\n          %zu thread%s in %zu warp%s", c->n_lanes, c->n_lanes == 1 ? "" : "s",
		   c->n_warps, c->n_warps == 1 ? "" : "s");
	if (c->address_known && c->address_min != c->address_max)
		buf_printf(out, ", addresses 0x%" PRIx64 " to 0x%" PRIx64, c->address_min, c->address_max);
	buf_adds(out, "\n");
}

static inline void culprit_text_code(const struct culprit *c, struct buf *out)
{
	static const char *const kind[] = {"", "load", "store", "atomic", "reduction", "trap"};

	if (!c->pc_known)
		return;
	buf_printf(out, "  pc      %s", c->pc_exact ? "" : "near ");
	culprit_add_pc(out, c);
	if (c->function && c->kernel && c->function_offset != c->kernel_offset)
		buf_printf(out, " in %s", c->function);
	if (c->decoded)
		buf_printf(out, ": %s, %s, %s, %u bytes", c->insn.name, kind[c->insn.kind],
			   sass_space_name(c->space), c->insn.width);
	if (c->call_depth)
		buf_printf(out, ", call depth %u", c->call_depth);
	buf_adds(out, "\n");
}

static inline void culprit_text_assertion(const struct assertion *a, struct buf *out)
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

/* Where the values are, relative to the pointer that they were found with, and what they are. */
static inline void culprit_text_values(const struct values *v, struct buf *out)
{
	static const char *const answer[] = {"", "read", "not in the dump", "depend on memory that is not in the dump",
					     "the code cannot be followed"};
	const struct checked *c;
	double real;
	size_t i;

	if (v->answer == VALUES_NONE)
		return;
	buf_printf(out, "  values  %s", answer[v->answer]);
	for (i = 0; i < v->n_kept; i++) {
		c = &v->value[i];
		buf_printf(out, "%s%u bytes", i ? ", " : ": ", c->n);
		if (c->base)
			buf_printf(out, " at +%" PRId64, (int64_t)(c->at - c->base));
		if (c->compared && c->compare.real && checked_real(c, &real))
			buf_printf(out, " = %g", real);
		else if (c->n_raw >= c->n && !c->compare.real)
			buf_printf(out, " = %" PRId64, checked_integer(c->raw, c->n));
	}
	buf_printf(out, "; %zu of %zu threads\n", v->n_found, v->n_threads);
}

static inline void culprit_text(const struct culprit *c, struct buf *out)
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
	culprit_text_kernel(c, out);
	culprit_text_assertion(&c->assertion, out);
	culprit_text_threads(c, out);
	culprit_text_code(c, out);
	culprit_text_values(&c->values, out);
	if (c->n_other)
		buf_printf(out, "  also    %zu threads of other kernels have an exception\n", c->n_other);
}

#endif
