/* SPDX-License-Identifier: Apache-2.0
 * The report page: what it takes from a recording, a core dump or a bundle (a snapshot: page_snapshot.c), what is left out
 * to keep it small, and how it is written.
 *
 * The data is JSON inside a <script> element that no browser runs. JSON has `<`, `>` and `&` only inside strings, where
 * they are escaped, as is everything beyond ASCII: nothing in the data can end the element.
 */
#include "show/page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/private.h"
#include "base/str.h"
#include "case/signature.h"
#include "compat/cuda_errors.h"
#include "find/fault/culprit.h"
#include "read/machine/machine.h"
#include "find/host/observe.h"
#include "find/failure/blamed.h"
#include "find/failure/incident.h"
#include "find/memory/memory_map.h"
#include "find/memory/over_time.h"
#include "find/memory/neighbors.h"
#include "find/failure/place.h"
#include "find/memory/playback.h"
#include "read/recording/trace.h"
#include "read/recording/trace_memory.h"
#include "verdict/doctor.h"
#include "find/fault/fault.h"
#include "verdict/verdict.h"
#include "base/format.h"
#include "show/page_blocks.h"
#include "show/page_causes.h"
#include "show/page_flame.h"
#include "show/page_source.h"
#include "show/page_words.h"
#include "show/report_json.h"
#include "show/report_ledger.h"

#define PROCESSES_MAX	512
#define DETAILS_MAX	12	/* processes with details */
#define LAUNCHES_MAX	400
#define LAUNCH_LANES_MAX 64
#define WAITS_MAX	200
#define FAILURE_TEXT	300	/* bytes */
#define FAULT_LANES_MAX	1024
#define RUNS_MAX	4000	/* per segment map */
#define GPUS_MAX	64
#define ENVS_MAX	16
#define OTHERS_MAX	64	/* verdicts of other processes, and notes */
#define CHECKS_MAX	64	/* of the doctor; it has fewer */
#define STRING_MAX	4000	/* bytes */
#define STRING_SHORT	200	/* if nothing else helps */

#define ISLANDS_MAX	((size_t)32 << 20)

#define DATA_MARK	"@@cuwhy-data@@"
#define ISLANDS_MARK	"@@cuwhy-islands@@"
#define TEXT_MARK	"@@cuwhy-text@@"
#define NO_CHARTS_MARK	"const uPlot = null;"	/* tools/page.py */

#ifndef CUWHY_VERSION
#define CUWHY_VERSION "unknown"
#endif

struct page {
	json_t *data;			/* everything */
	json_t *processes, *missing;	/* in it */
	size_t n_processes, n_details, left_out;
	struct buf islands;		/* what is too large for JSON, a line each */
	size_t n_islands, blocks_left;
};

struct page *page_new(const char *kind, const char *path)
{
	struct page *p = xcalloc(1, sizeof(*p));
	const char *slash = strrchr(path, '/');

	p->blocks_left = PAGE_BLOCKS_MAX;
	buf_init(&p->islands, ISLANDS_MAX);
	p->processes = json_array();
	p->missing = json_array();
	p->data = JSON_OF(J_INT("page", 1), J_TEXT("cuwhy", CUWHY_VERSION), J_INT("made", time(NULL)),
			  J_VALUE("input", JSON_OF(J_TEXT("kind", kind), J_TEXT("path", path),
						   J_TEXT("name", slash && slash[1] ? slash + 1 : path))),
			  J_VALUE("processes", p->processes), J_VALUE("missing", p->missing));
	return p;
}

void page_free(struct page *p)
{
	if (!p)
		return;
	json_decref(p->data);
	buf_release(&p->islands);
	free(p);
}

void page_tell(struct page *p, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	json_array_append_new(p->missing, json_text(text));
	free(text);
}

void page_add_row(struct page *p, json_t *row)
{
	json_array_append_new(p->processes, row);
	p->n_processes++;
	p->n_details++;
}

static void put_pair(json_t *list, const char *label, const char *text)
{
	json_array_append_new(list, json_pack("[s,o]", label, json_text(text)));
}

/* Unless it is empty. */
__attribute__((format(printf, 3, 4))) static void put_setting(json_t *list, const char *label, const char *fmt, ...)
{
	va_list ap;
	char *text;

	va_start(ap, fmt);
	text = xvasprintf(fmt, ap);
	va_end(ap);
	if (text[0])
		put_pair(list, label, text);
	free(text);
}

static void put_device(json_t *list, int number, const struct cw_device *d)
{
	char label[32], size[32];

	if (!d->name[0])
		return;
	snprintf(label, sizeof(label), "device %d", number);
	format_bytes(size, sizeof(size), (double)d->total_bytes);
	if (d->attr[CW_DEV_cc_major] >= 0)
		put_setting(list, label, "%s, %s, compute capability %d.%d, %d SMs", d->name, size,
			    d->attr[CW_DEV_cc_major], d->attr[CW_DEV_cc_minor], d->attr[CW_DEV_sm_count]);
	else
		put_setting(list, label, "%s, %s", d->name, size);
}

