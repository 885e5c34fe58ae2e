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
#include "cmd/memory_compare.h"
#include "cmd/memory_machine.h"
#include "cmd/memory_moment.h"
#include "cmd/memory_pid.h"
#include "cmd/memory_watch.h"
#include "cmd/replays.h"
#include "find/input.h"
#include "read/recording/damage.h"
#include "find/memory/playback.h"
#include "read/recording/recording.h"
#include "read/recording/trace_memory.h"
#include "read/recording/usage_json.h"
#include "find/memory/observe_snapshot.h"
#include "read/snapshot/snapshot.h"
#include "verdict/verdict.h"
#include "probe/probe.h"
#include "show/memory.h"

#define TOP_SHOWN	15
#define WATCH_SHOWN	5	/* lines of each process, in a live view */

static struct {
	bool json, help, watch;
	const char *by, *at, *top, *what_if, *max_growth, *page, *pid;
} given;

static const struct opt_usage usage = {
	"memory", "[options] [RECORDING | SNAPSHOT] [RECORDING | SNAPSHOT]",
	"Shows what held the GPU memory in a recording (a folder, or one .cwr file): by line, by what\n"
	"it is for, by library; and how it grew. Or in a snapshot that torch.cuda.memory._dump_snapshot wrote.\n"
	"With two, or two moments of one (--at peak,end): which lines hold more, and what is new.\n"
	"Without a file: every GPU of this machine, and which processes use it; with --watch live, until Ctrl-C.",
	.notes = "WHAT is one or more of these, separated by commas: gpu=NAME, memory=SIZE, and options of\n"
		 "PYTORCH_CUDA_ALLOC_CONF: expandable_segments, max_split_size_mb=256, ... What is known: the newest\n"
		 "allocations, or with 'cuwhy run --memory-trace' all of them.\n",
	.exits = "The exit status is 0; 1 when the recorded program failed for lack of memory, with --what-if does not\n"
		 "fit, or with --max-growth holds more; 2 on failure, and when the driver did not answer for every GPU.\n",
	.examples = "  cuwhy memory                         which processes use the GPUs of this machine now\n"
		    "  cuwhy memory --by kind out/          parameters, gradients, activations, ...\n"
		    "  cuwhy memory --by module out/        transformer.h.7.mlp, ...\n"
		    "  cuwhy memory --at peak --top 30 out/ the thirty biggest lines when most was in use\n"
		    "  cuwhy memory --at 90s out/           a minute and a half after the start\n"
		    "  cuwhy memory --what-if expandable_segments,memory=24GiB out/\n"
		    "                                       would it have fit with that setting on such a card?\n"
		    "  cuwhy memory --max-growth 5% main/ branch/\n"
		    "                                       does this branch need more memory, and where? for CI\n"
		    "  cuwhy memory --at 1m,10m out/        what has grown in nine minutes\n"
		    "  cuwhy memory --pid 4711              who keeps the tensors of a program under 'cuwhy run'\n"
		    "  cuwhy memory --watch                 live, and by line for programs that 'cuwhy run' started\n",
};

static const struct opt options[] = {
	{"by", 0, "WHAT",
	 "line (default), function, kind, library or module; of a snapshot line, function, stream or pool", NULL,
	 &given.by},
	{"at", 0, "WHEN",
	 "oom (default, if memory ran out), peak (default otherwise), end, or a time like 12.5s; A,B: both", NULL,
	 &given.at},
	{"top", 'n', "N", "show the N largest (15)", NULL, &given.top},
	{"what-if", 0, "WHAT ...", "play it back on another card or with other settings; may be repeated", NULL,
	 &given.what_if},
	{"max-growth", 0, "N", "with two: exit with 1 if the second holds this much more than the first: 100MiB, 5%",
	 NULL, &given.max_growth},
	{"page", 0, "FILE", "with two: also write the comparison as an HTML page", NULL, &given.page},
	{"watch", 'w', NULL, "this machine live: GPUs, processes, and memory by line of programs under 'cuwhy run'",
	 &given.watch, NULL},
	{"pid", 0, "PID", "which objects of a running program keep its tensors alive; with --watch, every five seconds",
	 NULL, &given.pid},
	{"json", 0, NULL, "print one JSON object; with --watch, one a second", &given.json, NULL},
	{"help", 'h', NULL, "print this", &given.help, NULL},
	{0},
};

