/* SPDX-License-Identifier: Apache-2.0
 * What the thread asserted that a device-side assert stopped.
 */
#include "input/dump/culprit_priv.h"
#include "base/banned.h"

#define CALLS_MAX	64

static bool try_at(struct hunt *h, uint64_t back)
{
	struct assertion_source s = {
		.dump = h->d, .image = h->image, .original = h->original, .arch = h->c->arch, .back = back,
		.name = h->c->kernel_text,
	};
	struct assertion *a = &h->c->assertion;

	if (!back || !assertion_find(a, &s))
		return false;
	if (a->condition || a->file || a->n_one_of)
		return true;
	assertion_free(a);
	*a = (struct assertion){.line = 0};
	return false;
}

/* The thread stands behind its call of __assertfail. One that is still inside has the address on its stack. */
void culprit_assert(struct hunt *h)
{
	struct dump_row row;
	uint32_t section, i;

	if (h->c->fault != FAULT_ASSERT || try_at(h, dump_get(&h->first.lane, DUMP_LANE_PC)))
		return;
	section = dump_child(&h->first.lane, DUMP_BACKTRACE);
	for (i = 0; i < CALLS_MAX && dump_row(h->d, section, i, &row); i++)
		if (try_at(h, dump_get(&row, DUMP_BACKTRACE_PC)))
			return;
}
