/* SPDX-License-Identifier: Apache-2.0
 * What is known about the address of a fault, as facts.
 */
#include <string.h>

#include "judge/address.h"
#include "input/recording/trace.h"

static void set_line(struct casefile *f, enum fact_id id, const struct trace *t, const struct place *p)
{
	if (p->file)
		fact_set_text(f, id, pool_printf(f->pool, "%s:%u", file_shown(p->file, trace_header(t)->cwd), p->line));
}

void address_facts(struct casefile *f, const struct trace *t, const struct address *a)
{
	const struct memory *m = a->block.known ? &a->block : &a->segment;

	fact_set_text(f, FACT_address_in, a->in);
	fact_set_flag(f, FACT_address_wraps, a->wraps);
	fact_set_flag(f, FACT_address_wraps_sure, a->wraps_sure);
	fact_set_flag(f, FACT_address_given, a->param_sure);
	fact_set_flag(f, FACT_address_several, a->several);
	fact_set_flag(f, FACT_address_traced, a->traced);
	if (a->param >= 0)
		fact_set_number(f, FACT_address_param, a->param);
	if (a->param_byte >= 0)
		fact_set_number(f, FACT_address_param_byte, a->param_byte);
	if (a->device >= 0) {
		fact_set_number(f, FACT_fault_device, a->device);
		fact_set_flag(f, FACT_fault_device_sure, a->device_sure);
	}
	if (!m->known)
		return;
	fact_set_flag(f, FACT_address_torch, a->block.known);
	fact_set_number(f, FACT_address_size, (double)m->size);
	set_line(f, FACT_address_made, t, &m->made);
	set_line(f, FACT_address_freed, t, &m->freed);
	fact_set_flag(f, FACT_address_freed_after, m->freed_after);
	if (m->device >= 0)
		fact_set_number(f, FACT_address_device, m->device);
	if (a->block.known && a->segment.known) {
		fact_set_number(f, FACT_address_segment_size, (double)a->segment.size);
		set_line(f, FACT_address_segment_made, t, &a->segment.made);
		set_line(f, FACT_address_segment_freed, t, &a->segment.freed);
	}
	if (!strcmp(a->in, "near")) {
		fact_set_text(f, FACT_address_side, a->past ? "past the end of" : "before");
		fact_set_number(f, FACT_address_distance, (double)a->distance);
	}
}
