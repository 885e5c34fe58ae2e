/* SPDX-License-Identifier: Apache-2.0
 * Between the files that make a snapshot of PyTorch's allocator out of a recording.
 */
#ifndef CUWHY_TORCHSNAP_PRIV_H
#define CUWHY_TORCHSNAP_PRIV_H

#include "report/torchsnap.h"

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

#endif
