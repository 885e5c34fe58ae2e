/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy report`: fills the page from a recording, a core dump or a memory snapshot.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jansson.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/memory.h"
#include "judge/opened.h"
#include "input/recording/recording.h"
#include "cmd/report.h"
#include "input/dump/culprit.h"
#include "input/snapshot/observe.h"
#include "write/page.h"
#include "input/recording/trace.h"
#include "base/banned.h"

/* --- recordings --------------------------------------------------------------------------------- */

struct judged {
	struct page *page;
	struct verdict **list;	/* verdict_join takes them */
	size_t n;
	struct err left;	/* why one could not be read */
};

/* The header tells how much there was. */
static void tell_cut(struct page *page, const struct recorded_process *p, const struct trace *t)
{
	const struct cw_header *h = trace_header(t);
	struct stat st;

	if (stat(p->part, &st) == 0 && (uint64_t)st.st_size < h->used)
		page_tell(page, "the recording of process %u is cut short: %llu of %llu bytes are there", h->pid,
			  (unsigned long long)st.st_size, (unsigned long long)h->used);
}

static void add_process(struct judged *j, struct recorded_process *p)
{
	struct opened o;
	struct err e = {0};

	if (opened_read(&o, p, &e)) {
		page_tell(j->page, "a process could not be read: %s", e.msg);
		page_add_process(j->page, NULL, &p->end, NULL, e.msg, false);
		j->left = e;
		return;
	}
	j->list[j->n] = opened_judge(&o, p);
	page_add_process(j->page, o.trace, &p->end, j->list[j->n], NULL, false);
	if (o.trace)
		tell_cut(j->page, p, o.trace);
	opened_release(&o, p);
	j->n++;
}

/* The process that failed first may be one of many: then its details are not there yet. */
static void add_first(struct judged *j, struct recording *r, const struct verdict *first)
{
	for (size_t i = 0; i < r->n && !page_has_details(j->page, first); i++) {
		struct recorded_process *p = &r->process[i];
		struct verdict *v;
		struct opened o;

		if (!p->part || (p->end.pid && p->end.pid != verdict_pid(first)) || opened_read(&o, p, NULL))
			continue;
		v = opened_judge(&o, p);
		if (verdict_pid(v) == verdict_pid(first) && !strcmp(verdict_cause(v), verdict_cause(first)))
			page_add_process(j->page, o.trace, &p->end, v, NULL, true);
		verdict_free(v);
		opened_release(&o, p);
	}
}

/* Nothing of ours: then there is no page to make. */
static bool is_ours(const char *path)
{
	char magic[sizeof(CW_MAGIC) - 1] = "";
	FILE *f = fs_is_dir(path) ? NULL : fopen(path, "re");
	bool ours = fs_is_dir(path) || (f && fread(magic, 1, sizeof(magic), f) == sizeof(magic) &&
					!memcmp(magic, CW_MAGIC, sizeof(magic)));

	if (f)
		fclose(f);
	return ours;
}

static int finish(struct judged *j, struct recording *r, const char *path)
{
	bool none = j->n == 0 && r->n > 0;
	/* what `cuwhy run` said at the time: better than nothing when the parts cannot be read */
	json_t *stored = none ? recording_stored(path) : NULL;
	struct verdict *v = verdict_join(j->list, j->n);
	int status;

	if (stored)
		page_tell(j->page, "the verdict is the one that was written when the program ended");
	if (!none)
		add_first(j, r, v);
	page_set_verdict(j->page, v, stored);
	status = report_finish(j->page, none ? NULL : v, path, NULL);
	if (none)
		fprintf(stderr, "cuwhy: nothing of the recording could be read: %s\n", j->left.msg);
	json_decref(stored);
	verdict_free(v);
	return none ? EXIT_TROUBLE : status;
}

int report_recording(const char *path, struct err *e)
{
	struct judged j = {0};
	struct recording r = {0};
	int status = EXIT_TROUBLE;

	if (recording_read(&r, path, e) == 0) {
		j.page = page_new("recording", path);
		j.list = xcalloc(r.n + 1, sizeof(*j.list));
		for (size_t i = 0; i < r.n; i++)
			add_process(&j, &r.process[i]);
		if (!j.n && j.left.code && !is_ours(path))
			*e = j.left;
		else
			status = finish(&j, &r, path);
		free(j.list);
		page_free(j.page);
	}
	recording_release(&r);
	return status;
}

/* --- core dumps --------------------------------------------------------------------------------- */

int report_dump(const char *path, struct err *e)
{
	struct dump *d = dump_open(path, e);
	struct culprit *c;
	struct verdict *v;
	struct page *p;
	int status;

	if (!d)
		return EXIT_TROUBLE;
	c = culprit_find(d);
	v = verdict_of_dump(c);
	p = page_new("dump", path);
	page_add_dump(p, c);
	page_set_verdict(p, v, NULL);
	status = report_finish(p, v, path, NULL);
	page_free(p);
	verdict_free(v);
	culprit_free(c);
	dump_free(d);
	return status;
}

/* --- snapshots ---------------------------------------------------------------------------------- */

static int write_snapshot(const char *path, const struct snapshot *s, const struct snap_lines *l, struct snap_device *d, int n)
{
	int chosen = snapshot_device_to_judge(d, n), status;
	struct verdict *v = verdict_of_snapshot(s, l, &d[chosen]);
	struct page *p = page_new("snapshot", path);
	struct snap_device first = d[chosen];

	d[chosen] = d[0];
	d[0] = first;
	page_add_snapshot(p, s, l, d, (size_t)n, v);
	page_set_verdict(p, v, NULL);
	status = report_finish(p, v, path, NULL);
	page_free(p);
	verdict_free(v);
	return status;
}

int report_snapshot(const char *path, struct err *e)
{
	struct snapshot *s = snap_open(path, e);
	struct snap_device *d;
	struct snap_lines l;
	int n, status;

	if (!s)
		return EXIT_TROUBLE;
	n = snap_devices(s) ? snap_devices(s) : 1;
	d = xcalloc((size_t)n, sizeof(*d));
	snap_lines_find(&l, s, snapshot_owner);
	for (int i = 0; i < n; i++)
		snap_analyse(&d[i], s, &l, i);
	status = write_snapshot(path, s, &l, d, n);
	for (int i = 0; i < n; i++)
		snap_device_release(&d[i]);
	snap_lines_release(&l);
	free(d);
	snap_free(s);
	return status;
}
