/* SPDX-License-Identifier: Apache-2.0
 * Facts that a line says as yes or no: the rows of kb/log_facts.def.
 */
#ifndef CUWHY_TEXT_SAID_FACTS_H
#define CUWHY_TEXT_SAID_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "case/case.h"

enum {
#define LIST(fact) SAYS_##fact,
#define SAID(fact, words)
#define WRITTEN(fact, words)
#include "kb/log_facts.def"
	SAID_FACTS
};

/* The line that says it first. */
struct said_place {
	const char *file;
	uint64_t line;
	char text[200];
};

struct said_facts {
	uint64_t said;	/* a bit for each */
	struct said_place place[SAID_FACTS];
};

/* `file` stays. */
void said_facts_line(struct said_facts *f, const char *s, const char *file, uint64_t line);
/* The line says so by how it is built. */
void said_facts_add(struct said_facts *f, int which, const char *s, const char *file, uint64_t line);

static inline bool said_fact(const struct said_facts *f, int which)
{
	return f->said >> which & 1;
}

void facts_of_said(struct casefile *c, const struct said_facts *f);

#endif
