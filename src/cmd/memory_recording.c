/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy memory RECORDING`: the ledger of every device of every process, and the host's memory beside it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "base/err.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/memory.h"
#include "cmd/memory_host.h"
#include "cmd/memory_time.h"
#include "input/recording/recording.h"
#include "judge/verdict.h"
#include "input/recording/over_time.h"
#include "base/json.h"
#include "input/recording/trace_memory.h"
#include "base/banned.h"

/* --- one device ------------------------------------------------------------------------------- */

static bool device_used(struct trace *t, int device)
{
	const struct cw_memory_now *m = trace_memory(t, device);
	const struct cw_allocation *const *a;
	size_t n = trace_allocations(t, &a);

	if (m && (m->peak_allocated || m->driver_peak || m->n_oom))
		return true;
	for (size_t i = 0; i < n; i++)
		if (a[i]->device == device && a[i]->kind != CW_MEM_RESERVED)
			return true;
	return ledger_oom(t, device) != NULL;
}

static void build_at(struct ledger *l, struct trace *t, int device, const struct moment_at *m, struct pool *pool)
{
	ledger_build_at(l, t, device, m->ticks, m->traced ? &m->playback : NULL, pool);
	ledger_own(l, trace_header(t)->cwd, pool);
}

/* False when the moment that was asked for never was. */
static bool build(struct ledger *l, struct trace *t, int device, const struct memory_asked *a, const struct gpu_usage *u,
		  struct pool *pool)
{
	const struct cw_header *h = trace_header(t);
	const struct cw_failure *f = ledger_oom(t, device);
	enum ledger_at at = a->at_given ? a->at : f ? LEDGER_OOM : trace_memory(t, device)->peak_allocated ? LEDGER_PEAK : LEDGER_END;
	struct ledger_seen seen;

	if (at == LEDGER_OOM && !f)
		return false;
	ledger_seen_from(&seen, at == LEDGER_OOM ? u : NULL, &h->device[device], h->pid, pool);
	ledger_build(l, t, device, at, at == LEDGER_OOM ? f : NULL, &seen, pool);
	ledger_own(l, h->cwd, pool);
	return true;
}

static const char *moment_words(const struct ledger *l, const struct trace *t, struct pool *pool)
{
	double seconds = l->ticks == UINT64_MAX ? 0 : (double)trace_ns(t, l->ticks) / 1e9;

	switch (l->at) {
	case LEDGER_OOM: return pool_printf(pool, "when memory ran out, %.1f s after the start", seconds);
	case LEDGER_TIME: return pool_printf(pool, "%.3f s after the start", seconds);
	case LEDGER_PEAK: return pool_printf(pool, "when tensors had most, %.1f s after the start", seconds);
	default: return "at the end";
	}
}

static void print_device(struct trace *t, const struct ledger *l, const struct memory_asked *a, struct pool *pool)
{
	const struct cw_sample *s;
	size_t n;

	printf("device %d%s%s, process %u, %s\n", l->device, l->device_name[0] ? ", " : "", l->device_name,
	       trace_header(t)->pid, moment_words(l, t, pool));
	ledger_print(stdout, l, a->by, (size_t)a->top, a->width);
	if (l->at == LEDGER_TIME)
		moment_at_tell(l, t);
	else if (!l->lines_complete)
		printf("  some tensors have no line: they were freed since, and are in no table any more\n");
	ledger_print_segments(stdout, l, 8);
	trace_timeline(t, l->device, &s, &n);
	if (n > 1) {
		putchar('\n');
		timeline_print(stdout, s, n, (struct seconds_span){ (double)trace_ns(t, s[0].ticks) / 1e9,
								     (double)trace_ns(t, s[n - 1].ticks) / 1e9 },
			       l->total_known ? l->total : 0, a->width);
	}
	putchar('\n');
}

static json_t *json_timeline(struct trace *t, int device)
{
	const struct cw_sample *s;
	json_t *list = json_array();
	size_t n;

	trace_timeline(t, device, &s, &n);
	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, json_pack("[f,I,I,I]", (double)trace_ns(t, s[i].ticks) / 1e9,
						      (json_int_t)s[i].allocated, (json_int_t)s[i].reserved,
						      (json_int_t)s[i].driver));
	return list;
}

/* --- one process ------------------------------------------------------------------------------ */

struct shown {
	size_t devices;
	bool ran_out;		/* a program failed for lack of memory */
	json_t *list, *hosts;
};

static void show_device(struct shown *to, struct trace *t, const struct ledger *l, const struct memory_asked *a,
			struct pool *pool)
{
	struct over_time kinds;
	json_t *o;

	to->devices++;
	if (!a->json) {
		print_device(t, l, a, pool);
		return;
	}
	o = ledger_json(l);
	if (l->at == LEDGER_TIME)
		json_object_set_new(o, "seconds", json_real((double)a->time_ns / 1e9));
	json_object_set_new(o, "pid", json_integer(trace_header(t)->pid));
	json_object_set_new(o, "timeline", json_timeline(t, l->device));
	over_time_build(&kinds, t, l->device, l, pool);
	json_object_set_new(o, "kinds_over_time", over_time_json(&kinds, t));
	json_array_append_new(to->list, o);
}

static void show_host(struct shown *to, const struct memory_host *h, bool json)
{
	if (!memory_host_used(h))
		return;
	if (json)
		json_array_append_new(to->hosts, memory_host_json(h));
	else
		memory_host_print(stdout, h);
}

/* `at` is NULL when no time was asked for. */
static void show_devices(struct shown *to, struct trace *t, const struct recorded_process *p, const struct memory_asked *a,
			 const struct moment_at *at)
{
	const struct cw_header *head = trace_header(t);
	struct memory_host host = {head->pid, head->pinned_bytes, head->pinned_peak_bytes, p->end.ram};
	struct pool pool = {0};
	struct ledger l;

	for (int d = 0; d < CW_MAX_DEVICES; d++) {
		if (!device_used(t, d))
			continue;
		if (at)
			build_at(&l, t, d, at, &pool);
		else if (!build(&l, t, d, a, p->end.usage, &pool))
			continue;
		show_device(to, t, &l, a, &pool);
		host.pinned = l.at == LEDGER_PEAK || l.sampled ? host.pinned : l.pinned;
	}
	show_host(to, &host, a->json);
	pool_release(&pool);
}

static int show_process_at(struct shown *to, struct trace *t, const struct recorded_process *p, const struct memory_asked *a,
			   struct err *e)
{
	struct moment_at at;
	int rc = moment_at_open(&at, t, p, a->time_ns, e);

	if (rc == 0)
		show_devices(to, t, p, a, &at);
	moment_at_close(&at);
	return rc;
}

static int show_process(struct shown *to, struct recorded_process *p, const struct memory_asked *a, struct err *e)
{
	struct trace *t = trace_open(p->part, e);
	struct verdict *v;
	int rc = 0;

	if (!t)
		return -1;
	if (!p->end_known)
		end_from_header(&p->end, trace_header(t));
	v = verdict_of_process(t, &p->end);
	if (str_starts(verdict_cause(v), "oom-")) {
		to->ran_out = true;
		if (!a->json)
			printf("cuwhy: %s (%s)\n\n", verdict_title(v), verdict_cause(v));
	}
	verdict_free(v);
	if (a->at == LEDGER_TIME)
		rc = show_process_at(to, t, p, a, e);
	else
		show_devices(to, t, p, a, NULL);
	trace_free(t);
	return rc;
}

/* --- the recording ---------------------------------------------------------------------------- */

static int finish(struct shown *s, const char *path, const struct memory_asked *a)
{
	if (a->json) {
		json_t *o = json_pack("{s:i,s:o,s:o,s:o}", "schema", 1, "recording", json_text(path), "devices", s->list,
				      "host", s->hosts);

		json_dumpf(o, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(o);
	} else if (!s->devices && a->at_word) {
		printf("cuwhy: there is no '%s' in '%s': memory did not run out, or was not used\n", a->at_word, path);
	} else if (!s->devices) {
		printf("cuwhy: no memory of a GPU was used in '%s'\n", path);
	}
	if (!a->json) {
		json_decref(s->list);
		json_decref(s->hosts);
	}
	return cmd_finish(s->ran_out ? EXIT_FOUND : EXIT_NOTHING);
}

int memory_of_recording(const char *path, const struct memory_asked *a)
{
	struct shown s = {.list = json_array(), .hosts = json_array()};
	struct recording r = {0};
	struct err e = {0}, first = {0};
	size_t read = 0;

	if (recording_read(&r, path, &e)) {
		json_decref(s.list);
		json_decref(s.hosts);
		recording_release(&r);
		return cmd_fail(stdout, a->json, &e, EXIT_TROUBLE);
	}
	for (size_t i = 0; i < r.n; i++) {
		e = (struct err){0};
		if (!r.process[i].part)
			continue;
		if (show_process(&s, &r.process[i], a, &e) == 0)
			read++;
		else if (!first.code)
			first = e;
	}
	recording_release(&r);
	if (!read && first.code) {
		json_decref(s.list);
		json_decref(s.hosts);
		return cmd_fail(stdout, a->json, &first, EXIT_TROUBLE);
	}
	if (first.code)
		fprintf(stderr, "cuwhy: left out: %s\n", first.msg);
	return finish(&s, path, a);
}
