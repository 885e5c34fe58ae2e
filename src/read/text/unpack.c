/* SPDX-License-Identifier: Apache-2.0
 * Unpacks logs (see unpack.h).
 */
#include "read/text/unpack.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <lzma.h>
#include <zlib.h>
#include <zstd.h>

#include "base/mem.h"
#include "base/progress.h"
#include "read/text/stream.h"

#define PACKED_BLOCK	(128u << 10)
#define WINDOW_LOG_MAX	27		/* zstd -19 --long needs 128 MiB; more is refused */
#define XZ_MEMORY_MAX	(256ull << 20)

enum packing unpack_kind(const unsigned char *head, size_t n)
{
	if (n >= 3 && !memcmp(head, "\x1f\x8b\x08", 3))
		return PACKED_GZIP;
	if (n >= 6 && !memcmp(head,
			      "\xfd"
			      "7zXZ\0",
			      6))
		return PACKED_XZ;
	if (n >= 4 && !memcmp(head, "\x28\xb5\x2f\xfd", 4))
		return PACKED_ZSTD;
	return PACKED_NOT;
}

/* What a library reads from and writes to. `end`: a member is complete; another may follow. */
struct unpacking {
	const unsigned char *in;
	size_t n_in;
	unsigned char *out;
	size_t n_out;
	bool last, end;
};

struct unpacker {
	z_stream gzip;
	lzma_stream xz;
	ZSTD_DStream *zstd;
};

static bool start(struct unpacker *u, enum packing kind)
{
	if (kind == PACKED_GZIP)
		return inflateInit2(&u->gzip, 15 + 16) == Z_OK;
	if (kind == PACKED_XZ)
		return lzma_stream_decoder(&u->xz, XZ_MEMORY_MAX, LZMA_CONCATENATED) == LZMA_OK;
	u->zstd = ZSTD_createDStream();
	return u->zstd && !ZSTD_isError(ZSTD_DCtx_setParameter(u->zstd, ZSTD_d_windowLogMax, WINDOW_LOG_MAX));
}

static void stop(struct unpacker *u, enum packing kind)
{
	if (kind == PACKED_GZIP)
		inflateEnd(&u->gzip);
	else if (kind == PACKED_XZ)
		lzma_end(&u->xz);
	else
		ZSTD_freeDStream(u->zstd);
}

static bool gzip_step(struct unpacker *u, struct unpacking *p)
{
	int rc;

	if (p->end && p->n_in && inflateReset(&u->gzip) != Z_OK)
		return false;
	u->gzip.next_in = (unsigned char *)(uintptr_t)p->in;
	u->gzip.avail_in = (uInt)p->n_in;
	u->gzip.next_out = p->out;
	u->gzip.avail_out = (uInt)p->n_out;
	rc = inflate(&u->gzip, Z_NO_FLUSH);
	p->in = u->gzip.next_in;
	p->n_in = u->gzip.avail_in;
	p->n_out = u->gzip.avail_out;
	p->end = rc == Z_STREAM_END;
	return rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR;
}

static bool xz_step(struct unpacker *u, struct unpacking *p)
{
	lzma_ret rc;

	u->xz.next_in = p->in;
	u->xz.avail_in = p->n_in;
	u->xz.next_out = p->out;
	u->xz.avail_out = p->n_out;
	rc = lzma_code(&u->xz, p->last ? LZMA_FINISH : LZMA_RUN);
	p->in = u->xz.next_in;
	p->n_in = u->xz.avail_in;
	p->n_out = u->xz.avail_out;
	p->end = rc == LZMA_STREAM_END;
	return rc == LZMA_OK || rc == LZMA_STREAM_END || rc == LZMA_BUF_ERROR;
}

static bool zstd_step(struct unpacker *u, struct unpacking *p)
{
	ZSTD_inBuffer in = {p->in, p->n_in, 0};
	ZSTD_outBuffer out = {p->out, p->n_out, 0};
	size_t rc = ZSTD_decompressStream(u->zstd, &out, &in);

	p->in += in.pos;
	p->n_in -= in.pos;
	p->n_out -= out.pos;
	p->end = rc == 0;
	return !ZSTD_isError(rc);
}

static bool step(struct unpacker *u, enum packing kind, struct unpacking *p)
{
	return kind == PACKED_GZIP ? gzip_step(u, p) : kind == PACKED_XZ ? xz_step(u, p) : zstd_step(u, p);
}

/* Everything that the bytes in `p` unpack to. */
static bool unpack_block(struct stream *st, struct unpacker *u, enum packing kind, struct unpacking *p)
{
	for (;;) {
		size_t size, before = p->n_in;
		char *room = stream_room(st, &size);

		p->out = (unsigned char *)room;
		p->n_out = size;
		if (!step(u, kind, p))
			return false;
		if (p->n_out < size)
			stream_filled(st, size - p->n_out);
		if (p->n_out == size && p->n_in == before)
			return p->end || !p->n_in;	/* neither read nor written: it needs more */
		if (p->end && !p->n_in)
			return true;
	}
}

static ssize_t read_some(int fd, unsigned char *to, size_t size)
{
	ssize_t n;

	do
		n = read(fd, to, size);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

int unpack_fd(struct stream *st, int fd, enum packing kind, const unsigned char *head, size_t n_head)
{
	struct unpacker u = {.xz = LZMA_STREAM_INIT};
	struct unpacking p = {0};
	unsigned char *packed = xmalloc(PACKED_BLOCK);
	ssize_t n = (ssize_t)n_head;
	int rc = start(&u, kind) ? 0 : -ENOMEM;

	memcpy(packed, head, n_head);
	while (rc == 0 && n > 0) {
		if (!n_head)
			n = read_some(fd, packed, PACKED_BLOCK);
		n_head = 0;
		if (n < 0) {
			rc = (int)n;
			break;
		}
		progress_add((uint64_t)n);
		p.in = packed;
		p.n_in = (size_t)n;
		p.last = n == 0;
		if (n == 0 && p.end)
			break;
		if (!unpack_block(st, &u, kind, &p) || (n == 0 && !p.end))
			rc = -EBADMSG;
	}
	stop(&u, kind);
	free(packed);
	return rc;
}
