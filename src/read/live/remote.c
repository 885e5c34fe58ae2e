/* SPDX-License-Identifier: Apache-2.0
 * Reads the memory of another process (see remote.h).
 */
#include "read/live/remote.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/mem.h"

void remote_init(struct remote *r, bool (*fetch)(void *arg, uint64_t page, void *to), void *arg)
{
	*r = (struct remote){.fetch = fetch, .arg = arg, .mem = -1, .turn = 1};
	r->page = xcalloc(REMOTE_PAGES, sizeof(*r->page));
}

static bool fetch_page(void *arg, uint64_t page, void *to)
{
	const struct remote *r = arg;
	struct iovec here = {to, REMOTE_PAGE}, there = {(void *)(uintptr_t)page, REMOTE_PAGE};

	if (r->mem >= 0)
		return pread(r->mem, to, REMOTE_PAGE, (off_t)page) == REMOTE_PAGE;
	return process_vm_readv(r->pid, &here, 1, &there, 1, 0) == REMOTE_PAGE;
}

/* Some containers forbid process_vm_readv, but let /proc/PID/mem be read. */
static int open_mem(struct remote *r)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/mem", (int)r->pid);
	r->mem = open(path, O_RDONLY | O_CLOEXEC);
	return r->mem >= 0 ? 0 : -errno;
}

int remote_open(struct remote *r, pid_t pid, uint64_t known)
{
	char byte;
	struct iovec here = {&byte, 1}, there = {(void *)(uintptr_t)known, 1};
	int rc = 0;

	remote_init(r, fetch_page, r);
	r->pid = pid;
	if (process_vm_readv(pid, &here, 1, &there, 1, 0) < 0 && errno != EFAULT) {
		rc = errno == ESRCH ? -ESRCH : open_mem(r);
		if (!rc && pread(r->mem, &byte, 1, (off_t)known) < 0)
			rc = -EPERM;
	}
	return rc;
}

void remote_forget(struct remote *r)
{
	r->turn++;
}

void remote_release(struct remote *r)
{
	for (size_t i = 0; r->page && i < REMOTE_PAGES; i++)
		free(r->page[i].bytes);
	free(r->page);
	if (r->mem >= 0)
		close(r->mem);
	*r = (struct remote){.mem = -1};
}

static const char *page_at(struct remote *r, uint64_t at)
{
	struct remote_page *p = &r->page[(at / REMOTE_PAGE) % REMOTE_PAGES];

	if (p->bytes && p->at == at && p->turn == r->turn)
		return p->bad ? NULL : p->bytes;
	if (!p->bytes)
		p->bytes = xmalloc(REMOTE_PAGE);
	p->at = at;
	p->turn = r->turn;
	p->bad = !r->fetch(r->arg, at, p->bytes);
	return p->bad ? NULL : p->bytes;
}

bool remote_read(struct remote *r, uint64_t at, void *to, size_t n)
{
	char *out = to;

	if (at + n < at)
		return false;
	while (n) {
		uint64_t page = at & ~(uint64_t)(REMOTE_PAGE - 1);
		size_t skip = (size_t)(at - page), part = REMOTE_PAGE - skip < n ? REMOTE_PAGE - skip : n;
		const char *bytes = page_at(r, page);

		if (!bytes)
			return false;
		memcpy(out, bytes + skip, part);
		out += part;
		at += part;
		n -= part;
	}
	return true;
}

bool remote_string(struct remote *r, uint64_t at, char *to, size_t size)
{
	for (size_t i = 0; i + 1 < size; i++) {
		if (!remote_read(r, at + i, to + i, 1))
			return false;
		if (!to[i])
			return true;
	}
	to[size - 1] = '\0';
	return true;
}
