/* SPDX-License-Identifier: Apache-2.0
 * Preloaded into cuwhy: no process may be looked at, and the file YAMA stands for the kernel's ptrace_scope. As on a machine with Yama, which
 * cannot be switched on for a test.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

static const char *other_path(const char *path)
{
	return getenv("YAMA") && strstr(path, "yama/ptrace_scope") ? getenv("YAMA") : path;
}

static int open_as(const char *name, const char *path, int flags, mode_t mode)
{
	int (*real)(const char *, int, ...);
	size_t n = strlen(path);

	*(void **)&real = dlsym(RTLD_NEXT, name);
	path = other_path(path);
	if (!strncmp(path, "/proc/", 6) && n > 4 && !strcmp(path + n - 4, "/mem")) {
		errno = EACCES;
		return -1;
	}
	return real(path, flags, mode);
}

#define OPEN(name)                                           \
	int name(const char *path, int flags, ...)           \
	{                                                    \
		mode_t mode = 0;                             \
		va_list ap;                                  \
\
		va_start(ap, flags);                         \
		if (flags & O_CREAT)                         \
			mode = va_arg(ap, mode_t);           \
		va_end(ap);                                  \
		return open_as(#name, path, flags, mode);    \
	}
OPEN(open)
OPEN(open64)

int stat(const char *path, struct stat *to)
{
	return fstatat(AT_FDCWD, other_path(path), to, 0);
}

/* What a build that runs on older systems calls. */
int __fxstatat(int version, int at, const char *path, struct stat *to, int flags)
{
	(void)version;
	return fstatat(at, other_path(path), to, flags);
}

ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long n, const struct iovec *from, unsigned long m,
			 unsigned long flags)
{
	(void)pid, (void)to, (void)n, (void)from, (void)m, (void)flags;
	errno = EPERM;
	return -1;
}

long ptrace(int request, ...)
{
	(void)request;
	errno = EPERM;
	return -1;
}
