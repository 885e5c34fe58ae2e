/* SPDX-License-Identifier: Apache-2.0
 * The verdict about a memory snapshot of PyTorch: the last request that could not be met.
 */
#include <stdlib.h>

#include "input/snapshot/observe.h"
#include "judge/verdict_priv.h"

#define STACK_MAX	128
#define HOLDERS_SAID	5

static struct line line_of_frame(struct verdict *v, const struct snapshot *s, uint32_t file, uint32_t function,
				 uint32_t number)
{
	struct line l = {.file = pool_strdup(&v->pool, snap_text(s, file)), .number = number};

	l.shown = l.file;
	l.function = pool_strdup(&v->pool, snap_text(s, function));
	return l;
}

static void fill_where(struct verdict *v, const struct snapshot *s, const struct snap_lines *l,
		       const struct snap_device *d)
{
	const struct snap_line *at = snap_line(l, d->oom.line);
	const uint32_t *frames;
	struct place p;
	size_t n;

	frames = snap_stack(s, d->replay.event[d->oom.event].stack, &n);
	v->stack = pool_alloc(&v->pool, (n < STACK_MAX ? n + 1 : STACK_MAX) * sizeof(*v->stack));
	for (size_t i = 0; i < n && i < STACK_MAX; i++) {
		const struct snap_frame *f = snap_frame(s, frames[i]);

		v->stack[v->n_stack++] = line_of_frame(v, s, f->file, f->function, f->line);
	}
	if (!at->file) {
		v->frames_off = n ? "no line of Python was on the stack" :
				    "the history was recorded without stacks";
		return;
	}
	v->where = line_of_frame(v, s, at->file, at->function, at->line);
	v->where.library = at->library != 0;
	p = (struct place){.file = v->where.file, .line = at->line};
	v->where.source = place_source(&p, ".", &v->pool);
}

/* What every cause asks for, so that "could not be checked" names only what might have been it. */
static void fill_rest(struct casefile *f)
{
	fact_set_number(f, FACT_error_code, 0);
	fact_set_text(f, FACT_error_source, "torch-oom");
	fact_set_text(f, FACT_error_text, "");
	fact_set_flag(f, FACT_error_async, false);
	fact_set_flag(f, FACT_dump_missing, false);
	fact_set_flag(f, FACT_hang_is, false);
	fact_set_flag(f, FACT_launch_is, false);
	fact_set_text(f, FACT_fault_kind, "");
	fact_set_text(f, FACT_shared_by, "");
	fact_set_text(f, FACT_assert_op, "");
	fact_set_text(f, FACT_assert_about, "");
	fact_set_number(f, FACT_suspects_lines, 0);
	fact_set_number(f, FACT_fault_lines, 0);
	fact_set_text(f, FACT_address_in, "");
	/* a snapshot has no ledger, and nobody was asked */
	fact_set_flag(f, FACT_grow_is, false);
	fact_set_flag(f, FACT_others_known, false);
	fact_set_flag(f, FACT_masked_oom, false);
	fact_set_text(f, FACT_masked_status, "");
	fact_set_flag(f, FACT_load_is, false);
	fact_set_number(f, FACT_graph_nodes, 0);
}

static void fill_memory(struct verdict *v, const struct casefile *f)
{
	v->memory = (struct memory_sums){
		.known = true,
		.request = fact_number(f, FACT_oom_request, -1),
		.free = fact_number(f, FACT_oom_free, -1),
		.total = -1, .live = -1, .not_torch = -1, .outside = -1,
		.allocated = fact_number(f, FACT_oom_torch_allocated, -1),
		.reserved = fact_number(f, FACT_oom_torch_reserved, -1),
		.cache = fact_number(f, FACT_oom_cache, -1),
	};
}

static void fill_evidence(struct verdict *v, const struct snapshot *s, const struct snap_lines *l,
			  const struct snap_device *d)
{
	const struct snap_oom *o = &d->oom;
	struct snap_holder *h;
	char size[32];
	size_t n = snap_holders(d, l, o->event, &h);

	if (v->because)
		verdict_evidence(v, "rule", v->because);
	verdict_evidence(v, "snapshot", pool_printf(&v->pool, "event %u of %zu of device %d is an oom", o->event + 1,
						    d->replay.n, d->device));
	if (o->later)
		verdict_evidence(v, "snapshot", pool_printf(&v->pool, "the program went on: %u allocations came after "
							    "it", o->later));
	for (size_t i = 0; i < n && i < HOLDERS_SAID; i++) {
		const char *line = snapshot_line_text(s, l, h[i].line, &v->pool);

		verdict_evidence(v, "snapshot", pool_printf(&v->pool, "%s held %s in %u blocks",
				 line ? line : "lines that are not known",
				 format_bytes(size, sizeof(size), (double)h[i].bytes), h[i].blocks));
	}
	free(h);
}

struct verdict *verdict_of_snapshot(const struct snapshot *s, const struct snap_lines *l, const struct snap_device *d)
{
	struct verdict *v = verdict_new(d->oom.found ? "unknown" : "none");
	struct casefile *f;

	if (!d->oom.found)
		return v;
	f = pool_alloc(&v->pool, sizeof(*f));
	case_init(f, &v->pool);
	fill_rest(f);
	facts_of_snapshot(f, s, l, d);
	v->source = "snapshot";
	v->string = "out of memory";
	v->count = d->oom.count;
	fill_where(v, s, l, d);
	fact_set_text(f, FACT_where_source, v->where.source);
	fill_memory(v, f);
	verdict_judge(v, f);
	fill_evidence(v, s, l, d);
	return v;
}
