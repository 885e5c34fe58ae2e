/* SPDX-License-Identifier: Apache-2.0
 * Finds the library that a caller was linked against (see rec_linked.h), once for each caller.
 */
#include "rec_linked.h"

void *linked_find(struct linked *l, uint32_t function, const void *caller)
{
	struct elf_object who, library;
	struct signals signals;
	uint32_t n;

	if (!elf_linked(caller, l->library, &who, &library))
		return elf_symbol_anywhere(l->name[function]);
	signals = signals_block();
	if (spin_try_early(&l->adding)) {
		n = atomic_load(&l->n);
		if (n < LINKED_CALLERS) {
			l->caller[n].start = who.start;
			l->caller[n].end = who.end;
			for (uint32_t i = 0; i < l->n_names; i++)
				l->caller[n].real[i] = elf_symbol(&library, l->name[i]);
			atomic_store_explicit(&l->n, n + 1, memory_order_release);
		}
		spin_done(&l->adding);
	}
	signals_unblock(&signals);
	return elf_symbol(&library, l->name[function]);
}
