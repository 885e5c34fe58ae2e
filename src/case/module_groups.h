/* SPDX-License-Identifier: Apache-2.0
 * Modules that are alike, as one: the layers of a model, which differ in their number.
 */
#ifndef CUWHY_MODULE_GROUPS_H
#define CUWHY_MODULE_GROUPS_H

#include "case/ledger.h"

struct module_group {
	const char *name;	/* "transformer.h.*.mlp.c_fc", of several models "Generator: main.0"; NULL = no module is known */
	uint64_t modules;
	uint64_t bytes;
	uint64_t kind[KIND_COUNT];
};

/* What a reader calls the module; NULL: none is known. */
const char *module_name_shown(const struct ledger *l, const struct ledger_module *m, struct pool *pool);

/* The biggest first. */
size_t module_groups(struct module_group **list, const struct ledger *l, struct pool *pool);

/* "activations 1.2 GiB, gradients 300.0 MiB", the largest first; one alone has no figure. */
const char *module_kinds_words(const uint64_t kind[KIND_COUNT], struct pool *pool);

#endif
