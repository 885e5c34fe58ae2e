/* SPDX-License-Identifier: Apache-2.0
 * The memory that a recorder handed over.
 *
 * Read with pread and never mapped: whatever happens to the memory, a read can fail but not kill us.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "cmd/run/run.h"

#define BYTES_MAX ((size_t)1 << 30)

void process_drop_files(struct process *p)
{
	size_t i;

	for (i = 0; i < p->n_seg; i++)
		close(p->seg[i].fd);
	free(p->seg);
	p->seg = NULL;
	p->n_seg = p->cap_seg = 0;
	if (p->pidfd >= 0)
		close(p->pidfd);
	p->pidfd = -1;
}

static const struct segment *segment_of(const struct process *p, uint64_t off, size_t len)
{
	size_t i;

	for (i = 0; i < p->n_seg; i++)
		if (off >= p->seg[i].off && off - p->seg[i].off <= p->seg[i].len &&
		    len <= p->seg[i].len - (off - p->seg[i].off))
			return &p->seg[i];
	return NULL;
}

bool process_read(const struct process *p, uint64_t off, void *to, size_t len)
{
	const struct segment *g = segment_of(p, off, len);

	return g && pread(g->fd, to, len, (off_t)(off - g->off)) == (ssize_t)len;
}

/* The recorder sees it at once, since its memory is this file; so does whoever reads the recording later. */
bool process_write(const struct process *p, uint64_t off, const void *from, size_t len)
{
	const struct segment *g = segment_of(p, off, len);

	return g && pwrite(g->fd, from, len, (off_t)(off - g->off)) == (ssize_t)len;
}

bool process_header(const struct process *p, struct cw_header *h)
{
	return process_read(p, 0, h, sizeof(*h)) && !memcmp(h->magic, CW_MAGIC, sizeof(h->magic)) &&
	       h->major == CW_MAJOR && h->header_size >= sizeof(*h);
}

void process_free(struct process *p)
{
	process_drop_files(p);
	verdict_free(p->verdict);
	free(p->command);
	free(p->part);
	free(p->hang.polls);
	free(p->events.name);
	free(p);
}

void *process_bytes(const struct process *p, size_t *len)
{
	size_t i, end, room;
	char *bytes;

	*len = 0;
	for (i = 0; i < p->n_seg; i++) {
		end = (size_t)p->seg[i].off + p->seg[i].len;
		if (end > *len && end <= BYTES_MAX)
			*len = end;
	}
	if (*len == 0)
		return NULL;
	bytes = xcalloc(1, *len);	/* without memory, the verdict must not be that there was nothing */
	for (i = 0; i < p->n_seg; i++) {
		room = p->seg[i].off < *len ? *len - p->seg[i].off : 0;
		fs_read_data(p->seg[i].fd, bytes + p->seg[i].off, p->seg[i].len < room ? p->seg[i].len : room);
	}
	return bytes;
}