static const struct opt_words words[] = {
	{"by", "line function kind library module stream pool"},
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

int no_gpu_answer(const struct gpu_usage *u, struct err *e)
{
	switch (u->trouble) {
	case USAGE_COMPLETE:
		err_set(e, -ENODEV, "the NVIDIA driver says that there is no GPU");
		return err_hint(e, "in a container: start it with --gpus all");
	case USAGE_NO_LIBRARY:
		err_set(e, -ENODEV, "there is no NVIDIA driver on this machine: %s", u->why);
		return err_hint(
			e, "in a container, its libraries come from the host (--gpus, the NVIDIA container toolkit); of a recording: 'cuwhy memory DIR'");
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

	progress_begin("querying the NVIDIA driver");
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
			fprintf(stderr, "cuwhy: incomplete: %s\n", u->why);
	}
	usage_free(u);
	return cmd_finish(status);
}

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

static void print_nothing_shown(const char *path, bool used)
{
	struct err e = {0};

	if (used && memory_when_no_oom(path, &e))
		printf("cuwhy: %s; %s\n", e.msg, e.hint);
	else
		printf("cuwhy: no memory of a GPU was used in '%s'\n", path);
}

static int memory_of_snapshot(const char *path)
{
	struct snapshot *s = NULL;
	struct snap_views *v;
	struct pool pool = {0};
	const char *damage;
	struct err e = {0};
	bool no_oom;
	json_t *o;

	if (check_snapshot_options(&e) == 0) {
		progress_begin("reading '%s'", path);
		s = snap_open(path, &e);
	}
	if (!s)
		return cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	progress_begin("playing back '%s'", path);
	v = snap_views_new(s, given.by, given.at);
	progress_end();
	damage = snapshot_damage(s, &pool);
	no_oom = given.at && !strcmp(given.at, "oom") && !snap_views_ran_out(v);
	if (given.json) {
		o = snap_views_json(v);
		JSON_ADD(o, J_IF(damage, J_TEXT("damaged", damage)));
		json_print(stdout, o);
	} else if (no_oom) {
		print_nothing_shown(path, true);
	} else if (!snap_views_print(stdout, v, term_width(STDOUT_FILENO))) {
		printf("cuwhy: nothing is allocated in '%s'\n", path);
	}
	if (damage && !given.json)
		fprintf(stderr, "cuwhy: %s\n", damage);
	pool_release(&pool);
	snap_views_free(v);
	snap_free(s);
	return cmd_finish(EXIT_NOTHING);
}

struct memory_asked {
	struct memory_table table;
	struct memory_when when;
};

struct memory_shown {
	size_t devices;
	bool used;		/* of a GPU, at some moment */
	bool ran_out;		/* a program failed for lack of memory */
	json_t *list, *hosts, *damaged;
};

static void show_device(struct memory_shown *to, struct trace *t, const struct ledger *l, const struct memory_asked *a)
{
	to->devices++;
	if (given.json)
		json_array_append_new(to->list, memory_device_json(t, l, a->when.time_ns));
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

static void show_devices(struct memory_shown *to, const struct memory_moment *m, const struct memory_asked *a)
{
	const struct cw_header *head = trace_header(m->trace);
	struct memory_host host = {head->pid, head->pinned_bytes, head->pinned_peak_bytes, m->process->end.ram};
	struct pool pool = {0};
	struct ledger l;

	for (int d = 0; d < CW_MAX_DEVICES; d++) {
		if (!memory_device_used(m->trace, d))
			continue;
		to->used = true;
		if (!memory_moment_ledger(&l, m, d, &pool))
			continue;
		ledger_own(&l, head->cwd, &pool);
		show_device(to, m->trace, &l, a);
		host.pinned = l.at == LEDGER_PEAK || l.sampled ? host.pinned : l.pinned;
	}
	show_host(to, &host);
	pool_release(&pool);
}

/* Known when everything was read. */
static void show_damage(struct memory_shown *to, const struct trace *t)
{
	struct pool pool = {0};
	const char *damage = damage_words(t, &pool);

	if (damage && given.json)
		json_array_append_new(to->damaged,
				      JSON_OF(J_INT("pid", trace_header(t)->pid), J_TEXT("text", damage)));
	else
		cmd_tell_damage(t);
	pool_release(&pool);
}

static int show_process(struct memory_shown *to, struct recorded_process *p, const struct memory_asked *a, struct err *e)
{
	struct trace *t = trace_open(p->part, e);
	struct memory_moment m;
	struct verdict *v;
	int rc;

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
	rc = memory_moment_open(&m, t, p, &a->when, e);
	if (rc == 0)
		show_devices(to, &m, a);
	memory_moment_close(&m);
	show_damage(to, t);
	trace_free(t);
	return rc;
}

static int memory_of_recording(const char *path, const struct memory_asked *a)
{
	struct memory_shown s = {.list = json_array(), .hosts = json_array(), .damaged = json_array()};
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
						   J_SHARED("devices", s.list), J_SHARED("host", s.hosts),
						   J_IF(json_array_size(s.damaged), J_SHARED("damaged", s.damaged))));
		else if (!s.devices)
			print_nothing_shown(path, s.used);
		status = cmd_finish(s.ran_out ? EXIT_FOUND : EXIT_NOTHING);
	}
	json_decref(s.list);
	json_decref(s.hosts);
	json_decref(s.damaged);
	return status;
}