static const char *visible_text(const char *value)
{
	return !strcmp(value, CW_NOT_SET) ? "not set" : value[0] ? value : "empty: no device";
}

static void put_versions(json_t *list, const struct cw_header *h)
{
	if (h->driver_version)
		put_setting(list, "CUDA version of the driver", "%" PRIu32 ".%" PRIu32, h->driver_version / 1000,
			    h->driver_version % 1000 / 10);
	if (h->py_version)
		put_setting(list, "Python", "%" PRIu32 ".%" PRIu32 ".%" PRIu32, h->py_version >> 24,
			    (h->py_version >> 16) & 0xff, (h->py_version >> 8) & 0xff);
	put_setting(list, "PyTorch", "%s", h->torch_path[0] ? h->torch_path : "not loaded");
	put_setting(list, "libcuda", "%s", h->libcuda_path);
	if (h->sim)
		put_setting(list, "GPU", "simulated by cuwhy");
}

static void put_variables(json_t *list, const struct cw_header *h)
{
	put_setting(list, "CUDA_VISIBLE_DEVICES", "%s", visible_text(h->visible_devices_at_init));
	if (strcmp(h->visible_devices_at_init, h->visible_devices_now) != 0 && h->visible_devices_now[0])
		put_setting(list, "… later", "%s", visible_text(h->visible_devices_now));
	put_setting(list, "PYTORCH_CUDA_ALLOC_CONF", "%s",
		    h->alloc_conf[0] && strcmp(h->alloc_conf, CW_NOT_SET) != 0 ? h->alloc_conf : "not set");
}

static void put_program(json_t *list, const struct cw_header *h)
{
	put_setting(list, "command", "%s", h->cmdline);
	put_setting(list, "folder", "%s", h->cwd);
	put_setting(list, "program", "%s", h->exe);
	if (h->rank != CW_UNKNOWN && h->world_size != CW_UNKNOWN)
		put_setting(list, "rank", "%" PRIu32 " of %" PRIu32, h->rank, h->world_size);
	else if (h->rank != CW_UNKNOWN)
		put_setting(list, "rank", "%" PRIu32, h->rank);
}

static void put_recorder(json_t *list, const struct cw_header *h)
{
	put_setting(list, "recording", "format %u.%u: %s", h->major, h->minor, reason_text(h->off_because));
	put_setting(list, "Python lines", "%s", h->frames_off_because ? reason_text(h->frames_off_because) : "recorded");
	put_setting(list, "GPU core dumps", "%s",
		    h->dump_path[0] ? "armed" : h->dump_reason ? reason_text(h->dump_reason) : "not armed");
	put_setting(list, "memory trace", "%s",
		    h->memory_trace_path[0] ? "every event, in a separate file" : "not requested");
}

static json_t *recorded_environment(const struct cw_header *h)
{
	json_t *list = json_array();

	put_program(list, h);
	for (int d = 0; d < CW_MAX_DEVICES; d++)
		put_device(list, d, &h->device[d]);
	put_versions(list, h);
	put_variables(list, h);
	put_recorder(list, h);
	return list;
}

static json_t *dump_environment(const struct culprit *c)
{
	json_t *list = json_array();

	put_setting(list, "device", "%s", c->device_name ? c->device_name : "");
	put_setting(list, "chip", "%s%s%s", c->chip ? c->chip : "", c->sm_type && c->sm_type[0] ? ", " : "",
		    c->sm_type ? c->sm_type : "");
	if (c->driver_major)
		put_setting(list, "driver", "%u.%u", c->driver_major, c->driver_minor);
	if (c->cuda_major)
		put_setting(list, "CUDA", "%u.%u", c->cuda_major, c->cuda_minor);
	return list;
}

static void put_lost(json_t *list, uint64_t n, const char *one, const char *more)
{
	char text[32];

	if (n == 1)
		json_append_text(list, "1 %s was not recorded: there was no room for it", one);
	else if (n)
		json_append_text(list, "%s %s were not recorded: there was no room for them",
				 format_thousands(text, sizeof(text), (double)n), more);
}

static bool has_chunk(const struct cw_header *h, uint32_t kind)
{
	for (int i = 0; i < CW_MAX_CHUNKS; i++)
		if (h->chunk[i].kind == kind)
			return true;
	return false;
}

static bool memory_was_used(const struct cw_header *h)
{
	bool used = false;

	for (int d = 0; d < CW_MAX_DEVICES; d++)
		used = used || h->memory[d].peak_allocated || h->memory[d].driver_peak;
	return used;
}

