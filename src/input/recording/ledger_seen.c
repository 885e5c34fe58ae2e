/* SPDX-License-Identifier: Apache-2.0
 * Who else holds memory of a device, from what NVML said when it ran out.
 */
#include <string.h>

#include "case/ledger.h"
#include "probe/usage.h"
#include "input/recording/trace.h"

/* In a container the only process on the GPU that cannot be resolved is this one; of several it can be any. */
static const struct gpu_holder *find_own(const struct gpu_state *g, uint32_t pid)
{
	const struct gpu_holder *stranger = NULL;
	size_t strangers = 0;

	for (size_t i = 0; i < g->n; i++) {
		const struct gpu_holder *h = &g->holder[i];

		if (h->state == HOLDER_OUTSIDE || h->state == HOLDER_UNKNOWN) {
			stranger = h;
			strangers++;
		} else if (h->pid == pid) {
			return h;
		}
	}
	return strangers == 1 ? stranger : NULL;
}

static bool all_known(const struct gpu_state *g)
{
	if (!g->holders_known)
		return false;
	for (size_t i = 0; i < g->n; i++)
		if (g->holder[i].bytes == USAGE_UNKNOWN)
			return false;
	return true;
}

void ledger_seen_from(struct ledger_seen *s, const struct gpu_usage *usage, const struct cw_device *d, uint32_t pid,
		      struct pool *pool)
{
	const struct gpu_state *g = usage ? usage_find(usage, d->uuid) : NULL;
	const struct gpu_holder *own = g && all_known(g) ? find_own(g, pid) : NULL;
	struct ledger_holder *list;

	*s = (struct ledger_seen){ .known = own != NULL };
	if (!own)
		return;
	s->holder = list = pool_alloc(pool, (g->n + 1) * sizeof(*list));
	for (size_t i = 0; i < g->n; i++) {
		const struct gpu_holder *h = &g->holder[i];

		if (h == own || (h->pid == own->pid && h->state == own->state))
			s->own += h->bytes;
		else
			list[s->n++] = (struct ledger_holder){ h->state == HOLDER_OUTSIDE ? 0 : h->pid,
							       pool_strdup(pool, h->command), h->bytes };
	}
}
