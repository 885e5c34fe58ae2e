/* SPDX-License-Identifier: Apache-2.0
 * Between the files that judge environment variables.
 */
#ifndef CUWHY_VARIABLES_PRIV_H
#define CUWHY_VARIABLES_PRIV_H

#include "input/machine/variables.h"

enum value_kind {
	VALUE_TEXT, VALUE_INT, VALUE_NUMBER, VALUE_WORD, VALUE_LIST, VALUE_ALGO, VALUE_LEVEL, VALUE_ARCHS, VALUE_ALLOC, VALUE_WORKSPACE,
};
enum var_level { LEVEL_FINE, LEVEL_NOTE, LEVEL_OBSOLETE, LEVEL_DANGEROUS };

struct known_variable {
	const char *name, *reader;
	enum value_kind kind;
	const char *allowed;
	enum var_level level;
	const char *when;		/* "SET", "ON", "OFF" or a value */
	const char *text;		/* "" nothing to say */
};

const struct known_variable *known_variable(const char *name);	/* NULL: not in the list */

/* The name that was most likely meant; NULL when none is near. `outside`: it does not even begin like one of ours. */
const char *known_nearest(const char *name, bool outside);

/* What is wrong with the value; NULL when it is fine. The pool owns the text. */
const char *value_mistake(struct pool *pool, const struct known_variable *k, const struct variable *v);

bool value_is_on(const char *value);	/* not empty, 0, false, no or off */

void variables_add(struct variables *v, struct pool *pool, const struct var_finding *f);
void variables_look_at_pairs(struct variables *v, struct pool *pool);

#endif
