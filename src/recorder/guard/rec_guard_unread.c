/* SPDX-License-Identifier: Apache-2.0
 * Guard mode: pointers among a launch's parameters that the kernel does not follow.
 *
 * Kernels over lists of tensors get a structure with room for many, of which the first few are filled in. The rest is what was on the
 * stack before: often pointers to tensors that have just been freed. To wait for those to be unmapped, as for every pointer to freed
 * memory, would stop the program a dozen times in a training step. But if the kernel followed such a pointer, that would be a fault:
 * so a place in the parameters that once pointed to unmapped memory in a launch that has ended well is not read by this kernel, as
 * long as it is launched with the same grid, which grows with the list.
 */
#include <string.h>

#include "recorder/guard/rec_guard_own.h"

#define PLACES	4096u
#define PROBES	16u
#define NEW_MOST 32u
#define NOT_YET	UINT64_MAX

static struct { uint64_t key, since; } places[PLACES];
static uint32_t fresh[NEW_MOST], n_fresh;	/* places whose launch is yet to come */

void unread_start(void)
{
	memset(&places, 0, sizeof(places));
	n_fresh = 0;
}

/* Never 0. */
static uint64_t key_of(const struct guard_launch *l, uint32_t offset)
{
	const uint64_t word[] = {l->function, (uint64_t)l->param << 32 | offset, l->grid[0],
				 (uint64_t)l->grid[1] << 32 | l->grid[2]};
	uint64_t h = 0x9e3779b97f4a7c15u;

	for (uint32_t i = 0; i < sizeof(word) / sizeof(word[0]); i++) {
		h = (h ^ word[i]) * 0xff51afd7ed558ccdu;
		h ^= h >> 32;
	}
	return h | 1;
}

static uint32_t home_of(uint64_t key)
{
	return (uint32_t)(key >> 8) % PLACES;
}

bool unread_known(const struct guard_launch *l, uint32_t offset)
{
	uint64_t key = key_of(l, offset);

	for (uint32_t n = 0, i = home_of(key); n < PROBES; n++, i = (i + 1) % PLACES)
		if (places[i].key == key)
			return places[i].since < free_finished();
	return false;
}

/* The first launch counts: later ones may not have ended yet. */
void unread_learn(const struct guard_launch *l, uint32_t offset, bool unmapped)
{
	uint64_t key = key_of(l, offset);
	uint32_t i = home_of(key), n = 0;

	for (; n < PROBES && places[i].key && places[i].key != key; n++)
		i = (i + 1) % PLACES;
	if ((places[i].key == key && places[i].since != NOT_YET) || failed_before() || n_fresh == NEW_MOST ||
	    atomic_load(&rec.captures))		/* what is captured is not executed, and perhaps never will be */
		return;
	places[i].key = key;		/* in place of another one, if there is no room */
	places[i].since = unmapped ? free_closed() : NOT_YET;
	if (!unmapped)
		fresh[n_fresh++] = i;
}

void unread_launching(bool unmapped)
{
	for (uint32_t i = 0; unmapped && i < n_fresh; i++)
		places[fresh[i]].since = free_closed();
	n_fresh = 0;
}