#define QUESTIONS_MAX 32

static void answer(struct what_if_row *row, struct replayed *r, const struct replay_question *q, struct pool *pool)
{
	what_if_answer(row, r, q, pool);
	if (!row->answer.fits)
		smaller_find(&row->smaller, r->replay, q);
}

/* The recording as it was, then each question. */
static int answer_questions(struct what_if_row *row, size_t *n, struct replayed *r, struct pool *pool,
			    struct err *e)
{
	struct replay_question q = replay_same(r->replay);
	char *text = pool_strdup(pool, given.what_if), *rest = NULL;

	row[0] = (struct what_if_row){.words = ""};
	answer(&row[0], r, &q, pool);
	*n = 1;
	for (char *ask = strtok_r(text, ";", &rest); ask; ask = strtok_r(NULL, ";", &rest)) {
		int rc = *n < QUESTIONS_MAX ? what_if_parse(&q, r, ask, e)
					    : err_set(e, -E2BIG, "at most %d what-ifs at once", QUESTIONS_MAX - 1);

		if (rc)
			return rc;
		row[*n] = (struct what_if_row){.words = ask};
		answer(&row[(*n)++], r, &q, pool);
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

static int show_questions(json_t *list, struct replayed *r, bool *misfit, struct err *e)
{
	struct what_if_row row[QUESTIONS_MAX];
	struct pool pool = {0};
	size_t n = 0;
	int rc = answer_questions(row, &n, r, &pool, e);

	for (size_t i = 1; i < n; i++)
		*misfit |= !row[i].answer.fits || row[i].growth.bytes;
	if (rc == 0 && given.json) {
		json_array_append_new(list, questions_json(row, n, r));
	} else if (rc == 0) {
		what_if_print_head(stdout, r->trace, r->device, r->replay, false);
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

static int read_memory_options(struct memory_asked *a, struct err *e)
{
	static const char *const bys[] = {"line", "function", "kind", "library", "module", NULL};
	int by = word_of(given.by ? given.by : "line", bys);
	uint64_t top = TOP_SHOWN;

	if (by < 0)
		return err_set(e, -EINVAL, "--by takes line, function, kind, library or module, not '%s'", given.by);
	if (memory_when_parse(&a->when, given.at, e))
		return -EINVAL;
	if (given.top && !str_u64(given.top, &top))
		return err_set(e, -EINVAL, "--top takes a number, not '%s'", given.top);
	a->table =
		(struct memory_table){.by = (enum ledger_by)by, .top = (size_t)top, .width = term_width(STDOUT_FILENO)};
	return 0;
}

/* Two files, or two moments of one. */
static bool asks_to_compare(int operands)
{
	return operands == 2 || (operands == 1 && given.at && strchr(given.at, ','));
}

static int compare_of(char **path, int operands, struct err *e)
{
	struct compare_asked c = {.path = {path[0], path[operands - 1]}, .page = given.page, .json = given.json};
	struct memory_asked a = {0};
	struct pool pool = {0};
	const char *at = given.at;
	int rc;

	given.at = NULL;
	rc = read_memory_options(&a, e);
	if (rc == 0)
		rc = compare_parse_moments(&c, at, &pool, e);
	if (rc == 0)
		rc = compare_parse_limit(&c.limit, given.max_growth, e);
	if (rc == 0 && given.what_if)
		rc = err_set(e, -EINVAL, "--what-if is for one recording");
	for (int i = 0; rc == 0 && i < 2; i++)
		if (!fs_exists(c.path[i]))
			rc = err_set(e, -ENOENT, "cannot open '%s': %s", c.path[i], strerror(ENOENT));
	if (rc == 0 && a.table.by == BY_MODULE)
		rc = err_set(e, -EINVAL, "--by module is for one recording");
	c.by = a.table.by;
	c.top = a.table.top;
	rc = rc ? cmd_fail(stdout, given.json, e, EXIT_TROUBLE) : memory_compare(&c);
	pool_release(&pool);
	return rc;
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
	if (first >= 0 && argc - first > 2)
		first = err_set(&e, -EINVAL, "memory takes one recording, or two to compare, not %d", argc - first);
	if (first >= 0 && first < argc)
		cmd_bound_memory();
	if (first >= 0 && !given.watch && asks_to_compare(argc - first))
		return compare_of(argv + first, argc - first, &e);
	if (first >= 0 && (given.max_growth || given.page)) {
		first = err_set(&e, -EINVAL, "--max-growth and --page need two recordings, or two moments of one");
		err_hint(&e, "for example --at peak,end");
	}
	if (first >= 0 && first < argc && !given.watch && input_sniff(argv[first]) == &input_snapshot)
		return memory_of_snapshot(argv[first]);
	if (first >= 0 && read_memory_options(&a, &e))
		first = -EINVAL;
	if (first >= 0 && given.pid && (first < argc || given.by || given.at || given.top || given.what_if))
		first = err_set(&e, -EINVAL,
				"--pid is for a program that runs, and takes no file, --by, --at, --top or --what-if");
	if (first >= 0 && given.watch && (first < argc || given.by || given.at || given.what_if))
		first = err_set(&e, -EINVAL, "--watch is for this machine, and takes no file, --by, --at or --what-if");
	if (first >= 0 && first == argc && !given.watch && (given.by || given.at || given.top || given.what_if))
		first = err_set(&e, -EINVAL, "--by, --at, --top and --what-if need a recording");
	if (first >= 0 && first < argc && !fs_exists(argv[first]))
		first = err_set(&e, -ENOENT, "cannot open '%s': %s", argv[first], strerror(ENOENT));
	if (first < 0)
		return cmd_fail(stdout, given.json, &e, EXIT_TROUBLE);
	if (given.pid)
		return memory_of_pid(given.pid, given.json, given.watch);
	if (given.what_if)
		return memory_what_if(argv[first]);
	if (given.watch)
		return memory_watch(given.json, given.top ? a.table.top : WATCH_SHOWN);
	return first == argc ? memory_of_machine() : memory_of_recording(argv[first], &a);
}
