/* SPDX-License-Identifier: Apache-2.0
 * Which launch it was, and whose memory (see fault.h).
 */
#include "facts/fault.h"

#include <string.h>

#include "base/str.h"
#include "dump/culprit.h"
#include "facts/suspects.h"
#include "trace/trace.h"

/* ---- the launch ------------------------------------------------------------------------------------- */

struct search {
	struct fault_launch *found;
	struct trace *trace;
	const struct culprit *culprit;
	bool with_params;	/* only launches whose parameters are known, and are the same */
};

/* A kernel whose name the driver could no longer tell has the one under which the program looked it up. */
static bool same_name(const char *recorded, const struct culprit *c)
{
	size_t n = c->kernel_text ? strcspn(c->kernel_text, "(<") : 0;

	return !strcmp(recorded, c->kernel) ||
	       (!str_starts(recorded, "_Z") && n && strlen(recorded) == n && !strncmp(recorded, c->kernel_text, n));
}

static bool same_kernel(const struct search *q, const struct cw_launch *l)
{
	const struct cw_function *f = l->func ? trace_function(q->trace, l->func) : NULL;
	const struct culprit *c = q->culprit;

	return f && c->kernel && same_name(trace_string(q->trace, f->name), c) &&
	       !memcmp(l->grid, c->grid, sizeof(l->grid)) && !memcmp(l->block, c->block, sizeof(l->block));
}

static bool same_params(const struct culprit *c, const struct cw_launch *l)
{
	size_t n = l->n_param < c->params.len ? l->n_param : c->params.len;

	return c->params.data && n && !memcmp(l->params, c->params.data, n);
}

static bool known_params(const struct culprit *c, const struct cw_launch *l)
{
	return c->params.data && c->params.len && l->n_param;
}

static void consider(void *arg, const struct cw_launch *l)
{
	struct search *q = arg;
	struct fault_launch *m = q->found;
	struct scene s = { .node_name = 0 };

	if (!same_kernel(q, l))
		return;
	if (q->with_params ? !same_params(q->culprit, l) : known_params(q->culprit, l))
		return;
	if (!m->newest)
		m->newest = l;
	launch_scene(l, q->trace, &s);
	if (!s.where.file)
		return;
	for (size_t i = 0; i < m->n; i++)
		if (m->at[i].where.line == s.where.line && !strcmp(m->at[i].where.file, s.where.file))
			return;
	if (m->n < FAULT_LINES_MAX)
		m->at[m->n++] = s;
}

static void find_replay(void *arg, const struct cw_launch *l)
{
	struct search *q = arg;

	if ((l->flags & CW_LAUNCH_GRAPH) && !q->found->replay.file)
		place_of_stack(q->trace, l->stack, &q->found->replay);
}

/* A kernel of a graph was launched when the graph was captured, and runs when the graph does. */
static void consider_captured(struct search *q, const struct cw_failure *noticed)
{
	const struct cw_launch *const *l;
	size_t n = trace_launches(q->trace, &l);

	suspects_each(q->trace, noticed, find_replay, q);
	if (!q->found->replay.file)
		return;
	for (size_t i = n; i > 0; i--)
		if (l[i - 1]->flags & CW_LAUNCH_CAPTURED)
			consider(q, l[i - 1]);
	if (!q->found->newest)
		q->found->replay = (struct place){ 0 };
}

void fault_find_launch(struct fault_launch *m, struct trace *t, const struct culprit *c,
		       const struct cw_failure *noticed)
{
	struct search q = { .found = m, .trace = t, .culprit = c };

	*m = (struct fault_launch){ .n = 0 };
	if (!c->grid_known)
		return;
	/* the same parameters are the better evidence; without, launches whose parameters were not recorded */
	for (int pass = 0; pass < 2 && !m->newest; pass++) {
		q.with_params = pass == 0;
		suspects_each(t, noticed, consider, &q);
		if (!m->newest)
			consider_captured(&q, noticed);
	}
}

/* ---- the address ------------------------------------------------------------------------------------ */

static bool holds(uint64_t base, uint64_t size, uint64_t address)
{
	return address >= base && address - base < size;
}

