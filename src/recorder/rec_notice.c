/* SPDX-License-Identifier: Apache-2.0
 * Tells `cuwhy run` that this process cannot be recorded.
 *
 * When recording fails, the socket is often out of reach for the same reason: no descriptors, another user, another root,
 * a sandbox. So every process maps a page of `cuwhy run` when it is loaded, while that still works, and writing to it later
 * needs no system call. Without this, a program that died unrecorded would look like one that never used CUDA.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "rec.h"

static struct cw_notices *notices;

void notice_load(void)
{
	const char *sock = rec_getenv("CUWHY_SOCK"), *slash = sock ? strrchr(sock, '/') : NULL;
	char path[128];
	void *p;
	int fd;

	if (!slash || (size_t)(slash - sock) + sizeof("/" CW_NOTICES_FILE) > sizeof(path))
		return;
	memcpy(path, sock, (size_t)(slash - sock));
	memcpy(path + (slash - sock), "/" CW_NOTICES_FILE, sizeof("/" CW_NOTICES_FILE));
	fd = open(path, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return;
	if (lseek(fd, 0, SEEK_END) >= (off_t)sizeof(*notices)) {	/* beyond its end would be a SIGBUS */
		p = mmap(NULL, sizeof(*notices), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		notices = p == MAP_FAILED ? NULL : p;
	}
	close(fd);
}

void notice_unrecorded(uint32_t pid, int error)
{
	uint32_t i;

	if (!notices)
		return;
	i = shared_add(&notices->n, 1);
	if (i >= CW_NOTICES)
		return;
	notices->list[i].error = (uint32_t)error;
	shared_set(&notices->list[i].pid, pid);	/* last: an entry without it is not one yet */
}
