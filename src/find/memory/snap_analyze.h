/* SPDX-License-Identifier: Apache-2.0
 * What a snapshot says about one device: who holds what, at the peak and at the end, what is fragmented, what grows,
 * and the last allocation that failed.
 */
#ifndef CUWHY_SNAP_ANALYZE_H
#define CUWHY_SNAP_ANALYZE_H

#include "read/snapshot/snap_lines.h"
#include "find/memory/snap_replay.h"

struct snap_use {		/* over all segments, or one pool and stream */
	uint64_t stream, pool[2];
	uint64_t reserved, allocated, requested, pending;
	uint64_t split;		/* free, in segments that are in use */
	uint64_t cached;	/* free, in segments without a live block */
	uint64_t largest_free;
	size_t segments, blocks;
};

struct snap_holder {		/* a line, and what it holds */
	uint32_t line;		/* index in struct snap_lines */
	uint32_t blocks;
	uint64_t bytes;
};

struct snap_pin {		/* a line whose blocks keep free memory from being returned to the driver */
	uint32_t line, blocks;
	uint64_t bytes;		/* of its blocks */
	uint64_t kept;		/* free memory next to them */
};

struct snap_oom {
	bool found;
	uint32_t event;		/* index among the device's events */
	uint32_t count;		/* how many oom events there are */
	uint64_t request, free;
	struct snap_now now;	/* at that moment */
	bool exact;		/* nothing changed between it and the end: the segments are those of that moment */
	uint32_t later;		/* allocations that came after it */
	uint64_t seen;		/* the most memory that this process is known to have held or could have allocated */
	uint32_t line;
};

struct snap_device {
	int device;
	struct snap_replay replay;
	struct snap_use all;
	struct snap_use *part;	/* by pool and stream, the largest first */
	size_t n_parts;
	struct snap_pin *pin;	/* most kept memory first */
	size_t n_pins;
	struct snap_oom oom;
};

void snap_analyze(struct snap_device *d, const struct snapshot *s, const struct snap_lines *l, int device);
void snap_device_release(struct snap_device *d);

/* Who holds what at a moment, largest first; owned by the caller. */
size_t snap_holders(const struct snap_device *d, const struct snap_lines *l, size_t moment, struct snap_holder **list);

/* Peak allocation in each of `n` time slices. */
void snap_timeline(const struct snap_device *d, uint64_t *most, size_t n);

#endif
