/* SPDX-License-Identifier: Apache-2.0
 * The events of a memory trace (events.h) played back: what was live after each of them, and whose it was.
 */
#ifndef CUWHY_PLAYBACK_H
#define CUWHY_PLAYBACK_H

#include "base/map.h"
#include "find/memory/pieces.h"
#include "read/recording/events.h"

struct buf;
struct cw_site;

struct held {
	struct piece piece;
	uint64_t tag;			/* the caller's own */
};

/* What is live, by address. */
struct held_book {
	struct held *list;		/* in no order */
	size_t n, cap;
	struct map map;			/* of `list` */
};

struct playback {
	struct events events;
	const struct cw_site *site;
	size_t n_sites;
	struct held_book torch, driver;
	uint64_t *made;			/* per site: ticks of its last PyTorch block, 0 = none yet */
	uint64_t n, lost;		/* events so far, and lost ones */
	uint64_t ticks;			/* of the newest */
};

struct playback_step {
	struct event event;
	struct held *came;		/* NULL = nothing was allocated; valid until the next step */
	struct held went;		/* size 0 when it was not known, or nothing was freed */
};

/* The bytes of the memory trace beside the part of a process. 0; 1 when there is none; -errno with `e` filled. */
int memory_trace_read(struct buf *b, const struct trace *t, const char *part, struct err *e);

/* Likewise, or, where there is none, the newest events, which the recording itself has (event_log.h). */
int memory_events_read(struct buf *b, struct trace *t, const char *part, struct err *e);

/* Before the first event. The bytes stay the caller's. -errno with `e` filled when they are no memory trace. */
int playback_begin(struct playback *play, struct trace *t, const void *bytes, size_t len, struct err *e);
void playback_release(struct playback *play);

/* False at the end. */
bool playback_next(struct playback *play, struct playback_step *s);

/* Up to a moment; false when the trace ends before it. Only once for each history. */
bool playback_until(struct playback *play, uint64_t ticks);

#endif
