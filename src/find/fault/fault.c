/* SPDX-License-Identifier: Apache-2.0
 * A GPU core dump and the recording of its process (see fault.h).
 */
#include "find/fault/fault.h"

#include <inttypes.h>
#include <string.h>

#include "base/format.h"
#include "base/str.h"
#include "case/message.h"
#include "compat/cuda_errors.h"
#include "find/fault/culprit.h"
#include "find/fault/observe_dump.h"
#include "find/failure/observe.h"
#include "find/fault/address.h"
#include "find/fault/late.h"
#include "find/fault/observe_origin.h"
#include "find/fault/recall_values.h"
#include "find/failure/suspects.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"
#include "find/failure/triton_names.h"

struct search {
	struct fault_launch *found;
	struct trace *trace;
	const struct culprit *culprit;
	bool with_params;	/* only launches whose parameters are known, and are the same */
	uint64_t since;		/* only launches after this, or in another stream than the newest */
};

/* If the driver could no longer name the kernel, use the name under which the program looked it up. */
static bool same_name(const char *recorded, const struct culprit *c)
{
	size_t n = c->kernel_text ? strcspn(c->kernel_text, "(<") : 0;

	return !strcmp(recorded, c->kernel) ||
	       (!str_starts(recorded, "_Z") && n && strlen(recorded) == n && !strncmp(recorded, c->kernel_text, n));
}

bool fault_same_kernel(struct trace *t, const struct culprit *c, const struct cw_launch *l)
{
	const struct cw_function *f = l->func ? trace_function(t, l->func) : NULL;

	return f && c->kernel && same_name(trace_string(t, f->name), c) &&
	       (!c->grid_known || (!memcmp(l->grid, c->grid, sizeof(l->grid)) &&
				   !memcmp(l->block, c->block, sizeof(l->block))));
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
	struct scene s = {.node_name = 0};

	if (!fault_same_kernel(q->trace, q->culprit, l))
		return;
	if (q->with_params ? !same_params(q->culprit, l) : known_params(q->culprit, l))
		return;
	if (m->newest && l->ticks < q->since && m->newest->ticks >= q->since &&
	    stream_of(l->stream, l->tid) == stream_of(m->newest->stream, m->newest->tid))
		return;
	if (!m->newest)
		m->newest = l;
	if (m->n_all++ < FAULT_LAUNCHES_MAX)
		m->all[m->n_all - 1] = l;
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

	if ((l->flags & CW_LAUNCH_GRAPH) && !q->found->replay.file &&
	    place_of_stack(q->trace, l->stack, &q->found->replay))
		q->found->ran = l->ticks;
}

/* A kernel in a graph was launched when the graph was captured, and runs when the graph does. */
static void consider_captured(struct search *q, const struct cw_failure *noticed, launches_fn *each)
{
	const struct cw_launch *const *l;
	size_t n = trace_launches(q->trace, &l);

	each(q->trace, noticed, find_replay, q);
	if (!q->found->replay.file)
		return;
	for (size_t i = n; i > 0; i--)
		if (l[i - 1]->flags & CW_LAUNCH_CAPTURED)
			consider(q, l[i - 1]);
	if (!q->found->newest) {
		q->found->replay = (struct place){0};
		q->found->ran = 0;
	}
}

static void see_graph(void *arg, const struct cw_launch *l)
{
	*(bool *)arg |= (l->flags & CW_LAUNCH_GRAPH) != 0;
}

void fault_each_launch(struct trace *t, const struct cw_failure *noticed, launches_fn *each, suspect_fn *fn, void *arg)
{
	const struct cw_launch *const *l;
	size_t n = trace_launches(t, &l);
	bool graph = false;

	each(t, noticed, fn, arg);
	each(t, noticed, see_graph, &graph);
	for (size_t i = n; graph && i > 0; i--)
		if (l[i - 1]->flags & CW_LAUNCH_CAPTURED)
			fn(arg, l[i - 1]);
}

