/* SPDX-License-Identifier: Apache-2.0
 * A preloaded library with a dlsym of its own, as GPU quota and overlay libraries have.
 *
 * It forwards every lookup by a tail call, so that the caller stays the caller. */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef void *dlsym_fn(void *handle, const char *name);

void *dlsym(void *handle, const char *name);

static void note(const char *name)
{
	const char *path = getenv("OTHER_LOG");
	int fd = path ? open(path, O_WRONLY | O_APPEND | O_CREAT, 0600) : -1;

	if (fd >= 0 && (write(fd, name, strlen(name)) < 0 || write(fd, "\n", 1) < 0))
		_exit(99);
	if (fd >= 0)
		close(fd);
}

void *dlsym(void *handle, const char *name)
{
	static dlsym_fn *next;

	if (!next)
		*(void **)&next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.34");
	if (!next)
		*(void **)&next = dlvsym(RTLD_NEXT, "dlsym", "GLIBC_2.2.5");
	if (!next)
		_exit(98);
	if (!strncmp(name, "cu", 2))
		note(name);
	return next(handle, name);
}
