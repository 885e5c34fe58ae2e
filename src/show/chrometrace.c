/* SPDX-License-Identifier: Apache-2.0
 * Writes a recording as a Chrome trace (see chrometrace.h). Times are CLOCK_MONOTONIC, in microseconds, and so
 * comparable between all processes of a machine.
 */
#include "show/chrometrace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "base/private.h"
#include "base/str.h"
#include "case/signature.h"
#include "compat/cuda_errors.h"
#include "find/failure/blamed.h"
#include "find/failure/incident.h"
#include "find/failure/place.h"
#include "read/recording/trace.h"
#include "read/recording/trace_memory.h"
#include "verdict/verdict.h"

#define LANES_MAX	1024	/* rows of one process; the rest share the last one */
#define WIDTH_NS	2000	/* how wide an event is drawn: its duration is not recorded */
#define PROCESS_LANE	0	/* failures and counters belong to the process */
#define FRAMES_MAX	32	/* of a stack */
#define PLACE_BYTES	1000

#ifndef CUWHY_VERSION
#define CUWHY_VERSION "unknown"
#endif

/* A row: launches of a thread into a stream, or the other calls of a thread. */
struct chrome_lane {
	uint32_t tid;
	uint64_t stream;
	bool calls;
	json_t *waiting;	/* its newest event, which ends where the next one begins */
	uint64_t waiting_ns;
};

struct chrome_writer {
	struct chrometrace *c;
	struct trace *t;
	const struct cw_launch *blamed;
	uint32_t pid;
	uint64_t start_ns;
	struct chrome_lane lane[LANES_MAX];
	size_t n_lanes;
	struct pool pool;
};

/* Takes ownership of `o`. Times are written here: a double cannot hold them exactly. `ns` 0: no time. */
static void put_event(struct chrometrace *c, uint64_t ns, uint64_t width_ns, json_t *o)
{
	fputs(c->events ? ",\n{" : "\n{", c->out);
	if (ns)
		fprintf(c->out, "\"ts\":%" PRIu64 ".%03u,", ns / 1000, (unsigned)(ns % 1000));
	if (width_ns)
		fprintf(c->out, "\"dur\":%" PRIu64 ".%03u,", width_ns / 1000, (unsigned)(width_ns % 1000));
	private_hide_in(o, true);
	json_dumpf(o, c->out, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_EMBED);
	putc('}', c->out);
	json_decref(o);
	c->events++;
}

static uint64_t ticks_ns(const struct chrome_writer *w, uint64_t ticks)
{
	uint64_t ns = trace_ns(w->t, ticks);

	return ns > UINT64_MAX - w->start_ns ? w->start_ns : w->start_ns + ns;
}

static json_t *chrome_event(const struct chrome_writer *w, const char *phase, size_t lane, const char *name)
{
	return JSON_OF(J_TEXT("ph", phase), J_INT("pid", w->pid), J_INT("tid", lane), J_TEXT("name", name));
}

static void put_metadata(struct chrome_writer *w, const char *what, size_t lane, const char *key, json_t *value)
{
	json_t *o = chrome_event(w, "M", lane, what);

	JSON_ADD(o, J_VALUE("args", JSON_OF(J_VALUE(key, value))));
	put_event(w->c, 0, 0, o);
}

static void name_lane(struct chrome_writer *w, size_t i)
{
	const struct chrome_lane *l = &w->lane[i];
	json_t *name;

	if (i == LANES_MAX - 1)
		name = json_string("further threads and streams");
	else if (l->calls)
		name = json_sprintf("thread %u, driver calls", l->tid);
	else
		name = json_sprintf("thread %u, stream 0x%llx", l->tid, (unsigned long long)l->stream);
	put_metadata(w, "thread_name", i + 1, "name", name);
	put_metadata(w, "thread_sort_index", i + 1, "sort_index", json_integer((json_int_t)i + 1));
}

