/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy explain SNAPSHOT`: why memory was out, from a memory snapshot of PyTorch alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/progress.h"
#include "cmd/cmd.h"
#include "cmd/memory.h"
#include "input/snapshot/observe.h"
#include "judge/verdict.h"
#include "rules/template.h"
#include "base/banned.h"

/* Core dumps may be compressed as well: what is inside decides. */
bool memory_is_snapshot(const char *path)
{
	unsigned char head[16];
	gzFile f = fs_is_dir(path) ? NULL : gzopen(path, "rbe");
	int n = f ? gzread(f, head, sizeof(head)) : 0;

	if (f)
		gzclose_r(f);
	return n > 0 && snap_is_snapshot(head, (size_t)n);
}

/* Nothing failed: say what the file is about, so that nobody takes it for an answer to another question. */
static void print_none(const char *path, const struct snapshot *s, const struct snap_device *d, int n)
{
	char most[32], reserved[32];

	printf("cuwhy: no out-of-memory in '%s'\n", path);
	for (int i = 0; i < n; i++)
		if (d[i].all.segments || d[i].replay.n)
			printf("  device %d: %zu events, peak %s of tensors, %s reserved at the end\n", i,
			       d[i].replay.n, format_bytes(most, sizeof(most), (double)d[i].replay.peak.allocated),
			       format_bytes(reserved, sizeof(reserved), (double)d[i].all.reserved));
	if (!s->n_events)
		printf("  no history was recorded; torch.cuda.memory._record_memory_history() switches it on\n");
	printf("  'cuwhy memory %s' tells who holds what\n", path);
}

static int print_verdict(const struct verdict *v, const char *path, bool json, const struct text_style *style,
			 const struct snapshot *s, const struct snap_device *d, int n)
{
	int status = strcmp(verdict_cause(v), "none") != 0 ? EXIT_FOUND : EXIT_NOTHING;

	if (json) {
		report_json(stdout, v, false);
		putchar('\n');
	} else if (status == EXIT_FOUND) {
		report_text(stdout, v, style);
	} else {
		print_none(path, s, d, n);
	}
	return cmd_finish(status);
}

int snapshot_device_to_judge(const struct snap_device *d, int n)
{
	uint64_t time, newest = 0;
	int chosen = -1;

	for (int i = 0; i < n; i++) {
		if (!d[i].oom.found)
			continue;
		time = d[i].replay.event[d[i].oom.event].time_us;
		if (chosen < 0 || time > newest) {
			chosen = i;
			newest = time;
		}
	}
	return chosen < 0 ? 0 : chosen;
}

struct open_snapshot {
	struct snapshot *s;
	struct snap_device *d;
	struct snap_lines l;
	int n;
};

static bool open_snapshot(struct open_snapshot *o, const char *path, struct err *e)
{
	progress_begin("reading '%s'", path);
	o->s = snap_open(path, e);
	if (!o->s)
		return false;
	progress_begin("playing back '%s'", path);
	o->n = snap_devices(o->s) ? snap_devices(o->s) : 1;
	o->d = xcalloc((size_t)o->n, sizeof(*o->d));
	snap_lines_find(&o->l, o->s, snapshot_owner);
	for (int i = 0; i < o->n; i++)
		snap_analyse(&o->d[i], o->s, &o->l, i);
	return true;
}

static void close_snapshot(struct open_snapshot *o)
{
	for (int i = 0; i < o->n; i++)
		snap_device_release(&o->d[i]);
	snap_lines_release(&o->l);
	free(o->d);
	snap_free(o->s);
}

struct verdict *judge_snapshot(const char *path, struct err *e)
{
	struct open_snapshot o;
	struct verdict *v;

	if (!open_snapshot(&o, path, e))
		return NULL;
	v = verdict_of_snapshot(o.s, &o.l, &o.d[snapshot_device_to_judge(o.d, o.n)]);
	close_snapshot(&o);
	return v;
}

int explain_snapshot(const char *path, bool json, const struct text_style *style)
{
	struct err e = {0};
	struct open_snapshot o;
	struct verdict *v;
	int status;

	if (!open_snapshot(&o, path, &e))
		return cmd_fail(stdout, json, &e, EXIT_TROUBLE);
	v = verdict_of_snapshot(o.s, &o.l, &o.d[snapshot_device_to_judge(o.d, o.n)]);
	progress_end();
	status = print_verdict(v, path, json, style, o.s, o.d, o.n);
	verdict_free(v);
	close_snapshot(&o);
	return status;
}
