/* SPDX-License-Identifier: Apache-2.0
 * Writes a recording as a Chrome trace (see chrometrace.h). Times are CLOCK_MONOTONIC, in microseconds: those of all
 * processes of a machine fit together.
 */
#include "case/signature.h"
#include "write/chrometrace.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/mem.h"
#include "base/str.h"
#include "input/recording/incident.h"
#include "write/chrometrace_priv.h"
#include "base/json_text.h"
#include "write/blamed.h"
#include "judge/verdict_priv.h"
#include "input/recording/trace.h"
#include "input/recording/trace_memory.h"

#define LANES_MAX	1024	/* rows of one process; what is beyond shares the last one */
#define WIDTH_NS	2000	/* how wide a moment is drawn: nothing tells how long it took */
#define PROCESS_LANE	0	/* failures and counters belong to the process */

#ifndef CUWHY_VERSION
#define CUWHY_VERSION "unknown"
#endif

/* A row: launches of a thread into a stream, or the other calls of a thread. */
struct lane {
	uint32_t tid;
	uint64_t stream;
	bool calls;
	json_t *waiting;	/* its newest event: ends where the next one begins */
	uint64_t waiting_ns;
};

struct writer {
	struct chrometrace *c;
	struct trace *t;
	const struct cw_launch *blamed;
	uint32_t pid;
	uint64_t start_ns;
	struct lane lane[LANES_MAX];
	size_t n_lanes;
	struct pool pool;
};

/* --- events ----------------------------------------------------------------------------------- */

/* Takes `o`. Times are written here: a double has no room for them. `ns` 0: it has no time. */
static void put_event(struct chrometrace *c, uint64_t ns, uint64_t width_ns, json_t *o)
{
	fputs(c->events ? ",\n{" : "\n{", c->out);
	if (ns)
		fprintf(c->out, "\"ts\":%" PRIu64 ".%03u,", ns / 1000, (unsigned)(ns % 1000));
	if (width_ns)
		fprintf(c->out, "\"dur\":%" PRIu64 ".%03u,", width_ns / 1000, (unsigned)(width_ns % 1000));
	json_dumpf(o, c->out, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_EMBED);
	putc('}', c->out);
	json_decref(o);
	c->events++;
}

static uint64_t when(const struct writer *w, uint64_t ticks)
{
	uint64_t ns = trace_ns(w->t, ticks);

	return ns > UINT64_MAX - w->start_ns ? w->start_ns : w->start_ns + ns;
}

static json_t *event(const struct writer *w, const char *phase, size_t lane, const char *name)
{
	json_t *o = json_object();

	json_object_set_new(o, "ph", json_string(phase));
	json_object_set_new(o, "pid", json_integer(w->pid));
	json_object_set_new(o, "tid", json_integer((json_int_t)lane));
	json_object_set_new(o, "name", json_text(name));
	return o;
}

static void put_name(struct writer *w, const char *what, size_t lane, json_t *value, const char *key)
{
	json_t *o = event(w, "M", lane, what);

	json_object_set_new(o, "args", json_pack("{s:o}", key, value));
	put_event(w->c, 0, 0, o);
}

/* --- rows ------------------------------------------------------------------------------------- */

static void name_lane(struct writer *w, size_t i)
{
	const struct lane *l = &w->lane[i];
	json_t *name;

	if (i == LANES_MAX - 1)
		name = json_string("further threads and streams");
	else if (l->calls)
		name = json_sprintf("thread %u, driver calls", l->tid);
	else
		name = json_sprintf("thread %u, stream 0x%llx", l->tid, (unsigned long long)l->stream);
	put_name(w, "thread_name", i + 1, name, "name");
	put_name(w, "thread_sort_index", i + 1, json_integer((json_int_t)i + 1), "sort_index");
}

static size_t lane_of(struct writer *w, uint32_t tid, uint64_t stream, bool calls)
{
	for (size_t i = 0; i < w->n_lanes; i++)
		if (w->lane[i].tid == tid && w->lane[i].stream == stream && w->lane[i].calls == calls)
			return i;
	if (w->n_lanes == LANES_MAX)
		return LANES_MAX - 1;
	w->lane[w->n_lanes] = (struct lane){.tid = tid, .stream = stream, .calls = calls};
	name_lane(w, w->n_lanes);
	return w->n_lanes++;
}

