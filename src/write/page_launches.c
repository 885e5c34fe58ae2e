/* SPDX-License-Identifier: Apache-2.0
 * The last launches of a process before its failure, and the failures themselves, in a page.
 */
#include <string.h>

#include "case/signature.h"
#include "base/str.h"
#include "input/recording/incident.h"
#include "base/json_text.h"
#include "write/page_priv.h"
#include "judge/verdict.h"
#include "compat/cuda_errors.h"
#include "input/recording/place.h"
#include "input/recording/trace.h"

#define WAITS_MAX	200
#define LANES_MAX	64
#define TEXT_MAX	300

struct drawn {
	struct trace *t;
	const struct verdict *v;
	uint64_t until;			/* ticks: what came later is not drawn */
	struct page_words *lines, kernels;
	struct { uint32_t tid; uint64_t stream; bool waits; } lane[LANES_MAX];
	size_t n_lanes;
	struct pool pool;
};

/* The number of the row that launches of a thread into a stream stand in; -1 = there are too many. */
static int lane_of(struct drawn *d, uint32_t tid, uint64_t stream, bool waits)
{
	for (size_t i = 0; i < d->n_lanes; i++)
		if (d->lane[i].tid == tid && d->lane[i].stream == stream && d->lane[i].waits == waits)
			return (int)i;
	if (d->n_lanes == LANES_MAX)
		return -1;
	d->lane[d->n_lanes].tid = tid;
	d->lane[d->n_lanes].stream = stream;
	d->lane[d->n_lanes].waits = waits;
	return (int)d->n_lanes++;
}

static int line_of(struct drawn *d, uint32_t stack)
{
	struct place p = { 0 };

	if (!stack || !place_of_stack(d->t, stack, &p))
		return -1;
	return words_place(d->lines, &p, trace_header(d->t)->cwd);
}

/* Does it fit the fault, as far as kernel, dimensions and line can tell? */
static bool is_blamed(struct trace *t, const struct verdict *v, const struct cw_launch *l)
{
	const struct casefile *c = &v->c;
	const struct line *where = &c->line[LINE_where];
	struct place p = { 0 };

	if (!case_observed(c, GROUP_fault) || !fact_known(c, FACT_kernel_grid) || !fact_known(c, FACT_kernel_name) || !where->file)
		return false;
	if (memcmp(c->value[FACT_kernel_grid].triple, l->grid, sizeof(l->grid)) ||
	    memcmp(c->value[FACT_kernel_block].triple, l->block, sizeof(l->block)) ||
	    strcmp(trace_function_name(t, l->func), fact_text(c, FACT_kernel_name)) != 0)
		return false;
	return (place_of_stack(t, l->stack, &p) && p.line == where->number && !strcmp(p.file, where->file)) ||
	       (place_of_stack(t, l->forward_stack, &p) && p.line == where->number &&
		!strcmp(p.file, where->file));
}

static const char *launch_kind(const struct cw_launch *l)
{
	return l->flags & CW_LAUNCH_GRAPH ? "graph" : l->flags & CW_LAUNCH_CAPTURED ? "captured" : "kernel";
}

static json_t *json_launch(struct drawn *d, const struct cw_launch *l, bool blamed)
{
	const char *name = trace_function_name(d->t, l->func);
	const char *shown = name[0] ? kernel_short_name(name, &d->pool) : NULL, *kind = launch_kind(l);
	json_t *j = json_object();

	json_object_set_new(j, "ns", page_integer(trace_ns(d->t, l->ticks)));
	json_object_set_new(j, "lane", json_integer(lane_of(d, l->tid, l->stream, false)));
	if (strcmp(kind, "kernel") != 0)
		json_object_set_new(j, "kind", json_string(kind));
	json_object_set_new(j, "kernel", json_integer(words_add(&d->kernels, shown)));
	json_object_set_new(j, "line", json_integer(line_of(d, l->stack)));
	if (l->forward_stack)
		json_object_set_new(j, "forward", json_integer(line_of(d, l->forward_stack)));
	if (!(l->flags & CW_LAUNCH_GRAPH))
		json_object_set_new(j, "dims", json_pack("[I,I,I,I,I,I]", (json_int_t)l->grid[0], (json_int_t)l->grid[1],
							 (json_int_t)l->grid[2], (json_int_t)l->block[0],
							 (json_int_t)l->block[1], (json_int_t)l->block[2]));
	if (l->result && !(l->flags & CW_LAUNCH_CAPTURED))
		json_object_set_new(j, "result", json_integer(l->result));
	if (blamed)
		json_object_set_new(j, "blamed", json_true());
	return j;
}

/* The newest that fits: it may be older than those that are drawn. */
static size_t find_blamed(struct trace *t, const struct verdict *v, const struct cw_launch *const *l, size_t n)
{
	for (size_t i = n; i > 0; i--)
		if (is_blamed(t, v, l[i - 1]))
			return i - 1;
	return SIZE_MAX;
}

const struct cw_launch *page_blamed(struct trace *t, const struct verdict *v)
{
	const struct cw_launch *const *l;
	size_t n = trace_launches(t, &l), found = find_blamed(t, v, l, n);

	return found < n ? l[found] : NULL;
}