/* Memory was used, but the recording does not say by what. */
static bool memory_is_missing(const struct cw_header *h)
{
	return memory_was_used(h) && !has_chunk(h, CW_CHUNK_ALLOCATIONS) && !has_chunk(h, CW_CHUNK_BLOCKS);
}

static json_t *recording_gaps(const struct cw_header *h)
{
	json_t *list = json_array();

	if (h->minor > CW_MINOR)
		json_append_text(
			list,
			"the recording was made by a newer cuwhy (format %u.%u, this one knows %d.%d): what was added "
			"since is not shown",
			h->major, h->minor, CW_MAJOR, CW_MINOR);
	if (h->off_because)
		json_append_text(list, "the recorder switched itself off: %s", reason_text(h->off_because));
	if (h->frames_off_because)
		json_append_text(list, "no Python lines were recorded: %s", reason_text(h->frames_off_because));
	if (!h->n_blocks && h->torch_path[0] && memory_was_used(h))
		json_append_text(list,
				 "PyTorch's allocator reported no blocks: memory is shown as the driver allocated it");
	if (h->inexact_since_ns)
		json_append_text(list, "the table of live allocations is not exact");
	if (h->blocks_inexact_since_ns)
		json_append_text(list, "the table of PyTorch's blocks is not exact");
	if (memory_is_missing(h))
		json_append_text(list, "the recording has no memory tables: what held memory, and what is near an address, is not "
				 "known");
	put_lost(list, h->lost_stacks, "stack", "stacks");
	put_lost(list, h->lost_functions, "kernel", "kernels");
	put_lost(list, h->lost_allocations, "allocation", "allocations");
	put_lost(list, h->lost_blocks, "PyTorch block", "PyTorch blocks");
	put_lost(list, h->lost_threads, "thread", "threads");
	put_lost(list, h->lost_strings, "name", "names");
	put_lost(list, h->lost_sites, "block by line", "blocks by line");
	return list;
}

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

static json_t *launches_json(struct trace *t, const struct verdict *v, struct page_words *lines)
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

static json_t *failures_json(struct trace *t, struct page_words *lines)
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

static json_t *neighbors_json(struct trace *t, const struct verdict *v, struct page_words *lines)
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

static json_t *fault_lanes_json(const struct culprit *c)
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

static bool has_memory(struct trace *t, int device)
{
	const struct cw_memory_now *m = trace_memory(t, device);

	return (m && (m->peak_allocated || m->driver_peak || m->n_oom)) || ledger_oom(t, device);
}

static json_t *samples_json(struct trace *t, int device, struct pool *pool)
{
	json_t *time = json_array(), *allocated = json_array(), *reserved = json_array(), *driver = json_array();
	size_t n;
	const struct cw_sample *s = over_time_samples(t, device, PAGE_SAMPLES_MAX, &n, pool);

	for (size_t i = 0; i < n; i++) {
		json_array_append_new(time, json_bytes(trace_ns(t, s[i].ticks) / 1000));
		json_array_append_new(allocated, json_bytes(s[i].allocated));
		json_array_append_new(reserved, json_bytes(s[i].reserved));
		json_array_append_new(driver, json_bytes(s[i].driver));
	}
	return JSON_OF(J_VALUE("us", time), J_VALUE("allocated", allocated), J_VALUE("reserved", reserved),
		       J_VALUE("driver", driver));
}

static json_t *device_timeline(struct trace *t, const struct ledger *l, struct pool *pool)
{
	json_t *j = samples_json(t, l->device, pool);
	struct over_time o;

	over_time_build(&o, t, l->device, l, pool);
	JSON_ADD(j, J_VALUE("kinds", over_time_json(&o, t)));
	return j;
}

static json_t *device_ledger(struct ledger *l, const struct trace *t)
{
	uint64_t left = 0;
	size_t n = l->n;
	json_t *j;

	for (; l->n > PAGE_LINES_MAX; l->n--)
		left += l->line[l->n - 1].bytes;
	for (size_t i = 0; i < l->n; i++)
		if (l->line[i].place.file)
			l->line[i].place.file = file_shown(l->line[i].place.file, trace_header(t)->cwd);
	for (size_t i = 0; i < l->segments.n_pins; i++)
		if (l->segments.pin[i].place.file)
			l->segments.pin[i].place.file = file_shown(l->segments.pin[i].place.file, trace_header(t)->cwd);
	j = ledger_json(l);
	JSON_ADD(j, J_IF(n > l->n, J_BYTES("lines_left_out", n - l->n)), J_IF(n > l->n, J_BYTES("bytes_left_out", left)),
		 J_IF(l->ticks != UINT64_MAX, J_BYTES("us", trace_ns(t, l->ticks) / 1000)));
	return j;
}

