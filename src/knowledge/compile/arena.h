/* SPDX-License-Identifier: Apache-2.0
 * Where the knowledge base is made: one piece of memory that never moves, so that what refers to something else in it (base/ref.h) stays
 * right when all of it is written to a file.
 */
#ifndef CUWHY_ARENA_H
#define CUWHY_ARENA_H

#include "base/map.h"
#include "base/ref.h"

struct arena {
	char *base;
	size_t used;
	struct map texts;	/* those in it, each once */
	uint32_t *text;		/* where they begin */
	size_t n_texts, room;
};

void arena_init(struct arena *a);
void arena_release(struct arena *a);

/* Zeroed, aligned for everything that is in it. Never NULL: the program exits when there is no room left. */
void *arena_alloc(struct arena *a, size_t size);
/* A text that may be shared. */
const char *arena_text(struct arena *a, const char *text);
const char *arena_copy(struct arena *a, const char *text, size_t len);

/* All that was made, in as much memory as it needs; the caller's (free). Nothing but arena_release may follow. */
void *arena_give(struct arena *a);

/* What it refers to, to be changed while it is made. */
#define OWN(ref) ref_at(&(ref), (ref).by)

/* An element of a list begins with its `next`. `head` is the reference to the first one. */
void list_append(void *head, void *element);
/* The same, in order; false: an equal one is there. */
typedef int list_compare(const void *a, const void *b);
bool list_insert(void *head, void *element, list_compare *compare);

#endif