static json_t *json_lanes(const struct drawn *d)
{
	json_t *list = json_array();

	for (size_t i = 0; i < d->n_lanes; i++)
		json_array_append_new(list, json_pack("{s:I,s:o,s:b}", "tid", (json_int_t)d->lane[i].tid, "stream",
						      page_integer(d->lane[i].stream), "waits", d->lane[i].waits));
	return list;
}

/* Calls that wait for the GPU: what was launched before one that went well is innocent. */
static json_t *json_waits(struct drawn *d, uint64_t from)
{
	const struct cw_call *const *c;
	size_t n = trace_calls(d->t, &c), seen = 0;
	json_t *list = json_array();

	for (size_t i = n; i > 0 && c[i - 1]->ticks >= from && seen < WAITS_MAX; i--) {
		if (c[i - 1]->ticks > d->until || strcmp(api_class(c[i - 1]->api), "SYNC") != 0)
			continue;
		json_array_insert_new(list, 0, json_pack("{s:o,s:i,s:s,s:i,s:I}", "ns", page_integer(trace_ns(d->t, c[i - 1]->ticks)),
							 "lane", lane_of(d, c[i - 1]->tid, 0, true), "api",
							 api_name(c[i - 1]->api), "line", line_of(d, c[i - 1]->stack),
							 "result", (json_int_t)c[i - 1]->result));
		seen++;
	}
	return list;
}

static json_t *draw(struct drawn *d)
{
	const struct cw_launch *const *l;
	size_t n = trace_launches(d->t, &l), blamed, first;
	json_t *list = json_array(), *j;

	while (n && l[n - 1]->ticks > d->until)
		n--;
	blamed = find_blamed(d->t, d->v, l, n);
	first = n > PAGE_LAUNCHES_MAX ? n - PAGE_LAUNCHES_MAX : 0;
	if (blamed < first)
		json_array_append_new(list, json_launch(d, l[blamed], true));
	for (size_t i = first; i < n; i++)
		json_array_append_new(list, json_launch(d, l[i], i == blamed));
	j = json_pack("{s:o,s:o,s:I}", "list", list, "waits", n ? json_waits(d, l[first]->ticks) : json_array(), "recorded",
		      (json_int_t)n);
	json_object_set_new(j, "left_out", page_integer(first));
	if (d->v->c.n_or)
		json_object_set_new(j, "others", json_true());
	if (blamed < first)
		json_object_set_new(j, "between", page_integer(first - blamed - 1));
	json_object_set_new(j, "lanes", json_lanes(d));
	return j;
}

json_t *page_launches(struct trace *t, const struct verdict *v, struct page_words *lines)
{
	const struct cw_header *h = trace_header(t);
	struct drawn d = { .t = t, .v = v, .until = UINT64_MAX, .lines = lines };
	json_t *j;

	words_init(&d.kernels);
	if (v->time_ns > h->clock0.mono_ns && !case_observed(&v->c, GROUP_fault))	/* the dump's time is that of another clock */
		d.until = trace_ticks(t, v->time_ns - h->clock0.mono_ns);
	j = draw(&d);
	json_object_set(j, "kernels", d.kernels.list);
	if (v->time_ns > h->clock0.mono_ns)
		json_object_set_new(j, "failed_ns", page_integer(v->time_ns - h->clock0.mono_ns));
	words_release(&d.kernels);
	pool_release(&d.pool);
	return j;
}

/* --- failures ----------------------------------------------------------------------------------- */

static const char *source_text(uint32_t source)
{
	switch (source) {
#define X(number, name, id, text) case number: return text;
	CW_SOURCES(X)
#undef X
	default: return "not known";
	}
}

static json_t *json_failure(struct drawn *d, const struct cw_failure *f)
{
	char text[TEXT_MAX];
	json_t *j = json_object();

	str_copy(text, sizeof(text), f->text);
	json_object_set_new(j, "us", page_integer(trace_ns(d->t, f->ticks) / 1000));
	json_object_set_new(j, "source", json_string(source_text(f->source)));
	json_object_set_new(j, "code", f->code ? json_integer(f->code) : json_null());
	json_object_set_new(j, "name", f->code ? json_text(cuda_error_name(f->code)) : json_null());
	json_object_set_new(j, "api", json_text(f->api ? api_name(f->api) : f->what[0] ? f->what : NULL));
	json_object_set_new(j, "count", json_integer(f->count));
	json_object_set_new(j, "line", json_integer(line_of(d, f->stack)));
	json_object_set_new(j, "device", f->device >= 0 ? json_integer(f->device) : json_null());
	json_object_set_new(j, "text", json_text(text));
	return j;
}

json_t *page_failures(struct trace *t, struct page_words *lines)
{
	struct drawn d = { .t = t, .lines = lines };
	const struct cw_failure *const *f;
	size_t n = trace_failures(t, &f), first = n > PAGE_FAILURES_MAX ? n - PAGE_FAILURES_MAX : 0;
	json_t *list = json_array();

	for (size_t i = first; i < n; i++)
		json_array_append_new(list, json_failure(&d, f[i]));
	return json_pack("{s:o,s:I}", "list", list, "left_out", (json_int_t)first);
}
