/* SPDX-License-Identifier: Apache-2.0
 * Equal bytes are kept once: strings, frames, stacks and pools of a snapshot repeat by the thousand.
 */
#ifndef CUWHY_INTERN_H
#define CUWHY_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

struct interned {
	uint32_t at, len;	/* in 4-byte words; in bytes */
};

struct intern {
	uint32_t *words;	/* the bytes, each followed by at least one zero byte */
	size_t n_words, cap_words;
	struct interned *item;
	size_t n, cap;
	struct map map;		/* of item */
	uint64_t seed;		/* random, so that no file can make all its bytes collide in one slot */
};

#define INTERN_MAX	((1u << 28) - 1)
#define INTERN_FULL	UINT32_MAX

void intern_init(struct intern *t);
void intern_release(struct intern *t);

/* The number of these bytes, the same for the same bytes; INTERN_FULL when there are too many. */
uint32_t intern_put(struct intern *t, const void *bytes, size_t len);

const void *intern_get(const struct intern *t, uint32_t id, size_t *len);	/* `len` may be NULL */
const char *intern_text(const struct intern *t, uint32_t id);

#endif
