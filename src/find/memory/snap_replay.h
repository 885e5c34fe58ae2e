/* SPDX-License-Identifier: Apache-2.0
 * Replays a device's events backward from its final segments: what was live at any moment.
 *
 * A moment is a number of events: moment 0 is before the first, moment n after the last. The list of events may have
 * lost its beginning; what was live before that is known from what was freed later or is still there.
 */
#ifndef CUWHY_SNAP_REPLAY_H
#define CUWHY_SNAP_REPLAY_H

#include "read/snapshot/snapshot.h"

struct snap_live {		/* a block that is allocated at the end */
	uint32_t block;
	uint32_t born;		/* event that allocated it; SNAP_NONE = before the first */
};

struct snap_now {
	int64_t allocated, reserved;
};

struct snap_replay {
	const struct snapshot *s;
	const struct snap_event *event;
	size_t n;
	uint32_t *match;	/* an allocation's free and the reverse, see snap_replay.c */
	struct snap_live *live;
	size_t n_live;
	uint8_t free_action;	/* the one that ends a block's life here */
	struct snap_now start, end;
	size_t peak_moment;	/* most allocated */
	struct snap_now peak;
	int64_t most_reserved;
};

void replay_make(struct snap_replay *r, const struct snapshot *s, int device);
void replay_release(struct snap_replay *r);

/* From the moment before event `i` to the one after it. */
void replay_step(const struct snap_replay *r, size_t i, struct snap_now *now);
struct snap_now replay_at(const struct snap_replay *r, size_t moment);

/* Bytes that event `i` added or removed: a block is larger than the request. */
uint64_t replay_bytes(const struct snap_replay *r, size_t i);

/* The event that allocated what event `i` (a free) freed; SNAP_NONE = before the first. */
uint32_t replay_alloc_of(const struct snap_replay *r, size_t i);

/* Calls `each` for every block that is allocated at that moment. `size` in bytes, `stack` of its allocation. */
typedef void replay_each_fn(void *arg, uint32_t stack, uint64_t size);
void replay_live(const struct snap_replay *r, size_t moment, replay_each_fn *each, void *arg);

#endif
