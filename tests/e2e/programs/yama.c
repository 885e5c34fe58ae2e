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
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

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

/*
 * stat has four names, and which of them a program calls depends on the glibc it was built with: before 2.33 __xstat, since then
 * stat; what we ship calls __fxstatat (src/portable). All ask the kernel: a call of stat from here would be one of the others.
 */
static int stat_as(int at, const char *path, struct stat *to, int flags)
{
	return (int)syscall(SYS_newfstatat, at, other_path(path), to, flags);
}

int stat(const char *path, struct stat *to)
{
	return stat_as(AT_FDCWD, path, to, 0);
}

int fstatat(int at, const char *path, struct stat *to, int flags)
{
	return stat_as(at, path, to, flags);
}

int __xstat(int version, const char *path, struct stat *to)
{
	(void)version;
	return stat_as(AT_FDCWD, path, to, 0);
}

int __fxstatat(int version, int at, const char *path, struct stat *to, int flags)
{
	(void)version;
	return stat_as(at, path, to, flags);
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
