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
#include <sys/uio.h>

static int open_as(const char *name, const char *path, int flags, mode_t mode)
{
	int (*real)(const char *, int, ...);
	size_t n = strlen(path);

	*(void **)&real = dlsym(RTLD_NEXT, name);
	if (getenv("YAMA") && strstr(path, "yama/ptrace_scope"))
		path = getenv("YAMA");
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

ssize_t process_vm_readv(pid_t pid, const struct iovec *to, unsigned long n, const struct iovec *from, unsigned long m, unsigned long flags)
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
