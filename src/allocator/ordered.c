/* SPDX-License-Identifier: Apache-2.0
 * A set in the order (size, rank). */
#include "allocator/ordered.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define LEAF_ITEMS 64
#define UNIT_BITS  9			/* PyTorch's blocks are multiples of 512 bytes */
#define PART_BITS  5			/* 32 buckets for each power of two */

struct ordered_leaf {
	uint32_t n;
	struct ordered_item item[LEAF_ITEMS];
};

/* Without a branch: which one is less is as good as random. */
static bool less(const struct ordered_key *a, const struct ordered_key *b)
{
	return (a->size < b->size) | ((a->size == b->size) & (a->rank < b->rank));
}

static uint32_t bucket_of(uint64_t size)
{
	uint64_t units = size >> UNIT_BITS;
	uint32_t power, number;

	if (units < 1 << PART_BITS)
		return (uint32_t)units;
	power = 63 - (uint32_t)__builtin_clzll(units);
	number = ((power - PART_BITS) << PART_BITS) + (uint32_t)(units >> (power - PART_BITS));
	return number < ORDERED_BUCKETS ? number : ORDERED_BUCKETS - 1;
}

static void bucket_mark(struct ordered *set, uint32_t b)
{
	set->some[b / 64] |= (uint64_t)1 << b % 64;
	set->words |= (uint64_t)1 << b / 64;
}

static void bucket_unmark(struct ordered *set, uint32_t b)
{
	set->some[b / 64] &= ~((uint64_t)1 << b % 64);
	if (!set->some[b / 64])
		set->words &= ~((uint64_t)1 << b / 64);
}

/* The first one from `b` on; ORDERED_BUCKETS: there is none. */
static uint32_t bucket_from(const struct ordered *set, uint32_t b)
{
	uint64_t bits;
	uint32_t word = b / 64;

	if (b >= ORDERED_BUCKETS)
		return ORDERED_BUCKETS;
	bits = set->some[word] >> b % 64;
	if (bits)
		return b + (uint32_t)__builtin_ctzll(bits);
	bits = set->words & ~(((uint64_t)2 << word) - 1);
	if (!bits)
		return ORDERED_BUCKETS;
	word = (uint32_t)__builtin_ctzll(bits);
	return word * 64 + (uint32_t)__builtin_ctzll(set->some[word]);
}

/* The last one below `b`; ORDERED_BUCKETS: there is none. */
static uint32_t bucket_below(const struct ordered *set, uint32_t b)
{
	while (b-- > 0)
		if (set->some[b / 64] >> b % 64 & 1)
			return b;
	return ORDERED_BUCKETS;
}

/* The last leaf whose first item is not greater; the first leaf if there is none. */
static uint32_t leaf_of(const struct ordered_bucket *bucket, const struct ordered_key *key)
{
	uint32_t low = 0, high = bucket->leaves;

	while (high - low > 1) {
		uint32_t middle = (low + high) / 2;

		if (less(key, &bucket->leaf[middle]->item[0].key))
			high = middle;
		else
			low = middle;
	}
	return low;
}

/* How many items of the leaf are less. */
static uint32_t place_in(const struct ordered_leaf *leaf, const struct ordered_key *key)
{
	uint32_t low = 0, n = leaf->n;

	while (n > 0) {
		uint32_t half = n / 2;
		bool after = less(&leaf->item[low + half].key, key);

		low = after ? low + half + 1 : low;
		n = after ? n - half - 1 : half;
	}
	return low;
}

static void bucket_grow(struct ordered_bucket *bucket)
{
	struct ordered_leaf **old = bucket->leaf == &bucket->one ? NULL : bucket->leaf;

	if (!bucket->cap) {
		bucket->cap = 1;
		bucket->leaf = &bucket->one;
		return;
	}
	bucket->cap *= 8;
	bucket->leaf = xrealloc(old, bucket->cap, sizeof(struct ordered_leaf *));
	if (!old)
		bucket->leaf[0] = bucket->one;
}

static void leaf_insert(struct ordered_bucket *bucket, uint32_t where)
{
	if (bucket->leaves == bucket->cap)
		bucket_grow(bucket);
	memmove(bucket->leaf + where + 1, bucket->leaf + where,
		(bucket->leaves - where) * sizeof(struct ordered_leaf *));
	bucket->leaf[where] = xmalloc(sizeof(struct ordered_leaf));
	bucket->leaf[where]->n = 0;
	bucket->leaves++;
}