static json_t *words_of_parts(void)
{
	json_t *parts = json_object(), *kinds = json_object();

	for (int p = 0; p < PART_COUNT; p++)
		JSON_ADD(parts, J_TEXT(ledger_part_id((enum ledger_part)p), ledger_part_text((enum ledger_part)p)));
	for (int k = 0; k < KIND_COUNT; k++)
		JSON_ADD(kinds, J_TEXT(ledger_kind_id((enum ledger_kind)k), ledger_kind_text((enum ledger_kind)k)));
	return JSON_OF(J_VALUE("parts", parts), J_VALUE("kinds", kinds));
}

static json_t *map_runs_json(const struct memory_map *m, const struct map_segment *s, struct page_words *lines,
			     const char *cwd)
{
	json_t *list = json_array();

	for (size_t i = s->first; i < s->first + s->n; i++) {
		const struct map_run *r = &m->run[i];

		json_array_append_new(list, json_pack("[o,o,o,o,i,i]", json_bytes(r->offset), json_bytes(r->span),
						      json_bytes(r->bytes), json_bytes(r->blocks), (int)r->kind,
						      page_words_place(lines, &r->place, cwd)));
	}
	return list;
}

static const struct field map_segment_field[] = {
	F_ALWAYS(HEX, "address", struct map_segment, addr),
	F_ALWAYS(BYTES, "size", struct map_segment, size),
	F_ALWAYS(BYTES, "free", struct map_segment, free),
	F_ALWAYS(BYTES, "largest", struct map_segment, largest_free),
	F_ALWAYS(BYTES, "blocks", struct map_segment, blocks),
	F_ALWAYS(NUMBER, "like", struct map_segment, like),
	F_END,
};
static const struct fields map_segment_fields = {map_segment_field, sizeof(struct map_segment), NULL};

static json_t *map_json(const struct memory_map *m, struct page_words *lines, const char *cwd)
{
	json_t *list = json_array(), *kinds = json_array();

	for (size_t i = 0; i < m->n; i++) {
		json_t *one = fields_write(&map_segment_fields, &m->segment[i]);

		JSON_ADD(one, J_VALUE("runs", map_runs_json(m, &m->segment[i], lines, cwd)));
		json_array_append_new(list, one);
	}
	for (int k = 0; k < KIND_COUNT; k++)
		json_array_append_new(kinds, json_string(ledger_kind_id((enum ledger_kind)k)));
	return JSON_OF(J_VALUE("segments", list), J_VALUE("kinds", kinds), J_BYTES("count", m->segments),
		       J_BYTES("n_left_out", m->n_left_out), J_BYTES("left_out", m->left_out),
		       J_BYTES("left_out_free", m->left_out_free));
}

static json_t *device_map(struct trace *t, const struct ledger *l, struct page_words *lines, struct pool *pool)
{
	static const struct map_limits limits = {PAGE_SEGMENTS_MAX, RUNS_MAX};
	struct memory_map m;
	bool oom = memory_map_of(&m, t, l, &limits, pool);
	json_t *j = map_json(&m, lines, trace_header(t)->cwd);

	JSON_ADD(j, J_TEXT("at", oom ? "oom" : "end"));
	return j;
}

static json_t *device_json(struct trace *t, int device, const struct process_end *end, struct page_words *lines)
{
	const struct cw_header *h = trace_header(t);
	const struct cw_failure *f = ledger_oom(t, device);
	struct ledger_seen seen;
	struct pool pool = {0};
	struct ledger l;
	json_t *timeline, *map, *ledger;

	ledger_seen_from(&seen, f ? end->usage : NULL, &h->device[device], h->pid, &pool);
	ledger_build(&l, t, device, ledger_moment(t, device), f, &seen, &pool);
	timeline = device_timeline(t, &l, &pool);
	map = device_map(t, &l, lines, &pool);
	ledger = device_ledger(&l, t);		/* last, because it trims the ledger */
	pool_release(&pool);
	return JSON_OF(J_INT("device", device), J_TEXT("name", h->device[device].name), J_VALUE("timeline", timeline),
		       J_VALUE("map", map), J_VALUE("ledger", ledger), J_VALUE("words", words_of_parts()),
		       J_VALUE("flame", flame_of_recording(t, device, f)));
}

static json_t *devices_json(struct trace *t, const struct process_end *end, struct page_words *lines)
{
	json_t *list = json_array();

	for (int d = 0; d < CW_MAX_DEVICES && json_array_size(list) < PAGE_DEVICES_MAX; d++)
		if (has_memory(t, d))
			json_array_append_new(list, device_json(t, d, end, lines));
	return list;
}

