/* SPDX-License-Identifier: Apache-2.0
 * What happened, on the page: failures, the last launches, what is near an address, threads that faulted (see page_parts.h).
 */
#include "show/page_parts.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/private.h"
#include "base/str.h"
#include "case/signature.h"
#include "compat/cuda_errors.h"
#include "find/failure/blamed.h"
#include "find/failure/place.h"
#include "find/fault/culprit.h"
#include "find/memory/neighbors.h"
#include "read/recording/trace.h"
#include "show/page.h"
#include "show/page_words.h"
#include "verdict/verdict.h"

#define LAUNCHES_MAX	400
#define LAUNCH_LANES_MAX 64
#define WAITS_MAX	200
#define FAILURE_TEXT	300	/* bytes */
#define FAULT_LANES_MAX	1024

/* A row of the drawing: launches of a thread into a stream, or waits of a thread. */
struct launch_lane {
	uint32_t tid;
	uint64_t stream;
	bool waits;
};

static const struct field lane_field[] = {
	F_ALWAYS(NUMBER, "tid", struct launch_lane, tid),
	F_ALWAYS(BYTES, "stream", struct launch_lane, stream),
	F_ALWAYS(BOOL, "waits", struct launch_lane, waits),
	F_END,
};
static const struct fields lane_fields = {lane_field, sizeof(struct launch_lane), NULL};

struct drawn {
	struct trace *t;
	const struct verdict *v;
	uint64_t until;			/* ticks: later events are not drawn */
	struct page_words *lines, kernels;
	struct launch_lane lane[LAUNCH_LANES_MAX];
	size_t n_lanes;
	struct pool pool;
};

/* The line of a stack, as a number in the page's list of lines; -1 = not known. */
static int page_line(struct trace *t, struct page_words *lines, uint32_t stack)
{
	struct place p = {0};

	return stack && place_of_stack(t, stack, &p) ? page_words_place(lines, &p, trace_header(t)->cwd) : -1;
}

/* Its number; -1 = there are too many. */
static int drawn_lane(struct drawn *d, uint32_t tid, uint64_t stream, bool waits)
{
	for (size_t i = 0; i < d->n_lanes; i++)
		if (d->lane[i].tid == tid && d->lane[i].stream == stream && d->lane[i].waits == waits)
			return (int)i;
	if (d->n_lanes == LAUNCH_LANES_MAX)
		return -1;
	d->lane[d->n_lanes] = (struct launch_lane){tid, stream, waits};
	return (int)d->n_lanes++;
}

static json_t *launch_json(struct drawn *d, const struct cw_launch *l, bool blamed)
{
	bool graph = l->flags & CW_LAUNCH_GRAPH, captured = l->flags & CW_LAUNCH_CAPTURED;
	const char *name = trace_function_name(d->t, l->func);
	int line = page_line(d->t, d->lines, l->stack), forward = page_line(d->t, d->lines, l->forward_stack);

	return JSON_OF(J_BYTES("ns", trace_ns(d->t, l->ticks)),
		       J_INT("lane", drawn_lane(d, l->tid, l->stream, false)),
		       J_IF(graph || captured, J_TEXT("kind", graph ? "graph" : "captured")),
		       J_INT("kernel", page_words_add(&d->kernels, name[0] ? kernel_short_name(name, &d->pool) : NULL)),
		       J_INT("line", line),
		       J_IF(l->forward_stack, J_INT("forward", forward)),
		J_IF(!graph, J_VALUE("dims", json_pack("[I,I,I,I,I,I]", (json_int_t)l->grid[0], (json_int_t)l->grid[1],
							      (json_int_t)l->grid[2], (json_int_t)l->block[0],
							      (json_int_t)l->block[1], (json_int_t)l->block[2]))),
		       J_IF(l->result && !captured, J_INT("result", l->result)),
		       J_IF(blamed, J_BOOL("blamed", true)));
}

/* Calls that wait for the GPU: everything launched before a successful one is innocent. */
static json_t *waits_json(struct drawn *d, uint64_t from)
{
	const struct cw_call *const *c;
	size_t n = trace_calls(d->t, &c), seen = 0;
	json_t *list = json_array();

	for (size_t i = n; i > 0 && c[i - 1]->ticks >= from && seen < WAITS_MAX; i--) {
		const struct cw_call *wait = c[i - 1];

		if (wait->ticks > d->until || !api_does(wait->api, DOES_SYNC))
			continue;
		json_array_insert_new(list, 0, JSON_OF(J_BYTES("ns", trace_ns(d->t, wait->ticks)),
				J_INT("lane", drawn_lane(d, wait->tid, 0, true)), J_TEXT("api", api_name(wait->api)),
				J_INT("line", page_line(d->t, d->lines, wait->stack)), J_INT("result", wait->result)));
		seen++;
	}
	return list;
}

