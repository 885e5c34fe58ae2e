/* SPDX-License-Identifier: Apache-2.0
 * The largest size that fits (see largest.h).
 */
#include "find/memory/largest.h"

bool largest_fits(struct largest *l, uint64_t size, int lean)
{
	bool fits = true;

	for (size_t i = 0; fits && i < l->n; i++) {
		struct replay *r = growth_at(l->part[i].growth, (double)size, lean);
		struct replay_question q = l->part[i].q;
		struct replay_answer a;

		q.outside_more += lean * (int64_t)q.unsure;
		q.unsure = 0;
		replay_ask(r, &q, &a);
		fits = a.fits;
		l->doubts |= a.doubts;
		replay_free(r);
	}
	return fits;
}

uint64_t largest_find(struct largest *l, int lean)
{
	uint64_t good = 0, bad = l->most + 1;

	while (bad - good > 1) {
		uint64_t at = good + (bad - good) / 2;

		if (largest_fits(l, at, lean))
			good = at;
		else
			bad = at;
	}
	return good;
}
