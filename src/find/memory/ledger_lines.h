/* SPDX-License-Identifier: Apache-2.0
 * The lines of a ledger while it is made: who holds how much.
 */
#ifndef CUWHY_LEDGER_LINES_H
#define CUWHY_LEDGER_LINES_H

#include <stddef.h>

#include "base/map.h"
#include "find/memory/module_sums.h"

struct lines {
	struct ledger_line *list;
	size_t n, cap;
	struct module_sums *modules;	/* NULL: not wanted */
	struct map map;			/* of `list`, except other processes: each is its own line */
};

/* Adds to the line of the same part, kind and place, or starts one. */
void lines_add(struct lines *l, const struct ledger_line *one);

/* Same place: one line; biggest first. Nothing can be added then; the list is the caller's to free. */
void lines_join(struct lines *l);

#endif