static size_t find_lane(struct chrome_writer *w, uint32_t tid, uint64_t stream, bool calls)
{
	for (size_t i = 0; i < w->n_lanes; i++)
		if (w->lane[i].tid == tid && w->lane[i].stream == stream && w->lane[i].calls == calls)
			return i;
	if (w->n_lanes == LANES_MAX)
		return LANES_MAX - 1;
	w->lane[w->n_lanes] = (struct chrome_lane){.tid = tid, .stream = stream, .calls = calls};
	name_lane(w, w->n_lanes);
	return w->n_lanes++;
}

static void finish_lane(struct chrome_writer *w, struct chrome_lane *l, uint64_t until_ns)
{
	uint64_t width = until_ns > l->waiting_ns ? until_ns - l->waiting_ns : 1;

	if (l->waiting)
		put_event(w->c, l->waiting_ns, width < WIDTH_NS ? width : WIDTH_NS, l->waiting);
	l->waiting = NULL;
}

/* An event drawn up to the next one in its row, at most WIDTH_NS wide. */
static void put_wide(struct chrome_writer *w, size_t lane, uint64_t ns, json_t *o)
{
	struct chrome_lane *l = &w->lane[lane];

	finish_lane(w, l, ns);
	l->waiting = o;
	l->waiting_ns = ns;
}

static json_t *place_json(const struct trace *t, const char *file, uint32_t line, const char *function)
{
	char text[PLACE_BYTES];

	snprintf(text, sizeof(text), "%s:%u%s%s", file_shown(file, trace_header(t)->cwd), line,
		 function && function[0] ? " in " : "", function ? function : "");
	return json_text(text);
}

static json_t *stack_line(struct trace *t, uint32_t stack)
{
	struct place p = {0};

	return stack && place_of_stack(t, stack, &p) && p.file ? place_json(t, p.file, p.line, p.function) : NULL;
}

static json_t *stack_json(struct trace *t, uint32_t stack)
{
	const struct cw_stack *s = stack ? trace_stack(t, stack) : NULL;
	json_t *list;

	if (!s || s->n < 2)
		return NULL;
	list = json_array();
	for (uint32_t i = 0; i < s->n && i < FRAMES_MAX; i++)
		json_array_append_new(list, place_json(t, trace_string(t, s->frame[i].file), s->frame[i].line,
						       trace_string(t, s->frame[i].function)));
	return list;
}

static json_t *parameter_json(const struct cw_launch *l, uint32_t off, uint32_t size)
{
	uint64_t value = 0;

	if (size > sizeof(value))
		return json_sprintf("%u bytes", size);
	memcpy(&value, l->params + off, size);
	return json_hex(value);
}

static json_t *parameters_json(struct trace *t, const struct cw_launch *l)
{
	const struct cw_function *f = trace_function(t, l->func);
	const struct cw_layout *layout = f ? trace_layout(t, f) : NULL;
	json_t *list;

	if (!layout || !l->n_param)
		return NULL;
	list = json_array();
	for (uint32_t i = 0; i < layout->n && layout->param[i].off + layout->param[i].size <= l->n_param; i++)
		json_array_append_new(list, parameter_json(l, layout->param[i].off, layout->param[i].size));
	return list;
}

static json_t *result_json(uint32_t code)
{
	return code ? json_sprintf("%u %s", code, cuda_error_name(code)) : NULL;
}

static json_t *dims_json(const uint32_t d[3])
{
	return json_sprintf("%ux%ux%u", d[0], d[1], d[2]);
}

/* "address:d size:z": names for the numbers. */
static void add_arguments(json_t *args, const struct cw_call *c)
{
	const char *at = api_args(c->api);
	char name[48];

	for (int i = 0; i < 6 && *at; i++) {
		size_t n = strcspn(at, ": ");

		snprintf(name, sizeof(name), "%.*s", (int)n, at);
		JSON_ADD(args, J_HEX(name, c->arg[i]));
		at += strcspn(at, " ");
		at += strspn(at, " ");
	}
}

