/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy export --chrome-trace`: all processes of a recording, one after the other.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/outfile.h"
#include "base/progress.h"
#include "base/str.h"
#include "cmd/cmd.h"
#include "cmd/export.h"
#include "judge/opened.h"
#include "input/recording/recording.h"
#include "write/chrometrace.h"
#include "base/json_text.h"
#include "judge/verdict.h"
#include "input/recording/trace.h"
#include "base/banned.h"

struct exported {
	struct chrometrace trace;
	size_t processes;
	uint64_t pid;		/* 0: all */
	struct err left;	/* why one could not be read */
	bool several;		/* processes: one that is left out is not all */
};

void export_tell(json_t *o, const char *out)
{
	json_object_set_new(o, "schema", json_integer(1));
	json_object_set_new(o, "file", json_text(out));
	json_dumpf(o, stdout, JSON_COMPACT);
	putchar('\n');
	json_decref(o);
}

/* The header tells how much there was. */
static void tell_cut(const char *part, const struct trace *t)
{
	const struct cw_header *h = trace_header(t);
	struct stat st;

	if (stat(part, &st) != 0 || (uint64_t)st.st_size >= h->used)
		return;
	progress_end();
	fprintf(stderr, "cuwhy: the recording of process %" PRIu32 " is cut short: %" PRIu64 " of %" PRIu64 " bytes are there\n",
		h->pid, (uint64_t)st.st_size, h->used);
}

static void add(struct exported *x, struct recorded_process *p)
{
	struct err e = {0};
	struct verdict *v;
	struct opened o;

	if (!p->part)
		return;
	if (opened_read(&o, p, &e)) {
		progress_end();
		if (x->several)
			fprintf(stderr, "cuwhy: left out: %s\n", e.msg);
		x->left = e;
		return;
	}
	if (!x->pid || x->pid == trace_header(o.trace)->pid) {
		tell_cut(p->part, o.trace);
		v = opened_judge(&o, p);
		chrometrace_process(&x->trace, o.trace, v);
		verdict_free(v);
		x->processes++;
	}
	opened_release(&o, p);
}

/* Nothing to show: no file is made. */
static int nothing(const struct exported *x, const char *path, struct err *e)
{
	if (x->left.code) {
		*e = x->left;
		return e->code;
	}
	if (x->pid)
		return err_set(e, -ENOENT, "no process %" PRIu64 " in '%s'", x->pid, path);
	err_set(e, -ENOENT, "no process of '%s' used CUDA", path);
	return err_hint(e, "a trace shows driver calls, launches and memory: there were none");
}

static void tell(const struct exported *x, const char *out, uint64_t bytes, bool json)
{
	const struct chrometrace *t = &x->trace;

	if (json)
		export_tell(json_pack("{s:s,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "format", "chrome-trace", "bytes", (json_int_t)bytes,
				      "processes", (json_int_t)x->processes, "events", (json_int_t)t->events, "launches",
				      (json_int_t)t->launches, "calls", (json_int_t)t->calls, "failures", (json_int_t)t->failures,
				      "samples", (json_int_t)t->samples), out);
	else if (strcmp(out, "-") != 0)
		printf("wrote '%s': %" PRIu64 " launches, %" PRIu64 " driver calls, %" PRIu64 " failures, %" PRIu64
		       " samples of memory\nopen it at https://ui.perfetto.dev or chrome://tracing\n", out, t->launches, t->calls,
		       t->failures, t->samples);
}

int export_chrome(const char *path, const char *out, const char *pid, bool json, struct err *e)
{
	struct exported x = {.processes = 0};
	struct recording r;
	struct outfile f;
	uint64_t bytes;
	int rc;

	if (pid)
		str_u64(pid, &x.pid);
	rc = recording_read(&r, path, e);
	x.several = r.n > 1;
	if (rc == 0)
		rc = outfile_open(&f, out, e);
	if (rc == 0) {
		chrometrace_begin(&x.trace, f.out, path);
		for (size_t i = 0; i < r.n; i++)
			add(&x, &r.process[i]);
		chrometrace_end(&x.trace);
		rc = outfile_close(&f, x.processes > 0, &bytes, e);
		progress_end();
		if (rc == 0)
			rc = x.processes ? 0 : nothing(&x, path, e);
		if (rc == 0)
			tell(&x, out, bytes, json);
	}
	recording_release(&r);
	return rc;
}
