/* SPDX-License-Identifier: Apache-2.0
 * The bytes of a pickle, a window at a time: from a file, compressed with gzip or not, or from memory.
 */
#ifndef CUWHY_PICKLE_INPUT_H
#define CUWHY_PICKLE_INPUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <zlib.h>

struct err;

struct pickle_input {
	const uint8_t *at, *end;	/* what is in the window */
	uint64_t base;			/* offset of `end` in the uncompressed bytes */
	gzFile file;			/* NULL = from memory */
	uint8_t *window;
	uint64_t limit;			/* most uncompressed bytes to accept */
	struct err *err;
	int failed;			/* negative errno, with `err` filled */
};

#define INPUT_WINDOW	(256u << 10)

int input_open(struct pickle_input *in, const char *path, struct err *e);
void input_of_memory(struct pickle_input *in, const void *bytes, size_t len, struct err *e);
void input_close(struct pickle_input *in);

/* At least `n` bytes (at most a page or two) in the window? False at the end, or when reading failed. */
bool input_fill(struct pickle_input *in, size_t n);

static inline bool input_need(struct pickle_input *in, size_t n)
{
	return (size_t)(in->end - in->at) >= n || input_fill(in, n);
}

bool input_skip(struct pickle_input *in, uint64_t n);

static inline uint64_t input_offset(const struct pickle_input *in)
{
	return in->base - (uint64_t)(in->end - in->at);
}

#endif
