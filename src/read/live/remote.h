/* SPDX-License-Identifier: Apache-2.0
 * The memory of another process, read page by page. Nothing that is read is trusted: an address that is not there is an answer, not a
 * crash. Pages are kept until remote_forget(): many small reads of one page cost one system call.
 */
#ifndef CUWHY_REMOTE_H
#define CUWHY_REMOTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define REMOTE_PAGE	4096u
#define REMOTE_PAGES	16384u	/* kept at once: 64 MiB */

struct remote {
	/* Fills one page; false if it cannot be read. */
	bool (*fetch)(void *arg, uint64_t page, void *to);
	void *arg;
	pid_t pid;
	int mem;		/* /proc/PID/mem, where process_vm_readv is forbidden; -1 = not used */
	struct remote_page { uint64_t at; char *bytes; unsigned turn; bool bad; } *page;
	unsigned turn;		/* pages of an earlier one are forgotten */
};

void remote_init(struct remote *r, bool (*fetch)(void *arg, uint64_t page, void *to), void *arg);
/* The memory of a process. 0, or -errno: -EPERM, if it may not be read. `known`: an address that is there. */
int remote_open(struct remote *r, pid_t pid, uint64_t known);
void remote_forget(struct remote *r);
void remote_release(struct remote *r);

bool remote_read(struct remote *r, uint64_t at, void *to, size_t n);

static inline bool remote_word(struct remote *r, uint64_t at, uint64_t *to)
{
	return remote_read(r, at, to, sizeof(*to));
}

/* A C string, cut to `size`; false if it cannot be read. */
bool remote_string(struct remote *r, uint64_t at, char *to, size_t size);

#endif
