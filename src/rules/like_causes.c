/* SPDX-License-Identifier: Apache-2.0
 * The causes that a text is like (see like_causes.h).
 */
#include "rules/like_causes.h"

#define CANDIDATES 3	/* as many as an answer shows */

void like_causes(struct matches *m, const struct kb *kb, const struct casefile *f, struct pool *pool)
{
	if (m->n ? m->list[0].sure > KB_POSSIBLE : f->like_place == LIKE_BEHIND_RULES)
		return;
	if (!m->n && f->like_place == LIKE_BEHIND_UNKNOWN)
		matches_add(m, (struct match){.cause = kb_find(kb, "unknown"), .sure = KB_POSSIBLE}, f, pool);
	for (size_t i = 0; i < f->n_like && m->n < CANDIDATES; i++)
		matches_add(m,
			    (struct match){.cause = kb_find(kb, f->like[i].cause),
					   .sure = KB_POSSIBLE,
					   .because = pool_printf(pool, "reports of it have the same words (%s)",
								  f->like[i].words)},
			    f, pool);
}
