/* SPDX-License-Identifier: Apache-2.0
 * What a recording knows of the history of memory: blocks and segments that are gone, and failures (see torchsnap.h).
 */
#include <stdlib.h>

#include "base/mem.h"
#include "write/torchsnap_priv.h"
#include "input/recording/trace.h"
#include "base/banned.h"

void torchsnap_note(struct torchsnap_builder *b, enum torchsnap_action action, uint64_t ticks, uint64_t addr, uint64_t size,
		      int device, uint32_t stack)
{
	if (!b->traced)
		torchsnap_add_event(b->out, &(struct torchsnap_event){ticks, addr, size, stack,
								      (int16_t)torchsnap_device(device), (uint16_t)action});
}

static int by_address(const void *a, const void *b)
{
	const struct cw_freed *x = *(const struct cw_freed *const *)a, *y = *(const struct cw_freed *const *)b;

	return x->addr < y->addr ? -1 : x->addr > y->addr;
}

void freed_collect(struct torchsnap_builder *b)
{
	const struct cw_freed *const *f;
	size_t n = trace_freed(b->trace, &f);

	b->freed = xcalloc(n + 1, sizeof(*b->freed));
	b->placed = xcalloc(n + 1, sizeof(*b->placed));
	for (size_t i = 0; i < n; i++)
		if (f[i]->kind == CW_MEM_TORCH || f[i]->kind == CW_MEM_WORKSPACE)
			b->freed[b->n_freed++] = f[i];
	if (b->n_freed)
		qsort(b->freed, b->n_freed, sizeof(*b->freed), by_address);
}

/* Marks the blocks, freed since, that were cut out of this memory while it was the process's; false = none. */
bool freed_place(struct torchsnap_builder *b, uint64_t addr, uint64_t size, uint64_t from, uint64_t until)
{
	size_t low = 0, high = b->n_freed;
	bool any = false;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (b->freed[middle]->addr < addr)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < b->n_freed && b->freed[low]->addr < torchsnap_end_of(addr, size); low++)
		if (b->freed[low]->made_ticks >= from && b->freed[low]->ticks <= until)
			any = b->placed[low] = true;
	return any;
}

/* A viewer goes back in time and looks for the segment of every block: blocks of a segment that is not known any more
 * are no part of the history. */
void freed_add_blocks(struct torchsnap_builder *b)
{
	for (size_t i = 0; i < b->n_freed; i++) {
		const struct cw_freed *f = b->freed[i];

		if (!b->placed[i])
			continue;
		torchsnap_note(b, TORCHSNAP_ALLOC, f->made_ticks, f->addr, f->size, f->device,
			  torchsnap_stack(b->trace, f->stack, f->forward_stack));
		torchsnap_note(b, TORCHSNAP_FREE_REQUESTED, f->ticks, f->addr, f->size, f->device, freed_stack(f));
		torchsnap_note(b, TORCHSNAP_FREE_COMPLETED, f->ticks, f->addr, f->size, f->device, freed_stack(f));
	}
}

void freed_add_segments(struct torchsnap_builder *b)
{
	const struct cw_freed *const *f;
	size_t n = trace_freed(b->trace, &f);

	for (size_t i = 0; i < n; i++) {
		bool mapped = f[i]->kind == CW_MEM_VMM;

		if (f[i]->kind == CW_MEM_TORCH || f[i]->kind == CW_MEM_WORKSPACE ||
		    !freed_place(b, f[i]->addr, f[i]->size, f[i]->made_ticks, f[i]->ticks))
			continue;
		torchsnap_note(b, mapped ? TORCHSNAP_SEGMENT_MAP : TORCHSNAP_SEGMENT_ALLOC, f[i]->made_ticks, f[i]->addr,
			  f[i]->size, f[i]->device, f[i]->stack);
		torchsnap_note(b, mapped ? TORCHSNAP_SEGMENT_UNMAP : TORCHSNAP_SEGMENT_FREE, f[i]->ticks, f[i]->addr,
			  f[i]->size, f[i]->device, f[i]->free_stack);
	}
}

void freed_add_ooms(struct torchsnap_builder *b)
{
	const struct cw_failure *const *f;
	size_t n = trace_failures(b->trace, &f);

	for (size_t i = 0; i < n; i++)
		if (f[i]->source == CW_SRC_TORCH_OOM)
			torchsnap_note(b, TORCHSNAP_OOM, f[i]->ticks, f[i]->free_bytes, f[i]->request_bytes, f[i]->device,
				  torchsnap_stack(b->trace, f[i]->stack, f[i]->forward_stack));
}
