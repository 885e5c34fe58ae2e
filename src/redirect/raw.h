/* SPDX-License-Identifier: Apache-2.0
 * System calls without libc: they leave errno alone, and are not redirected. The result is the kernel's: -errno on failure.
 */
#ifndef CUWHY_REDIRECT_RAW_H
#define CUWHY_REDIRECT_RAW_H

#include <fcntl.h>
#include <linux/fs.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "writes/scratch.h"

extern struct scratch_pass raw_pass;

#if defined(__x86_64__)
static inline long raw6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long rc;

	__asm__ volatile("syscall"
			 : "=a"(rc)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return rc;
}

/* With the pass, which is in no register before and after: the next call of other code must not have it by accident. */
static inline long raw_passing(long nr, long a, long b, long c, long d, long e)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	long rc;

	__asm__ volatile("movq (%[pass]), %%r9\n\txorq 8(%[pass]), %%r9\n\tsyscall\n\txorl %%r9d, %%r9d"
			 : "=a"(rc)
			 : "a"(nr), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), [pass] "r"(&raw_pass)
			 : "rcx", "r11", "r9", "memory");
	return rc;
}
#elif defined(__aarch64__)
static inline long raw6(long nr, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
	return x0;
}

static inline long raw_passing(long nr, long a, long b, long c, long d, long e)
{
	register long x8 __asm__("x8") = nr;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;

	__asm__ volatile("ldp x5, x9, [%[pass]]\n\teor x5, x5, x9\n\tmov x9, xzr\n\tsvc #0\n\tmov x5, xzr"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), [pass] "r"(&raw_pass)
			 : "x5", "x9", "memory");
	return x0;
}
#else
#error "no port to this processor yet: see raw.h"
#endif

#define raw(nr, a, b, c, d) raw6(nr, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)

static inline int raw_open(int dir, const char *path, int flags, mode_t mode)
{
	return (int)raw(SYS_openat, dir, path, flags | O_CLOEXEC, mode);
}

static inline void raw_close(int fd)
{
	raw(SYS_close, fd, 0, 0, 0);
}

/* The kernel's struct stat is libc's on the processors that we know. */
static inline int raw_stat(int dir, const char *path, struct stat *st, int flags)
{
	return (int)raw(SYS_newfstatat, dir, path, st, flags);
}

static inline int raw_fstat(int fd, struct stat *st)
{
	return (int)raw(SYS_fstat, fd, st, 0, 0);
}

static inline int raw_lstat(const char *path, struct stat *st)
{
	return raw_stat(AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}

static inline long raw_readlink(const char *path, char *to, size_t size)
{
	return raw(SYS_readlinkat, AT_FDCWD, path, to, size);
}

static inline int raw_mkdir(const char *path, mode_t mode)
{
	return (int)raw(SYS_mkdirat, AT_FDCWD, path, mode, 0);
}

static inline int raw_unlink(const char *path, int flags)
{
	return (int)raw(SYS_unlinkat, AT_FDCWD, path, flags, 0);
}

static inline int raw_rename(const char *from, const char *to, unsigned flags)
{
	return (int)raw6(SYS_renameat2, AT_FDCWD, (long)from, AT_FDCWD, (long)to, flags, 0);
}

/* May this process do that, by the file's mode? Like the kernel's own checks it asks for the effective user. */
static inline int raw_may(const char *path, int how)
{
	static const long faccessat2 = 439;	/* Linux 5.8: the same number everywhere */
	long rc = raw(faccessat2, AT_FDCWD, path, how, 0x200 /* AT_EACCESS */);

	return (int)(rc == -38 /* ENOSYS */ ? raw(SYS_faccessat, AT_FDCWD, path, how, 0) : rc);
}

static inline int raw_chmod(const char *path, mode_t mode)
{
	return (int)raw_passing(SYS_fchmodat, AT_FDCWD, (long)path, mode, 0, 0);
}

static inline int raw_lchown(const char *path, uid_t uid, gid_t gid)
{
	return (int)raw_passing(SYS_fchownat, AT_FDCWD, (long)path, uid, gid, AT_SYMLINK_NOFOLLOW);
}

static inline int raw_utimes(const char *path, const struct timespec times[2])
{
	return (int)raw_passing(SYS_utimensat, AT_FDCWD, (long)path, (long)times, AT_SYMLINK_NOFOLLOW, 0);
}

#endif
