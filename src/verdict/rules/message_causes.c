/* SPDX-License-Identifier: Apache-2.0
 * The causes that a message stands for (see message_causes.h).
 */
#include "verdict/rules/message_causes.h"

#include <string.h>

/* `causes`: ids, separated by commas. `error`: the message is why something failed, not about it. */
static void add_causes(struct matches *m, const struct kb *kb, const struct casefile *f, struct pool *pool,
		       const char *causes, const char *because, bool error)
{
	char *next = pool_strdup(pool, causes), *id;
	bool alone = !m->n && next[0] && !strchr(next, ',') && error;

	if (!next[0] || (m->n && m->list[0].sure == KB_CERTAIN))
		return;
	while ((id = strsep(&next, ", ")) != NULL)
		if (id[0])
			matches_add(m,
				    (struct match){.cause = kb_find(kb, id),
						   .sure = alone ? KB_LIKELY : KB_POSSIBLE,
						   .because = because},
				    f, pool);
}

void message_causes(struct matches *m, const struct kb *kb, const struct casefile *f, struct pool *pool)
{
	add_causes(m, kb, f, pool, fact_text(f, FACT_assert_causes),
		   pool_printf(pool, "the kernel checked `%s`, and says what is wrong",
			       fact_text(f, FACT_assert_condition)),
		   true);
	add_causes(m, kb, f, pool, fact_text(f, FACT_message_causes),
		   pool_printf(pool, "a message of %s (%s)", fact_text(f, FACT_message_package),
			       fact_text(f, FACT_message_file)),
		   fact_true(f, FACT_text_error) && !fact_true(f, FACT_text_peer));
}
