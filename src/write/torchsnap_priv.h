/* SPDX-License-Identifier: Apache-2.0
 * Between the files that make a snapshot of PyTorch's allocator out of a recording.
 */
#ifndef CUWHY_TORCHSNAP_PRIV_H
#define CUWHY_TORCHSNAP_PRIV_H

#include "input/recording/pieces.h"
#include "write/torchsnap.h"

#define TORCH_LIBRARY	"libc10_cuda"

/* The driver's allocations that are live, by address; as far as a memory trace tells. */
struct live_segment {
	uint64_t addr, size;
	size_t event;			/* that made it */
	bool mapped;			/* a piece of an expandable segment */
	bool torch;			/* PyTorch asked for it, or cut a block out of it */
};

struct live_segments {
	struct live_segment *list;
	size_t n, cap;
};

/* The first that ends after the address. */
size_t live_segments_from(const struct live_segments *l, uint64_t addr);

/* Every event of a memory trace, in order. `live` are the segments at the end; its list is the caller's (free). */
void torchsnap_read_history(struct torchsnap *s, struct trace *t, struct history *h, struct live_segments *live);

void torchsnap_add_event(struct torchsnap *s, const struct torchsnap_event *v);

/* A thread of autograd has no Python frames: then where the node was made. */
uint32_t torchsnap_stack(const struct trace *t, uint32_t stack, uint32_t forward);

int torchsnap_device(int device);

/* A snapshot that is being made. */
struct torchsnap_builder {
	struct torchsnap *out;
	struct trace *trace;
	struct pieces live;			/* blocks, by address */
	const struct cw_freed **freed;		/* likewise, those that are gone */
	bool *placed;				/* of each: its segment is known */
	size_t n_freed, at;			/* the first live block that has no segment yet */
	bool traced;				/* the history is a memory trace's */
	struct live_segments segments;		/* of which these were live at the end */
};

/* An event, unless a memory trace has told of all of them. */
void torchsnap_note(struct torchsnap_builder *b, enum torchsnap_action action, uint64_t ticks, uint64_t addr, uint64_t size,
		    int device, uint32_t stack);

/* Blocks that are gone, by address; those that were cut out of this memory while it was the process's are marked (false = none); and
 * what is known of them, of segments that are gone, and of memory that could not be had, as events. */
void freed_collect(struct torchsnap_builder *b);
bool freed_place(struct torchsnap_builder *b, uint64_t addr, uint64_t size, uint64_t from, uint64_t until);
void freed_add_blocks(struct torchsnap_builder *b);
void freed_add_segments(struct torchsnap_builder *b);
void freed_add_ooms(struct torchsnap_builder *b);

uint64_t torchsnap_end_of(uint64_t addr, uint64_t size);	/* the last address at most */

#endif
