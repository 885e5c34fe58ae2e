/* SPDX-License-Identifier: Apache-2.0
 * What the tables of memory say about the address of a fault, as one line of evidence.
 */
#include <string.h>

#include "judge/verdict_priv.h"
#include "rules/template.h"

static const char *block_text(struct verdict *v, const struct casefile *f)
{
	const char *made = fact_text(f, FACT_address_made);
	char size[32];

	format_bytes(size, sizeof(size), fact_number(f, FACT_address_size, 0));
	return pool_printf(&v->pool, "%s of %s%s%s", fact_true(f, FACT_address_torch) ? "a block of PyTorch's" :
			   "an allocation", size, made[0] ? " made at " : "", made);
}

static const char *near_text(struct verdict *v, const struct casefile *f, const char *block)
{
	const char *end = strcmp(fact_text(f, FACT_address_side), "before") ? "past its end" : "before it";
	const char *who = fact_true(f, FACT_address_given) ? "the kernel has a pointer into" : "nearest to the address is";
	char distance[32];

	format_bytes(distance, sizeof(distance), fact_number(f, FACT_address_distance, 0));
	if (fact_known(f, FACT_address_param))
		return pool_printf(&v->pool, "parameter %.0f points into %s; the address is %s %s",
				   fact_number(f, FACT_address_param, 0), block, distance, end);
	return pool_printf(&v->pool, "%s %s; the address is %s %s", who, block, distance, end);
}

void verdict_address_evidence(struct verdict *v, const struct casefile *f)
{
	const char *in = fact_text(f, FACT_address_in), *block, *freed = fact_text(f, FACT_address_freed);
	const char *text = NULL;

	if (!strcmp(in, "host"))
		text = "the address lies in the process's own memory";
	if (fact_known(f, FACT_address_size)) {
		block = block_text(v, f);
		if (!strcmp(in, "near"))
			text = near_text(v, f, block);
		else if (!strcmp(in, "freed"))
			text = pool_printf(&v->pool, "the address lies in %s, given back%s%s", block,
					   !freed[0] ? "" : fact_true(f, FACT_address_freed_after) ? " after " : " at ", freed);
		else if (!strcmp(in, "other-device"))
			text = pool_printf(&v->pool, "%s is on device %.0f; the kernel ran on device %.0f", block,
					   fact_number(f, FACT_address_device, -1), fact_number(f, FACT_fault_device, -1));
		else if (!strcmp(in, "live"))
			text = pool_printf(&v->pool, "the address lies in %s, which is live", block);
	}
	if (text)
		verdict_evidence(v, "allocations", text);
}
