/* SPDX-License-Identifier: Apache-2.0
 * The bits of one GPU instruction. Only for the decoders.
 */
#ifndef CUWHY_SASS_WORD_H
#define CUWHY_SASS_WORD_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

#define R_NONE		255	/* RZ */

struct word {
	uint64_t lo, hi;
};

static inline struct word word_of(const uint8_t *code)
{
	struct word w;

	memcpy(&w, code, sizeof(w));
	w.lo = le64toh(w.lo);
	w.hi = le64toh(w.hi);
	return w;
}

/* Bits [at, at + n) of the instruction; a field never crosses the middle. */
static inline uint64_t bits(const struct word *w, unsigned at, unsigned n)
{
	uint64_t half = at < 64 ? w->lo >> at : w->hi >> (at - 64);

	return half & ((1ull << n) - 1);
}

#endif
