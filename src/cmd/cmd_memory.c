/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy memory`: who holds the memory of the GPUs, in a recording or on this machine now.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/opt.h"
#include "base/progress.h"
#include "base/str.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "cmd/replays.h"
#include "input/input.h"
#include "input/recording/playback.h"
#include "input/recording/recording.h"
#include "input/recording/trace_memory.h"
#include "input/recording/usage_json.h"
#include "input/snapshot/snapshot.h"
#include "judge/verdict.h"
#include "probe/probe.h"
#include "write/memory.h"

#define SECOND_NS	1000000000u
#define TOP_SHOWN	15

static struct {
	bool json, help;
	const char *by, *at, *top, *what_if;
} given;

static const struct opt_usage usage = {
	"memory", "[options] [RECORDING | SNAPSHOT]",
	"Tells who held the memory of the GPUs in a recording (a folder, or one .cwr file): by line, by what\n"
	"it is for, by library; and how it grew. Or in a snapshot that torch.cuda.memory._dump_snapshot wrote.\n"
	"Without a file: every GPU of this machine, and who holds it.",
	.notes = "WHAT is one or more of these, separated by commas: gpu=NAME, memory=SIZE, and options of\n"
		 "PYTORCH_CUDA_ALLOC_CONF: expandable_segments, max_split_size_mb=256, ... What is known: the newest\n"
		 "allocations, or with 'cuwhy run --memory-trace' all of them.\n",
	.exits = "The exit status is 0; 1 when the recorded program failed for lack of memory, or with --what-if does not\n"
		 "fit; 2 on failure, and when not every GPU could be asked.\n",
	.examples = "  cuwhy memory                         who holds the GPUs of this machine now\n"
		    "  cuwhy memory --by kind out/          parameters, gradients, activations, ...\n"
		    "  cuwhy memory --at peak --top 30 out/ the thirty biggest lines when most was in use\n"
		    "  cuwhy memory --at 90s out/           a minute and a half after the start\n"
		    "  cuwhy memory --what-if expandable_segments,memory=24GiB out/\n"
		    "                                       would it have fit with that setting on such a card?\n",
};

static const struct opt options[] = {
	{"by", 0, "WHAT", "line (default), function, kind or library; of a snapshot line, function, stream or pool",
	 NULL, &given.by},
	{"at", 0, "WHEN", "oom (default, if memory ran out), peak (default otherwise), end, or a time like 12.5s", NULL,
	 &given.at},
	{"top", 'n', "N", "show N of them (15)", NULL, &given.top},
	{"what-if", 0, "WHAT ...", "play it back on another card or with other settings; may be repeated", NULL,
	 &given.what_if},
	{"json", 0, NULL, "print one JSON object", &given.json, NULL},
	{"help", 'h', NULL, "print this", &given.help, NULL},
	{0},
};

static const struct opt_words words[] = {
	{"by", "line function kind library stream pool"},
	{"at", "oom peak end"},
	{0},
};

const struct opt_table memory_table = {&usage, options, words, OPERAND_FILE};

/* The place of a word in a list; -1 when it is not there. */
static int word_of(const char *word, const char *const *list)
{
	for (int i = 0; list[i]; i++)
		if (strcmp(word, list[i]) == 0)
			return i;
	return -1;
}

/* --- this machine -------------------------------------------------------------------------------- */

static int no_gpu_answer(const struct gpu_usage *u, struct err *e)
{
	switch (u->trouble) {
	case USAGE_COMPLETE:
		err_set(e, -ENODEV, "the NVIDIA driver says that there is no GPU");
		return err_hint(e, "in a container, was it given one (--gpus)?");
	case USAGE_NO_LIBRARY:
		err_set(e, -ENODEV, "there is no NVIDIA driver on this machine: %s", u->why);
		return err_hint(
			e, "in a container, its libraries come from the host (--gpus, the NVIDIA container toolkit)");
	case USAGE_REFUSED:
		err_set(e, -ENODEV, "the NVIDIA driver does not answer: %s", u->why);
		return err_hint(e, "does nvidia-smi work?");
	case USAGE_NO_PROBE:
		err_set(e, -ENOENT, "%s", u->why);
		return err_hint(e, "it belongs beside the executable or into '../lib/cuwhy' from there");
	default:
		return err_set(e, -EIO, "%s", u->why);
	}
}

static int memory_of_machine(void)
{
	struct gpu_usage *u;
	struct err e = {0};
	int status;

	progress_begin("asking the NVIDIA driver");
	u = probe_gpus();
	progress_end();
	status = u->trouble == USAGE_COMPLETE ? EXIT_NOTHING : EXIT_TROUBLE;
	if (u->n == 0) {
		no_gpu_answer(u, &e);
		status = cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	} else if (given.json) {
		json_print(stdout, usage_to_json(u));
	} else {
		usage_print(stdout, u, isatty(STDOUT_FILENO) ? term_width(STDOUT_FILENO) : 0);
		if (u->why[0])
			fprintf(stderr, "cuwhy: this is not all: %s\n", u->why);
	}
	usage_free(u);
	return cmd_finish(status);
}

/* --- a snapshot ---------------------------------------------------------------------------------- */

static bool one_of(const char *word, const char *const *list)
{
	return !word || word_of(word, list) >= 0;
}

static int check_snapshot_options(struct err *e)
{
	static const char *const bys[] = {"line", "function", "stream", "pool", NULL}, *const ats[] = {"end", "peak",
												       "oom", NULL};

	if (!one_of(given.by, bys))
		return err_set(e, -EINVAL, "--by takes line, function, stream or pool of a snapshot, not '%s'", given.by);
	if (!one_of(given.at, ats))
		return err_set(e, -EINVAL, "--at takes oom, peak or end, not '%s'", given.at);
	return given.top ? err_set(e, -EINVAL, "--top is for recordings") : 0;
}

static int memory_of_snapshot(const char *path)
{
	struct snapshot *s = NULL;
	struct snap_views *v;
	struct err e = {0};

	if (check_snapshot_options(&e) == 0) {
		progress_begin("reading '%s'", path);
		s = snap_open(path, &e);
	}
	if (!s)
		return cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	progress_begin("playing back '%s'", path);
	v = snap_views_new(s, given.by, given.at);
	progress_end();
	if (given.json)
		json_print(stdout, snap_views_json(v));
	else if (!snap_views_print(stdout, v, term_width(STDOUT_FILENO)))
		printf("cuwhy: nothing is allocated in '%s'\n", path);
	snap_views_free(v);
	snap_free(s);
	return cmd_finish(EXIT_NOTHING);
}

/* --- a moment of a recorded process, by the clock ------------------------------------------------- */

struct moment_at {
	uint64_t ticks;
	double seconds;			/* since the start */
	bool traced;			/* there is a memory trace, and `playback` is at it */
	struct playback playback;
	struct buf bytes;		/* of the trace */
};

static void moment_play_back(struct moment_at *m, struct trace *t, const char *part)
{
	struct err e = {0};
	int rc = memory_trace_read(&m->bytes, t, part, &e);

	if (rc == 0)
		rc = playback_begin(&m->playback, t, m->bytes.data, m->bytes.len, &e);
	if (rc < 0)
		fprintf(stderr, "cuwhy: done without the memory trace: %s\n", e.msg);
	m->traced = rc == 0;
	if (m->traced)
		playback_until(&m->playback, m->ticks);
}

static uint64_t later_of(uint64_t ns, uint64_t mono_ns, uint64_t start)
{
	return mono_ns > start && mono_ns - start > ns ? mono_ns - start : ns;
}

/* When it was seen last: by `cuwhy run`, by itself, or in one of its samples. */
static uint64_t last_seen(struct trace *t, const struct recorded_process *p)
{
	const struct cw_header *h = trace_header(t);
	uint64_t ns = trace_ns(t, h->clock1.ticks);
	const struct cw_sample *s;
	size_t n;

	ns = later_of(ns, h->exit_mono_ns, h->clock0.mono_ns);
	ns = later_of(ns, p->end.ended_ns, h->clock0.mono_ns);
	for (int d = 0; d < CW_MAX_DEVICES; d++) {
		trace_timeline(t, d, &s, &n);
		if (n && trace_ns(t, s[n - 1].ticks) > ns)
			ns = trace_ns(t, s[n - 1].ticks);
	}
	return ns;
}

/* -ERANGE with `e` filled when the process had ended by then. A trace that cannot be read is told of, and done without. */
static int moment_open(struct moment_at *m, struct trace *t, const struct recorded_process *p, uint64_t ns, struct err *e)
{
	uint64_t end = last_seen(t, p);

	*m = (struct moment_at){.ticks = trace_ticks(t, ns), .seconds = (double)ns / SECOND_NS};
	if (ns > end) {
		err_set(e, -ERANGE, "nothing is known of process %" PRIu32 " at %.3g s: it ended %.3g s after its start",
			trace_header(t)->pid, m->seconds, (double)end / SECOND_NS);
		return err_hint(e, "--at end tells what it had last");
	}
	moment_play_back(m, t, p->part);
	return 0;
}

static void moment_close(struct moment_at *m)
{
	if (m->traced)
		playback_release(&m->playback);
	buf_release(&m->bytes);
}

/* --- a recording: the ledger of every device of every process, and the host's memory beside it ---- */

struct memory_asked {
	struct memory_table table;
	enum ledger_at at;	/* if it was given */
	uint64_t time_ns;	/* LEDGER_TIME: since the start of a process */
};

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

static void ledger_of_time(struct ledger *l, struct trace *t, int device, const struct moment_at *m, struct pool *pool)
{
	ledger_build_at(l, t, device, m->ticks, m->traced ? &m->playback : NULL, pool);
	ledger_own(l, trace_header(t)->cwd, pool);
}

/* False when the moment that was asked for never was. */
static bool ledger_of_moment(struct ledger *l, struct trace *t, int device, const struct memory_asked *a,
			     const struct gpu_usage *u, struct pool *pool)
{
	const struct cw_header *h = trace_header(t);
	const struct cw_failure *f = ledger_oom(t, device);
	enum ledger_at at = given.at				      ? a->at
			    : f					      ? LEDGER_OOM
			    : trace_memory(t, device)->peak_allocated ? LEDGER_PEAK
								      : LEDGER_END;
	struct ledger_seen seen;

	if (at == LEDGER_OOM && !f)
		return false;
	ledger_seen_from(&seen, at == LEDGER_OOM ? u : NULL, &h->device[device], h->pid, pool);
	ledger_build(l, t, device, at, at == LEDGER_OOM ? f : NULL, &seen, pool);
	ledger_own(l, h->cwd, pool);
	return true;
}

struct memory_shown {
	size_t devices;
	bool ran_out;		/* a program failed for lack of memory */
	json_t *list, *hosts;
};

static void show_device(struct memory_shown *to, struct trace *t, const struct ledger *l, const struct memory_asked *a)
{
	to->devices++;
	if (given.json)
		json_array_append_new(to->list, memory_device_json(t, l, a->time_ns));
	else
		memory_device_print(stdout, t, l, &a->table);
}

static void show_host(struct memory_shown *to, const struct memory_host *h)
{
	if (!memory_host_used(h))
		return;
	if (given.json)
		json_array_append_new(to->hosts, memory_host_json(h));
	else
		memory_host_print(stdout, h);
}

/* `at` is NULL when no time was asked for. */
static void show_devices(struct memory_shown *to, struct trace *t, const struct recorded_process *p,
			 const struct memory_asked *a, const struct moment_at *at)
{
	const struct cw_header *head = trace_header(t);
	struct memory_host host = {head->pid, head->pinned_bytes, head->pinned_peak_bytes, p->end.ram};
	struct pool pool = {0};
	struct ledger l;

	for (int d = 0; d < CW_MAX_DEVICES; d++) {
		if (!device_used(t, d))
			continue;
		if (at)
			ledger_of_time(&l, t, d, at, &pool);
		else if (!ledger_of_moment(&l, t, d, a, p->end.usage, &pool))
			continue;
		show_device(to, t, &l, a);
		host.pinned = l.at == LEDGER_PEAK || l.sampled ? host.pinned : l.pinned;
	}
	show_host(to, &host);
	pool_release(&pool);
}

static int show_process_at(struct memory_shown *to, struct trace *t, const struct recorded_process *p,
			   const struct memory_asked *a, struct err *e)
{
	struct moment_at at;
	int rc = moment_open(&at, t, p, a->time_ns, e);

	if (rc == 0)
		show_devices(to, t, p, a, &at);
	moment_close(&at);
	return rc;
}

static int show_process(struct memory_shown *to, struct recorded_process *p, const struct memory_asked *a, struct err *e)
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

static void print_nothing_shown(const char *path)
{
	if (given.at)
		printf("cuwhy: there is no '%s' in '%s': memory did not run out, or was not used\n", given.at, path);
	else
		printf("cuwhy: no memory of a GPU was used in '%s'\n", path);
}

static int memory_of_recording(const char *path, const struct memory_asked *a)
{
	struct memory_shown s = {.list = json_array(), .hosts = json_array()};
	struct recording r = {0};
	struct err e = {0}, first = {0};
	size_t read = 0;
	int status;

	if (recording_read(&r, path, &first))
		goto out;
	for (size_t i = 0; i < r.n; i++) {
		e = (struct err){0};
		if (!r.process[i].part)
			continue;
		if (show_process(&s, &r.process[i], a, &e) == 0)
			read++;
		else if (!first.code)
			first = e;
	}
out:
	recording_release(&r);
	if (!read && first.code) {
		status = cmd_fail(stdout, given.json, &first, EXIT_TROUBLE);
	} else {
		if (first.code)
			fprintf(stderr, "cuwhy: left out: %s\n", first.msg);
		if (given.json)
			json_print(stdout, JSON_OF(J_INT("schema", 1), J_TEXT("recording", path),
						   J_SHARED("devices", s.list), J_SHARED("host", s.hosts)));
		else if (!s.devices)
			print_nothing_shown(path);
		status = cmd_finish(s.ran_out ? EXIT_FOUND : EXIT_NOTHING);
	}
	json_decref(s.list);
	json_decref(s.hosts);
	return status;
}

/* --- what if ------------------------------------------------------------------------------------- */

#define QUESTIONS_MAX 32

/* The recording as it was, then each question. */
static int answer_questions(struct what_if_row *row, size_t *n, const struct replayed *r, struct pool *pool,
			    struct err *e)
{
	struct replay_question q = replay_same(r->replay);
	char *text = pool_strdup(pool, given.what_if), *rest = NULL;

	row[0] = (struct what_if_row){.words = ""};
	what_if_answer(&row[0], r, &q, pool);
	*n = 1;
	for (char *ask = strtok_r(text, ";", &rest); ask; ask = strtok_r(NULL, ";", &rest)) {
		int rc = *n < QUESTIONS_MAX ? what_if_parse(&q, r, ask, e)
					    : err_set(e, -E2BIG, "at most %d what-ifs at once", QUESTIONS_MAX - 1);

		if (rc)
			return rc;
		row[*n] = (struct what_if_row){.words = ask};
		what_if_answer(&row[(*n)++], r, &q, pool);
	}
	return 0;
}

static json_t *questions_json(const struct what_if_row *row, size_t n, const struct replayed *r)
{
	json_t *o = what_if_head_json(r->trace, r->device, r->replay), *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, what_if_row_json(&row[i]));
	JSON_ADD(o, J_VALUE("answers", list));
	return o;
}

static int show_questions(json_t *list, const struct replayed *r, bool *misfit, struct err *e)
{
	struct what_if_row row[QUESTIONS_MAX];
	struct pool pool = {0};
	size_t n = 0;
	int rc = answer_questions(row, &n, r, &pool, e);

	for (size_t i = 1; i < n; i++)
		*misfit |= !row[i].answer.fits;
	if (rc == 0 && given.json) {
		json_array_append_new(list, questions_json(row, n, r));
	} else if (rc == 0) {
		what_if_print_head(stdout, r->trace, r->device, r->replay);
		what_if_print(stdout, row, n, &(struct what_if_style){.first = "WHAT IF"});
	}
	pool_release(&pool);
	return rc;
}

static int memory_what_if(const char *path)
{
	json_t *list = json_array();
	struct replays all;
	struct err e = {0};
	bool misfit = false;
	int rc = replays_open(&all, path, &e);

	for (size_t i = 0; rc == 0 && i < all.n; i++)
		rc = show_questions(list, &all.list[i], &misfit, &e);
	if (rc == 0 && all.left_out.code)
		fprintf(stderr, "cuwhy: left out: %s\n", all.left_out.msg);
	replays_close(&all);
	if (rc == 0 && given.json)
		json_print(stdout, JSON_OF(J_INT("schema", 1), J_TEXT("recording", path), J_SHARED("what_if", list)));
	json_decref(list);
	return rc ? cmd_fail(stdout, given.json, &e, EXIT_TROUBLE) : cmd_finish(misfit ? EXIT_FOUND : EXIT_NOTHING);
}

/* --- the command --------------------------------------------------------------------------------- */

static int read_memory_options(struct memory_asked *a, struct err *e)
{
	static const char *const bys[] = {"line", "function", "kind", "library", NULL};
	static const char *const ats[] = {"end", "peak", "oom", NULL};
	int by = word_of(given.by ? given.by : "line", bys), at = word_of(given.at ? given.at : "peak", ats);
	uint64_t top = TOP_SHOWN;

	if (by < 0)
		return err_set(e, -EINVAL, "--by takes line, function, kind or library, not '%s'", given.by);
	if (at < 0 && str_time(given.at, &a->time_ns))
		at = LEDGER_TIME;
	if (at < 0) {
		err_set(e, -EINVAL, "--at takes oom, peak, end or a time, not '%s'", given.at);
		return err_hint(e, "a time since the start: for example 12.5s, 90s or 5m");
	}
	if (given.top && !str_u64(given.top, &top))
		return err_set(e, -EINVAL, "--top takes a number, not '%s'", given.top);
	a->table =
		(struct memory_table){.by = (enum ledger_by)by, .top = (size_t)top, .width = term_width(STDOUT_FILENO)};
	a->at = (enum ledger_at)at;
	return 0;
}

int cmd_memory(int argc, char **argv)
{
	struct err e = {0};
	struct memory_asked a = {0};
	int first = opt_parse(&usage, options, argc, argv, &e);

	if (given.json)
		progress_disable();
	if (first >= 0 && given.help) {
		opt_help(stdout, &usage, options);
		return cmd_finish(EXIT_NOTHING);
	}
	if (first >= 0 && argc - first > 1)
		first = err_set(&e, -EINVAL, "memory takes one recording, not %d", argc - first);
	if (first >= 0 && first < argc)
		cmd_bound_memory();
	if (first >= 0 && first < argc && input_sniff(argv[first]) == &input_snapshot)
		return memory_of_snapshot(argv[first]);
	if (first >= 0 && read_memory_options(&a, &e))
		first = -EINVAL;
	if (first >= 0 && first == argc && (given.by || given.at || given.top || given.what_if))
		first = err_set(&e, -EINVAL, "--by, --at, --top and --what-if need a recording");
	if (first >= 0 && first < argc && !fs_exists(argv[first]))
		first = err_set(&e, -ENOENT, "cannot open '%s': %s", argv[first], strerror(ENOENT));
	if (first < 0)
		return cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	if (given.what_if)
		return memory_what_if(argv[first]);
	return first == argc ? memory_of_machine() : memory_of_recording(argv[first], &a);
}
