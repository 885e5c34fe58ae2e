/* SPDX-License-Identifier: Apache-2.0
 * Processes that could not be recorded (see run.h).
 */
#include "run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/fs.h"
#include "cuwhy/format.h"

const struct cw_notices *notices_open(const char *dir)
{
	char *path = fs_join(dir, CW_NOTICES_FILE);
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	void *p = MAP_FAILED;

	/* Reserved: if the disk were full when a process writes to it, that process would get a SIGBUS. */
	if (fd >= 0 && posix_fallocate(fd, 0, sizeof(struct cw_notices)) == 0)
		p = mmap(NULL, sizeof(struct cw_notices), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0 && p == MAP_FAILED)
		unlink(path);
	if (fd >= 0)
		close(fd);
	free(path);
	return p == MAP_FAILED ? NULL : p;
}

static const char *reason(int error)
{
	switch (error) {
	case 0: return "the reason is not known";
	case EMFILE: case ENFILE: return "it had no file descriptors left";
	case EACCES: case EPERM: return "it has no access to cuwhy's socket (another user, a sandbox)";
	case ENOENT: case ENOTDIR: return "it does not see cuwhy's socket (chroot, another container, or it was removed)";
	case EFBIG: return "its file size limit (ulimit -f) is too low";
	case ENOMEM: case ENOSPC: return "there was no memory for it";
	case ECONNREFUSED: return "cuwhy's recording process had ended";
	case EAGAIN: case ETIMEDOUT: case EINPROGRESS: return "cuwhy did not answer in time";
	case ENOSYS: return "a sandbox or the kernel refuses a system call that it needs";
	default: return strerror(error);
	}
}

bool notices_say(const struct cw_notices *n, char *text, size_t size)
{
	uint32_t count = n ? __atomic_load_n(&n->n, __ATOMIC_ACQUIRE) : 0;
	struct cw_notice first;
	char more[48] = "";

	if (!count)
		return false;
	first = n->list[0];
	if (count > 1)
		snprintf(more, sizeof(more), ", and %u more", count - 1);
	/* the page is writable by every process of the run: no more than two numbers are taken from it */
	snprintf(text, size, "process %u could not be recorded: %s%s", first.pid, reason((int)(first.error & 0xfff)),
		 more);
	return true;
}
