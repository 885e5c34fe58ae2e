/* SPDX-License-Identifier: Apache-2.0
 * A set in the order (size, age, address). */
#include "allocator/ordered.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define LEAF_ITEMS 64

struct ordered_leaf {
	size_t n;
	struct ordered_item item[LEAF_ITEMS];
};

static bool less(const struct ordered_key *a, const struct ordered_key *b)
{
	if (a->size != b->size)
		return a->size < b->size;
	return a->age != b->age ? a->age < b->age : a->addr < b->addr;
}

/* The last leaf whose first item is not greater; the first leaf if there is none. */
static size_t leaf_of(const struct ordered *set, const struct ordered_key *key)
{
	size_t low = 0, high = set->leaves;

	while (high - low > 1) {
		size_t middle = (low + high) / 2;

		if (less(key, &set->head[middle].key))
			high = middle;
		else
			low = middle;
	}
	return low;
}

/* How many items of the leaf are less. */
static size_t place_in(const struct ordered_leaf *leaf, const struct ordered_key *key)
{
	size_t low = 0, n = leaf->n;

	while (n > 0) {
		size_t half = n / 2;
		bool after = less(&leaf->item[low + half].key, key);

		low = after ? low + half + 1 : low;
		n = after ? n - half - 1 : half;
	}
	return low;
}

static void head_update(struct ordered_head *head)
{
	head->key = head->leaf->item[0].key;
}

static void leaf_insert(struct ordered *set, size_t where, struct ordered_leaf *leaf)
{
	set->head = xgrow(set->head, set->leaves, &set->cap, sizeof(*set->head));
	memmove(set->head + where + 1, set->head + where, (set->leaves - where) * sizeof(*set->head));
	set->head[where].leaf = leaf;
	set->leaves++;
}

static void leaf_split(struct ordered *set, size_t which)
{
	struct ordered_leaf *old = set->head[which].leaf, *leaf = xmalloc(sizeof(*leaf));

	leaf->n = old->n / 2;
	old->n -= leaf->n;
	memcpy(leaf->item, old->item + old->n, leaf->n * sizeof(*leaf->item));
	leaf_insert(set, which + 1, leaf);
	head_update(&set->head[which + 1]);
}

void ordered_add(struct ordered *set, struct ordered_key key, void *of)
{
	struct ordered_leaf *leaf;
	size_t which, at;

	if (!set->leaves) {
		leaf = xmalloc(sizeof(*leaf));
		leaf->n = 0;
		leaf_insert(set, 0, leaf);
	}
	which = leaf_of(set, &key);
	if (set->head[which].leaf->n == LEAF_ITEMS) {
		leaf_split(set, which);
		which = leaf_of(set, &key);
	}
	leaf = set->head[which].leaf;
	at = place_in(leaf, &key);
	memmove(leaf->item + at + 1, leaf->item + at, (leaf->n - at) * sizeof(*leaf->item));
	leaf->item[at] = (struct ordered_item){key, of};
	leaf->n++;
	if (at == 0)
		head_update(&set->head[which]);
	set->n++;
}

void ordered_remove_at(struct ordered *set, struct ordered_at at)
{
	struct ordered_head *head = &set->head[at.leaf];
	struct ordered_leaf *leaf = head->leaf;

	leaf->n--;
	memmove(leaf->item + at.i, leaf->item + at.i + 1, (leaf->n - at.i) * sizeof(*leaf->item));
	set->n--;
	if (leaf->n) {
		if (at.i == 0)
			head_update(head);
		return;
	}
	free(leaf);
	set->leaves--;
	memmove(head, head + 1, (set->leaves - at.leaf) * sizeof(*head));
}

bool ordered_find(const struct ordered *set, struct ordered_key key, struct ordered_at *at)
{
	*at = (struct ordered_at){0, 0};
	if (!set->leaves)
		return false;
	at->leaf = leaf_of(set, &key);
	at->i = place_in(set->head[at->leaf].leaf, &key);
	if (at->i == set->head[at->leaf].leaf->n)
		*at = (struct ordered_at){at->leaf + 1, 0};
	return at->leaf < set->leaves;
}

void ordered_remove(struct ordered *set, struct ordered_key key)
{
	struct ordered_at at;

	if (!ordered_find(set, key, &at) || less(&key, &ordered_item(set, at)->key))
		BUG("not in the set");
	ordered_remove_at(set, at);
}

bool ordered_first(const struct ordered *set, struct ordered_at *at)
{
	*at = (struct ordered_at){0, 0};
	return set->leaves > 0;
}

bool ordered_next(const struct ordered *set, struct ordered_at *at)
{
	at->i++;
	if (at->i == set->head[at->leaf].leaf->n)
		*at = (struct ordered_at){at->leaf + 1, 0};
	return at->leaf < set->leaves;
}

bool ordered_previous(const struct ordered *set, struct ordered_at *at)
{
	if (at->i > 0) {
		at->i--;
		return true;
	}
	if (at->leaf == 0)
		return false;
	at->leaf--;
	at->i = set->head[at->leaf].leaf->n - 1;
	return true;
}

struct ordered_item *ordered_item(const struct ordered *set, struct ordered_at at)
{
	return &set->head[at.leaf].leaf->item[at.i];
}

void ordered_release(struct ordered *set)
{
	for (size_t i = 0; i < set->leaves; i++)
		free(set->head[i].leaf);
	free(set->head);
	*set = (struct ordered){0};
}