static json_t *drawn_json(struct drawn *d)
{
	const struct cw_launch *const *l;
	size_t n = trace_launches(d->t, &l), blamed, first;
	json_t *list = json_array(), *waits;

	while (n && l[n - 1]->ticks > d->until)
		n--;
	blamed = blamed_among(d->t, &d->v->c, l, n);	/* it may be older than the launches that are drawn */
	first = n > LAUNCHES_MAX ? n - LAUNCHES_MAX : 0;
	if (blamed < first)
		json_array_append_new(list, launch_json(d, l[blamed], true));
	for (size_t i = first; i < n; i++)
		json_array_append_new(list, launch_json(d, l[i], i == blamed));
	waits = n ? waits_json(d, l[first]->ticks) : json_array();
	return JSON_OF(J_VALUE("list", list), J_VALUE("waits", waits), J_INT("recorded", n), J_BYTES("left_out", first),
		       J_IF(d->v->c.n_or, J_BOOL("others", true)),
		       J_IF(blamed < first, J_BYTES("between", first - blamed - 1)),
		       J_VALUE("lanes", fields_write_list(&lane_fields, d->lane, d->n_lanes)));
}

json_t *page_launches(struct trace *t, const struct verdict *v, struct page_words *lines)
{
	const struct cw_header *h = trace_header(t);
	struct drawn d = {.t = t, .v = v, .until = UINT64_MAX, .lines = lines};
	bool timed = v->time_ns > h->clock0.mono_ns;
	json_t *j;

	page_words_init(&d.kernels);
	if (timed && !case_observed(&v->c, GROUP_fault))	/* the dump's time is from another clock */
		d.until = trace_ticks(t, v->time_ns - h->clock0.mono_ns);
	j = drawn_json(&d);
	JSON_ADD(j, J_SHARED("kernels", d.kernels.list),
		 J_IF(timed, J_BYTES("failed_ns", v->time_ns - h->clock0.mono_ns)));
	page_words_release(&d.kernels);
	pool_release(&d.pool);
	return j;
}

static const char *source_text(uint32_t source)
{
	switch (source) {
#define X(number, name, id, text) case number: return text;
	CW_SOURCES(X)
#undef X
	default: return "not known";
	}
}

static json_t *failure_json(struct trace *t, struct page_words *lines, const struct cw_failure *f)
{
	char text[FAILURE_TEXT], *shown = private_shown(f->text);	/* before it is cut */

	str_copy(text, sizeof(text), shown);
	free(shown);
	return JSON_OF(J_BYTES("us", trace_ns(t, f->ticks) / 1000), J_TEXT("source", source_text(f->source)),
		       J_INT_OR_NULL("code", f->code, f->code), J_TEXT("name", f->code ? cuda_error_name(f->code) : NULL),
		       J_TEXT("api", f->api	  ? api_name(f->api)
				     : f->what[0] ? f->what
						  : NULL),
		       J_INT("count", f->count), J_INT("line", page_line(t, lines, f->stack)),
		       J_INT_OR_NULL("device", f->device >= 0, f->device), J_TEXT("text", text));
}

json_t *page_failures(struct trace *t, struct page_words *lines)
{
	const struct cw_failure *const *f;
	size_t n = trace_failures(t, &f), first = n > PAGE_FAILURES_MAX ? n - PAGE_FAILURES_MAX : 0;
	json_t *list = json_array();

	for (size_t i = first; i < n; i++)
		json_array_append_new(list, failure_json(t, lines, f[i]));
	return JSON_OF(J_VALUE("list", list), J_INT("left_out", first));
}

static const char *memory_text(uint16_t kind)
{
	switch (kind) {
#define X(number, name, text) case number: return text;
	CW_MEMORY(X)
#undef X
	default: return "not known";
	}
}

static json_t *neighbor_json(struct trace *t, struct page_words *lines, const struct piece *p, const char *state)
{
	int freed = page_line(t, lines, p->free_stack), made = page_line(t, lines, p->stack);

	return JSON_OF(J_TEXT("state", state), J_HEX("address", p->addr), J_BYTES("size", p->size),
		       J_TEXT("kind", memory_text(p->kind)), J_INT("made", made), J_INT("freed", freed),
		       J_BOOL("after", p->freed_after), J_INT("device", p->device),
		       J_BOOL("torch", p->kind == CW_MEM_TORCH));
}

json_t *page_neighbors(struct trace *t, const struct verdict *v, struct page_words *lines)
{
	struct neighbors n;
	json_t *list;

	if (!fact_known(&v->c, FACT_fault_address))
		return json_null();
	neighbors_find(&n, t, v->c.fault_address, blamed_moment(t, &v->c, v->time_ns));
	list = json_array();
	for (size_t i = 0; i < n.n; i++)
		json_array_append_new(list, neighbor_json(t, lines, &n.list[i], i < n.n_live ? "live" : "freed"));
	return list;
}

json_t *page_fault_lanes(const struct culprit *c)
{
	json_t *list = json_array();

	for (size_t i = 0; i < c->n_kept && i < FAULT_LANES_MAX; i++) {
		const struct culprit_lane *l = &c->lanes[i];

		json_array_append_new(
			list, json_pack("[I,I,I,I,I,I,o]", (json_int_t)l->block[0], (json_int_t)l->block[1],
					(json_int_t)l->block[2], (json_int_t)l->thread[0], (json_int_t)l->thread[1],
					(json_int_t)l->thread[2],
					l->address_known && !c->address_doubtful ? json_hex(l->address) : json_null()));
	}
	return JSON_OF(J_VALUE("list", list), J_INT("count", c->n_lanes), J_INT("warps", c->n_warps),
		       J_INT("blocks", c->n_blocks));
}
