/* SPDX-License-Identifier: Apache-2.0
 * Unpacks code of a fat binary: one LZ4 block (CUDA 12.7 and older) or one zstd frame. */
#include "sim/cuda/sim_unpack.h"

#include <string.h>
#include <zstd.h>

struct lz4 {
	const uint8_t *from, *from_end;
	uint8_t *start, *to, *to_end;
};

/* A length of 15 goes on in the next bytes, up to and including the first that is not 255. */
static bool length_more(struct lz4 *z, size_t *length)
{
	uint8_t byte;

	if (*length != 15)
		return true;
	do {
		if (z->from == z->from_end)
			return false;
		byte = *z->from++;
		*length += byte;
	} while (byte == 255);
	return true;
}

static bool literals(struct lz4 *z, size_t n)
{
	if (!length_more(z, &n) || n > (size_t)(z->from_end - z->from) || n > (size_t)(z->to_end - z->to))
		return false;
	memcpy(z->to, z->from, n);
	z->to += n;
	z->from += n;
	return true;
}

/* What is repeated may overlap with the copy: byte by byte, then. */
static bool repeat(struct lz4 *z, size_t n)
{
	size_t back;

	if (z->from_end - z->from < 2)
		return false;
	back = (size_t)z->from[0] | (size_t)z->from[1] << 8;
	z->from += 2;
	if (!length_more(z, &n))
		return false;
	n += 4;
	if (!back || back > (size_t)(z->to - z->start) || n > (size_t)(z->to_end - z->to))
		return false;
	if (back >= n) {
		memcpy(z->to, z->to - back, n);
		z->to += n;
		return true;
	}
	for (; n; n--, z->to++)
		*z->to = *(z->to - back);
	return true;
}

static bool lz4_unpack(struct bytes from, uint8_t *to, size_t len)
{
	struct lz4 z = {from.data, from.data + from.len, to, to, to + len};

	while (z.from < z.from_end) {
		unsigned int token = *z.from++;

		if (!literals(&z, token >> 4))
			return false;
		if (z.from == z.from_end || z.to == z.to_end)
			break;		/* the last part has literals only */
		if (!repeat(&z, token & 15))
			return false;
	}
	return z.to == z.to_end;
}

bool sim_unpack(enum fatbin_packing packing, struct bytes from, uint8_t *to, size_t len)
{
	switch (packing) {
	case FATBIN_PLAIN:
		if (from.len != len)
			return false;
		memcpy(to, from.data, len);
		return true;
	case FATBIN_LZ4: return lz4_unpack(from, to, len);
	case FATBIN_ZSTD: return ZSTD_decompress(to, len, from.data, from.len) == len;
	}
	return false;
}
