/* SPDX-License-Identifier: Apache-2.0
 * The events of a memory trace (trace/events.h) played back: what was live after each of them, and whose it was.
 */
#ifndef CUWHY_HISTORY_H
#define CUWHY_HISTORY_H

#include "input/recording/pieces.h"
#include "input/recording/events.h"

struct buf;
struct cw_site;

struct held {
	struct piece piece;
	uint64_t tag;			/* the caller's own */
};

/* What is live, by address. */
struct held_book {
	struct held *list;		/* in no order */
	uint32_t *slot;			/* of a hash table: 0 = empty, else one more than an index of `list` */
	size_t n, cap, slots;
};

struct history {
	struct events events;
	const struct cw_site *site;
	size_t n_sites;
	struct held_book torch, driver;
	uint64_t *made;			/* of each site: ticks of the last block of PyTorch that it made, 0 = none yet */
	uint64_t n, lost;		/* events so far, and those that are missing among them */
	uint64_t ticks;			/* of the newest */
};

struct history_step {
	struct event event;
	struct held *came;		/* NULL = nothing came; until the next step */
	struct held went;		/* its size is 0 when it was not known, or nothing went */
};

/* The bytes of the memory trace beside the part of a process. 0; 1 when there is none; -errno with `e` filled. */
int memory_trace_read(struct buf *b, const struct trace *t, const char *part, struct err *e);

/* Before the first event. The bytes stay the caller's. -errno with `e` filled when they are no memory trace. */
int history_begin(struct history *h, struct trace *t, const void *bytes, size_t len, struct err *e);
void history_release(struct history *h);

/* False at the end. */
bool history_next(struct history *h, struct history_step *s);

/* Up to a moment; false when the trace ends before it. Only once for each history. */
bool history_until(struct history *h, uint64_t ticks);

#endif