static json_t *launch_args(struct chrome_writer *w, const struct cw_launch *l, const char *kernel)
{
	bool graph = l->flags & CW_LAUNCH_GRAPH, captured = l->flags & CW_LAUNCH_CAPTURED;
	int device = CW_LAUNCH_DEVICE(l->flags);

	return JSON_OF(J_VALUE("line", stack_line(w->t, l->stack)),
		       J_VALUE("forward", stack_line(w->t, l->forward_stack)),
		       J_TEXT("kernel", kernel[0] ? kernel : NULL), J_IF(!graph, J_VALUE("grid", dims_json(l->grid))),
		       J_IF(!graph, J_VALUE("block", dims_json(l->block))), J_IF(!graph, J_INT("shared", l->shared)),
		       J_IF(!graph, J_VALUE("parameters", parameters_json(w->t, l))),
		       J_IF(device >= 0, J_INT("device", device)), J_HEX("stream", l->stream), J_INT("thread", l->tid),
		       J_IF(!captured, J_VALUE("error", result_json(l->result))),
		       J_IF(l == w->blamed, J_TEXT("blamed", "the newest launch that fits the fault")),
		       J_VALUE("stack", stack_json(w->t, l->stack)));
}

static void put_launch(struct chrome_writer *w, const struct cw_launch *l)
{
	const char *kind = l->flags & CW_LAUNCH_GRAPH ? "graph" : l->flags & CW_LAUNCH_CAPTURED ? "captured" : "kernel";
	const char *kernel = trace_function_name(w->t, l->func);
	const char *name = kernel[0] ? kernel_short_name(kernel, &w->pool) : !strcmp(kind, "graph") ? "graph" : "a kernel";
	size_t lane = find_lane(w, l->tid, l->stream, false);
	json_t *o = chrome_event(w, "X", lane + 1, name);

	JSON_ADD(o, J_TEXT("cat", kind), J_IF(l == w->blamed, J_TEXT("cname", "terrible")),
		 J_VALUE("args", launch_args(w, l, kernel)));
	put_wide(w, lane, ticks_ns(w, l->ticks), o);
	w->c->launches++;
}

static void put_call(struct chrome_writer *w, const struct cw_call *c)
{
	size_t lane = find_lane(w, c->tid, 0, true);
	const char *name = api_name(c->api);
	json_t *o = chrome_event(w, "X", lane + 1, name[0] ? name : "a call"),
	       *args = JSON_OF(J_VALUE("line", stack_line(w->t, c->stack)));

	add_arguments(args, c);
	JSON_ADD(args, J_VALUE("error", result_json(c->result)), J_VALUE("stack", stack_json(w->t, c->stack)));
	JSON_ADD(o, J_TEXT("cat", "driver"), J_VALUE("args", args));
	put_wide(w, lane, ticks_ns(w, c->ticks), o);
	w->c->calls++;
}

static void put_work(struct chrome_writer *w)
{
	const struct cw_launch *const *l;
	const struct cw_call *const *c;
	size_t n = trace_launches(w->t, &l), i;

	for (i = 0; i < n; i++)
		put_launch(w, l[i]);
	n = trace_calls(w->t, &c);
	for (i = 0; i < n; i++)
		put_call(w, c[i]);
	for (i = 0; i < w->n_lanes; i++)
		finish_lane(w, &w->lane[i], UINT64_MAX);
}

static void put_failure(struct chrome_writer *w, const struct cw_failure *f)
{
	const char *what = f->api ? api_name(f->api) : f->what;
	json_t *o = chrome_event(w, "i", PROCESS_LANE, what[0] ? what : "an error"), *args;
	char text[sizeof(f->text)];

	str_copy(text, sizeof(text), f->text);
	args = JSON_OF(J_VALUE("line", stack_line(w->t, f->stack)),
		       J_VALUE("forward", stack_line(w->t, f->forward_stack)), J_VALUE("error", result_json(f->code)),
		       J_TEXT("text", text), J_INT("times", f->count), J_INT("thread", f->tid),
		       J_VALUE("stack", stack_json(w->t, f->stack)));
	JSON_ADD(o, J_TEXT("s", "p"), J_TEXT("cat", "failure"), J_VALUE("args", args));
	put_event(w->c, ticks_ns(w, f->ticks), 0, o);
	w->c->failures++;
}

/* What the verdict is about. The time of a core dump is that of its file, and file clocks are coarse: the fault must not
 * come before its launch. */
