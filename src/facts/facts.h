/* SPDX-License-Identifier: Apache-2.0
 * The dictionary of facts about one failure: named values, each known or unknown.
 */
#ifndef CUWHY_FACTS_H
#define CUWHY_FACTS_H

#include <stdint.h>
#include <stdio.h>

#include "base/pool.h"
#include "facts/value.h"

enum fact_id {
#define FACT(id, name, type, text) FACT_##id,
#include "facts/facts.def"
#undef FACT
	FACT_COUNT
};

struct facts {
	struct pool *pool;	/* holds the texts */
	struct value value[FACT_COUNT];
	bool (*says)(const void *arg, const char *words);	/* is this in the text that was given? NULL = there is none */
	const void *says_arg;
};

/* All unknown but machine.is, which is no: rules over the machine begin with it, and are not "unchecked" without one. */
void facts_init(struct facts *f, struct pool *pool);

void fact_set_number(struct facts *f, enum fact_id id, double number);
void fact_set_flag(struct facts *f, enum fact_id id, bool flag);
void fact_set_text(struct facts *f, enum fact_id id, const char *text);	/* copied; NULL = unknown */

/* -1 when there is no such fact. */
int fact_find(const char *name, size_t len);
const char *fact_name(enum fact_id id);
enum value_type fact_type(enum fact_id id);

bool fact_known(const struct facts *f, enum fact_id id);
double fact_number(const struct facts *f, enum fact_id id, double otherwise);
const char *fact_text(const struct facts *f, enum fact_id id);	/* "" when unknown */
bool fact_true(const struct facts *f, enum fact_id id);		/* known and yes */

/* docs/facts.md, and what is known of one failure: for people who write causes. */
void facts_document(FILE *out);
void facts_print(FILE *out, const struct facts *f);

#endif
