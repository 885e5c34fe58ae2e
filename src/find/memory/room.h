/* SPDX-License-Identifier: Apache-2.0
 * Would a request have fit, had some of the memory been free when it came?
 *
 * A cause of an out-of-memory error is what, taken away, lets the program go on. What PyTorch's allocator does with the
 * request is determined by its segments, the blocks in them and the card's free memory at that moment: a piece of a segment,
 * or, once segments without blocks are returned, a new segment. So no history is needed to answer.
 */
#ifndef CUWHY_ROOM_H
#define CUWHY_ROOM_H

#include "case/ledger.h"
#include "find/memory/pieces.h"

/* One device at the moment of the request. */
struct room {
	const struct ledger_segments *segments;
	const struct pieces *blocks;	/* PyTorch's, live */
	uint64_t free;			/* on the card */
	uint64_t request;		/* bytes of the block that was asked for */
};

/* Bytes to spare, negative: that many too few. `gone` (by index of the block; NULL: none) were freed before, and
 * `returned` bytes more were free on the card. */
int64_t room_without(const struct room *r, const bool *gone, uint64_t returned);

/* The same blocks, without gaps between them. */
int64_t room_packed(const struct room *r);

#endif
