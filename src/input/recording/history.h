/* SPDX-License-Identifier: Apache-2.0
 * The events of a memory trace (events.h), replayed: what was live after each of them, and whose it was.
 */
#ifndef CUWHY_HISTORY_H
#define CUWHY_HISTORY_H

#include "base/map.h"
#include "input/recording/pieces.h"
#include "input/recording/events.h"

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

struct history {
	struct events events;
	const struct cw_site *site;
	size_t n_sites;
	struct held_book torch, driver;
	uint64_t *made;			/* per site: ticks of its last PyTorch block, 0 = none yet */
	uint64_t n, lost;		/* events so far, and lost ones */
	uint64_t ticks;			/* of the newest */
};

struct history_step {
	struct event event;
	struct held *came;		/* NULL = nothing was allocated; valid until the next step */
	struct held went;		/* size 0 when it was not known, or nothing was freed */
};

/* Before the first event. The bytes stay the caller's. -errno with `e` filled when they are not a memory trace. */
int history_begin(struct history *h, struct trace *t, const void *bytes, size_t len, struct err *e);
void history_release(struct history *h);

/* False at the end. */
bool history_next(struct history *h, struct history_step *s);

/* Up to a moment; false when the trace ends before it. Only once per history. */
bool history_until(struct history *h, uint64_t ticks);

#endif
