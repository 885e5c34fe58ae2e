/* SPDX-License-Identifier: Apache-2.0
 * What a program's author would call the way to an object.
 */
#ifndef CUWHY_HOLDERS_NAMES_H
#define CUWHY_HOLDERS_NAMES_H

#include "find/memory/holders_search.h"

#define STEPS_MAX	48u

/* One step of a way. Steps of the same text at the same place are the same to a reader: items of a list. */
struct name_step {
	const char *text;	/* ".history", "[*]", "['loss']"; "" = the parameters of a module */
	uint64_t object;	/* where it leads to */
	uint64_t within;	/* "[*]": of which container */
};

struct name_way {
	struct name_step step[STEPS_MAX];
	size_t n;
	uint32_t root;		/* a node */
};

/* Texts live in the pool. False: it is too long. */
bool name_way(struct search *s, uint32_t node, struct name_way *to, struct pool *pool);

/* Whose variable a way begins with: false if that is a module's. */
bool name_of_root(struct search *s, uint32_t root, struct py_frame *to, struct pool *pool);

#endif
