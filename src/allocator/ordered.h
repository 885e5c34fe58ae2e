/* SPDX-License-Identifier: Apache-2.0
 * A set in the order (size, rank): the free blocks of one stream, from which the best fit is taken.
 *
 * Sizes are divided into buckets, 32 for each power of two, and a bit map says which are not empty. In a bucket, items lie in
 * sorted leaves of a few dozen. So what is asked for most, the first item that is large enough, is two bit scans and one
 * leaf; a set with a million items of one size still works.
 */
#ifndef CUWHY_ORDERED_H
#define CUWHY_ORDERED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ORDERED_BUCKETS 1280	/* up to 2^47 bytes; whatever is larger is in the last one */

struct ordered_leaf;

struct ordered_key {
	uint64_t size, rank;
};

struct ordered_item {
	struct ordered_key key;
	void *of;			/* the caller's */
};

struct ordered_bucket {
	struct ordered_leaf **leaf;	/* in order; the last one to become empty stays */
	struct ordered_leaf *one;	/* where `leaf` points to while one is enough, as it nearly always is */
	uint32_t leaves, cap;
};

/* All zero is an empty set. */
struct ordered {
	struct ordered_bucket *bucket;
	uint64_t some[ORDERED_BUCKETS / 64];	/* bits of buckets that are not empty */
	uint64_t words;			/* bits of words in `some` that are not zero */
	size_t n;			/* items */
};

/* A place in the set. Any change of the set makes it invalid, except that after the removal of this item ordered_previous still
 * goes to the one before. */
struct ordered_at {
	uint32_t bucket, leaf, i;
};

void ordered_add(struct ordered *set, struct ordered_key key, void *of);	/* not twice */
void ordered_remove(struct ordered *set, struct ordered_key key);		/* must be in it */
void ordered_remove_at(struct ordered *set, struct ordered_at at);
void ordered_release(struct ordered *set);

/* The first item that is not less; false when there is none, and then `at` is the end, which has a previous item. */
bool ordered_find(const struct ordered *set, struct ordered_key key, struct ordered_at *at);
bool ordered_first(const struct ordered *set, struct ordered_at *at);
bool ordered_next(const struct ordered *set, struct ordered_at *at);
bool ordered_previous(const struct ordered *set, struct ordered_at *at);	/* false: it is the first */
struct ordered_item *ordered_item(const struct ordered *set, struct ordered_at at);

#endif