static void finish(struct writer *w, struct lane *l, uint64_t until_ns)
{
	uint64_t width = until_ns > l->waiting_ns ? until_ns - l->waiting_ns : 1;

	if (l->waiting)
		put_event(w->c, l->waiting_ns, width < WIDTH_NS ? width : WIDTH_NS, l->waiting);
	l->waiting = NULL;
}

/* An event that is drawn up to the next one of its row, WIDTH_NS at most. */
static void put_wide(struct writer *w, size_t lane, uint64_t ns, json_t *o)
{
	struct lane *l = &w->lane[lane];

	finish(w, l, ns);
	l->waiting = o;
	l->waiting_ns = ns;
}

/* --- launches and calls ------------------------------------------------------------------------ */

static json_t *launch_args(struct writer *w, const struct cw_launch *l, const char *kernel)
{
	int device = CW_LAUNCH_DEVICE(l->flags);
	json_t *args = json_object();

	chrome_add_line(w->t, args, "line", l->stack);
	chrome_add_line(w->t, args, "forward", l->forward_stack);
	json_object_set_new(args, "kernel", json_text(kernel[0] ? kernel : NULL));
	if (!(l->flags & CW_LAUNCH_GRAPH)) {
		json_object_set_new(args, "grid", json_sprintf("%ux%ux%u", l->grid[0], l->grid[1], l->grid[2]));
		json_object_set_new(args, "block", json_sprintf("%ux%ux%u", l->block[0], l->block[1], l->block[2]));
		json_object_set_new(args, "shared", json_integer(l->shared));
		chrome_add_parameters(w->t, args, l);
	}
	if (device >= 0)
		json_object_set_new(args, "device", json_integer(device));
	json_object_set_new(args, "stream", chrome_hex(l->stream));
	json_object_set_new(args, "thread", json_integer(l->tid));
	if (!(l->flags & CW_LAUNCH_CAPTURED))
		chrome_add_result(args, l->result);
	if (l == w->blamed)
		json_object_set_new(args, "blamed", json_string("the newest launch that fits the fault"));
	chrome_add_stack(w->t, args, l->stack);
	return args;
}

static void put_launch(struct writer *w, const struct cw_launch *l)
{
	const char *kind = l->flags & CW_LAUNCH_GRAPH ? "graph" : l->flags & CW_LAUNCH_CAPTURED ? "captured" : "kernel";
	const char *kernel = trace_function_name(w->t, l->func);
	const char *name = kernel[0] ? kernel_short_name(kernel, &w->pool) : !strcmp(kind, "graph") ? "graph" : "a kernel";
	size_t lane = lane_of(w, l->tid, l->stream, false);
	json_t *o = event(w, "X", lane + 1, name);

	json_object_set_new(o, "cat", json_string(kind));
	if (l == w->blamed)
		json_object_set_new(o, "cname", json_string("terrible"));
	json_object_set_new(o, "args", launch_args(w, l, kernel));
	put_wide(w, lane, when(w, l->ticks), o);
	w->c->launches++;
}

static void put_call(struct writer *w, const struct cw_call *c)
{
	size_t lane = lane_of(w, c->tid, 0, true);
	const char *name = api_name(c->api);
	json_t *o = event(w, "X", lane + 1, name[0] ? name : "a call"), *args = json_object();

	chrome_add_line(w->t, args, "line", c->stack);
	chrome_add_arguments(args, c);
	chrome_add_result(args, c->result);
	chrome_add_stack(w->t, args, c->stack);
	json_object_set_new(o, "cat", json_string("driver"));
	json_object_set_new(o, "args", args);
	put_wide(w, lane, when(w, c->ticks), o);
	w->c->calls++;
}

static void put_work(struct writer *w)
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
		finish(w, &w->lane[i], UINT64_MAX);
}

/* --- failures and memory ----------------------------------------------------------------------- */

