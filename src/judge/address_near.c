/* SPDX-License-Identifier: Apache-2.0
 * An address outside of everything: which block it was to be in, and whether an index of 32 bits overflowed.
 */
#include "judge/address_look.h"

#define WRAP_SMALL	((uint64_t)1 << 16)	/* elements: an index so little below zero may be meant */
#define WRAP_LARGE	((uint64_t)1 << 24)	/* an index so far below zero was not */
#define WRAP_TIMES	8

/* An index of 32 bits with a sign is between -2^31 and 2^31: one that was to be larger comes out below zero, too small
 * by a multiple of 2^32. It counts elements; a vector access takes several of them, and some code counts bytes. Both
 * must fit: the address lies so far below the pointer, and the element that was meant lies in the block. */
static bool overflowed(const struct look *l, const struct piece *p, uint64_t base, uint64_t width, uint64_t *below)
{
	uint64_t meant = l->address;

	*below = (base - l->address) / width;
	if (l->address >= base || (base - l->address) % width || *below > (uint64_t)1 << 31 || *below < WRAP_SMALL)
		return false;
	for (int k = 0; k < WRAP_TIMES; k++) {
		meant += width << 32;
		if (piece_holds(p, meant))
			return true;
	}
	return false;
}

static bool wraps_below(struct look *l, const struct piece *p, uint64_t base, bool given)
{
	const uint64_t whole = l->width ? l->width : 1;
	uint64_t below;

	for (uint64_t width = whole; width >= (given ? 1 : whole); width /= 2) {
		if (!overflowed(l, p, base, width, &below))
			continue;
		l->to->wraps = true;
		l->to->wraps_sure = given && width == whole && below >= WRAP_LARGE;
		return true;
	}
	return false;
}

static void found_near(struct look *l, const struct piece *p)
{
	look_found(l, "near", p);
	l->to->past = l->address >= p->addr;
	l->to->distance = piece_distance(p, l->address);
}

/* By the kernel's own pointers: those among the words of its parameters that `which` has. */
static bool find_given(struct look *l, bool (*which)(const struct look *l, size_t word))
{
	const struct piece *best = NULL, *seen = NULL;
	size_t at = 0;

	for (size_t i = 0; i < look_words(l); i++) {
		const struct piece *p = which(l, i) ? look_pointed(l, look_word(l, i)) : NULL;

		if (!p || l->to->wraps || piece_holds(p, l->address))
			continue;
		l->to->several = l->to->several || (seen && seen != p);
		seen = p;
		if (wraps_below(l, p, look_word(l, i), true) || !best ||
		    piece_distance(p, l->address) < piece_distance(best, l->address)) {
			best = p;
			at = i;
		}
	}
	if (!best)
		return false;
	found_near(l, best);
	look_found_param(l, at);
	l->to->param_sure = true;
	return true;
}

/* By addresses alone: the parameters are not known, or hold no pointer to what is live. */
static void find_nearest(struct look *l)
{
	const struct piece *block = pieces_nearest(&l->torch, l->address);
	const struct piece *segment = pieces_nearest(&l->driver, l->address);
	const struct pieces *all[] = { &l->torch, &l->driver };

	for (size_t k = 0; k < 2; k++)
		for (size_t i = 0; i < all[k]->n; i++)
			if (wraps_below(l, &all[k]->list[i], all[k]->list[i].addr, false)) {
				found_near(l, &all[k]->list[i]);
				return;
			}
	/* the driver's allocation is nearer where no block of PyTorch's lies in it */
	if (block && (!segment || piece_holds(segment, block->addr)))
		found_near(l, block);
	else if (segment)
		found_near(l, segment);
}

static bool is_origin(const struct look *l, size_t word)
{
	return word < 64 && l->origin >> word & 1;
}

static bool is_any(const struct look *l, size_t word)
{
	(void)l, (void)word;
	return true;
}

bool look_strayed(struct look *l)
{
	l->to->traced = find_given(l, is_origin);
	return l->to->traced;
}

void look_near(struct look *l)
{
	if (!find_given(l, is_any))
		find_nearest(l);
}
