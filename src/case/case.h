/* SPDX-License-Identifier: Apache-2.0
 * The dictionary of facts about one failure: named values, each known or unknown.
 */
#ifndef CUWHY_CASE_H
#define CUWHY_CASE_H

#include <stdint.h>
#include <stdio.h>

#include "base/pool.h"
#include "case/value.h"

enum fact_id {
#define FACT(id, name, type, text) FACT_##id,
#include "case/case.def"
#undef FACT
	FACT_COUNT
};

struct casefile {
	struct pool *pool;	/* holds the texts */
	struct value value[FACT_COUNT];
	bool (*says)(const void *arg, const char *words);	/* is this in the text that was given? NULL = there is none */
	const void *says_arg;
};

/* All unknown but machine.is, which is no: rules over the machine begin with it, and are not "unchecked" without one. */
void case_init(struct casefile *f, struct pool *pool);

void fact_set_number(struct casefile *f, enum fact_id id, double number);
void fact_set_flag(struct casefile *f, enum fact_id id, bool flag);
void fact_set_text(struct casefile *f, enum fact_id id, const char *text);	/* copied; NULL = unknown */

/* -1 when there is no such fact. */
int fact_find(const char *name, size_t len);
const char *fact_name(enum fact_id id);
enum value_type fact_type(enum fact_id id);

bool fact_known(const struct casefile *f, enum fact_id id);
double fact_number(const struct casefile *f, enum fact_id id, double otherwise);
const char *fact_text(const struct casefile *f, enum fact_id id);	/* "" when unknown */
bool fact_true(const struct casefile *f, enum fact_id id);		/* known and yes */

/* Who holds what: after the messages have been read, since they may tell what the recording does not. */
void case_memory_parts(struct casefile *f);

/* docs/facts.md, and what is known of one failure: for people who write causes. */
void facts_document(FILE *out);
void facts_print(FILE *out, const struct casefile *f);

#endif
