/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy export`: converts a recording to a file that another program reads.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/opt.h"
#include "base/outfile.h"
#include "base/progress.h"
#include "base/str.h"
#include "base/term.h"
#include "cmd/cmd.h"
#include "find/memory/playback.h"
#include "read/recording/recording.h"
#include "read/recording/trace.h"
#include "verdict/opened.h"
#include "verdict/verdict.h"
#include "show/chrometrace.h"
#include "show/pickle_write.h"
#include "show/torchsnap.h"

#define MAX_SNAPSHOT	((size_t)16 << 30)

static struct {
	bool snapshot, chrome, json, help;
	const char *out, *pid;
} given;

static const struct opt_usage usage = {
	"export", "--torch-snapshot|--chrome-trace -o FILE [options] [RECORDING]",
	"Converts a recording (a folder or a .cwr file; by default the newest) to a file that other programs\n"
	"can read.",
	.notes =
		"The snapshot is a pickle like the one from torch.cuda.memory._dump_snapshot: PyTorch's segments and blocks\n"
		"at the end of the run, with the lines that allocated them. PyTorch's viewer opens it:\n"
		"    python -m torch.cuda._memory_viz trace_plot FILE -o FILE.html\n"
		"Its history is complete if the program ran under 'cuwhy run --memory-trace'; otherwise it covers only blocks\n"
		"that were live at the end or freed last. Streams, pools and sizes before rounding are not recorded: the\n"
		"stream is 0, the pool is (0, 0), the size is the block's.\n"
		"\n"
		"The trace opens in https://ui.perfetto.dev and chrome://tracing. It shows each thread's last launches and\n"
		"driver calls when the program made them, with their lines and parameters; failures; memory over time.\n",
	.exits = "The exit status is 0 if the file was written, otherwise 2.\n",
	.examples = "  cuwhy export --chrome-trace -o trace.json             the newest recording\n"
		    "  cuwhy export --torch-snapshot -o snap.pickle out/     from 'cuwhy run --out out'\n",
};

static const struct opt options[] = {
	{"torch-snapshot", 0, NULL, "write a memory snapshot of PyTorch's allocator", &given.snapshot, NULL},
	{"chrome-trace", 0, NULL, "write a trace for Perfetto or chrome://tracing", &given.chrome, NULL},
	{"out", 'o', "FILE", "where to write it; '-' is standard output", NULL, &given.out},
	{"pid", 0, "PID", "which process, if the recording has several", NULL, &given.pid},
	{"json", 0, NULL, "describe the file as one JSON object", &given.json, NULL},
	{"help", 'h', NULL, "print this", &given.help, NULL},
	{0},
};

const struct opt_table export_table = {&usage, options, NULL, OPERAND_FILE};

static bool to_stdout(void)
{
	return strcmp(given.out, "-") == 0;
}

/* --json: what was written, and where. Takes ownership of the object. */
static void tell_json(json_t *o)
{
	JSON_ADD(o, J_INT("schema", 1), J_TEXT("file", given.out));
	json_print(stdout, o);
}

struct choice {
	struct trace *trace;		/* of the chosen process */
	char *part;			/* its file */
	size_t n;			/* processes with PyTorch blocks */
	size_t readable;
	char pids[120];			/* for people */
};

static bool has_blocks(struct trace *t)
{
	const struct cw_allocation *const *list;

	return trace_header(t)->n_blocks > 0 || trace_blocks(t, &list) > 0;
}

static bool is_meant(const struct trace *t)
{
	uint64_t pid;

	return !given.pid || (str_u64(given.pid, &pid) && pid == trace_header(t)->pid);
}

static void note_pid(struct choice *c, uint32_t pid)
{
	size_t len = strlen(c->pids);

	snprintf(c->pids + len, sizeof(c->pids) - len, "%s%" PRIu32, len ? ", " : "", pid);
}

static void consider_part(struct choice *c, const char *part, struct err *e)
{
	struct trace *t = trace_open(part, e);

	if (!t)
		return;
	c->readable++;
	if (has_blocks(t)) {
		note_pid(c, trace_header(t)->pid);
		if (is_meant(t) && c->n++ == 0) {
			c->trace = t;
			c->part = xstrdup(part);
			return;
		}
	}
	trace_free(t);
}

static int refuse_choice(const struct choice *c, const char *path, struct err *e)
{
	if (c->n > 1) {
		err_set(e, -EINVAL, "several processes in '%s' used PyTorch: %s", path, c->pids);
		return err_hint(e, "choose one with --pid");
	}
	if (!c->readable && e->code)
		return e->code;
	if (given.pid && c->pids[0]) {
		err_set(e, -ENOENT, "no process %s with PyTorch memory in '%s'", given.pid, path);
		return err_hint(e, "there are: %s", c->pids);
	}
	err_set(e, -ENOENT, "no PyTorch memory in '%s'", path);
	return err_hint(e, "the program did not use PyTorch on CUDA, or its allocator reports nothing "
			   "(PYTORCH_NO_CUDA_MEMORY_CACHING, another backend)");
}

static void choose_process(struct choice *c, const char *path, struct err *e)
{
	struct recording r;

	if (recording_read(&r, path, e) == 0) {
		for (size_t i = 0; i < r.n; i++)
			if (r.process[i].part)
				consider_part(c, r.process[i].part, e);
		if (c->n != 1) {
			refuse_choice(c, path, e);
			trace_free(c->trace);
			c->trace = NULL;
		}
	}
	recording_release(&r);
}

static void warn_of(uint64_t n, const char *what)
{
	if (n)
		fprintf(stderr, "cuwhy: %" PRIu64 " %s\n", n, what);
}

static void tell_snapshot(const struct torchsnap *s, bool traced)
{
	warn_of(s->missing, "events are missing from the memory trace: the history has gaps");
	warn_of(s->lost, "blocks were not recorded: there was no room for them");
	warn_of(s->outside, "blocks are not in any recorded allocation: each is shown as its own segment");
	warn_of(s->overlapping, "blocks overlap others: the recording is damaged there, and they are left out");
	warn_of(s->cache_left_out,
		"bytes of PyTorch's cache are left out: the recording does not say which allocations they are");
	if (given.json) {
		tell_json(JSON_OF(J_TEXT("format", "torch-snapshot"), J_INT("segments", s->n_segments),
				  J_INT("blocks", s->n_blocks), J_INT("events", s->n_events), J_BOOL("traced", traced)));
		return;
	}
	if (to_stdout())
		return;
	printf("wrote '%s': %zu segments, %zu blocks, %zu events\n", given.out, s->n_segments, s->n_blocks, s->n_events);
	if (!traced)
		printf("its events cover only blocks that were live at the end or freed last: 'cuwhy run --memory-trace' "
		       "keeps them all\n");
}

static int write_pickle(const struct pickle *p, struct err *e)
{
	if (p->out.full)
		return err_set(e, -EFBIG, "the snapshot would be larger than %zu GiB", MAX_SNAPSHOT >> 30);
	if (!to_stdout())
		return fs_write(given.out, p->out.data, p->out.len, e);
	fwrite(p->out.data, 1, p->out.len, term_bytes());	/* cmd_finish checks for errors */
	return 0;
}

static int write_torchsnap(const struct torchsnap *s, struct trace *t, bool traced, struct err *e)
{
	struct pickle p;
	int rc;

	pickle_begin(&p, MAX_SNAPSHOT);
	torchsnap_write(s, t, &p);
	pickle_end(&p);
	rc = write_pickle(&p, e);
	progress_end();
	if (rc == 0)
		tell_snapshot(s, traced);
	pickle_release(&p);
	return rc;
}

static int export_process(const struct choice *c, struct err *e)
{
	struct playback play = {0};
	struct buf bytes;
	struct torchsnap s;
	int rc = memory_trace_read(&bytes, c->trace, c->part, e);

	if (rc == 0)
		rc = playback_begin(&play, c->trace, bytes.data, bytes.len, e);
	if (rc < 0)
		fprintf(stderr, "cuwhy: the memory trace was not used: %s\n", e->msg);
	torchsnap_build(&s, c->trace, rc == 0 ? &play : NULL);
	playback_release(&play);
	buf_release(&bytes);
	*e = (struct err){0};
	rc = write_torchsnap(&s, c->trace, rc == 0, e);
	cmd_tell_damage(c->trace);
	torchsnap_release(&s);
	return rc;
}

static int export_snapshot(const char *path, struct err *e)
{
	struct choice c = {0};
	int rc;

	choose_process(&c, path, e);
	rc = c.trace ? export_process(&c, e) : e->code;
	trace_free(c.trace);
	free(c.part);
	return rc;
}

struct exported {
	struct chrometrace trace;
	size_t processes;
	uint64_t pid;		/* 0: all */
	struct err left;	/* why one could not be read */
	bool several;		/* processes: skipping one leaves others */
};

static void export_part(struct exported *x, struct recorded_process *p)
{
	struct err e = {0};
	struct verdict *v;
	struct opened o;

	if (!p->part)
		return;
	if (opened_read(&o, p, &e)) {
		progress_end();
		if (x->several)
			fprintf(stderr, "cuwhy: skipped: %s\n", e.msg);
		x->left = e;
		return;
	}
	if (!x->pid || x->pid == trace_header(o.trace)->pid) {
		v = opened_judge(&o, p);
		chrometrace_process(&x->trace, o.trace, v);
		progress_end();
		cmd_tell_damage(o.trace);
		verdict_free(v);
		x->processes++;
	}
	opened_release(&o, p);
}

/* Nothing to show: no file is written. */
static int nothing_exported(const struct exported *x, const char *path, struct err *e)
{
	if (x->left.code) {
		*e = x->left;
		return e->code;
	}
	if (x->pid)
		return err_set(e, -ENOENT, "no process %" PRIu64 " in '%s'", x->pid, path);
	err_set(e, -ENOENT, "no process in '%s' used CUDA", path);
	return err_hint(e, "a trace shows driver calls, launches and memory, and there were none");
}

static void tell_chrome(const struct exported *x, uint64_t bytes)
{
	const struct chrometrace *t = &x->trace;

	if (given.json)
		tell_json(JSON_OF(J_TEXT("format", "chrome-trace"), J_INT("bytes", bytes),
				  J_INT("processes", x->processes), J_INT("events", t->events),
				  J_INT("launches", t->launches), J_INT("calls", t->calls),
				  J_INT("failures", t->failures), J_INT("samples", t->samples)));
	else if (!to_stdout())
		printf("wrote '%s': %" PRIu64 " launches, %" PRIu64 " driver calls, %" PRIu64 " failures, %" PRIu64
		       " memory samples\nopen it at https://ui.perfetto.dev or chrome://tracing\n",
		       given.out, t->launches, t->calls, t->failures, t->samples);
}

static int export_chrome(const char *path, struct err *e)
{
	struct exported x = {.processes = 0};
	struct recording r;
	struct outfile f;
	uint64_t bytes;
	int rc;

	if (given.pid)
		str_u64(given.pid, &x.pid);
	rc = recording_read(&r, path, e);
	x.several = r.n > 1;
	if (rc == 0)
		rc = outfile_open(&f, given.out, e);
	if (rc == 0) {
		chrometrace_begin(&x.trace, f.out, path);
		for (size_t i = 0; i < r.n; i++)
			export_part(&x, &r.process[i]);
		chrometrace_end(&x.trace);
		rc = outfile_close(&f, x.processes > 0, &bytes, e);
		progress_end();
		if (rc == 0)
			rc = x.processes ? 0 : nothing_exported(&x, path, e);
		if (rc == 0)
			tell_chrome(&x, bytes);
	}
	recording_release(&r);
	return rc;
}

static int check_export(int argc, int first, struct err *e)
{
	uint64_t pid;

	if (argc - first > 1)
		return err_set(e, -EINVAL, "export takes one recording, not %d", argc - first);
	if (given.pid && !str_u64(given.pid, &pid))
		return err_set(e, -EINVAL, "--pid takes a number, not '%s'", given.pid);
	if (!given.snapshot && !given.chrome) {
		err_set(e, -EINVAL, "export needs --torch-snapshot or --chrome-trace");
		return err_hint(e, "for example cuwhy export --torch-snapshot -o snapshot.pickle");
	}
	if (given.snapshot && given.chrome)
		return err_set(e, -EINVAL, "export writes one file at a time: --torch-snapshot or --chrome-trace");
	if (!given.out || !*given.out) {
		err_set(e, -EINVAL, "export needs an output file");
		return err_hint(e, "-o FILE, or -o - for standard output");
	}
	if (given.json && to_stdout())
		return err_set(e, -EINVAL, "the file and --json cannot both go to standard output");
	return 0;
}

int cmd_export(int argc, char **argv)
{
	struct err e = {0};
	char *path = NULL;
	int first = opt_parse(&usage, options, argc, argv, &e), rc = first < 0 ? first : 0;

	if (rc == 0 && given.help) {
		opt_help(stdout, &usage, options);
		return cmd_finish(EXIT_NOTHING);
	}
	if (rc == 0)
		rc = check_export(argc, first, &e);
	if (rc == 0)
		path = first < argc ? xstrdup(argv[first]) : recording_newest(&e);
	if (rc == 0 && path && !fs_exists(path))
		rc = err_set(&e, -ENOENT, "cannot open '%s': %s", path, strerror(ENOENT));
	if (rc == 0 && path) {
		cmd_bound_memory();
		if (given.json)
			progress_disable();
		progress_begin("exporting '%s'", path);
		rc = given.chrome ? export_chrome(path, &e) : export_snapshot(path, &e);
		progress_end();
	} else if (rc == 0) {
		rc = e.code;
	}
	free(path);
	return rc ? cmd_fail(stdout, given.json, &e, EXIT_TROUBLE) : cmd_finish(EXIT_NOTHING);
}
