/* SPDX-License-Identifier: Apache-2.0
 * Looks for the words of kb/log_facts.def (see env.h).
 */
#include "find/words/env.h"

#include <string.h>

#include "base/phrases.h"
#include "base/str.h"

/* A row of UNLESS means the fact's number, negated and one less. */
static struct phrase rows[] = {
#define LIST(fact)
#define SAID(fact, said) {.words = said, .exact = false, .means = SAYS_##fact},
#define WRITTEN(fact, said) {.words = said, .exact = true, .means = SAYS_##fact},
#define UNLESS(fact, said) {.words = said, .exact = true, .means = -1 - SAYS_##fact},
#include "kb/log_facts.def"
};

static const enum fact_id facts[] = {
#define LIST(fact) FACT_##fact,
#define SAID(fact, words)
#define WRITTEN(fact, words)
#include "kb/log_facts.def"
};

_Static_assert(SAID_FACTS <= 64, "said_facts.said has a bit for each");

static struct phrases all = {.row = rows, .n = sizeof(rows) / sizeof(rows[0])};

void said_facts_add(struct said_facts *f, int which, const char *s, const char *file, uint64_t line)
{
	struct said_place *p = &f->place[which];

	if (said_fact(f, which))
		return;
	f->said |= 1ull << which;
	p->file = file;
	p->line = line;
	str_copy(p->text, sizeof(p->text), s);
}

void said_facts_line(struct said_facts *f, const char *s, const char *file, uint64_t line)
{
	struct phrase_scan scan = phrase_scan(s, strlen(s));
	const struct phrase *row;
	uint64_t yes = 0, no = 0;

	while ((row = phrase_next(&all, &scan)) != NULL)
		if (row->means < 0)
			no |= 1ull << (-1 - row->means);
		else
			yes |= 1ull << row->means;
	for (int i = 0; yes & ~no & ~f->said; i++)
		if (yes & ~no & 1ull << i)
			said_facts_add(f, i, s, file, line);
}

void facts_of_said(struct casefile *c, const struct said_facts *f)
{
	for (int i = 0; i < SAID_FACTS; i++) {
		const struct said_place *p = &f->place[i];

		fact_set_flag(c, facts[i], said_fact(f, i));
		if (said_fact(f, i))
			fact_set_place(c, facts[i], pool_printf(c->pool, "%s line %llu: %s", p->file,
								(unsigned long long)p->line, p->text));
	}
}
