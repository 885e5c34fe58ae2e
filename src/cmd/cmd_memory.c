/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy memory`: who holds the memory of the GPUs, in a recording or on this machine now.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <jansson.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/str.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "report/json_text.h"
#include "cmd/memory.h"
#include "cmd/memory_machine.h"
#include "cmd/memory_time.h"
#include "cmd/recording.h"
#include "report/report_ledger.h"
#include "trace/trace_memory.h"
#include "base/banned.h"

static struct {
	bool json, help;
	const char *by, *at, *top;
} given;

static const struct opt_usage usage = {
	"memory", "[options] [RECORDING | SNAPSHOT]",
	"Tells who held the memory of the GPUs in a recording (a folder, or one .cwr file): by line, by what\n"
	"it is for, by library; and how it grew. Or in a snapshot that torch.cuda.memory._dump_snapshot wrote.\n"
	"Without a file: every GPU of this machine, and who holds it.",
	"The exit status is 0; 1 when the recorded program failed for lack of memory; 2 on failure, and when not\n"
	"every GPU could be asked.\n\n"
	"examples:\n"
	"  cuwhy memory                         who holds the GPUs of this machine now\n"
	"  cuwhy memory --by kind out/          parameters, gradients, activations, ...\n"
	"  cuwhy memory --at peak --top 30 out/ the thirty biggest lines when most was in use\n"
	"  cuwhy memory --at 90s out/           a minute and a half after the start\n",
};

static const struct opt options[] = {
	{"by", 0, "WHAT", "line (default), function, kind or library; of a snapshot line, function, stream or pool", NULL, &given.by},
	{"at", 0, "WHEN", "oom (default, if memory ran out), peak (default otherwise), end, or a time like 12.5s", NULL, &given.at},
	{"top", 'n', "N", "show N of them (15)", NULL, &given.top},
	{"json", 0, NULL, "print one JSON object", &given.json, NULL},
	{"help", 'h', NULL, "print this", &given.help, NULL},
	{0},
};

struct asked {
	enum ledger_by by;
	bool at_given;
	enum ledger_at at;
	uint64_t time_ns;	/* LEDGER_TIME: since the start of a process */
	uint64_t top;
	int width;
};

/* The place of a word in a list; -1 when it is not there. */
static int word_of(const char *word, const char *const *list)
{
	for (int i = 0; list[i]; i++)
		if (strcmp(word, list[i]) == 0)
			return i;
	return -1;
}

static bool one_of(const char *word, const char *const *list)
{
	return !word || word_of(word, list) >= 0;
}

static int snapshot(const char *path)
{
	static const char *const bys[] = {"line", "function", "stream", "pool", NULL}, *const ats[] = {"end", "peak", "oom", NULL};
	struct memory_options o = {.json = given.json, .by = given.by, .at = given.at, .width = term_width(STDOUT_FILENO)};
	struct err e = {0};

	if (!one_of(given.by, bys))
		err_set(&e, -EINVAL, "--by takes line, function, stream or pool of a snapshot, not '%s'", given.by);
	else if (!one_of(given.at, ats))
		err_set(&e, -EINVAL, "--at takes oom, peak or end, not '%s'", given.at);
	else if (given.top)
		err_set(&e, -EINVAL, "--top is for recordings");
	return e.code ? cmd_fail(stdout, given.json, &e, EXIT_TROUBLE) : memory_of_snapshot(path, &o);
}

static int read_options(struct asked *a, struct err *e)
{
	static const char *const bys[] = {"line", "function", "kind", "library", NULL};
	static const char *const ats[] = {"end", "peak", "oom", NULL};
	int by = word_of(given.by ? given.by : "line", bys), at = word_of(given.at ? given.at : "peak", ats);

	if (by < 0)
		return err_set(e, -EINVAL, "--by takes line, function, kind or library, not '%s'", given.by);
	if (at < 0 && time_parse(given.at, &a->time_ns))
		at = LEDGER_TIME;
	if (at < 0) {
		err_set(e, -EINVAL, "--at takes oom, peak, end or a time, not '%s'", given.at);
		return err_hint(e, "a time since the start: for example 12.5s, 90s or 5m");
	}
	a->top = 15;
	if (given.top && !str_u64(given.top, &a->top))
		return err_set(e, -EINVAL, "--top takes a number, not '%s'", given.top);
	a->by = (enum ledger_by)by;
	a->at = (enum ledger_at)at;
	a->at_given = given.at != NULL;
	a->width = term_width(STDOUT_FILENO);
	return 0;
}

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
	ledger_build_at(l, t, device, m->ticks, m->traced ? &m->history : NULL, pool);
	ledger_own(l, trace_header(t)->cwd, pool);
}

/* False when the moment that was asked for never was. */
static bool build(struct ledger *l, struct trace *t, int device, const struct asked *a, const struct gpu_usage *u,
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

static void print_device(struct trace *t, const struct ledger *l, const struct asked *a, struct pool *pool)
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
	if (l->pinned || l->pinned_peak)
		printf("\n  pinned host memory: %.1f MiB, at most %.1f MiB\n", (double)l->pinned / 1048576,
		       (double)l->pinned_peak / 1048576);
	trace_timeline(t, l->device, &s, &n);
	if (n > 1) {
		putchar('\n');
		timeline_print(stdout, s, n, (double)(trace_ns(t, s[n - 1].ticks) - trace_ns(t, s[0].ticks)) / 1e9,
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
	json_t *list;
};

static void show_device(struct shown *to, struct trace *t, const struct ledger *l, const struct asked *a, struct pool *pool)
{
	json_t *o;

	to->devices++;
	if (!given.json) {
		print_device(t, l, a, pool);
		return;
	}
	o = ledger_json(l);
	if (l->at == LEDGER_TIME)
		json_object_set_new(o, "seconds", json_real((double)a->time_ns / 1e9));
	json_object_set_new(o, "pid", json_integer(trace_header(t)->pid));
	json_object_set_new(o, "timeline", json_timeline(t, l->device));
	json_array_append_new(to->list, o);
}

/* `at` is NULL when no time was asked for. */
static void show_devices(struct shown *to, struct trace *t, const struct recorded_process *p, const struct asked *a,
			 const struct moment_at *at)
{
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
	}
	pool_release(&pool);
}

static int show_process_at(struct shown *to, struct trace *t, const struct recorded_process *p, const struct asked *a,
			   struct err *e)
{
	struct moment_at at;
	int rc = moment_at_open(&at, t, p, a->time_ns, e);

	if (rc == 0)
		show_devices(to, t, p, a, &at);
	moment_at_close(&at);
	return rc;
}

static int show_process(struct shown *to, struct recorded_process *p, const struct asked *a, struct err *e)
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
		if (!given.json)
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

static int finish(struct shown *s, const char *path)
{
	if (given.json) {
		json_t *o = json_pack("{s:i,s:o,s:o}", "schema", 1, "recording", json_text(path), "devices", s->list);

		json_dumpf(o, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(o);
	} else if (!s->devices && given.at) {
		printf("cuwhy: there is no '%s' in '%s': memory did not run out, or was not used\n", given.at, path);
	} else if (!s->devices) {
		printf("cuwhy: no memory of a GPU was used in '%s'\n", path);
	}
	return cmd_finish(s->ran_out ? EXIT_FOUND : EXIT_NOTHING);
}

static int memory_of_recording(const char *path, const struct asked *a)
{
	struct shown s = {.list = json_array()};
	struct recording r = {0};
	struct err e = {0}, first = {0};
	size_t read = 0;

	if (recording_read(&r, path, &e)) {
		json_decref(s.list);
		recording_release(&r);
		return cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
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
		return cmd_fail(stdout, given.json, &first, EXIT_TROUBLE);
	}
	if (first.code)
		fprintf(stderr, "cuwhy: left out: %s\n", first.msg);
	return finish(&s, path);
}

int cmd_memory(int argc, char **argv)
{
	struct err e = {0};
	struct asked a = {0};
	int first = opt_parse(&usage, options, argc, argv, &e);

	if (first >= 0 && given.help) {
		opt_help(stdout, &usage, options);
		return cmd_finish(EXIT_NOTHING);
	}
	if (first >= 0 && argc - first > 1)
		first = err_set(&e, -EINVAL, "memory takes one recording, not %d", argc - first);
	if (first >= 0 && first < argc && memory_is_snapshot(argv[first]))
		return snapshot(argv[first]);
	if (first >= 0 && read_options(&a, &e))
		first = -EINVAL;
	if (first >= 0 && first == argc && (given.by || given.at || given.top))
		first = err_set(&e, -EINVAL, "--by, --at and --top need a recording");
	if (first >= 0 && first < argc && !fs_exists(argv[first]))
		first = err_set(&e, -ENOENT, "cannot open '%s': %s", argv[first], strerror(ENOENT));
	if (first < 0)
		return cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	return first == argc ? memory_of_machine(given.json) : memory_of_recording(argv[first], &a);
}
