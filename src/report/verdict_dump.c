/* SPDX-License-Identifier: Apache-2.0
 * The verdict about a GPU core dump alone, without a recording: what happened on the GPU, but not which line
 * launched the kernel nor whose memory the address was.
 */
#include <inttypes.h>
#include <string.h>

#include "dump/culprit.h"
#include "report/verdict_priv.h"
#include "trace/cuda_errors.h"

/* The words of a sentence ("thread … wrote 4 bytes") and those of the JSON contract. */
static const struct { enum sass_kind kind; const char *said, *access; } accesses[] = {
	{ SASS_LOAD, "read", "read" },
	{ SASS_STORE, "wrote", "write" },
	{ SASS_ATOMIC, "updated", "atomic" },
	{ SASS_REDUCTION, "updated", "atomic" },
};

/* The error that CUDA reports for each kind of fault; 0 where that depends. */
static uint32_t code_of(enum culprit_fault f)
{
	switch (f) {
	case FAULT_ILLEGAL_ADDRESS: return 700;
	case FAULT_MISALIGNED: return 716;
	case FAULT_ASSERT: return 710;
	case FAULT_ILLEGAL_INSTRUCTION: return 715;
	case FAULT_INVALID_SPACE: return 717;
	case FAULT_INVALID_PC: return 718;
	case FAULT_TRAP: return 719;
	default: return 0;
	}
}

static void fill_access(struct verdict *v, struct facts *f, const struct culprit *c)
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

void verdict_thread(struct verdict *v, struct facts *f, const struct culprit *c, size_t lane, size_t threads)
{
	v->fault.threads = threads;
	fact_set_number(f, FACT_fault_threads, (double)threads);
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

	if (c->grid_known) {
		v->kernel.known = v->kernel.dims_known = true;
		v->kernel.name = c->kernel_text ? pool_strdup(&v->pool, c->kernel_text) : NULL;
		v->kernel.short_name = c->kernel_text ? kernel_short_name(c->kernel_text, &v->pool) : NULL;
		memcpy(v->kernel.grid, c->grid, sizeof(v->kernel.grid));
		memcpy(v->kernel.block, c->block, sizeof(v->kernel.block));
	}
	if (c->pc_known && c->kernel_text)
		v->fault.pc = pool_printf(&v->pool, "%s+0x%" PRIx64 "%s%s", kernel_short_name(c->kernel_text, &v->pool),
					  c->kernel_offset, function ? ", in " : "", function ? function : "");
}

void verdict_fault(struct verdict *v, struct facts *f, const struct culprit *c)
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
	verdict_evidence(v, "core-dump", v->fault.exception ?
			 pool_printf(&v->pool, "%s (%s)", v->fault.what, v->fault.exception) : v->fault.what);
	if (c->exception_text && c->exception_text[0])
		verdict_evidence(v, "core-dump", pool_strdup(&v->pool, c->exception_text));
}

struct verdict *verdict_of_dump(const struct culprit *c)
{
	struct verdict *v = verdict_new("unknown");
	struct facts *f = pool_alloc(&v->pool, sizeof(*f));

	facts_init(f, &v->pool);
	verdict_fault(v, f, c);
	v->alone = true;
	v->code = code_of(c->fault);
	v->source = "core-dump";
	v->name = v->code ? cuda_error_name(v->code) : NULL;
	v->string = v->code ? cuda_error_text(v->code) : v->fault.what;
	fact_set_number(f, FACT_error_code, v->code);
	fact_set_text(f, FACT_error_string, v->fault.what);
	fact_set_text(f, FACT_error_text, "");
	fact_set_flag(f, FACT_error_async, true);
	fact_set_flag(f, FACT_launch_is, false);
	fact_set_flag(f, FACT_oom_is, false);
	fact_set_flag(f, FACT_torch_loaded, false);
	fact_set_text(f, FACT_error_source, "core-dump");
	fact_set_text(f, FACT_shared_by, "");
	fact_set_number(f, FACT_suspects_lines, 0);
	fact_set_number(f, FACT_fault_lines, 0);
	fact_set_text(f, FACT_address_in, "");
	verdict_judge(v, f);
	if (v->because)
		verdict_evidence(v, "rule", v->because);
	return v;
}
