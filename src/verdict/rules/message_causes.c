/* SPDX-License-Identifier: Apache-2.0
 * The causes that a message stands for (see message_causes.h).
 */
#include "verdict/rules/message_causes.h"

#include <string.h>

void message_causes(struct matches *m, const struct kb *kb, const struct casefile *f, struct pool *pool)
{
	char *next = pool_strdup(pool, fact_text(f, FACT_message_causes)), *id;
	bool alone = !m->n && next[0] && !strchr(next, ',') && fact_true(f, FACT_text_error) &&
		     !fact_true(f, FACT_text_peer);
	const char *because;

	if (!next[0] || (m->n && m->list[0].sure == KB_CERTAIN))
		return;
	because = pool_printf(pool, "a message of %s (%s)", fact_text(f, FACT_message_package),
			      fact_text(f, FACT_message_file));
	while ((id = strsep(&next, ", ")) != NULL)
		if (id[0])
			matches_add(m,
				    (struct match){.cause = kb_find(kb, id),
						   .sure = alone ? KB_LIKELY : KB_POSSIBLE,
						   .because = because},
				    f, pool);
}
