/* SPDX-License-Identifier: Apache-2.0
 * The verdict about a GPU core dump alone, without a recording: what happened on the GPU, but not which line
 * launched the kernel nor whose memory the address was.
 */
#include <inttypes.h>
#include <string.h>

#include "input/dump/culprit.h"
#include "case/signature.h"
#include "input/dump/observe.h"
#include "judge/verdict_priv.h"
#include "compat/cuda_errors.h"

/* The words of a sentence ("thread … wrote 4 bytes") and those of the JSON contract. */
static const struct { enum sass_kind kind; const char *said, *access; } accesses[] = {
	{ SASS_LOAD, "read", "read" },
	{ SASS_STORE, "wrote", "write" },
	{ SASS_ATOMIC, "updated", "atomic" },
	{ SASS_REDUCTION, "updated", "atomic" },
};

static void fill_access(struct verdict *v, struct casefile *f, const struct culprit *c)
{
	for (size_t i = 0; c->decoded && i < sizeof(accesses) / sizeof(accesses[0]); i++) {
		if (accesses[i].kind != c->insn.kind)
			continue;
		v->fault.access = accesses[i].access;
		v->fault.bytes = c->insn.width;
		fact_set_text(f, FACT_fault_access, accesses[i].said);
		fact_set_number(f, FACT_fault_bytes, c->insn.width);
	}
	if (c->decoded && c->insn.name[0])
		v->fault.instruction = pool_strdup(&v->pool, c->insn.name);
	if (c->decoded && c->space != SASS_NOWHERE) {
		v->fault.space = sass_space_name(c->space);
		fact_set_text(f, FACT_fault_space, v->fault.space);
	}
}

void verdict_thread(struct verdict *v, struct casefile *f, const struct culprit *c, size_t lane, size_t threads)
{
	v->fault.threads = threads;
	fact_set_number(f, FACT_fault_threads, (double)threads);
	fact_set_flag(f, FACT_fault_address_recomputed, c->address_recomputed);
	fact_set_flag(f, FACT_fault_address_unchecked, c->address_unchecked);
	if (lane >= c->n_kept)
		return;
	v->fault.lane_known = true;
	memcpy(v->fault.block, c->lanes[lane].block, sizeof(v->fault.block));
	memcpy(v->fault.thread, c->lanes[lane].thread, sizeof(v->fault.thread));
	if (!c->lanes[lane].address_known || c->address_doubtful)
		return;
	v->fault.address_known = true;
	v->fault.address = c->lanes[lane].address;
	fact_set_text(f, FACT_fault_address, pool_printf(&v->pool, "0x%" PRIx64, v->fault.address));
}

static void fill_kernel(struct verdict *v, const struct culprit *c)
{
	const char *function = c->function && (!c->kernel || strcmp(c->function, c->kernel)) ? c->function : NULL;

	if (c->kernel || c->grid_known) {
		v->kernel.known = true;
		v->kernel.dims_known = c->grid_known;
		v->kernel.name = c->kernel_text ? pool_strdup(&v->pool, c->kernel_text) : NULL;
		v->kernel.short_name = c->kernel_text ? kernel_short_name(c->kernel_text, &v->pool) : NULL;
		memcpy(v->kernel.grid, c->grid, sizeof(v->kernel.grid));
		memcpy(v->kernel.block, c->block, sizeof(v->kernel.block));
	}
	if (c->pc_known && c->kernel_text)
		v->fault.pc = pool_printf(&v->pool, "%s+0x%" PRIx64 "%s%s", kernel_short_name(c->kernel_text, &v->pool),
					  c->kernel_offset, function ? ", in " : "", function ? function : "");
}