static void put_verdict(struct chrome_writer *w, const struct verdict *v)
{
	uint64_t ns = v ? v->time_ns : 0;
	json_t *o, *args;

	if (!v || !strcmp(AT(v->cause->id), "none") || ns <= w->start_ns)
		return;
	if (w->blamed && ticks_ns(w, w->blamed->ticks) > ns)
		ns = ticks_ns(w, w->blamed->ticks);
	o = chrome_event(w, "i", PROCESS_LANE, v->title);
	args = JSON_OF(J_TEXT("cause", AT(v->cause->id)), J_TEXT("certainty", certainty_word(v->sure)),
		       J_IF(v->c.line[LINE_where].file,
			    J_VALUE("line", place_json(w->t, v->c.line[LINE_where].file, v->c.line[LINE_where].number,
						       v->c.line[LINE_where].function))));
	JSON_ADD(o, J_TEXT("s", "g"), J_TEXT("cat", "verdict"), J_VALUE("args", args));
	put_event(w->c, ns, 0, o);
}

static void put_counter(struct chrome_writer *w, int device, const char *what, uint64_t ns, uint64_t bytes)
{
	char name[64];
	json_t *o;

	snprintf(name, sizeof(name), "GPU %d: %s", device, what);
	o = chrome_event(w, "C", PROCESS_LANE, name);
	JSON_ADD(o, J_VALUE("args", JSON_OF(J_BYTES("bytes", bytes))));
	put_event(w->c, ns, 0, o);
}

static void put_memory(struct chrome_writer *w, int device)
{
	const struct cw_sample *s;
	bool torch = false;
	size_t n;

	trace_timeline(w->t, device, &s, &n);
	for (size_t i = 0; i < n; i++)
		torch |= s[i].reserved || s[i].allocated;
	for (size_t i = 0; i < n; i++) {
		uint64_t ns = ticks_ns(w, s[i].ticks);

		if (torch)
			put_counter(w, device, "allocated by PyTorch", ns, s[i].allocated);
		if (torch)
			put_counter(w, device, "reserved by PyTorch", ns, s[i].reserved);
		put_counter(w, device, "from the driver", ns, s[i].driver);
		w->c->samples++;
	}
}

static void put_process_names(struct chrome_writer *w)
{
	const struct cw_header *h = trace_header(w->t);

	put_metadata(w, "process_name", PROCESS_LANE, "name", json_text(h->cmdline[0] ? h->cmdline : "a process"));
	if (h->rank != CW_UNKNOWN) {
		put_metadata(w, "process_labels", PROCESS_LANE, "labels", json_sprintf("rank %u", h->rank));
		put_metadata(w, "process_sort_index", PROCESS_LANE, "sort_index", json_integer(h->rank));
	}
}

void chrometrace_begin(struct chrometrace *c, FILE *out, const char *recording)
{
	json_t *other = JSON_OF(J_TEXT("cuwhy", CUWHY_VERSION), J_TEXT("recording", recording),
				J_TEXT("clock", "CLOCK_MONOTONIC"));

	*c = (struct chrometrace){.out = out};
	private_hide_in(other, true);
	fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":", out);
	json_dumpf(other, out, JSON_COMPACT | JSON_ENSURE_ASCII);
	fputs(",\"traceEvents\":[", out);
	json_decref(other);
}

void chrometrace_process(struct chrometrace *c, struct trace *t, const struct verdict *v)
{
	const struct cw_header *h = trace_header(t);
	struct chrome_writer *w = xcalloc(1, sizeof(*w));
	const struct cw_failure *const *f;
	size_t n;

	w->c = c;
	w->t = t;
	w->pid = h->pid;
	w->start_ns = h->clock0.mono_ns;
	w->blamed = v ? blamed_launch(t, &v->c) : NULL;
	put_process_names(w);
	put_work(w);
	n = trace_failures(t, &f);
	for (size_t i = 0; i < n; i++)
		put_failure(w, f[i]);
	put_verdict(w, v);
	for (int d = 0; d < CW_MAX_DEVICES; d++)
		put_memory(w, d);
	pool_release(&w->pool);
	free(w);
}

void chrometrace_end(struct chrometrace *c)
{
	fputs("\n]}\n", c->out);
}