static bool on_gpu(const struct cw_allocation *a)
{
	return a->kind != CW_MEM_RESERVED && a->size;
}

static void set_line(struct facts *f, enum fact_id id, const struct trace *t, uint32_t stack)
{
	struct place p = { 0 };

	if (place_of_stack(t, stack, &p))
		fact_set_text(f, id, pool_printf(f->pool, "%s:%u", file_shown(p.file, trace_header(t)->cwd), p.line));
}

static void set_near(struct facts *f, const struct trace *t, const struct cw_allocation *a, uint64_t address)
{
	bool past = address >= a->addr;

	fact_set_text(f, FACT_address_in, "near");
	fact_set_text(f, FACT_address_side, past ? "past the end of" : "before");
	fact_set_number(f, FACT_address_distance, past ? (double)(address - (a->addr + a->size)) :
							  (double)(a->addr - address));
	fact_set_number(f, FACT_address_size, (double)a->size);
	set_line(f, FACT_address_made, t, a->stack);
}

/* The block that was freed last among those that held the address. */
static bool find_freed(struct facts *f, struct trace *t, uint64_t address, uint64_t before)
{
	const struct cw_call *const *c;
	size_t n = trace_calls(t, &c);

	for (size_t i = n; i > 0; i--) {
		const struct cw_call *k = c[i - 1];
		bool unmap = !strcmp(api_class(k->api), "UNMAP");
		uint64_t size = unmap ? k->arg[1] : k->out;

		if (k->result || k->ticks >= before || (!unmap && !str_starts(api_class(k->api), "FREE")) ||
		    !holds(k->arg[0], size, address))
			continue;
		fact_set_text(f, FACT_address_in, "freed");
		fact_set_number(f, FACT_address_size, (double)size);
		set_line(f, FACT_address_freed, t, k->stack);
		for (size_t m = i - 1; m > 0; m--)
			if (c[m - 1]->out == k->arg[0] && str_starts(api_class(c[m - 1]->api), "ALLOC")) {
				set_line(f, FACT_address_made, t, c[m - 1]->stack);
				break;
			}
		return true;
	}
	return false;
}

/* A 32-bit index that overflowed is too small by 2^32: the address that was meant lies that many elements on. */
static bool wraps(struct trace *t, uint64_t address, unsigned width)
{
	const struct cw_allocation *const *a;
	size_t n = trace_allocations(t, &a);
	uint64_t meant = address + ((uint64_t)(width ? width : 1) << 32);

	for (size_t i = 0; i < n; i++)
		if (on_gpu(a[i]) && a[i]->size >= ((uint64_t)(width ? width : 1) << 31) &&
		    holds(a[i]->addr, a[i]->size, meant))
			return true;
	return false;
}

void fault_address_facts(struct facts *f, struct trace *t, const struct culprit *c, const struct cw_failure *noticed)
{
	const struct cw_allocation *const *a, *nearest = NULL;
	size_t n = trace_allocations(t, &a);
	uint64_t best = UINT64_MAX, address, distance;

	fact_set_text(f, FACT_address_in, "");
	fact_set_flag(f, FACT_address_wraps, false);
	if (!c->n_kept || !c->lanes[0].address_known || c->address_doubtful || c->space == SASS_SHARED ||
	    c->space == SASS_LOCAL)
		return;
	address = c->lanes[0].address;
	for (size_t i = 0; i < n; i++) {
		if (!on_gpu(a[i]))
			continue;
		if (holds(a[i]->addr, a[i]->size, address)) {
			fact_set_text(f, FACT_address_in, "live");
			set_line(f, FACT_address_made, t, a[i]->stack);
			return;
		}
		distance = address >= a[i]->addr ? address - (a[i]->addr + a[i]->size) : a[i]->addr - address;
		if (distance < best) {
			best = distance;
			nearest = a[i];
		}
	}
	if (find_freed(f, t, address, noticed->ticks))
		return;
	fact_set_flag(f, FACT_address_wraps, wraps(t, address, c->insn.width));
	if (nearest)
		set_near(f, t, nearest, address);
}
