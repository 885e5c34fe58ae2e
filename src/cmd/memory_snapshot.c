/* SPDX-License-Identifier: Apache-2.0
 * `cuwhy memory SNAPSHOT`: who held what, at which moment.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "base/progress.h"
#include "cmd/cmd.h"
#include "cmd/memory_snapshot.h"
#include "input/snapshot/observe.h"
#include "base/banned.h"

static char *name_of_line(const struct memory_view *v, const struct snap_line *at)
{
	const char *function = snap_text(v->s, at->function);

	if (!at->file)
		return xstrdup("(not known)");
	return xasprintf("%s:%u%s%s", snap_text(v->s, at->file), at->line, function[0] ? " " : "", function);
}

static struct memory_row *add_row(struct memory_view *v, size_t *cap, char *name)
{
	v->row = xgrow(v->row, v->n, cap, sizeof(*v->row));
	v->row[v->n] = (struct memory_row){.name = name};
	return &v->row[v->n++];
}

static int larger(const void *a, const void *b)
{
	const struct memory_row *x = a, *y = b;

	return x->bytes != y->bytes ? (x->bytes > y->bytes ? -1 : 1) : strcmp(x->name, y->name);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct memory_row *)a)->name, ((const struct memory_row *)b)->name);
}

/* Neighbours of the same name become one. */
static void join_rows(struct memory_view *v)
{
	size_t n = 0;

	if (!v->n)
		return;
	qsort(v->row, v->n, sizeof(*v->row), by_name);
	for (size_t i = 0; i < v->n; i++) {
		if (n && !strcmp(v->row[n - 1].name, v->row[i].name)) {
			v->row[n - 1].bytes += v->row[i].bytes;
			v->row[n - 1].blocks += v->row[i].blocks;
			free(v->row[i].name);
		} else {
			v->row[n++] = v->row[i];
		}
	}
	v->n = n;
	qsort(v->row, v->n, sizeof(*v->row), larger);
}

static void rows_by_line(struct memory_view *v, bool function)
{
	struct snap_holder *h;
	size_t n = snap_holders(v->d, v->l, v->moment, &h), cap = 0;

	for (size_t i = 0; i < n; i++) {
		const struct snap_line *at = snap_line(v->l, h[i].line);
		const char *name = snap_text(v->s, at->function);
		struct memory_row *r = add_row(v, &cap, !function || !at->file ? name_of_line(v, at) :
				xasprintf("%s in %s", name[0] ? name : "?", snap_text(v->s, at->file)));

		r->bytes = h[i].bytes;
		r->blocks = h[i].blocks;
		r->line = function || !at->file ? NULL : at;
	}
	free(h);
	join_rows(v);
}

static char *name_of_part(const struct snap_use *u, bool pool)
{
	if (!pool)
		return u->stream ? xasprintf("stream 0x%" PRIx64, u->stream) : xstrdup("default stream");
	if (!u->pool[0] && !u->pool[1])
		return xstrdup("default pool");
	return xasprintf("pool (%" PRIu64 ", %" PRIu64 ")", u->pool[0], u->pool[1]);
}

/* Streams and pools are known of the segments, and so at the end only. */
static void rows_by_part(struct memory_view *v, bool pool)
{
	size_t cap = 0;

	for (size_t i = 0; i < v->d->n_parts; i++) {
		const struct snap_use *u = &v->d->part[i];
		struct memory_row *r = add_row(v, &cap, name_of_part(u, pool));

		r->bytes = u->reserved;
		r->blocks = u->blocks;
	}
	join_rows(v);
}

static void choose(struct memory_view *v, const struct memory_options *o)
{
	const struct snap_device *d = v->d;

	v->by = o->by ? o->by : "line";
	v->at = o->at ? o->at : d->oom.found ? "oom" : d->replay.n ? "peak" : "end";
	if (!strcmp(v->by, "stream") || !strcmp(v->by, "pool") || (!strcmp(v->at, "oom") && !d->oom.found))
		v->at = "end";
	v->moment = !strcmp(v->at, "peak") ? d->replay.peak_moment : !strcmp(v->at, "oom") ? d->oom.event : d->replay.n;
	v->now = replay_at(&d->replay, v->moment);
}

static void look(struct memory_view *v, const struct memory_options *o)
{
	choose(v, o);
	if (!strcmp(v->by, "stream") || !strcmp(v->by, "pool"))
		rows_by_part(v, !strcmp(v->by, "pool"));
	else
		rows_by_line(v, !strcmp(v->by, "function"));
	snap_timeline(v->d, v->chart, CHART_COLUMNS);
}

static void view_release(struct memory_view *v, struct snap_device *d)
{
	for (size_t i = 0; i < v->n; i++)
		free(v->row[i].name);
	free(v->row);
	snap_device_release(d);
}

int memory_of_snapshot(const char *path, const struct memory_options *o)
{
	struct err e = {0};
	struct snapshot *s;
	struct memory_view *v;
	struct snap_device *d;
	struct snap_lines l;
	size_t n = 0;
	int devices;

	progress_begin("reading '%s'", path);
	s = snap_open(path, &e);
	if (!s)
		return cmd_fail(stdout, o->json, &e, EXIT_TROUBLE);
	progress_begin("playing back '%s'", path);
	devices = snap_devices(s);
	d = xcalloc((size_t)devices + 1, sizeof(*d));
	v = xcalloc((size_t)devices + 1, sizeof(*v));
	snap_lines_find(&l, s, snapshot_owner);
	for (int i = 0; i < devices; i++) {
		snap_analyse(&d[n], s, &l, i);
		if (!d[n].all.segments && !d[n].replay.n) {
			snap_device_release(&d[n]);
			continue;
		}
		v[n] = (struct memory_view){.s = s, .d = &d[n], .l = &l};
		look(&v[n++], o);
	}
	progress_end();
	if (o->json)
		memory_print_json(v, n);
	for (size_t i = 0; !o->json && i < n; i++)
		memory_print(&v[i], o->width);
	if (!o->json && !n)
		printf("cuwhy: nothing is allocated in '%s'\n", path);
	for (size_t i = 0; i < n; i++)
		view_release(&v[i], &d[i]);
	snap_lines_release(&l);
	free(v);
	free(d);
	snap_free(s);
	return cmd_finish(EXIT_NOTHING);
}