static void find_launch_since(struct fault_launch *m, struct trace *t, const struct culprit *c,
			      const struct cw_failure *noticed, uint64_t since)
{
	struct search q = {.found = m, .trace = t, .culprit = c, .since = since};

	*m = (struct fault_launch){.n = 0};
	if (!c->kernel)
		return;
	/* Matching parameters are the best evidence; after that, launches whose parameters were not recorded. And
	 * while a dump is written, waiting calls return before the fault is known, so they prove nothing. */
	for (int pass = 0; pass < 4 && !m->newest; pass++) {
		launches_fn *each = pass & 1 ? launches_each : suspects_each;

		q.with_params = pass < 2;
		each(t, noticed, consider, &q);
		if (!m->newest)
			consider_captured(&q, noticed, each);
	}
}

void fault_find_launch(struct fault_launch *m, struct trace *t, const struct culprit *c,
		       const struct cw_failure *noticed)
{
	find_launch_since(m, t, c, noticed, 0);
}

/* While an assertion is dumped, other threads go on and may fail in other ways: then the dump has several exceptions, and
 * the one that the recorder took for the error counts. */
static uint32_t code_told(const struct trace *t)
{
	const struct cw_failure *const *list;
	size_t n = trace_failures(t, &list);

	for (size_t i = 0; i < n; i++)
		if (list[i]->source == CW_SRC_DRIVER && cuda_error_sticky(list[i]->code))
			return list[i]->code;
	return 0;
}

struct culprit *culprit_of_process(struct dump *d, const struct trace *t)
{
	return trace_header(t)->hang.flags & CW_HANG_TRIGGERED ? culprit_find_running(d)
							       : culprit_find_told(d, code_told(t));
}

static const char *block_text(struct casefile *c)
{
	const char *made = fact_text(c, FACT_address_made);
	char size[32];

	format_bytes(size, sizeof(size), fact_number(c, FACT_address_size, 0));
	return pool_printf(c->pool, "%s of %s%s%s", fact_true(c, FACT_address_torch) ? "a PyTorch block" :
			   "a CUDA allocation", size, made[0] ? ", allocated at " : "", made);
}

static const char *near_text(struct casefile *c, const char *block)
{
	const char *end = strcmp(fact_text(c, FACT_address_side), "before") ? "past its end" : "before it";
	const char *who = fact_true(c, FACT_address_given) ? "the kernel has a pointer into" : "the nearest memory is";
	char distance[32];

	format_bytes(distance, sizeof(distance), fact_number(c, FACT_address_distance, 0));
	if (fact_known(c, FACT_address_param))
		return pool_printf(c->pool, "parameter %.0f points into %s; the address is %s %s",
				   fact_number(c, FACT_address_param, 0), block, distance, end);
	return pool_printf(c->pool, "%s %s; the address is %s %s", who, block, distance, end);
}

static const char *freed_text(struct casefile *c, const char *block)
{
	const char *who = fact_known(c, FACT_fault_address) ? "the address is in" : "the kernel was given a pointer into";
	const char *freed = fact_text(c, FACT_address_freed);

	if (!freed[0])
		return pool_printf(c->pool, "%s %s, freed", who, block);
	return pool_printf(c->pool, "%s %s, freed %s %s", who, block,
			   fact_true(c, FACT_address_freed_after) ? "after" : "at", freed);
}

static void tell_address(struct casefile *c)
{
	const char *in = fact_text(c, FACT_address_in), *block;
	const char *text = NULL;

	if (!strcmp(in, "host"))
		text = "the address is in the process's host memory";
	if (fact_known(c, FACT_address_size)) {
		block = block_text(c);
		if (!strcmp(in, "near"))
			text = near_text(c, block);
		else if (!strcmp(in, "freed"))
			text = freed_text(c, block);
		else if (!strcmp(in, "other-device"))
			text = pool_printf(c->pool, "%s is on device %.0f; the kernel ran on device %.0f", block,
					   fact_number(c, FACT_address_device, -1),
					   fact_number(c, FACT_fault_device, -1));
		else if (!strcmp(in, "passed"))
			text = pool_printf(c->pool, "all pointers that the kernel was given lead into %s", block);
		else if (!strcmp(in, "live"))
			text = pool_printf(c->pool, "the address is in %s, which is live", block);
	}
	if (text)
		case_evidence(c, "allocations", text);
}

