/* SPDX-License-Identifier: Apache-2.0
 * A memory snapshot opened as an input: read, replayed, each device analyzed.
 */
#ifndef CUWHY_INPUT_SNAPSHOT_H
#define CUWHY_INPUT_SNAPSHOT_H

#include "find/memory/snap_analyze.h"
#include "read/snapshot/snap_lines.h"

struct snapshot;

struct snapshot_source {
	struct snapshot *s;
	struct snap_device *d;
	struct snap_lines l;
	int n;			/* devices, at least one */
};

/* The device with the latest oom; the first device when there is none. */
int snapshot_device_to_judge(const struct snapshot_source *o);

#endif