static void leaf_split(struct ordered_bucket *bucket, uint32_t which)
{
	struct ordered_leaf *old = bucket->leaf[which], *leaf;

	leaf_insert(bucket, which + 1);
	leaf = bucket->leaf[which + 1];
	leaf->n = old->n / 2;
	old->n -= leaf->n;
	memcpy(leaf->item, old->item + old->n, leaf->n * sizeof(*leaf->item));
}

void ordered_add(struct ordered *set, struct ordered_key key, void *of)
{
	uint32_t b = bucket_of(key.size), which, at;
	struct ordered_bucket *bucket;
	struct ordered_leaf *leaf;

	if (!set->bucket)
		set->bucket = xcalloc(ORDERED_BUCKETS, sizeof(*set->bucket));
	bucket = &set->bucket[b];
	if (!bucket->leaves)
		leaf_insert(bucket, 0);
	which = leaf_of(bucket, &key);
	if (bucket->leaf[which]->n == LEAF_ITEMS) {
		leaf_split(bucket, which);
		which = leaf_of(bucket, &key);
	}
	leaf = bucket->leaf[which];
	at = place_in(leaf, &key);
	memmove(leaf->item + at + 1, leaf->item + at, (leaf->n - at) * sizeof(*leaf->item));
	leaf->item[at] = (struct ordered_item){key, of};
	leaf->n++;
	bucket_mark(set, b);
	set->n++;
}

void ordered_remove_at(struct ordered *set, struct ordered_at at)
{
	struct ordered_bucket *bucket = &set->bucket[at.bucket];
	struct ordered_leaf *leaf = bucket->leaf[at.leaf];

	leaf->n--;
	memmove(leaf->item + at.i, leaf->item + at.i + 1, (leaf->n - at.i) * sizeof(*leaf->item));
	set->n--;
	if (leaf->n)
		return;
	if (bucket->leaves == 1) {
		bucket_unmark(set, at.bucket);
		return;
	}
	free(leaf);
	bucket->leaves--;
	memmove(bucket->leaf + at.leaf, bucket->leaf + at.leaf + 1,
		(bucket->leaves - at.leaf) * sizeof(struct ordered_leaf *));
}

/* A place behind the last item of a leaf becomes that of the next item. */
static bool settle(const struct ordered *set, struct ordered_at *at)
{
	const struct ordered_bucket *bucket;

	if (at->bucket < ORDERED_BUCKETS && set->bucket) {
		bucket = &set->bucket[at->bucket];
		if (at->leaf < bucket->leaves && at->i < bucket->leaf[at->leaf]->n)
			return true;
		if (at->leaf + 1 < bucket->leaves) {
			at->leaf++;
			at->i = 0;
			return true;
		}
	}
	*at = (struct ordered_at){bucket_from(set, at->bucket + 1), 0, 0};
	return at->bucket < ORDERED_BUCKETS;
}

bool ordered_find(const struct ordered *set, struct ordered_key key, struct ordered_at *at)
{
	uint32_t b = bucket_of(key.size);
	const struct ordered_bucket *bucket;

	*at = (struct ordered_at){bucket_from(set, b), 0, 0};
	if (at->bucket != b)
		return at->bucket < ORDERED_BUCKETS;
	bucket = &set->bucket[b];
	at->leaf = leaf_of(bucket, &key);
	at->i = place_in(bucket->leaf[at->leaf], &key);
	return settle(set, at);
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
	*at = (struct ordered_at){bucket_from(set, 0), 0, 0};
	return at->bucket < ORDERED_BUCKETS;
}

bool ordered_next(const struct ordered *set, struct ordered_at *at)
{
	at->i++;
	return settle(set, at);
}

bool ordered_previous(const struct ordered *set, struct ordered_at *at)
{
	const struct ordered_bucket *bucket;

	if (at->i > 0) {
		at->i--;
		return true;
	}
	if (at->leaf == 0) {
		uint32_t b = bucket_below(set, at->bucket);

		if (b == ORDERED_BUCKETS)
			return false;
		at->bucket = b;
		at->leaf = set->bucket[b].leaves;
	}
	bucket = &set->bucket[at->bucket];
	at->leaf--;
	at->i = bucket->leaf[at->leaf]->n - 1;
	return true;
}

struct ordered_item *ordered_item(const struct ordered *set, struct ordered_at at)
{
	return &set->bucket[at.bucket].leaf[at.leaf]->item[at.i];
}

void ordered_release(struct ordered *set)
{
	for (uint32_t b = 0; set->bucket && b < ORDERED_BUCKETS; b++) {
		for (uint32_t i = 0; i < set->bucket[b].leaves; i++)
			free(set->bucket[b].leaf[i]);
		if (set->bucket[b].leaf != &set->bucket[b].one)
			free(set->bucket[b].leaf);
	}
	free(set->bucket);
	*set = (struct ordered){0};
}
