/* SPDX-License-Identifier: Apache-2.0
 * From a tensor's Python object to its block of memory.
 */
#ifndef CUWHY_HOLDERS_TENSORS_H
#define CUWHY_HOLDERS_TENSORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "read/live/remote.h"

struct cw_allocation;

#define TENSOR_TABLES	8u

/* Where PyTorch keeps things: from the Python object to the tensor, to its storage, to the memory. Learned from the process itself, since it
 * differs between versions: only what leads to blocks that are in use counts. */
struct tensor_layout {
	struct remote *r;
	const struct cw_allocation *const *block;	/* by address */
	size_t n_blocks;
	uint32_t impl, storage, data;
	uint32_t shape;		/* of the tensor: how many dimensions, sizes, strides, offset, elements, their type; 0 = not known */
	uint32_t agree, seen;	/* tensors for which this way leads to a block, of so many */
	uint64_t table[TENSOR_TABLES];	/* of functions: by these, tensors are known that no Python object is for */
	size_t n_tables;
	bool known;
};

/* `object`: some tensors' objects, not all of which need be on a GPU. */
void tensor_layout_learn(struct tensor_layout *l, struct remote *r, const struct cw_allocation *const *block,
			 size_t n_blocks, const uint64_t *object, size_t n);

/* The index of the block that the tensor's storage is; SIZE_MAX: it is in none. */
size_t tensor_block(const struct tensor_layout *l, uint64_t object);

/* The same of the C++ object, and that object. */
size_t tensor_impl_block(const struct tensor_layout *l, uint64_t impl);
uint64_t tensor_impl(const struct tensor_layout *l, uint64_t object);

/* Bytes of a tensor's elements; 0 = not known. */
uint64_t tensor_elements(const struct tensor_layout *l, uint64_t impl);

#endif
