/* SPDX-License-Identifier: Apache-2.0
 * The causes that a text is like (see like_causes.h).
 */
#include "rules/like_causes.h"

#include <string.h>

#define CANDIDATES 3	/* as many as an answer shows */
#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

static const struct { uint32_t code; const char *causes; } codes[] = {
#define CODE_NOTE(code, note, causes) {code, causes},
#include "kb/code_notes.def"
};

static const struct { const char *name, *causes; } statuses[] = {
#define STATUS(family, number, name, note, causes) {#name, causes},
#include "kb/code_notes.def"
};

static void add_candidate(struct matches *m, const struct kb *kb, const char *id, const char *because,
			  const struct casefile *f, struct pool *pool)
{
	if (m->n < CANDIDATES)
		matches_add(m, (struct match){.cause = kb_find(kb, id), .sure = KB_POSSIBLE, .because = because}, f,
			    pool);
}

static void add_list(struct matches *m, const struct kb *kb, const char *ids, const char *because,
		     const struct casefile *f, struct pool *pool)
{
	char *next = pool_strdup(pool, ids), *id;

	while ((id = strsep(&next, ", ")) != NULL)
		if (id[0])
			add_candidate(m, kb, id, because, f, pool);
}

/* What a code, or the status of a library, is known to come from. */
static void code_causes(struct matches *m, const struct kb *kb, const struct casefile *f, struct pool *pool)
{
	const char *status = fact_text(f, FACT_text_status);
	double code = fact_number(f, FACT_error_code, 0);

	for (size_t i = 0; i < COUNT(codes); i++)
		if (code > 0 && codes[i].code == (uint32_t)code)
			add_list(m, kb, codes[i].causes, pool_printf(pool, "CUDA error %.0f may come from it", code), f,
				 pool);
	for (size_t i = 0; i < COUNT(statuses); i++)
		if (!strcmp(statuses[i].name, status))
			add_list(m, kb, statuses[i].causes, pool_printf(pool, "%s may come from it", status), f, pool);
}

void like_causes(struct matches *m, const struct kb *kb, const struct casefile *f, struct pool *pool)
{
	if (m->n ? m->list[0].sure == KB_CERTAIN : f->like_place == LIKE_BEHIND_RULES)
		return;
	if (!m->n && f->like_place == LIKE_BEHIND_UNKNOWN)
		add_candidate(m, kb, "unknown", NULL, f, pool);
	for (size_t i = 0; i < f->n_like; i++)
		add_candidate(m, kb, f->like[i].cause,
			      pool_printf(pool, "reports of it have the same words (%s)", f->like[i].words), f, pool);
	if (f->like_place == LIKE_FIRST)
		code_causes(m, kb, f, pool);
}
