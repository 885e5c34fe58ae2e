/* SPDX-License-Identifier: Apache-2.0
 * A card that answers the allocator's calls from its free bytes. */
#include "allocator/card.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define PAGE	     ((uint64_t)2 << 20)
#define BOTTOM	     ((uint64_t)1 << 40)
#define TOP	     ((uint64_t)1 << 46)
#define RESERVATIONS ((uint64_t)1 << 47)	/* apart from the rest: they are larger than the card */

static uint64_t page_up(uint64_t size)
{
	return (size + PAGE - 1) / PAGE * PAGE;
}

static void range_insert(struct card *card, size_t at, struct card_range range)
{
	card->range = xgrow(card->range, card->n, &card->cap, sizeof(*card->range));
	memmove(card->range + at + 1, card->range + at, (card->n - at) * sizeof(range));
	card->range[at] = range;
	card->n++;
}

static void range_remove(struct card *card, size_t at)
{
	card->n--;
	memmove(card->range + at, card->range + at + 1, (card->n - at) * sizeof(*card->range));
}

static uint64_t range_take(struct card *card, uint64_t size)
{
	for (size_t i = 0; i < card->n; i++) {
		size_t at = card->ascending ? i : card->n - 1 - i;
		struct card_range *range = &card->range[at];
		uint64_t addr;

		if (range->size < size)
			continue;
		addr = card->ascending ? range->addr : range->addr + range->size - size;
		range->size -= size;
		if (card->ascending)
			range->addr += size;
		if (!range->size)
			range_remove(card, at);
		return addr;
	}
	return 0;
}

static void range_give(struct card *card, uint64_t addr, uint64_t size)
{
	size_t at = 0;

	while (at < card->n && card->range[at].addr < addr)
		at++;
	range_insert(card, at, (struct card_range){addr, size});
	if (at + 1 < card->n && addr + size == card->range[at + 1].addr) {
		card->range[at].size += card->range[at + 1].size;
		range_remove(card, at + 1);
	}
	if (at > 0 && card->range[at - 1].addr + card->range[at - 1].size == addr) {
		card->range[at - 1].size += card->range[at].size;
		range_remove(card, at);
	}
}

static uint64_t card_alloc(void *of, uint64_t size, uint64_t stream)
{
	struct card *card = of;
	uint64_t addr;

	(void)stream;
	size = page_up(size);
	addr = size <= card->free ? range_take(card, size) : 0;
	if (addr)
		card->free -= size;
	return addr;
}

static void card_free(void *of, uint64_t addr, uint64_t size)
{
	struct card *card = of;

	size = page_up(size);
	card->free += size;
	range_give(card, addr, size);
}

static uint64_t card_reserve(void *of, uint64_t size, uint64_t page, uint64_t stream)
{
	struct card *card = of;
	uint64_t addr;

	(void)page;
	(void)stream;
	size = page_up(size);
	addr = card->ascending ? card->reserved : card->reserved - size;
	card->reserved = card->ascending ? addr + size : addr;
	return addr;
}

static void card_unreserve(void *of, uint64_t addr, uint64_t size)
{
	(void)of;
	(void)addr;
	(void)size;
}

static bool card_map(void *of, uint64_t addr, uint64_t size)
{
	struct card *card = of;

	(void)addr;
	if (size > card->free)
		return false;
	card->free -= size;
	return true;
}

static void card_unmap(void *of, uint64_t addr, uint64_t size)
{
	struct card *card = of;

	(void)addr;
	card->free += size;
}

void card_init(struct card *card, uint64_t free, bool ascending)
{
	*card = (struct card){.free = free,
			      .ascending = ascending,
			      .reserved = ascending ? RESERVATIONS : RESERVATIONS * 2};
	range_insert(card, 0, (struct card_range){BOTTOM, TOP - BOTTOM});
}

/* Addresses may be others than those that this card gives out. */
bool card_adopt(struct card *card, uint64_t addr, uint64_t size)
{
	size = page_up(size);
	if (size > card->free)
		return false;
	card->free -= size;
	for (size_t i = card->n; i-- > 0;) {
		struct card_range r = card->range[i];
		uint64_t end = r.addr + r.size, from = addr > r.addr ? addr : r.addr,
			 to = addr + size < end ? addr + size : end;

		if (from >= to)
			continue;
		range_remove(card, i);
		if (to < end)
			range_insert(card, i, (struct card_range){to, end - to});
		if (r.addr < from)
			range_insert(card, i, (struct card_range){r.addr, from - r.addr});
	}
	return true;
}

void card_release(struct card *card)
{
	free(card->range);
}

struct allocator_driver card_driver(struct card *card)
{
	return (struct allocator_driver){
		.of = card,
		.alloc = card_alloc,
		.free = card_free,
		.reserve = card_reserve,
		.unreserve = card_unreserve,
		.map = card_map,
		.unmap = card_unmap,
	};
}