static void fill_piece(struct casefile *c, const struct trace *t, struct piece_line *to, const struct memory *m)
{
	to->known = m->known;
	to->address = m->addr;
	to->size = m->size;
	to->device = m->device;
	to->made = line_of_place(c, t, &m->made);
	to->freed = line_of_place(c, t, &m->freed);
	to->freed_after = m->freed_after;
}

/* Which element of the block it was. The block must be the one that the address was computed from a pointer into. */
static void join_element(struct casefile *c, const struct trace *t, const struct culprit *k, const struct address *a)
{
	const struct memory *m = a->block.known ? &a->block : &a->segment;

	struct triton_param p[TRITON_PARAMS];
	size_t n;

	if (strcmp(a->in, "near") || !m->known || a->param_byte < 0 || !a->traced || a->several || a->wraps)
		return;
	n = k->kernel_text && a->param >= 0 ? triton_find(t, k->kernel_text, p) : 0;
	dump_observe_element(c, k, a->lane, (unsigned)a->param_byte, m->addr + m->size,
			     (size_t)a->param < n ? p[a->param].points_to : 0);
}

/* The whole numbers that a Triton kernel was given, by name: "n_elements = 1000, stride = 64". */
static void join_arguments(struct casefile *c, const struct trace *t, const struct culprit *k, const struct cw_launch *l)
{
	const struct cw_function *f = l ? trace_function(t, l->func) : NULL;
	const struct cw_layout *y = trace_layout(t, f);
	struct triton_param p[TRITON_PARAMS];
	size_t n = k->kernel_text && y ? triton_find(t, k->kernel_text, p) : 0;
	struct bytes b = k->params.data ? k->params
			 : l		? (struct bytes){l->params, l->n_param < CW_PARAM_BYTES ? l->n_param : CW_PARAM_BYTES}
					: (struct bytes){NULL, 0};
	const char *text = "";

	for (size_t i = 0; i < n && i < y->n; i++) {
		int64_t v = 0;
		unsigned size = y->param[i].size, shift = 64 - 8 * size;

		if (!p[i].is_integer || !p[i].name[0] || !size || size > sizeof(v) ||
		    y->param[i].off + (size_t)size > b.len)
			continue;
		memcpy(&v, b.data + y->param[i].off, size);
		v = (int64_t)((uint64_t)v << shift) >> shift;
		text = pool_printf(c->pool, "%s%s%s = %" PRId64, text, text[0] ? ", " : "", p[i].name, v);
	}
	if (text[0])
		fact_set_text(c, FACT_kernel_arguments, text);
}

/* Which memory the address belongs to. Guard mode keeps what was freed mapped until the work before has ended: of two launches in one
 * stream, the one before the free did not fault. */
static void join_address(struct casefile *c, const struct incident *i, struct trace *t, const struct culprit *k,
			 struct fault_launch *m)
{
	struct address a;

	address_find(&a, t, k, i->lead, m);
	if (k->fault == FAULT_ILLEGAL_ADDRESS)
		dump_observe_thread(c, k, a.lane, a.threads);
	address_facts(c, t, &a);
	join_element(c, t, k, &a);
	tell_address(c);
	if (a.freed_ticks && !k->address_computed)
		find_launch_since(m, t, k, i->lead, a.freed_ticks);
	fill_piece(c, t, &c->block, &a.block);
	fill_piece(c, t, &c->segment, &a.segment);
}

