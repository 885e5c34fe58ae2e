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
#include "base/proc.h"
#include "run/run.h"

#define BYTES_MAX ((size_t)1 << 30)

void process_drop_files(struct process *p)
{
	size_t i;

	for (i = 0; i < p->n_seg; i++) {
		if (p->seg[i].fd >= 0)
			close(p->seg[i].fd);
		free(p->seg[i].moved);
	}
	free(p->seg);
	p->seg = NULL;
	p->n_seg = p->cap_seg = 0;
	if (p->pidfd >= 0)
		close(p->pidfd);
	p->pidfd = -1;
}

size_t process_files(const struct process *p)
{
	size_t n = 0;

	for (size_t i = 0; i < p->n_seg; i++)
		n += p->seg[i].fd >= 0;
	return n;
}

bool process_status(struct process *p, int *wait_status)
{
	if (!p->has_status && p->pidfd >= 0)
		p->has_status = proc_pidfd_status(p->pidfd, &p->status);
	*wait_status = p->status;
	return p->has_status;
}

size_t process_move(struct process *p, bool more)
{
	size_t taken = 0;
	int status;

	for (size_t i = 0; i < p->n_seg; i++) {
		struct segment *g = &p->seg[i];

		if (g->fd >= 0 && more && (g->moved = calloc(1, g->len))) {
			fs_read_data(g->fd, g->moved, g->len);
			close(g->fd);
			g->fd = -1;
		}
		taken += g->moved ? g->len : 0;
	}
	if (p->pidfd >= 0 && (process_status(p, &status) || proc_mono_ns() - p->ended_ns > STATUS_WAIT_NS)) {
		close(p->pidfd);
		p->pidfd = -1;
	}
	return taken;
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

	if (g && g->moved)
		memcpy(to, g->moved + (off - g->off), len);
	return g && (g->moved || pread(g->fd, to, len, (off_t)(off - g->off)) == (ssize_t)len);
}

/* The recorder sees it at once, since its memory is this file; so does a reader of the recording later. */
bool process_write(const struct process *p, uint64_t off, const void *from, size_t len)
{
	const struct segment *g = segment_of(p, off, len);

	if (g && g->moved)
		memcpy(g->moved + (off - g->off), from, len);
	return g && (g->moved || pwrite(g->fd, from, len, (off_t)(off - g->off)) == (ssize_t)len);
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
		room = p->seg[i].len < room ? p->seg[i].len : room;
		if (p->seg[i].moved)
			memcpy(bytes + p->seg[i].off, p->seg[i].moved, room);
		else
			fs_read_data(p->seg[i].fd, bytes + p->seg[i].off, room);
	}
	return bytes;
}
