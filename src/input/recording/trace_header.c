/* SPDX-License-Identifier: Apache-2.0
 * Reads the header of a recording and its list of chunks, believing neither.
 */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "base/err.h"
#include "input/recording/trace_priv.h"
#include "base/banned.h"

/* Everything up to the process id has to be there; the rest can be unknown. */
#define HEADER_LEAST offsetof(struct cw_header, start_realtime_ns)

#define END_TEXT(array) ((array)[sizeof(array) - 1] = '\0')

static void set_unknown(struct cw_header *h)
{
	size_t i;

	memset(h, 0, sizeof(*h));
	h->rank = h->local_rank = h->world_size = CW_UNKNOWN;
	h->init_result = h->device_count = CW_UNKNOWN;
	for (i = 0; i < CW_MAX_DEVICES; i++)
		memset(h->device[i].attr, 0xff, sizeof(h->device[i].attr));
}

static void tidy(struct cw_header *h)
{
	size_t i;

	END_TEXT(h->visible_devices_at_init);
	END_TEXT(h->visible_devices_now);
	END_TEXT(h->alloc_conf);
	END_TEXT(h->exe);
	END_TEXT(h->cmdline);
	END_TEXT(h->cwd);
	END_TEXT(h->torch_path);
	END_TEXT(h->libcuda_path);
	END_TEXT(h->dump_path);
	END_TEXT(h->pipe_path);
	END_TEXT(h->memory_trace_path);
	if (h->hang.n > CW_HANG_THREADS)
		h->hang.n = CW_HANG_THREADS;
	for (i = 0; i < CW_MAX_DEVICES; i++)
		END_TEXT(h->device[i].name);
	if (h->device_count != CW_UNKNOWN && h->device_count > CW_MAX_DEVICES)
		h->device_count = CW_MAX_DEVICES;
	if (h->n_chunks > CW_MAX_CHUNKS)
		h->n_chunks = CW_MAX_CHUNKS;
}

int trace_read_header(struct trace *t, struct err *e)
{
	struct cw_header *h = &t->header;
	uint16_t major;
	uint32_t size;

	if (t->len < sizeof(h->magic) || memcmp(t->data, CW_MAGIC, sizeof(h->magic)) != 0)
		return err_set(e, -EINVAL, "not a cuwhy recording");
	if (t->len < HEADER_LEAST)
		return err_set(e, -EINVAL, "the recording is cut short: only %zu bytes", t->len);
	memcpy(&major, t->data + offsetof(struct cw_header, major), sizeof(major));
	if (major != CW_MAJOR) {
		err_set(e, -EPROTO, "the recording has format %u, this cuwhy reads format %u",
			major, CW_MAJOR);
		return err_hint(e, "read it with the version of cuwhy that made it");
	}
	memcpy(&size, t->data + offsetof(struct cw_header, header_size), sizeof(size));
	if (size < HEADER_LEAST)
		return err_set(e, -EINVAL, "the recording's header is damaged");
	if (size > sizeof(*h))
		size = sizeof(*h);
	set_unknown(h);
	memcpy(h, t->data, size < t->len ? size : t->len);
	tidy(h);
	return 0;
}

static bool overlaps(const struct trace *t, size_t off, size_t len)
{
	size_t i;

	for (i = 0; i < t->n_chunks; i++)
		if (off < t->chunk[i].off + t->chunk[i].len && t->chunk[i].off < off + len)
			return true;
	return false;
}

void trace_read_chunks(struct trace *t)
{
	const struct cw_chunk *c;
	size_t len;
	uint32_t i;

	for (i = 0; i < t->header.n_chunks; i++) {
		c = &t->header.chunk[i];
		/* A recording never puts a chunk into the header. Eight: what its records need. */
		if (c->kind == 0 || c->off % 8 || c->off < HEADER_LEAST || c->off >= t->len)
			continue;
		len = c->len < t->len - c->off ? c->len : t->len - c->off;
		if (len == 0 || overlaps(t, c->off, len))
			continue;
		t->chunk[t->n_chunks++] = (struct chunk){c->kind, c->off, len};
	}
}
