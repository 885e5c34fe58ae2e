/* SPDX-License-Identifier: Apache-2.0
 * Brings the bytes of a dump into memory: from a file piece by piece, from gzip as a whole.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <zlib.h>

#include "base/err.h"
#include "base/mem.h"
#include "input/dump/dump_priv.h"
#include "base/banned.h"

/* Dumps as cuwhy arms them stay below 200 MB. A file may be larger, but not what is read of it: sections can
 * overlap and files can have holes, so its length is no bound. */
#define READ_MAX	((uint64_t)1 << 30)
#define EXPANDED_MAX	((size_t)1 << 30)
#define EXPANDED_START	((size_t)1 << 20)

void dump_unload(struct dump *d)
{
	if (d->mapped && d->base)
		munmap(d->base, d->len);
	else
		free(d->base);
	if (d->fd >= 0)
		close(d->fd);
	d->base = NULL;
	d->len = 0;
	d->fd = -1;
	d->mapped = false;
}

/* Reads a piece of the file into its place. Every piece is read once, so what was checked stays as it was. */
int dump_read(struct dump *d, uint64_t off, uint64_t len, struct err *e)
{
	ssize_t n;

	if (!dump_inside(d, off, len))
		return err_set(e, -EBADMSG, "the GPU core dump is cut short at %zu bytes", d->len);
	d->n_read += d->fd >= 0 ? len : 0;
	if (d->n_read > READ_MAX)
		return err_set(e, -EFBIG, "the GPU core dump is too large: more than %llu MiB of tables",
			       (unsigned long long)(READ_MAX >> 20));
	while (d->fd >= 0 && len > 0) {
		n = pread(d->fd, d->base + off, len, (off_t)off);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_set(e, -errno, "cannot read the GPU core dump: %s", strerror(errno));
		if (n == 0)
			return err_set(e, -EBADMSG, "the GPU core dump shrank while it was read");
		off += (uint64_t)n;
		len -= (uint64_t)n;
	}
	return 0;
}

/* Address space for the whole file; pages take memory only where something is read into them. */
static int reserve(struct dump *d, const char *path, struct err *e)
{
	struct stat st;
	void *p;

	if (fstat(d->fd, &st) != 0)
		return err_set(e, -errno, "cannot read '%s': %s", path, strerror(errno));
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "'%s' is not a file", path);
	if (st.st_size <= 0)
		return err_set(e, -EBADMSG, "'%s' is empty", path);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		return err_set(e, -ENOMEM, "'%s' is too large: %s", path, strerror(errno));
	d->base = p;
	d->len = (size_t)st.st_size;
	d->mapped = true;
	return 0;
}

int dump_load(struct dump *d, const char *path, struct err *e)
{
	int rc;

	/* a named pipe must not make us wait for its writer */
	d->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (d->fd < 0)
		return err_set(e, -errno, "cannot open '%s': %s", path, strerror(errno));
	rc = reserve(d, path, e);
	if (rc == 0)
		rc = dump_read(d, 0, d->len < sizeof(Elf64_Ehdr) ? d->len : sizeof(Elf64_Ehdr), e);
	return rc;
}

struct expand {
	z_stream z;
	uint8_t *out;
	size_t len, cap;
};

static int expand_grow(struct expand *x, struct err *e)
{
	if (x->len < x->cap)
		return 0;
	if (x->cap >= EXPANDED_MAX)
		return err_set(e, -EFBIG, "the compressed GPU core dump holds more than %zu MiB",
			       EXPANDED_MAX >> 20);
	x->cap = x->cap ? x->cap * 2 : EXPANDED_START;
	x->out = xrealloc(x->out, x->cap, 1);
	return 0;
}

/* A file may be several gzip members in a row; what follows the last one is ignored, as gzip does. */
static int expand_all(struct expand *x, struct err *e)
{
	const unsigned char *member = x->z.next_in;
	size_t room;
	int rc;

	for (;;) {
		if (expand_grow(x, e) != 0)
			return -EFBIG;
		room = x->cap - x->len < (1u << 30) ? x->cap - x->len : (1u << 30);
		x->z.next_out = x->out + x->len;
		x->z.avail_out = (uInt)room;
		rc = inflate(&x->z, Z_NO_FLUSH);
		x->len += room - x->z.avail_out;
		if (rc == Z_STREAM_END) {
			member = x->z.next_in;
			if (x->z.avail_in < 18 || member[0] != 0x1f || member[1] != 0x8b)
				return 0;
			rc = inflateReset(&x->z);
		}
		if (rc == Z_BUF_ERROR && x->z.avail_in == 0)
			return err_set(e, -EBADMSG, "the compressed GPU core dump is cut short");
		if (rc != Z_OK && rc != Z_BUF_ERROR)
			return err_set(e, -EBADMSG, "the compressed GPU core dump is damaged: %s",
				       x->z.msg ? x->z.msg : "not gzip");
	}
}

int dump_expand(struct dump *d, struct err *e)
{
	struct expand x = {0};
	int rc;

	if (d->len < 2 || d->base[0] != 0x1f || d->base[1] != 0x8b)
		return 0;
	if (d->len > UINT32_MAX)
		return err_set(e, -EFBIG, "the compressed GPU core dump is too large");
	rc = dump_read(d, 0, d->len, e);
	if (rc != 0)
		return rc;
	if (inflateInit2(&x.z, 15 + 16) != Z_OK)
		return err_set(e, -ENOMEM, "zlib cannot start");
	x.z.next_in = d->base;
	x.z.avail_in = (uInt)d->len;
	rc = expand_all(&x, e);
	inflateEnd(&x.z);
	dump_unload(d);
	d->base = x.out;	/* ownership moves to the dump, also when it is incomplete */
	d->len = x.len;
	return rc;
}