/* Where the threads of a kernel stand that had not failed. */
static void fill_standing(struct verdict *v, const struct culprit *c)
{
	struct fault *to = &v->fault;

	to->warps = c->n_warps;
	to->blocks = c->n_blocks;
	to->elsewhere = c->n_elsewhere;
	to->standing = pool_alloc(&v->pool, (c->n_places + 1) * sizeof(*to->standing));
	for (size_t i = 0; i < c->n_places; i++) {
		const struct culprit_place *p = &c->places[i];
		bool own = !p->function || (c->kernel && !strcmp(p->function, c->kernel));
		const char *name = !own ? p->function : v->kernel.short_name ? v->kernel.short_name : "the kernel";

		to->standing[to->n_standing++] = (struct standing){
			.pc = pool_printf(&v->pool, "%s+0x%" PRIx64, name, p->offset), .threads = p->threads };
	}
	if (c->other_grids)
		verdict_evidence(v, "core-dump", "other kernels were running, too; this one is the oldest of its GPU");
}

static void fill_assertion(struct verdict *v, struct casefile *f, const struct culprit *c)
{
	assert_facts_of_dump(f, c);
	if (c->fault != FAULT_ASSERT)
		return;
	v->fault.asserted = true;
	v->fault.condition = fact_known(f, FACT_assert_condition) ? fact_text(f, FACT_assert_condition) : NULL;
	v->fault.one_of = fact_known(f, FACT_assert_one_of) ? fact_text(f, FACT_assert_one_of) : NULL;
	v->fault.file = fact_known(f, FACT_assert_file) ? fact_text(f, FACT_assert_file) : NULL;
	v->fault.function = fact_known(f, FACT_assert_function) ? fact_text(f, FACT_assert_function) : NULL;
	v->fault.line = c->assertion.line;
}

void verdict_fault(struct verdict *v, struct casefile *f, const struct culprit *c)
{
	v->fault.known = true;
	v->fault.what = culprit_fault_text(c->fault);
	/* a trap stops its warp without an exception */
	v->fault.exception = c->exception ? c->exception_name : NULL;
	fact_set_text(f, FACT_fault_kind, culprit_fault_id(c->fault));
	fact_set_text(f, FACT_fault_exception, v->fault.exception);
	fill_access(v, f, c);
	verdict_thread(v, f, c, 0, c->n_lanes);
	fill_kernel(v, c);
	fill_assertion(v, f, c);
	verdict_evidence(v, "core-dump", v->fault.exception ?
			 pool_printf(&v->pool, "%s (%s)", v->fault.what, v->fault.exception) : v->fault.what);
	if (c->source == CULPRIT_RUNNING)
		fill_standing(v, c);
	if (c->exception_text && c->exception_text[0])
		verdict_evidence(v, "core-dump", pool_strdup(&v->pool, c->exception_text));
}

struct verdict *verdict_of_dump(const struct culprit *c)
{
	struct verdict *v = verdict_new("unknown");
	struct casefile *f = pool_alloc(&v->pool, sizeof(*f));

	case_init(f, &v->pool);
	verdict_fault(v, f, c);
	v->alone = true;
	v->code = culprit_fault_code(c->fault);
	v->source = "core-dump";
	v->name = v->code ? cuda_error_name(v->code) : NULL;
	v->string = v->code ? cuda_error_text(v->code) : v->fault.what;
	fact_set_number(f, FACT_error_code, v->code);
	fact_set_text(f, FACT_error_string, v->fault.what);
	fact_set_text(f, FACT_error_text, "");
	fact_set_flag(f, FACT_error_async, true);
	fact_set_flag(f, FACT_dump_missing, false);
	fact_set_flag(f, FACT_hang_is, false);
	fact_set_flag(f, FACT_launch_is, false);
	fact_set_flag(f, FACT_oom_is, false);
	fact_set_flag(f, FACT_torch_loaded, false);
	fact_set_flag(f, FACT_snapshot_is, false);
	fact_set_text(f, FACT_error_source, "core-dump");
	fact_set_text(f, FACT_shared_by, "");
	fact_set_number(f, FACT_suspects_lines, 0);
	fact_set_number(f, FACT_fault_lines, 0);
	fact_set_text(f, FACT_address_in, "");
	fact_set_text(f, FACT_assert_op, "");
	fact_set_flag(f, FACT_assert_position, false);
	if (!fact_known(f, FACT_assert_about))
		fact_set_text(f, FACT_assert_about, "");
	verdict_judge(v, f);
	if (v->because)
		verdict_evidence(v, "rule", v->because);
	return v;
}
