/* SPDX-License-Identifier: Apache-2.0
 * Would a request have fit, had some of the memory been free when it came? (room.h)
 */
#include "find/memory/room.h"

#define MIB		(1ull << 20)
#define ROUND		512u		/* sizes of blocks are multiples of this */
#define SMALL_BLOCK	MIB		/* up to this, blocks share segments of SMALL_SEGMENT */
#define SMALL_SEGMENT	(2 * MIB)
#define MIDDLE_BLOCK	(10 * MIB)	/* below this, they share segments of MIDDLE_SEGMENT; from here on, each has its own */
#define MIDDLE_SEGMENT	(20 * MIB)

static uint64_t round_up(uint64_t n, uint64_t to)
{
	return (n + to - 1) / to * to;
}

static bool is_small(uint64_t block)
{
	return block <= SMALL_BLOCK;
}

/* What PyTorch asks the driver for, for a block that fits nowhere. */
static uint64_t segment_for(uint64_t block)
{
	if (is_small(block))
		return SMALL_SEGMENT;
	return block < MIDDLE_BLOCK ? MIDDLE_SEGMENT : round_up(block, SMALL_SEGMENT);
}

/* The largest piece of a segment without a live block; the whole segment if there is none at all. */
static uint64_t largest_piece(const struct ledger_segment *s, const struct pieces *blocks, const bool *gone)
{
	uint64_t end = s->addr, largest = 0;

	for (size_t i = s->first; i < s->first + s->n; i++) {
		const struct piece *b = &blocks->list[i];

		if (gone && gone[i])
			continue;
		if (b->addr > end && b->addr - end > largest)
			largest = b->addr - end;
		end = b->addr + b->size > end ? b->addr + b->size : end;
	}
	if (s->addr + s->size > end && s->addr + s->size - end > largest)
		largest = s->addr + s->size - end;
	return largest;
}

int64_t room_without(const struct room *r, const bool *gone, uint64_t returned)
{
	uint64_t block = round_up(r->request, ROUND), fresh = r->free + returned;
	int64_t best = INT64_MIN, spare;

	for (size_t i = 0; i < r->segments->n; i++) {
		const struct ledger_segment *s = &r->segments->list[i];
		uint64_t piece = largest_piece(s, r->blocks, gone);

		if (s->kept)
			continue;
		if (piece == s->size)
			fresh += s->size;	/* returned to the driver before PyTorch gives up */
		else if (is_small(block) == (s->size == SMALL_SEGMENT) && (int64_t)(piece - block) > best)
			best = (int64_t)(piece - block);
	}
	spare = (int64_t)(fresh - segment_for(block));
	return spare > best ? spare : best;
}

int64_t room_packed(const struct room *r)
{
	uint64_t have = r->free, small = 0, large = 0, block = round_up(r->request, ROUND);

	for (size_t i = 0; i < r->segments->n; i++) {
		const struct ledger_segment *s = &r->segments->list[i];

		if (s->kept)
			continue;
		have += s->size;
		for (size_t k = s->first; k < s->first + s->n; k++)
			*(is_small(r->blocks->list[k].size) ? &small : &large) += r->blocks->list[k].size;
	}
	*(is_small(block) ? &small : &large) += block;
	return (int64_t)(have - round_up(small, SMALL_SEGMENT) - round_up(large, SMALL_SEGMENT));
}
