/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy export`: makes of a recording a file that another program reads.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/opt.h"
#include "write/pickle_write.h"
#include "base/str.h"
#include "base/progress.h"
#include "cmd/cmd.h"
#include "cmd/export.h"
#include "cmd/memory_time.h"
#include "input/recording/recording.h"
#include "write/torchsnap.h"
#include "input/recording/trace.h"
#include "base/banned.h"

#define MAX_SNAPSHOT	((size_t)16 << 30)

static struct {
	bool snapshot, chrome, json, help;
	const char *out, *pid;
} given;

static const struct opt_usage usage = {
	"export", "--torch-snapshot|--chrome-trace -o FILE [options] [RECORDING]",
	"Makes of a recording (a folder, or one .cwr file; without one, the newest) a file that another\n"
	"program reads.",
	.notes =
	"The snapshot is a pickle like that of torch.cuda.memory._dump_snapshot: PyTorch's segments and blocks\n"
	"as they were at the end, with the lines that made them. PyTorch's viewer opens it:\n"
	"    python -m torch.cuda._memory_viz trace_plot FILE -o FILE.html\n"
	"Its history is whole when the program ran under 'cuwhy run --memory-trace'; else it is that of the blocks\n"
	"that were live at the end and of those freed last. Streams, pools and sizes before rounding are not\n"
	"recorded: the stream is 0, the pool (0, 0), the size the block's.\n"
	"\n"
	"The trace is for https://ui.perfetto.dev and chrome://tracing: the last launches and driver calls of every\n"
	"thread where the program made them, with their lines and parameters; failures; memory over time.\n",
	.exits = "The exit status is 0 when the file was written, else 2.\n",
	.examples =
	"  cuwhy export --chrome-trace -o trace.json             the newest recording\n"
	"  cuwhy export --torch-snapshot -o snap.pickle out/     what 'cuwhy run --out out' left\n",
};

static const struct opt options[] = {
	{"torch-snapshot", 0, NULL, "write a memory snapshot of PyTorch's allocator", &given.snapshot, NULL},
	{"chrome-trace", 0, NULL, "write a trace for Perfetto or chrome://tracing", &given.chrome, NULL},
	{"out", 'o', "FILE", "where to write it; '-' is standard output", NULL, &given.out},
	{"pid", 0, "PID", "of which process, when the recording has several", NULL, &given.pid},
	{"json", 0, NULL, "tell of the file as one JSON object", &given.json, NULL},
	{"help", 'h', NULL, "print this", &given.help, NULL},
	{0},
};

const struct opt_table export_table = {&usage, options, NULL, OPERAND_FILE};

/* --- the process that is meant ---------------------------------------------------------------- */

struct choice {
	struct trace *trace;		/* of the process that is meant */
	char *part;			/* its file */
	size_t n;			/* processes with blocks of PyTorch */
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

static void look_at(struct choice *c, const char *part, struct err *e)
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

static int refuse(const struct choice *c, const char *path, struct err *e)
{
	if (c->n > 1) {
		err_set(e, -EINVAL, "PyTorch was used in several processes of '%s': %s", path, c->pids);
		return err_hint(e, "choose one with --pid");
	}
	if (!c->readable && e->code)
		return e->code;
	if (given.pid && c->pids[0]) {
		err_set(e, -ENOENT, "no process %s with blocks of PyTorch in '%s'", given.pid, path);
		return err_hint(e, "there are: %s", c->pids);
	}
	err_set(e, -ENOENT, "no blocks of PyTorch's allocator in '%s'", path);
	return err_hint(e, "the program did not use PyTorch on CUDA, or its allocator does not report "
			"(PYTORCH_NO_CUDA_MEMORY_CACHING, another backend)");
}

static void choose(struct choice *c, const char *path, struct err *e)
{
	struct recording r;

	if (recording_read(&r, path, e) == 0) {
		for (size_t i = 0; i < r.n; i++)
			if (r.process[i].part)
				look_at(c, r.process[i].part, e);
		if (c->n != 1) {
			refuse(c, path, e);
			trace_free(c->trace);
			c->trace = NULL;
		}
	}
	recording_release(&r);
}

/* --- the snapshot ----------------------------------------------------------------------------- */

static void warn(uint64_t n, const char *what)
{
	if (n)
		fprintf(stderr, "cuwhy: %" PRIu64 " %s\n", n, what);
}

static void tell(const struct torchsnap *s, bool traced)
{
	warn(s->missing, "events are missing in the memory trace: the history has gaps");
	warn(s->lost, "blocks were not recorded: there was no room for them");
	warn(s->outside, "blocks are in no allocation that was recorded: each is shown as a segment of its own");
	warn(s->overlapping, "blocks lie on top of others: the recording is damaged there, they are left out");
	warn(s->cache_left_out, "bytes of PyTorch's cache are left out: nothing tells which allocations they are");
	if (given.json) {
		export_tell(json_pack("{s:s,s:I,s:I,s:I,s:b}", "format", "torch-snapshot", "segments", (json_int_t)s->n_segments,
				      "blocks", (json_int_t)s->n_blocks, "events", (json_int_t)s->n_events, "traced", (int)traced),
			    given.out);
		return;
	}
	if (strcmp(given.out, "-") != 0)
		printf("wrote '%s': %zu segments, %zu blocks, %zu events\n", given.out, s->n_segments, s->n_blocks,
		       s->n_events);
	if (strcmp(given.out, "-") != 0 && !traced)
		printf("its events are those of blocks that were live at the end or freed last: 'cuwhy run --memory-trace' "
		       "keeps every one\n");
}

static int write_out(const struct pickle *p, struct err *e)
{
	if (p->out.full)
		return err_set(e, -EFBIG, "the snapshot would be larger than %zu GiB", MAX_SNAPSHOT >> 30);
	if (strcmp(given.out, "-") != 0)
		return fs_write(given.out, p->out.data, p->out.len, e);
	fwrite(p->out.data, 1, p->out.len, stdout);	/* cmd_finish looks whether it went well */
	return 0;
}

static int write_snapshot(const struct torchsnap *s, struct trace *t, bool traced, struct err *e)
{
	struct pickle p;
	int rc;

	pickle_begin(&p, MAX_SNAPSHOT);
	torchsnap_write(s, t, &p);
	pickle_end(&p);
	rc = write_out(&p, e);
	progress_end();
	if (rc == 0)
		tell(s, traced);
	pickle_release(&p);
	return rc;
}

static int export_process(const struct choice *c, struct err *e)
{
	struct history h = {0};
	struct buf bytes;
	struct torchsnap s;
	int rc = memory_trace_read(&bytes, c->trace, c->part, e);

	if (rc == 0)
		rc = history_begin(&h, c->trace, bytes.data, bytes.len, e);
	if (rc < 0)
		fprintf(stderr, "cuwhy: done without the memory trace: %s\n", e->msg);
	torchsnap_build(&s, c->trace, rc == 0 ? &h : NULL);
	history_release(&h);
	buf_release(&bytes);
	*e = (struct err){0};
	rc = write_snapshot(&s, c->trace, rc == 0, e);
	torchsnap_release(&s);
	return rc;
}

static int export(const char *path, struct err *e)
{
	struct choice c = {0};
	int rc;

	if (given.chrome)
		return export_chrome(path, given.out, given.pid, given.json, e);
	choose(&c, path, e);
	rc = c.trace ? export_process(&c, e) : e->code;
	trace_free(c.trace);
	free(c.part);
	return rc;
}

static int check(int argc, int first, struct err *e)
{
	uint64_t pid;

	if (argc - first > 1)
		return err_set(e, -EINVAL, "export takes one recording, not %d", argc - first);
	if (given.pid && !str_u64(given.pid, &pid))
		return err_set(e, -EINVAL, "--pid takes a number, not '%s'", given.pid);
	if (!given.snapshot && !given.chrome) {
		err_set(e, -EINVAL, "export needs to know what to make");
		return err_hint(e, "cuwhy export --torch-snapshot -o snapshot.pickle, or --chrome-trace -o trace.json");
	}
	if (given.snapshot && given.chrome)
		return err_set(e, -EINVAL, "export makes one file at a time: --torch-snapshot or --chrome-trace");
	if (!given.out || !*given.out) {
		err_set(e, -EINVAL, "export needs to know where to write");
		return err_hint(e, "-o FILE, or -o - for standard output");
	}
	if (given.json && !strcmp(given.out, "-"))
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
		rc = check(argc, first, &e);
	if (rc == 0)
		path = first < argc ? xstrdup(argv[first]) : recording_newest(&e);
	if (rc == 0 && path && !fs_exists(path))
		rc = err_set(&e, -ENOENT, "cannot open '%s': %s", path, strerror(ENOENT));
	if (rc == 0 && path) {
		if (given.json)
			progress_disable();
		progress_begin("exporting '%s'", path);
		rc = export(path, &e);
		progress_end();
	} else if (rc == 0) {
		rc = e.code;
	}
	free(path);
	return rc ? cmd_fail(stdout, given.json, &e, EXIT_TROUBLE) : cmd_finish(EXIT_NOTHING);
}
