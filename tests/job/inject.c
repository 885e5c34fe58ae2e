/* SPDX-License-Identifier: Apache-2.0
 * Preloaded: reading files of a job folder fails as it does on a network file system (INJECT=ESTALE, EIO, EINTR: the first read of
 * each file; SHORT: it ends early; ALWAYS: every read).
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>

#define FILES 4096

static int is_rank(int fd, char *path, size_t size)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, path, size - 1);
	path[n > 0 ? n : 0] = '\0';
	return n > 0 && (strstr(path, "/rank-") || strstr(path, "/.rank-"));
}

static int first_time(const char *path)
{
	static char *seen[FILES];
	static int n;

	for (int i = 0; i < n; i++)
		if (!strcmp(seen[i], path))
			return 0;
	if (n < FILES)
		seen[n++] = strdup(path);
	return 1;
}

ssize_t read(int fd, void *to, size_t n)
{
	static ssize_t (*real)(int, void *, size_t);
	const char *what = getenv("INJECT");
	char path[4096];
	int always = what && !strcmp(what, "ALWAYS");

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "read");
	if (!what || !is_rank(fd, path, sizeof(path)) || (!always && !first_time(path)))
		return real(fd, to, n);
	if (!strcmp(what, "SHORT"))
		return 0;
	errno = !strcmp(what, "EIO") ? EIO : !strcmp(what, "EINTR") ? EINTR : ESTALE;
	return -1;
}

/* The disk of the job folder is full, which a network file system tells when the file is flushed; or the server comes back after a
 * while (INJECT_WRITE=ENOSPC, ESTALE). */
int fsync(int fd)
{
	static int (*real)(int);
	const char *what = getenv("INJECT_WRITE");
	char path[4096];

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "fsync");
	if (!what || !is_rank(fd, path, sizeof(path) - 1))
		return real(fd);
	if (!strcmp(what, "ESTALE") && !first_time(path))
		return real(fd);
	errno = !strcmp(what, "ESTALE") ? ESTALE : ENOSPC;
	return -1;
}
