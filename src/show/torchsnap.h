/* SPDX-License-Identifier: Apache-2.0
 * What a recording knows about PyTorch's allocator, as the snapshot that torch.cuda.memory._dump_snapshot would write.
 *
 * Exact: the blocks that were live at the end and their segments. With a memory trace, the history is complete;
 * without one, it covers these blocks and those freed last (CW_RING_FREED) in known segments: earlier frees have no event.
 * Not recorded, and so written as PyTorch's defaults: the stream (0), the pool ((0, 0)), and the size before rounding (the
 * block's). A memory trace does not have the lines that freed.
 */
#ifndef CUWHY_TORCHSNAP_H
#define CUWHY_TORCHSNAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct playback;
struct pickle;
struct trace;

struct torchsnap_block {
	uint64_t addr, size;
	uint32_t stack;			/* off of a cw_stack, 0 = none */
};

struct torchsnap_segment {
	uint64_t addr, size;
	uint64_t allocated;		/* in blocks */
	uint32_t stack;
	int device;
	bool small;			/* in the pool for requests of at most 1 MiB */
	bool expandable;
	size_t first, n;		/* its blocks */
};

/* What happened; events with the same time are sorted in this order. */
#define TORCHSNAP_ACTIONS(X)                                                              \
	X(SEGMENT_ALLOC, "segment_alloc") X(SEGMENT_MAP, "segment_map")                   \
	X(ALLOC, "alloc") X(FREE_REQUESTED, "free_requested") X(FREE_COMPLETED, "free_completed") \
	X(SEGMENT_FREE, "segment_free") X(SEGMENT_UNMAP, "segment_unmap") X(OOM, "oom")

enum torchsnap_action {
#define X(name, text) TORCHSNAP_##name,
	TORCHSNAP_ACTIONS(X)
#undef X
};

struct torchsnap_event {
	uint64_t ticks, addr, size;	/* OOM: addr is the bytes that were free on the device */
	uint32_t stack;
	int16_t device;
	uint16_t action;
};

struct torchsnap {
	struct torchsnap_segment *segment;	/* by address */
	struct torchsnap_block *block;
	struct torchsnap_event *event;		/* oldest first */
	size_t n_segments, n_blocks, n_events, segment_cap, block_cap, event_cap;
	int n_devices;
	uint64_t outside;		/* blocks not in any recorded allocation: each is its own segment */
	uint64_t overlapping;		/* blocks that overlap others in a damaged recording: left out */
	uint64_t lost;			/* blocks that the recorder had no room for */
	uint64_t missing;		/* events that the memory trace lost */
	uint64_t cache_left_out;	/* bytes that PyTorch had reserved in segments that cannot be identified */
};

/* `play` is a memory trace before its first event; NULL = there is none. */
void torchsnap_build(struct torchsnap *s, struct trace *t, struct playback *play);
void torchsnap_release(struct torchsnap *s);

/* Writes it as a pickle; `p` has been begun, and the caller ends it. */
void torchsnap_write(const struct torchsnap *s, const struct trace *t, struct pickle *p);

#endif