/* The lines of matching launches: the first is shown, the others cannot be told apart from it. */
static void join_lines(struct casefile *c, const struct trace *t, const struct culprit *k, const struct fault_launch *m)
{
	struct place lines[FAULT_LINES_MAX];

	for (size_t n = 0; n < m->n; n++)
		lines[n] = m->at[n].where;
	if (k->fault == FAULT_ASSERT)
		assert_facts_of_lines(c, t, lines, m->n);
	fact_set_flag(c, FACT_fault_replayed, m->ran != 0);
	if (m->replay.file)
		c->line[LINE_replay] = line_of_place(c, t, &m->replay);
	c->n_or = m->n - 1;
	c->or = pool_alloc(c->pool, m->n * sizeof(*c->or));
	for (size_t n = 1; n < m->n; n++)
		c->or[n - 1] = line_of_place(c, t, &m->at[n].where);
	for (size_t n = 0; m->n > 1 && n < m->n; n++)
		case_evidence(c, "launch", pool_printf(c->pool, "a matching launch of this kernel is at %s:%u",
					  file_shown(m->at[n].where.file, trace_header(t)->cwd), m->at[n].where.line));
}

/* The dump has the exception, but not the thread: a stray store is reported after its warp has exited. Others of its SM may
 * still be there, and innocent. */
static bool is_late(const struct culprit *k, struct trace *t, const struct cw_failure *noticed,
		    const struct fault_launch *m)
{
	struct address a;

	if (k->fault != FAULT_ILLEGAL_ADDRESS || k->source != CULPRIT_SM || k->space == SASS_SHARED ||
	    k->space == SASS_LOCAL)
		return false;
	if (!k->address_known)
		return true;
	address_find(&a, t, k, noticed, m);
	return !strcmp(a.in, "live");
}

static void compare_codes(struct casefile *c, const struct incident *i, const struct culprit *k)
{
	uint32_t said = i->code ? i->code : message_code(i->lead->text);

	if (!i->hang && cuda_errors_contradict(said, culprit_fault_code(k->fault)))
		case_contradiction(c, pool_printf(c->pool, "%s %u (%s), but the core dump shows %s",
						  i->code ? "a call returned" : "the exception says", said,
						  cuda_error_name(said), culprit_fault_text(k->fault)));
}

void join_dump(struct casefile *c, const struct incident *i, struct trace *t, const struct culprit *k, struct scene *s)
{
	const char *before;
	struct fault_launch m;
	struct culprit *late = NULL, recalled;
	struct recalled from;

	fault_find_launch(&m, t, k, i->lead);
	if (is_late(k, t, i->lead, &m))
		late = late_find(t, k, i->lead, &m);
	k = late ? late : k;
	if (recall_values(&recalled, &from, t, k, &m))
		k = &recalled;
	dump_observe_fault(c, k);
	if (k->fault == FAULT_ASSERT)
		observe_origin(c, t, &from);
	compare_codes(c, i, k);
	before = case_observer(c, DUMP_OBSERVER);
	join_address(c, i, t, k, &m);
	fact_set_number(c, FACT_fault_lines, (double)m.n);
	if (i->hang) {
		fact_set_flag(c, FACT_hang_launch, m.newest != NULL);
		fact_set_text(c, FACT_hang_kernel, fact_text_or_null(c, FACT_kernel_short));
	}
	if (k->fault == FAULT_ILLEGAL_ADDRESS)
		join_arguments(c, t, k, m.newest);
	if (m.newest) {
		fact_set_number(c, FACT_kernel_stream, (double)m.newest->stream);
		fact_set_number(c, FACT_kernel_shared, m.newest->shared);
	}
	if (m.n) {
		join_lines(c, t, k, &m);
		m.at[0].noticed = s->noticed;
		*s = m.at[0];
	}
	case_observer(c, before);
	culprit_free(late);
}

bool fault_has_launch(struct trace *t, const struct culprit *k)
{
	const struct cw_failure end = {.ticks = UINT64_MAX, .last_ticks = UINT64_MAX};
	struct fault_launch m;

	fault_find_launch(&m, t, k, &end);
	return m.newest != NULL;
}
