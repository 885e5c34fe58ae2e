/* SPDX-License-Identifier: Apache-2.0
 * Reads the file that `cuwhy run --memory-trace` writes: every event of the allocators, in order; or the newest ones, which every
 * recording has, in the same form (event_log.h).
 *
 * The recording beside it (.cwr) has the sites and stacks that events refer to. Nothing in the file is trusted:
 * an incomplete event ends it.
 */
#ifndef CUWHY_EVENTS_H
#define CUWHY_EVENTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cuwhy/format.h"

struct err;

struct event {
	enum cw_event kind;
	int device;			/* -1 = none */
	uint64_t ticks;			/* to within 64 */
	uint64_t addr, size;
	uint32_t site;			/* index into the sites of the recording */
	uint64_t lost;			/* LOST: how many */
	uint64_t asked;			/* MADE: bytes that PyTorch was asked for, rounded up to CW_EVENT_UNIT; 0 = not recorded */
	uint64_t stream, pool;		/* MADE, and before CW_MORE_START GAVE: as PyTorch numbers them */
	bool later;			/* FREED: in use until other streams are done with it */
	enum cw_event_more more;	/* MORE: what `size` is */
};

struct events {
	const uint8_t *at, *end;
	uint64_t time, addr;		/* of the previous event */
	bool knows_asked;		/* the writer had it */
	uint64_t asked, stream, pool;	/* of the next block */
	bool later;
};

/* Starts at the first event of a file's bytes, which stay the caller's. -errno with `e` filled when it is not a trace. */
int events_begin(struct events *r, const void *bytes, size_t len, struct err *e);

/* False at the end. What is said about the next block alone is part of it: its size, stream, and whether it waits. */
bool events_next(struct events *r, struct event *out);

#endif
