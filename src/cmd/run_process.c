/* SPDX-License-Identifier: Apache-2.0
 * The memory that a recorder handed over.
 *
 * It is read with pread and never mapped, so that a memfd that shrinks cannot kill us.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/run.h"
#include "base/banned.h"

#define BYTES_MAX ((size_t)1 << 30)

void process_drop_segments(struct process *p)
{
	size_t i;

	for (i = 0; i < p->n_seg; i++)
		close(p->seg[i].fd);
	free(p->seg);
	p->seg = NULL;
	p->n_seg = p->cap_seg = 0;
}

void process_free(struct process *p)
{
	process_drop_segments(p);
	if (p->pidfd >= 0)
		close(p->pidfd);
	verdict_free(p->verdict);
	free(p->command);
	free(p->part);
	free(p->hang.polls);
	free(p);
}

static void read_segment(const struct segment *g, char *to, size_t room)
{
	size_t end = g->len < room ? g->len : room;
	off_t at = 0;
	ssize_t n;

	/* Reserved pages that were never written count as holes and are skipped. */
	while ((at = lseek(g->fd, at, SEEK_DATA)) >= 0 && (size_t)at < end) {
		n = pread(g->fd, to + at, end - (size_t)at, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		at += n;
	}
}

void *process_bytes(const struct process *p, size_t *len)
{
	size_t i, end;
	char *bytes;

	*len = 0;
	for (i = 0; i < p->n_seg; i++) {
		end = (size_t)p->seg[i].off + p->seg[i].len;
		if (end > *len && end <= BYTES_MAX)
			*len = end;
	}
	if (*len == 0)
		return NULL;
	bytes = calloc(1, *len);
	for (i = 0; bytes && i < p->n_seg; i++)
		if (p->seg[i].off < *len)
			read_segment(&p->seg[i], bytes + p->seg[i].off, *len - p->seg[i].off);
	return bytes;
}
