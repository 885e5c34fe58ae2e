/* SPDX-License-Identifier: Apache-2.0
 * The tensors of a ledger by module, while it is made.
 */
#ifndef CUWHY_MODULE_SUMS_H
#define CUWHY_MODULE_SUMS_H

#include <stddef.h>
#include <stdint.h>

#include "case/ledger.h"

struct module_sums {
	struct module_sum { uint64_t kind[KIND_COUNT]; } *of;	/* by number; 0 = no module, or none that is known */
	size_t n;
};

void module_sums_begin(struct module_sums *s, const struct trace *t);
void module_sums_add(struct module_sums *s, uint32_t module, enum ledger_kind kind, uint64_t bytes);

/* Modules of the same path are one: where the program makes its model anew, it is the same to a reader. Frees the sums. */
void module_sums_end(struct module_sums *s, struct ledger *l, const struct trace *t, struct pool *pool);

#endif