static void put_failure(struct writer *w, const struct cw_failure *f)
{
	const char *what = f->api ? api_name(f->api) : f->what;
	char text[sizeof(f->text)];
	json_t *o, *args = json_object();

	str_copy(text, sizeof(text), f->text);
	chrome_add_line(w->t, args, "line", f->stack);
	chrome_add_line(w->t, args, "forward", f->forward_stack);
	chrome_add_result(args, f->code);
	json_object_set_new(args, "text", json_text(text));
	json_object_set_new(args, "times", json_integer(f->count));
	json_object_set_new(args, "thread", json_integer(f->tid));
	chrome_add_stack(w->t, args, f->stack);
	o = event(w, "i", PROCESS_LANE, what[0] ? what : "an error");
	json_object_set_new(o, "s", json_string("p"));
	json_object_set_new(o, "cat", json_string("failure"));
	json_object_set_new(o, "args", args);
	put_event(w->c, when(w, f->ticks), 0, o);
	w->c->failures++;
}

/* What the verdict is about. The time of a core dump is that of its file, whose clock is coarse: a fault does not come
 * before its launch. */
static void put_verdict(struct writer *w, const struct verdict *v)
{
	uint64_t ns = v ? v->time_ns : 0;
	json_t *o;

	if (!v || !strcmp(v->cause->id, "none") || ns <= w->start_ns)
		return;
	if (w->blamed && when(w, w->blamed->ticks) > ns)
		ns = when(w, w->blamed->ticks);
	o = event(w, "i", PROCESS_LANE, v->title);
	json_object_set_new(o, "s", json_string("g"));
	json_object_set_new(o, "cat", json_string("verdict"));
	json_object_set_new(o, "args", json_pack("{s:s,s:s}", "cause", v->cause->id, "certainty", certainty_word(v->sure)));
	if (v->where.file)
		json_object_set_new(json_object_get(o, "args"), "line",
				    chrome_place(w->t, v->where.file, v->where.number, v->where.function));
	put_event(w->c, ns, 0, o);
}

static void put_counter(struct writer *w, int device, const char *what, uint64_t ns, uint64_t bytes)
{
	char name[64];
	json_t *o;

	snprintf(name, sizeof(name), "GPU %d: %s", device, what);
	o = event(w, "C", PROCESS_LANE, name);
	json_object_set_new(o, "args", json_pack("{s:o}", "bytes", json_bytes(bytes)));
	put_event(w->c, ns, 0, o);
}

static void put_memory(struct writer *w, int device)
{
	const struct cw_sample *s;
	bool torch = false;
	size_t n;

	trace_timeline(w->t, device, &s, &n);
	for (size_t i = 0; i < n; i++)
		torch |= s[i].reserved || s[i].allocated;
	for (size_t i = 0; i < n; i++) {
		uint64_t ns = when(w, s[i].ticks);

		if (torch)
			put_counter(w, device, "allocated by PyTorch", ns, s[i].allocated);
		if (torch)
			put_counter(w, device, "reserved by PyTorch", ns, s[i].reserved);
		put_counter(w, device, "from the driver", ns, s[i].driver);
		w->c->samples++;
	}
}

/* --- the file ---------------------------------------------------------------------------------- */

static void put_process(struct writer *w)
{
	const struct cw_header *h = trace_header(w->t);

	put_name(w, "process_name", PROCESS_LANE, json_text(h->cmdline[0] ? h->cmdline : "a process"), "name");
	if (h->rank != CW_UNKNOWN) {
		put_name(w, "process_labels", PROCESS_LANE, json_sprintf("rank %u", h->rank), "labels");
		put_name(w, "process_sort_index", PROCESS_LANE, json_integer(h->rank), "sort_index");
	}
}

void chrometrace_begin(struct chrometrace *c, FILE *out, const char *recording)
{
	json_t *other = json_pack("{s:s,s:o,s:s}", "cuwhy", CUWHY_VERSION, "recording", json_text(recording), "clock",
				  "CLOCK_MONOTONIC");

	*c = (struct chrometrace){.out = out};
	fputs("{\"displayTimeUnit\":\"ns\",\"otherData\":", out);
	json_dumpf(other, out, JSON_COMPACT | JSON_ENSURE_ASCII);
	fputs(",\"traceEvents\":[", out);
	json_decref(other);
}

void chrometrace_process(struct chrometrace *c, struct trace *t, const struct verdict *v)
{
	const struct cw_header *h = trace_header(t);
	struct writer *w = xcalloc(1, sizeof(*w));
	const struct cw_failure *const *f;
	size_t n;

	w->c = c;
	w->t = t;
	w->pid = h->pid;
	w->start_ns = h->clock0.mono_ns;
	w->blamed = v ? blamed_launch(t, v) : NULL;
	put_process(w);
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
