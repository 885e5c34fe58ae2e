/* SPDX-License-Identifier: Apache-2.0
 * The launch behind an error that came later: what a core dump and the recording say together, or the suspects.
 */
#include "input/dump/culprit.h"
#include "case/signature.h"
#include "compat/cuda_errors.h"
#include "input/recording/observe.h"
#include "judge/address.h"
#include "judge/fault.h"
#include "input/recording/place.h"
#include "input/recording/suspects.h"
#include "judge/verdict_priv.h"
#include "input/recording/trace.h"

#define SUSPECTS_KEPT 8

/* One line alone is where it happened; of several nobody can say which. */
void verdict_suspects(struct verdict *v, const struct incident *i, struct trace *t, struct casefile *f,
			  struct scene *s)
{
	struct suspects *found;
	struct place asserts;

	if (!i->sticky || v->fault.known)	/* a dump tells more */
		return;
	found = pool_alloc(&v->pool, sizeof(*found));
	suspects_find(found, t, i->lead);
	fact_set_number(f, FACT_suspects_launches, (double)found->launches);
	fact_set_number(f, FACT_suspects_lines, (double)found->n);
	v->suspect_launches = found->launches;
	v->n_suspects = found->n < SUSPECTS_KEPT ? found->n : SUSPECTS_KEPT;
	v->suspects = pool_alloc(&v->pool, (v->n_suspects + 1) * sizeof(*v->suspects));
	for (size_t k = 0; k < v->n_suspects; k++) {
		v->suspects[k].line = line_of_place(v, t, &found->line[k].place);
		v->suspects[k].kernel = verdict_keep(v, kernel_short_name(trace_function_name(t, found->line[k].func), &v->pool));
		v->suspects[k].launches = found->line[k].launches;
	}
	if (found->n == 1 && found->line[0].place.file)
		s->where = found->line[0].place;
	/* of all suspects perhaps one alone is known to assert */
	if (i->code == CODE_ASSERT && place_of_stack(t, assert_facts_of_suspects(f, t, i->lead), &asserts))
		s->where = asserts;
}

static void fill_piece(struct verdict *v, const struct trace *t, struct piece_line *to, const struct memory *m)
{
	to->known = m->known;
	to->address = m->addr;
	to->size = m->size;
	to->device = m->device;
	to->made = line_of_place(v, t, &m->made);
	to->freed = line_of_place(v, t, &m->freed);
	to->freed_after = m->freed_after;
}

/* Whose memory it was. */
static void join_address(struct verdict *v, const struct incident *i, struct trace *t, const struct culprit *c,
			 struct casefile *f, const struct fault_launch *m)
{
	struct address a;

	address_find(&a, t, c, i->lead, m);
	if (c->fault == FAULT_ILLEGAL_ADDRESS)
		verdict_thread(v, f, c, a.lane, a.threads);
	address_facts(f, t, &a);
	verdict_address_evidence(v, f);
	v->fault.in = a.in[0] ? pool_strdup(&v->pool, a.in) : NULL;
	v->fault.param = a.param;
	v->fault.param_byte = a.param_byte;
	v->fault.device = a.device;
	fill_piece(v, t, &v->fault.piece, &a.block);
	fill_piece(v, t, &v->fault.segment, &a.segment);
}

/* The dump says which kernel it was, the recording from which line it was launched. */
void verdict_join_dump(struct verdict *v, const struct incident *i, struct trace *t, const struct culprit *c,
		      struct casefile *f, struct scene *s)
{
	struct place lines[FAULT_LINES_MAX];
	struct fault_launch m;

	if (!c)
		return;
	verdict_fault(v, f, c);
	fault_find_launch(&m, t, c, i->lead);
	join_address(v, i, t, c, f, &m);
	fact_set_number(f, FACT_fault_lines, (double)m.n);
	if (i->hang) {
		fact_set_flag(f, FACT_hang_launch, m.newest != NULL);
		fact_set_text(f, FACT_hang_kernel, v->kernel.short_name);
	}
	if (m.newest) {
		v->kernel.stream = m.newest->stream;
		v->kernel.shared = m.newest->shared;
	}
	if (!m.n)
		return;
	m.at[0].noticed = s->noticed;
	*s = m.at[0];
	for (size_t k = 0; k < m.n; k++)
		lines[k] = m.at[k].where;
	if (c->fault == FAULT_ASSERT)
		assert_facts_of_lines(f, t, lines, m.n);
	if (m.replay.file)
		v->replay = line_of_place(v, t, &m.replay);
	v->n_or = m.n - 1;
	v->or = pool_alloc(&v->pool, m.n * sizeof(*v->or));
	for (size_t k = 1; k < m.n; k++)
		v->or[k - 1] = line_of_place(v, t, &m.at[k].where);
	for (size_t k = 0; m.n > 1 && k < m.n; k++)
		verdict_evidence(v, "launch", pool_printf(&v->pool, "this kernel was launched so at %s:%u",
							  file_shown(m.at[k].where.file, trace_header(t)->cwd),
							  m.at[k].where.line));
}
