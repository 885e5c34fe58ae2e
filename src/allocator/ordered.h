/* SPDX-License-Identifier: Apache-2.0
 * A set in the order (size, age, address): the free blocks of one stream, from which the best fit is taken.
 *
 * Items lie in leaves of a few dozen, the first key of each leaf in one array: a search touches two or three cache
 * lines instead of one per level of a tree of nodes, and walking in order is reading an array.
 */
#ifndef CUWHY_ORDERED_H
#define CUWHY_ORDERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ordered_leaf;

struct ordered_key {
	uint64_t size, age, addr;
};

struct ordered_item {
	struct ordered_key key;
	void *of;			/* the caller's */
};

struct ordered_head {
	struct ordered_key key;		/* of the first item */
	struct ordered_leaf *leaf;
};

/* All zero is an empty set. */
struct ordered {
	struct ordered_head *head;
	size_t leaves, cap;
	size_t n;			/* items */
};

/* A place in the set. Any change of the set makes it invalid, except that after the removal of this item ordered_previous still
 * goes to the one before. */
struct ordered_at {
	size_t leaf, i;
};

void ordered_add(struct ordered *set, struct ordered_key key, void *of);	/* not twice */
void ordered_remove(struct ordered *set, struct ordered_key key);		/* must be in it */
void ordered_remove_at(struct ordered *set, struct ordered_at at);
void ordered_release(struct ordered *set);

/* The first item that is not less; false when there is none, and then `at` is the end, which has a previous item. */
bool ordered_find(const struct ordered *set, struct ordered_key key, struct ordered_at *at);
bool ordered_first(const struct ordered *set, struct ordered_at *at);
bool ordered_next(const struct ordered *set, struct ordered_at *at);
bool ordered_previous(const struct ordered *set, struct ordered_at *at);	/* false, and unchanged: it is the first */
struct ordered_item *ordered_item(const struct ordered *set, struct ordered_at at);

#endif
