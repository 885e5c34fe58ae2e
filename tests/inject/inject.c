/* SPDX-License-Identifier: Apache-2.0
 * Preloaded beside the recorder: system calls that the recorder makes fail, one call site at a time.
 *
 *   INJECT_LOG    file that gets the call sites reached: function, and offset in the recorder
 *   INJECT_SITE   offset (hexadecimal) of the call site that fails
 *   INJECT_ERRNO  with this error
 *   INJECT_ONCE   set: the first time only
 *   INJECT_SLOW   set: every call takes milliseconds, so that threads which start together meet in it
 *   INJECT_ODD    set: mappings never begin at a large page, as on kernels before 6.7
 *
 * Only calls from the recorder count. Those that cannot fail (getpid, gettid, clock_gettime) are left alone.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define SITES_MAX 1024
#define SLOW_NS	  5000000
#define PAGE	  4096

static struct {
	atomic_bool ready;
	uintptr_t start, end, base;	/* of the recorder */
	uintptr_t site;
	int error, log;
	bool once, slow, odd;
	atomic_bool done;
	atomic_uintptr_t seen[SITES_MAX];
} inject = {.log = -1};

static int find_recorder(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)size, (void)data;
	if (!strstr(info->dlpi_name, "libcuwhy-rec.so"))
		return 0;
	inject.base = info->dlpi_addr;
	inject.start = UINTPTR_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &info->dlpi_phdr[i];
		uintptr_t from = info->dlpi_addr + p->p_vaddr;

		if (p->p_type != PT_LOAD)
			continue;
		inject.start = from < inject.start ? from : inject.start;
		inject.end = from + p->p_memsz > inject.end ? from + p->p_memsz : inject.end;
	}
	return 1;
}

/* The recorder's own constructor may run before ours. */
static void get_ready(void)
{
	const char *site = getenv("INJECT_SITE"), *error = getenv("INJECT_ERRNO"), *log = getenv("INJECT_LOG");

	if (atomic_exchange(&inject.ready, true))
		return;
	inject.site = site ? strtoul(site, NULL, 16) : 0;
	inject.error = error ? atoi(error) : 0;
	inject.once = getenv("INJECT_ONCE") != NULL;
	inject.slow = getenv("INJECT_SLOW") != NULL;
	inject.odd = getenv("INJECT_ODD") != NULL;
	dl_iterate_phdr(find_recorder, NULL);
	if (log && inject.end)
		inject.log = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
}

static void log_site(const char *name, uintptr_t offset)
{
	char line[64];
	uintptr_t none;

	for (int i = 0; i < SITES_MAX; i++) {
		none = 0;
		if (atomic_compare_exchange_strong(&inject.seen[i], &none, offset))
			break;
		if (none == offset)
			return;
	}
	none = (uintptr_t)snprintf(line, sizeof(line), "%s %lx\n", name, (unsigned long)offset);
	if (syscall(SYS_write, inject.log, line, none) < 0)
		inject.log = -1;
}

static bool is_recorder(const void *from)
{
	get_ready();
	return (uintptr_t)from >= inject.start && (uintptr_t)from < inject.end;
}

/* True if the call that returns to `from` is to fail; errno is set. */
static bool fails(const char *name, const void *from)
{
	uintptr_t offset;

	if (!is_recorder(from))
		return false;
	offset = (uintptr_t)from - inject.base;
	if (inject.log >= 0)
		log_site(name, offset);
	if (inject.slow)
		syscall(SYS_nanosleep, &(struct timespec){.tv_nsec = SLOW_NS}, NULL);
	if (!inject.site || offset != inject.site || (inject.once && atomic_exchange(&inject.done, true)))
		return false;
	errno = inject.error;
	return true;
}

