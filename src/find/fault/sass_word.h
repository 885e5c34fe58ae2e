/* SPDX-License-Identifier: Apache-2.0
 * The bits of one GPU instruction. Only for the decoders.
 */
#ifndef CUWHY_SASS_WORD_H
#define CUWHY_SASS_WORD_H

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define R_NONE		255	/* RZ */

/* Operations by name: the low nine bits of an opcode; the form is in the three above. */
#define OPCODE(operation, form)	((operation) | (form) << 9)

enum {
#define OPERATION(operation, name, file, most, predicates) OP_##name = operation,
#include "find/fault/sass_ops.def"
};

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

static inline uint32_t operation_of(const struct word *w)
{
	return (uint32_t)bits(w, 0, 9);
}

/* Operations 0x80 to 0xbf are done once for a warp, in uniform registers. */
static inline bool is_uniform(const struct word *w)
{
	return operation_of(w) >> 6 == 2;
}

static inline bool is_control(const struct word *w)
{
	return operation_of(w) >= 0x140 && operation_of(w) <= 0x15f;
}

/* Modifiers are in bits 72 to 90; 64 to 71 is a register in some forms. */
static inline uint32_t modifiers(const struct word *w)
{
	return (uint32_t)bits(w, 72, 19);
}

/* The register of these bits, -1 = the zero register. */
static inline int reg_at(const struct word *w, unsigned at)
{
	int r = (int)bits(w, at, 8);

	return r == R_NONE ? -1 : r;
}

static inline int ureg_at(const struct word *w, unsigned at, unsigned arch)
{
	int zero = arch < 100 ? 63 : 255, u = (int)bits(w, at, arch < 100 ? 6 : 8);

	return u == zero ? -1 : u;
}

#endif
