/* SPDX-License-Identifier: Apache-2.0
 * The search for whose memory an address is, private to address*.c.
 */
#ifndef CUWHY_ADDRESS_LOOK_H
#define CUWHY_ADDRESS_LOOK_H

#include <string.h>

#include "judge/address.h"
#include "input/recording/pieces.h"

struct cw_launch;

struct look {
	struct address *to;
	struct trace *trace;
	struct pieces torch, driver;
	const struct cw_launch *launch;
	const uint8_t *params;
	size_t n_params;	/* bytes */
	bool known;		/* the address is */
	uint64_t address, noticed;
	uint64_t origin;	/* words of the parameters that the code computed the address from, as bits */
	unsigned width;
};

/* Every aligned word of the parameters may be a pointer: alone, or in a structure that was given by value. */
static inline size_t look_words(const struct look *l)
{
	return l->n_params / 8;
}

static inline uint64_t look_word(const struct look *l, size_t i)
{
	uint64_t v;

	memcpy(&v, l->params + i * 8, sizeof(v));
	return v;
}

/* The piece that a word points into, PyTorch's block before the driver's allocation; NULL when there is none. */
const struct piece *look_pointed(const struct look *l, uint64_t v);

/* This piece is the answer; the pointer to it is word i of the parameters. */
void look_found(struct look *l, const char *in, const struct piece *p);
void look_found_param(struct look *l, size_t i);

/* The code computed it from a pointer to live memory, and it is outside of that, whatever was there once. */
bool look_strayed(struct look *l);

/* It is outside of everything. */
void look_near(struct look *l);

#endif
