/* SPDX-License-Identifier: Apache-2.0
 * PyTorch memory snapshots as an input (see find/input.h).
 */
#include "find/input_snapshot.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/progress.h"
#include "find/input.h"
#include "find/memory/observe_snapshot.h"

static bool snapshot_sniff(const struct sniffed *s)
{
	return !s->folder && snap_is_snapshot(s->head, s->n);
}

static void *snapshot_source_open(const char *path, struct err *e)
{
	struct snapshot *s = snap_open(path, e);
	struct snapshot_source *o;

	if (!s)
		return NULL;
	progress_begin("playing back '%s'", path);
	o = xcalloc(1, sizeof(*o));
	o->s = s;
	o->n = snap_devices(s) ? snap_devices(s) : 1;
	o->d = xcalloc((size_t)o->n, sizeof(*o->d));
	snap_lines_find(&o->l, s, snapshot_owner);
	for (int i = 0; i < o->n; i++)
		snap_analyze(&o->d[i], s, &o->l, i);
	return o;
}

int snapshot_device_to_judge(const struct snapshot_source *o)
{
	uint64_t time, newest = 0;
	int chosen = -1;

	for (int i = 0; i < o->n; i++) {
		if (!o->d[i].oom.found)
			continue;
		time = o->d[i].replay.event[o->d[i].oom.event].time_us;
		if (chosen < 0 || time > newest) {
			chosen = i;
			newest = time;
		}
	}
	return chosen < 0 ? 0 : chosen;
}

static void snapshot_source_observe(void *it, struct casefile *c)
{
	const struct snapshot_source *o = it;
	const struct snap_device *d = &o->d[snapshot_device_to_judge(o)];

	if (d->oom.found)
		snapshot_observe(c, o->s, &o->l, d);
}

static void snapshot_source_close(void *it)
{
	struct snapshot_source *o = it;

	if (!o)
		return;
	for (int i = 0; i < o->n; i++)
		snap_device_release(&o->d[i]);
	snap_lines_release(&o->l);
	free(o->d);
	snap_free(o->s);
	free(o);
}

const struct input input_snapshot = {
	.name = SNAPSHOT_OBSERVER,
	.what = "a PyTorch memory snapshot",
	.sniff = snapshot_sniff,
	.open = snapshot_source_open,
	.observe = snapshot_source_observe,
	.close = snapshot_source_close,
};