static json_t *detail_json(struct trace *t, const struct process_end *end, const struct verdict *v)
{
	const struct cw_header *h = trace_header(t);
	json_t *failures, *launches, *neighbors, *devices, *j;
	struct page_words lines;

	page_words_init(&lines);	/* filled by the next four, most important first */
	failures = failures_json(t, &lines);
	launches = launches_json(t, v, &lines);
	neighbors = neighbors_json(t, v, &lines);
	devices = devices_json(t, end, &lines);
	j = JSON_OF(J_VALUE("environment", recorded_environment(h)), J_VALUE("gaps", recording_gaps(h)),
		    J_BYTES("started", h->start_realtime_ns / 1000000),
		    J_VALUE("sources", page_sources(v, trace_sources(t), h->start_realtime_ns)),
		    J_VALUE("quotes", page_quotes(v, trace_sources(t))),
		    J_VALUE("callers", page_callers(v, trace_sources(t))), J_VALUE("failures", failures),
		    J_VALUE("launches", launches), J_VALUE("neighbors", neighbors),
		    J_VALUE("lanes", end->fault ? fault_lanes_json(end->fault) : json_null()),
		    J_VALUE("devices", devices), J_SHARED("lines", lines.list));
	page_words_release(&lines);
	return j;
}

static json_t *process_row(const struct trace *t, const struct process_end *end, const struct verdict *v)
{
	const struct cw_header *h = t ? trace_header(t) : NULL;
	bool timed = v && v->time_ns && h && v->time_ns > h->clock0.mono_ns;

	return JSON_OF(J_INT("pid", end->pid ? end->pid : h ? h->pid : 0), J_INT("ppid", end->ppid),
		       J_INT_OR_NULL("rank", h && h->rank != CW_UNKNOWN, h->rank),
		       J_INT_OR_NULL("exit", end->status_known && end->exit >= 0, end->exit),
		       J_INT_OR_NULL("signal", end->status_known && end->signal, end->signal),
		       J_TEXT("command", end->command ? end->command
					 : h	      ? h->cmdline
						      : NULL),
		       J_BOOL("cuda", t != NULL), J_TEXT("cause", v ? verdict_cause(v) : NULL),
		       J_TEXT("title", v ? verdict_title(v) : NULL), J_INT("notes", v ? verdict_notes(v) : 0),
		       J_IF(timed, J_BYTES("failed_us", (v->time_ns - h->clock0.mono_ns) / 1000)),
		       J_IF(timed, J_BYTES("failed_mono_us", v->time_ns / 1000)));
}

/* An exec leaves several parts of one process: the cause tells them apart. */
static json_t *find_row(const struct page *p, json_int_t pid, const char *cause, size_t *at)
{
	json_t *row;
	size_t i;

	json_array_foreach(p->processes, i, row) {
		const char *is = json_string_value(json_object_get(row, "cause"));

		*at = i;
		if (json_integer_value(json_object_get(row, "pid")) == pid && is && cause && !strcmp(is, cause))
			return row;
	}
	return NULL;
}

bool page_has_details(const struct page *p, const struct verdict *v)
{
	size_t at;

	return json_object_get(find_row(p, verdict_pid(v), verdict_cause(v), &at), "detail") != NULL;
}

void page_add_what_if(struct page *p, const struct verdict *v, int device, json_t *what_if)
{
	json_t *detail, *d;
	size_t at, i;

	detail = json_object_get(find_row(p, verdict_pid(v), verdict_cause(v), &at), "detail");
	json_array_foreach(json_object_get(detail, "devices"), i, d)
		if (json_integer_value(json_object_get(d, "device")) == device)
			JSON_ADD(d, J_SHARED("what_if", what_if));
	json_decref(what_if);
}

void page_put_lives(struct page *p, json_t *device, struct lives *l)
{
	int number = (int)json_integer_value(json_object_get(device, "device"));
	json_t *blocks = lives_json(l, number, p->n_islands, &p->blocks_left, &p->islands);

	p->n_islands += json_is_object(blocks);
	JSON_ADD(device, J_VALUE("blocks", blocks));
}

void page_add_blocks(struct page *p, const struct verdict *v, struct trace *t, const char *part)
{
	json_t *detail, *d;
	struct lives l;
	struct buf bytes;
	size_t at, i;

	detail = json_object_get(find_row(p, verdict_pid(v), verdict_cause(v), &at), "detail");
	if (!detail || !p->blocks_left)
		return;
	if (memory_events_read(&bytes, t, part, NULL) == 0) {
		lives_init(&l, p->blocks_left);
		lives_of_recording(&l, t, bytes.data, bytes.len);
		json_array_foreach(json_object_get(detail, "devices"), i, d)
			page_put_lives(p, d, &l);
		lives_release(&l);
	}
	buf_release(&bytes);
}

