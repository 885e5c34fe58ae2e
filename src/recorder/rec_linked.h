/* SPDX-License-Identifier: Apache-2.0
 * Functions of libraries that a process can load in several versions (libcudart 11, 12 and 13 at once): each caller
 * must reach the one it was linked against, so the caller decides which real function is called.
 */
#ifndef CUWHY_REC_LINKED_H
#define CUWHY_REC_LINKED_H

#include "rec.h"

#define LINKED_CALLERS	64
#define LINKED_NAMES	16

/* Entries of `caller` are added, never changed. */
struct linked {
	_Atomic uint32_t n;
	struct spin adding;
	uint32_t n_names;
	const char *library;		/* prefix of its file name */
	const char *const *name;	/* of its functions */
	struct { uintptr_t start, end; void *real[LINKED_NAMES]; } caller[LINKED_CALLERS];
};

#define LINKED(file, names) { .library = file, .name = names, .n_names = sizeof(names) / sizeof(names[0]) }

void *linked_find(struct linked *l, uint32_t function, const void *caller);

/* NULL: no library has it. */
static inline void *linked_real(struct linked *l, uint32_t function, const void *caller)
{
	uint32_t n = atomic_load_explicit(&l->n, memory_order_acquire);

	for (uint32_t i = 0; i < n; i++)
		if ((uintptr_t)caller >= l->caller[i].start && (uintptr_t)caller < l->caller[i].end)
			return l->caller[i].real[function];
	return linked_find(l, function, caller);
}

#endif
