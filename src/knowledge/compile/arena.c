/* SPDX-License-Identifier: Apache-2.0
 * The memory that becomes the knowledge base (see compile.h).
 */
#include "knowledge/compile/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define ARENA_MAX (16u << 20)	/* untouched pages cost nothing */
#define ALIGNMENT 8u

void arena_init(struct arena *a)
{
	*a = (struct arena){.base = xcalloc(1, ARENA_MAX)};
}

void arena_release(struct arena *a)
{
	map_release(&a->texts);
	free(a->text);
	free(a->base);
	*a = (struct arena){0};
}

static char *arena_take(struct arena *a, size_t size, size_t alignment)
{
	size_t at = (a->used + alignment - 1) / alignment * alignment;

	if (size > ARENA_MAX - at) {
		fprintf(stderr, "the knowledge base is larger than %u bytes\n", ARENA_MAX);
		exit(2);
	}
	a->used = at + size;
	return a->base + at;
}

void *arena_alloc(struct arena *a, size_t size)
{
	return arena_take(a, size, ALIGNMENT);
}

struct piece {
	const char *s;
	size_t len;
};

static bool same_text(const void *list, uint32_t i, const void *key)
{
	const struct arena *a = list;
	const struct piece *piece = key;
	const char *text = a->base + a->text[i];

	return !strncmp(text, piece->s, piece->len) && !text[piece->len];
}

const char *arena_copy(struct arena *a, const char *text, size_t len)
{
	struct piece key = {text, len};
	uint32_t i = map_put(&a->texts, map_hash_bytes(0, text, len), same_text, a, &key, (uint32_t)a->n_texts);
	char *copy;

	if (i < a->n_texts)
		return a->base + a->text[i];
	copy = memcpy(arena_take(a, len + 1, 1), text, len);
	a->text = xgrow(a->text, a->n_texts, &a->room, sizeof(*a->text));
	a->text[a->n_texts++] = (uint32_t)(copy - a->base);
	return copy;
}

const char *arena_text(struct arena *a, const char *text)
{
	return arena_copy(a, text, strlen(text));
}

void *arena_give(struct arena *a)
{
	void *all = xrealloc(a->base, a->used, 1);

	a->base = NULL;
	return all;
}

static int32_t *next_of(int32_t *ref)
{
	return ref_at(ref, *ref);
}

void list_append(void *head, void *element)
{
	int32_t *at = head;

	while (*at)
		at = next_of(at);
	*at = ref_distance(at, element);
}

bool list_insert(void *head, void *element, list_compare *compare)
{
	int32_t *at = head;
	int order = 1;

	while (*at && (order = compare(next_of(at), element)) < 0)
		at = next_of(at);
	if (*at && !order)
		return false;
	*(int32_t *)element = ref_distance(element, next_of(at));
	*at = ref_distance(at, element);
	return true;
}