void page_add_process(struct page *p, struct trace *t, const struct process_end *end, const struct verdict *v,
		      const char *unread, bool must)
{
	json_t *row = process_row(t, end, v), *old = NULL;
	bool detail = t && v && (must || p->n_details < DETAILS_MAX);
	size_t at;

	p->n_details += detail;
	JSON_ADD(row, J_IF(detail, J_VALUE("detail", detail_json(t, end, v))), J_IF(unread, J_TEXT("unread", unread)));
	if (must && v)
		old = find_row(p, verdict_pid(v), verdict_cause(v), &at);
	if (old) {
		json_object_update(old, row);
		json_decref(row);
	} else if (must || p->n_processes < PROCESSES_MAX) {
		json_array_append_new(p->processes, row);
		p->n_processes++;
	} else {
		json_decref(row);
		p->left_out++;
	}
}

void page_add_dump(struct page *p, const struct culprit *c)
{
	json_t *detail = JSON_OF(J_VALUE("environment", dump_environment(c)), J_VALUE("lanes", fault_lanes_json(c)));

	page_add_row(p, JSON_OF(J_NULL("pid"), J_NULL("rank"), J_VALUE("detail", detail)));
}

static void put_gpus(json_t *list, const struct machine *m)
{
	size_t n = machine_gpus(m);
	char label[32], text[160];

	for (size_t i = 0; i < n && i < GPUS_MAX; i++) {
		struct machine_gpu g;

		machine_gpu(m, i, &g);
		snprintf(label, sizeof(label), "GPU %zu", i);
		snprintf(text, sizeof(text), "%s, compute capability %d.%d", g.name ? g.name : "", g.cc / 10, g.cc % 10);
		put_pair(list, label, g.name && g.cc ? text : g.name ? g.name : "name not known");
	}
	if (!n)
		put_pair(list, "GPUs", "none is known");
}

static void page_put_fact(json_t *list, const char *label, const struct casefile *f, enum fact_id id)
{
	if (fact_known(f, id))
		put_setting(list, label, "%s", fact_text(f, id));
}

static void put_environments(json_t *list, const struct machine *m)
{
	for (size_t i = 0; i < m->envs.n_envs && i < ENVS_MAX; i++)
		if (m->envs.env[i].prefix)
			put_pair(list, i ? "another Python" : "Python", m->envs.env[i].prefix);
}

/* Names and values, as `cuwhy doctor --json` has them. */
static json_t *facts_list(const struct casefile *f)
{
	json_t *all = known_facts_json(f), *list = json_array(), *v;
	const char *name;

	json_object_foreach(all, name, v) {
		char *text = json_is_string(v) ? NULL : json_dumps(v, JSON_ENCODE_ANY);

		put_pair(list, name, text ? text : json_string_value(v));
		free(text);
	}
	json_decref(all);
	return list;
}

void page_add_machine(struct page *p, const struct doctor *d, const struct machine *m)
{
	json_t *list = json_array(), *detail;

	put_gpus(list, m);
	page_put_fact(list, "driver", &d->verdict->c, FACT_driver_release);
	page_put_fact(list, "PyTorch", &d->verdict->c, FACT_torch_version);
	put_environments(list, m);
	put_pair(list, "made by", m->made_by ? m->made_by : "not known");
	detail = JSON_OF(J_VALUE("environment", list), J_VALUE("facts", facts_list(&d->verdict->c)));
	page_add_row(p, JSON_OF(J_NULL("pid"), J_NULL("rank"), J_VALUE("detail", detail)));
	JSON_ADD(p->data, J_TEXT("title", doctor_title(d)));
}

void page_set_checks(struct page *p, const struct doctor *d)
{
	JSON_ADD(json_object_get(p->data, "verdict"), J_VALUE("checks", checks_json(d->check, d->n_checks)));
}

static size_t cut_list(json_t *list, size_t most)
{
	size_t cut = 0;

	for (; json_array_size(list) > most; cut++)
		json_array_remove(list, json_array_size(list) - 1);
	return cut;
}

/* The ledgers of other processes are in their details. */
static void slim_verdicts(json_t *list)
{
	json_t *v;
	size_t i;

	json_array_foreach(list, i, v) {
		json_object_del(json_object_get(v, "memory"), "ledger");
		json_object_del(v, "notes");
	}
}

/* The process that the verdict is about comes first. */
static void move_first(struct page *p, const struct verdict *v)
{
	size_t at = 0;
	json_t *row = find_row(p, verdict_pid(v), verdict_cause(v), &at);

	if (!row)
		return;
	json_incref(row);
	json_array_remove(p->processes, at);
	json_array_insert_new(p->processes, 0, row);
}

