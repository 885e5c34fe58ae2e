/* SPDX-License-Identifier: Apache-2.0
 * What the table of needles (needles.h) is made with and searched with: hashes of grams.
 */
#ifndef CUWHY_NEEDLE_PARTS_H
#define CUWHY_NEEDLE_PARTS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NEEDLE_STRIDE	 3	/* bytes from one look to the next, and grams of a window */
#define NEEDLE_SLOT_BITS 18	/* few of the slots have a gram, and they fit into the second level of the cache */
#define NEEDLE_SLOTS	 (1u << NEEDLE_SLOT_BITS)
#define NEEDLE_HEAD_BITS 12	/* the list of a gram is looked up by this much of its hash */
#define NEEDLE_HEADS	 (1u << NEEDLE_HEAD_BITS)
#define NEEDLE_NONE	 UINT16_MAX

/* Eight bytes, the first one lowest. */
static inline uint64_t needle_load(const char *s)
{
	uint64_t eight;

	memcpy(&eight, s, sizeof(eight));
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	eight = __builtin_bswap64(eight);
#endif
	return eight;
}

/* The same near the end of the text, where fewer bytes follow. */
static inline uint64_t needle_load_before(const char *s, const char *end)
{
	char eight[8] = {0};

	memcpy(eight, s, (size_t)(end - s) < sizeof(eight) ? (size_t)(end - s) : sizeof(eight));
	return needle_load(eight);
}

/* Of the gram that begins these bytes: the factor shifts those behind it out. Setting bit 5 folds case, and some other characters: it is
 * only a filter. */
static inline uint32_t needle_hash(uint64_t factor, uint64_t eight)
{
	return (uint32_t)((eight | 0x2020202020202020u) * factor >> 32);
}

static inline uint32_t needle_slot(uint32_t hash)
{
	return hash >> (32 - NEEDLE_SLOT_BITS);
}

static inline uint32_t needle_head(uint32_t hash)
{
	return hash >> (32 - NEEDLE_HEAD_BITS);
}

static inline size_t needle_gram_length(size_t window)
{
	return window - (NEEDLE_STRIDE - 1);
}

/* What is up to the next '*', without an anchor at its end. */
static inline size_t needle_piece_length(const char *s)
{
	size_t n = strcspn(s, "*");

	return n && !s[n] && s[n - 1] == '$' ? n - 1 : n;
}

#endif
