/* SPDX-License-Identifier: Apache-2.0
 * Reads the file that `cuwhy run --memory-trace` writes: every event of the allocators, in order.
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
};

struct events {
	const uint8_t *at, *end;
	uint64_t time, addr;		/* of the previous event */
};

/* Starts at the first event of a file's bytes, which stay the caller's. -errno with `e` filled when it is not a trace. */
int events_begin(struct events *r, const void *bytes, size_t len, struct err *e);

/* False at the end. */
bool events_next(struct events *r, struct event *out);

#endif
