/* SPDX-License-Identifier: Apache-2.0
 * The blocks that a tensor keeps alive by way of C++ objects: its autograd graph, its gradient.
 */
#ifndef CUWHY_HOLDERS_GRAPH_H
#define CUWHY_HOLDERS_GRAPH_H

#include "base/map.h"
#include "find/memory/holders_tensors.h"
#include "read/live/pyheap.h"

#define GRAPH_CLASSES	1024u

struct graph_walk {
	const struct tensor_layout *layout;
	struct pyheap *heap;
	struct graph_object { uint64_t at; uint32_t from; bool tensor; } *object;	/* C++ objects, and which of them led there first */
	size_t n, cap, next;
	struct map seen;
	uint64_t until_ns;
	bool late;
	struct graph_class { uint64_t type; bool context; } class[GRAPH_CLASSES];
	struct graph_block {
		size_t block;
		uint64_t used;		/* bytes that its tensor has elements in; 0 = not known */
		bool gradient;		/* of a tensor, if it was allocated in backward */
		bool base;		/* of a view that leads to the same memory: nothing but the view needs it */
		bool first;		/* it is the tensor itself that was followed */
	} * block;	       /* those of the last call, some perhaps twice */
	size_t n_blocks, cap_blocks;
};

/* Follows what is new from this tensor on: each object once, however many tensors lead to it. */
void graph_follow(struct graph_walk *w, uint64_t impl);
void graph_release(struct graph_walk *w);

#endif