void page_set_verdict(struct page *p, const struct verdict *v, json_t *stored)
{
	json_t *j = stored ? json_deep_copy(stored) : verdict_json(v);
	static const char *const lists[] = {"others", "notes"};

	for (int i = 0; i < 2; i++) {
		size_t cut = cut_list(json_object_get(j, lists[i]), OTHERS_MAX);

		slim_verdicts(json_object_get(j, lists[i]));
		if (cut)
			page_tell(p, "not shown: %zu more %s%s", cut, i ? "handled failure" : "failed process",
				  cut == 1 ? ""
				  : i	   ? "s"
					   : "es");
	}
	json_object_del(json_object_get(j, "memory"), "ledger");
	cut_list(json_object_get(j, "checks"), CHECKS_MAX);
	if (v)
		move_first(p, v);
	JSON_ADD(p->data, J_BOOL("stored", stored != NULL), J_VALUE("verdict", j));
}

void page_set_job(struct page *p, json_t *job)
{
	JSON_ADD(p->data, J_VALUE("job", job));
}

/* By lines: a long text would be cut. */
void page_set_issue(struct page *p, const char *markdown)
{
	json_t *lines = json_array();

	while (*markdown) {
		size_t n = strcspn(markdown, "\n");

		json_array_append_new(lines, json_stringn(markdown, n));
		markdown += n + (markdown[n] == '\n');
	}
	JSON_ADD(p->data, J_VALUE("issue", lines));
}

static bool is_long(const json_t *s, size_t most)
{
	return json_is_string(s) && json_string_length(s) > most + 4;
}

static json_t *shortened(const json_t *s, size_t n)
{
	char text[STRING_MAX + 8];

	memcpy(text, json_string_value(s), n);
	while (n && (text[n - 1] & 0xc0) == 0x80)
		n--;	/* never split a character */
	if (n && (text[n - 1] & 0x80))
		n--;
	memcpy(text + n, "\xe2\x80\xa6", 4);
	return json_string(text);
}

static void cut_strings(json_t *j, size_t most, int depth)
{
	const char *key;
	json_t *v;
	size_t i;

	if (depth > 64)
		return;
	if (json_is_object(j)) {
		json_object_foreach(j, key, v) {
			if (is_long(v, most))
				JSON_ADD(j, J_VALUE(key, shortened(v, most)));
			else
				cut_strings(v, most, depth + 1);
		}
	} else if (json_is_array(j)) {
		json_array_foreach(j, i, v) {
			if (is_long(v, most))
				json_array_set_new(j, i, shortened(v, most));
			else
				cut_strings(v, most, depth + 1);
		}
	}
}

static int count_bytes(const char *bytes, size_t n, void *sum)
{
	(void)bytes;
	*(size_t *)sum += n;
	return 0;
}