#define WRAP(type, name, params, args, failed)                                        \
	type name params;                                                             \
	type name params                                                              \
	{                                                                             \
		static type(*real) params;                                            \
		bool no = fails(#name, __builtin_return_address(0));                  \
		int error = errno;                                                    \
\
		if (no)                                                               \
			return failed;                                                \
		if (!real)                                                            \
			real = (type(*) params)dlsym(RTLD_NEXT, #name);               \
		errno = error;                                                        \
		return real args;                                                     \
	}

WRAP(int, munmap, (void *at, size_t n), (at, n), -1)
WRAP(int, mprotect, (void *at, size_t n, int prot), (at, n, prot), -1)
WRAP(int, madvise, (void *at, size_t n, int advice), (at, n, advice), -1)
WRAP(int, memfd_create, (const char *name, unsigned flags), (name, flags), -1)
WRAP(int, ftruncate, (int fd, off_t n), (fd, n), -1)
WRAP(int, fallocate, (int fd, int mode, off_t off, off_t n), (fd, mode, off, n), -1)
WRAP(int, socket, (int domain, int type, int protocol), (domain, type, protocol), -1)
WRAP(int, connect, (int fd, const struct sockaddr *to, socklen_t n), (fd, to, n), -1)
WRAP(ssize_t, sendmsg, (int fd, const struct msghdr *m, int flags), (fd, m, flags), -1)
WRAP(ssize_t, send, (int fd, const void *p, size_t n, int flags), (fd, p, n, flags), -1)
WRAP(int, setsockopt, (int fd, int level, int name, const void *p, socklen_t n), (fd, level, name, p, n), -1)
WRAP(int, getsockopt, (int fd, int level, int name, void *p, socklen_t *n), (fd, level, name, p, n), -1)
WRAP(ssize_t, read, (int fd, void *p, size_t n), (fd, p, n), -1)
WRAP(ssize_t, pread, (int fd, void *p, size_t n, off_t off), (fd, p, n, off), -1)
WRAP(off_t, lseek, (int fd, off_t off, int whence), (fd, off, whence), -1)
WRAP(ssize_t, readlink, (const char *path, char *p, size_t n), (path, p, n), -1)
WRAP(char *, getcwd, (char *p, size_t n), (p, n), NULL)
WRAP(int, access, (const char *path, int mode), (path, mode), -1)
WRAP(int, getrlimit, (__rlimit_resource_t what, struct rlimit *l), (what, l), -1)
WRAP(int, nanosleep, (const struct timespec *t, struct timespec *left), (t, left), -1)
WRAP(int, sigprocmask, (int how, const sigset_t *set, sigset_t *old), (how, set, old), -1)
WRAP(int, on_exit, (void (*f)(int, void *), void *data), (f, data), -1)

/* INJECT_ODD: the mapping begins one page behind where the kernel would put it. */
void *mmap(void *at, size_t n, int prot, int flags, int fd, off_t off)
{
	const void *from = __builtin_return_address(0);
	bool odd = is_recorder(from) && inject.odd && !at;
	char *p;

	if (fails("mmap", from))
		return MAP_FAILED;
	p = (char *)syscall(SYS_mmap, at, odd ? n + PAGE : n, prot, flags, fd, off);
	if (!odd || p == MAP_FAILED)
		return p;
	syscall(SYS_munmap, p, PAGE);
	return p + PAGE;
}

/* A descriptor is gone even if close reports an error. */
int close(int fd)
{
	bool no = fails("close", __builtin_return_address(0));
	int error = errno;
	long r = syscall(SYS_close, fd);

	if (no)
		errno = error;
	return no ? -1 : (int)r;
}

int open(const char *path, int flags, ...)
{
	va_list more;
	int mode;

	va_start(more, flags);
	mode = va_arg(more, int);
	va_end(more);
	if (fails("open", __builtin_return_address(0)))
		return -1;
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

int fcntl(int fd, int what, ...)
{
	va_list more;
	long value;

	va_start(more, what);
	value = va_arg(more, long);
	va_end(more);
	if (fails("fcntl", __builtin_return_address(0)))
		return -1;
	return (int)syscall(SYS_fcntl, fd, what, value);
}

int prctl(int what, ...)
{
	va_list more;
	long a, b, c, d;

	va_start(more, what);
	a = va_arg(more, long);
	b = va_arg(more, long);
	c = va_arg(more, long);
	d = va_arg(more, long);
	va_end(more);
	if (fails("prctl", __builtin_return_address(0)))
		return -1;
	return (int)syscall(SYS_prctl, what, a, b, c, d);
}

/* The recorder's: those of everybody else, and ours, go to the real one. */
long syscall(long number, ...)
{
	static long (*real)(long, ...);
	va_list more;
	long a[6];

	va_start(more, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(more, long);
	va_end(more);
	if (!real)
		real = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
	if (number != SYS_gettid && number != SYS_exit_group && atomic_load(&inject.ready) &&
	    fails("syscall", __builtin_return_address(0)))
		return -1;
	return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