static size_t json_size(const json_t *j)
{
	size_t sum = 0;

	json_dump_callback(j, count_bytes, &sum, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
	return sum;
}

/* Removes a part from a process's details, also from each of its devices. Returns the bytes saved. */
static size_t drop_part(json_t *row, const char *part)
{
	json_t *detail = json_object_get(row, "detail"), *d, *at = json_object_get(detail, part);
	size_t saved = at ? json_size(at) : 0, i;

	if (at)
		json_object_del(detail, part);
	json_array_foreach(json_object_get(detail, "devices"), i, d) {
		at = json_object_get(d, part);
		saved += at ? json_size(at) : 0;
		if (at)
			json_object_del(d, part);
	}
	return saved;
}

static void cut_parts(struct page *p, size_t size)
{
	static const struct {
		const char *part, *words;
	} parts[] = {
		{"blocks", "the lives of blocks"}, {"flame", "flame graphs"},
		{"what_if", "what-ifs"},	  {"map", "segment maps"}, {"launches", "last launches"},
		{"timeline", "memory over time"}, {"ledger", "ledgers"},   {"lanes", "threads that faulted"},
		{"sources", "lines of code"},
	};

	for (size_t k = 0; k < sizeof(parts) / sizeof(parts[0]) && size > PAGE_BYTES_MAX; k++) {
		size_t cut = 0;

		for (size_t i = json_array_size(p->processes); i > 0 && size > PAGE_BYTES_MAX; i--) {
			size_t saved = drop_part(json_array_get(p->processes, i - 1), parts[k].part);

			size -= saved < size ? saved : size;
			cut += saved > 0;
		}
		if (cut)
			page_tell(p, "left out, because the page would be too large: %s of %zu process%s",
				  parts[k].words, cut, cut == 1 ? "" : "es");
	}
}

/* Drops whole details, starting with the last process; the first one's fit. */
static void cut_details(struct page *p)
{
	size_t cut = 0;

	for (size_t i = json_array_size(p->processes); i > 1 && json_size(p->data) > PAGE_BYTES_MAX; i--)
		cut += json_object_del(json_array_get(p->processes, i - 1), "detail") == 0;
	if (cut)
		page_tell(p, "left out, because the page would be too large: details of %zu process%s", cut,
			  cut == 1 ? "" : "es");
}

static void cut_processes(struct page *p)
{
	size_t n = json_array_size(p->processes);

	while (json_array_size(p->processes) > 1 && json_size(p->data) > PAGE_BYTES_MAX)
		for (int i = 0; i < 16 && json_array_size(p->processes) > 1; i++)
			json_array_remove(p->processes, json_array_size(p->processes) - 1);
	if (json_array_size(p->processes) < n)
		page_tell(p, "not listed, because the page would be too large: %zu more process%s",
			  n - json_array_size(p->processes), n - json_array_size(p->processes) == 1 ? "" : "es");
}

/* A verdict is small, unless it was made large on purpose. */
static void cut_verdict(struct page *p)
{
	json_t *v = json_object_get(p->data, "verdict");

	if (json_size(p->data) <= PAGE_BYTES_MAX)
		return;
	cut_strings(p->data, STRING_SHORT, 0);
	page_tell(p, "long texts are cut: the page would be too large");
	if (json_size(p->data) > PAGE_BYTES_MAX) {
		json_object_del(v, "others");
		json_object_del(v, "notes");
		page_tell(p, "the verdicts of other processes are left out: the page would be too large");
	}
	if (json_size(p->data) > PAGE_BYTES_MAX)
		json_object_del(p->data, "verdict");
}

/* Drops the least important first, starting with the last process: the one that failed is first. */
static void bound_page(struct page *p)
{
	if (p->left_out)
		page_tell(p, "not listed: %zu more process%s", p->left_out, p->left_out == 1 ? "" : "es");
	p->left_out = 0;
	cut_strings(p->data, STRING_MAX, 0);
	cut_parts(p, json_size(p->data));
	cut_details(p);
	cut_processes(p);
	cut_verdict(p);
}

extern const char cuwhy_page_start[];
extern const uint64_t cuwhy_page_size;

void page_escape(struct buf *out, const char *json, size_t len)
{
	size_t from = 0;

	for (size_t i = 0; i < len; i++) {
		const char *as = json[i] == '<' ? "\\u003c" : json[i] == '>' ? "\\u003e" : json[i] == '&' ? "\\u0026" : NULL;

		if (!as)
			continue;
		buf_add(out, json + from, i - from);
		buf_adds(out, as);
		from = i + 1;
	}
	buf_add(out, json + from, len - from);
}

/* Text between tags. */
static void escape_text(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '<')
			buf_adds(out, "&lt;");
		else if (*text == '>')
			buf_adds(out, "&gt;");
		else if (*text == '&')
			buf_adds(out, "&amp;");
		else
			buf_add(out, text, 1);
	}
}

static int escape_json(const char *bytes, size_t n, void *out)
{
	page_escape(out, bytes, n);
	return 0;
}

json_t *page_data(struct page *p)
{
	JSON_ADD(p->data, J_VALUE("causes", page_causes(p->data)));
	bound_page(p);
	private_hide_in(p->data, true);
	return p->data;
}

/* Copies from `at` up to the mark, and skips the mark. */
static const char *copy_until(struct buf *out, const char *at, const char *mark)
{
	const char *end = cuwhy_page_start + cuwhy_page_size, *found = memmem(at, (size_t)(end - at), mark, strlen(mark));

	if (!found)
		return NULL;
	buf_add(out, at, (size_t)(found - at));
	return found + strlen(mark);
}

bool page_has_charts(void)
{
	return !memmem(cuwhy_page_start, cuwhy_page_size, NO_CHARTS_MARK, strlen(NO_CHARTS_MARK));
}

int page_write(struct page *p, const char *text, struct buf *out, struct err *e)
{
	const char *at = cuwhy_page_start;

	at = copy_until(out, at, TEXT_MARK);
	if (at) {
		char *shown = private_hide_homes(private_shown(text), NULL);

		escape_text(out, shown);
		free(shown);
		at = copy_until(out, at, DATA_MARK);
	}
	if (!at)
		return err_set(e, -EINVAL, "the report page of this build is damaged");
	json_dump_callback(page_data(p), escape_json, out, JSON_COMPACT | JSON_ENSURE_ASCII);
	at = copy_until(out, at, ISLANDS_MARK);
	if (!at)
		return err_set(e, -EINVAL, "the report page of this build is damaged");
	buf_add(out, p->islands.data, p->islands.len);	/* base64: nothing in it is markup */
	buf_add(out, at, (size_t)(cuwhy_page_start + cuwhy_page_size - at));
	return out->full ? err_set(e, -EFBIG, "the page would be too large") : 0;
}
