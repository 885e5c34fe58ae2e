/* SPDX-License-Identifier: Apache-2.0
 * Calls that only look: what is there, and what is it?
 */
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "redirect/raw.h"
#include "redirect/redirect.h"

/* A folder that is in both trees has its attributes in the scratch: they were copied when it was made there. */
static const char *look_at_attributes(struct place *p, int dir, const char *path, bool follow, int *error)
{
	const char *where = look_at(p, dir, path, follow, error);

	return !where && !*error && p->known && p->fresh && !p->zone ? in_new(p) : where;
}

/* A function of libc's that takes one path and changes nothing. */
#define LOOK(...) LOOK_BY(look_at, __VA_ARGS__)
#define LOOK_BY(finds, type, failed, name, dir, follow, parameters, ...)                           \
	EXPORT type name parameters                                                                \
	{                                                                                          \
		struct place p;                                                                    \
		int error;                                                                         \
		const char *where = finds(&p, dir, path, follow, &error);                          \
\
		if (error) {                                                                       \
			errno = -error;                                                            \
			return failed;                                                             \
		}                                                                                  \
		path = where ? where : path;                                                       \
		return NEXT(name)(__VA_ARGS__);                                                    \
	}

LOOK(int, -1, access, AT_FDCWD, true, (const char *path, int how), path, how)
LOOK(int, -1, faccessat, dir, !(flags & AT_SYMLINK_NOFOLLOW), (int dir, const char *path, int how, int flags), dir,
     path, how, flags)
LOOK(int, -1, euidaccess, AT_FDCWD, true, (const char *path, int how), path, how)
LOOK(int, -1, eaccess, AT_FDCWD, true, (const char *path, int how), path, how)
LOOK(int, -1, statfs, AT_FDCWD, true, (const char *path, struct statfs *to), path, to)
LOOK(int, -1, statfs64, AT_FDCWD, true, (const char *path, struct statfs64 *to), path, to)
LOOK(int, -1, statvfs, AT_FDCWD, true, (const char *restrict path, struct statvfs *restrict to), path, to)
LOOK(int, -1, statvfs64, AT_FDCWD, true, (const char *restrict path, struct statvfs64 *restrict to), path, to)
LOOK(long, -1, pathconf, AT_FDCWD, true, (const char *path, int what), path, what)
LOOK_BY(look_at_attributes, ssize_t, -1, getxattr, AT_FDCWD, true,
	(const char *path, const char *name, void *to, size_t size), path, name, to, size)
LOOK_BY(look_at_attributes, ssize_t, -1, lgetxattr, AT_FDCWD, false,
	(const char *path, const char *name, void *to, size_t size), path, name, to, size)
LOOK_BY(look_at_attributes, ssize_t, -1, listxattr, AT_FDCWD, true, (const char *path, char *to, size_t size), path, to,
	size)
LOOK_BY(look_at_attributes, ssize_t, -1, llistxattr, AT_FDCWD, false, (const char *path, char *to, size_t size), path,
	to, size)
LOOK(int, -1, inotify_add_watch, AT_FDCWD, !(events & IN_DONT_FOLLOW), (int fd, const char *path, uint32_t events), fd,
     path, events)
LOOK(int, -1, chdir, AT_FDCWD, true, (const char *path), path)

static int stat_at(int dir, const char *path, struct stat *st, int flags)
{
	struct place p;
	int error;
	const char *where = look_at(&p, dir, path, !(flags & AT_SYMLINK_NOFOLLOW), &error);

	if (error)
		return (int)answer(error);
	if (p.known && p.fresh && !p.zone) {
		*st = p.st;
		return 0;
	}
	return (int)answer(raw_stat(dir, where ? where : path, st, flags));
}

/* A folder that is in both trees is open as the real one. */
static int stat_fd(int fd, struct stat *st)
{
	struct place p;
	char path[PATH_MAX];
	int rc = raw_fstat(fd, st);

	if (rc == 0 && S_ISDIR(st->st_mode) && has_changes() && path_of_fd(fd, path, sizeof(path)) > 0 &&
	    walk(&p, AT_FDCWD, path, LINK) == 0 && !p.zone && p.fresh && p.st.st_ino == st->st_ino &&
	    p.st.st_dev == st->st_dev)
		*st = p.st;
	return (int)answer(rc);
}

/* Before glibc 2.33 the functions of this name had a number for the layout in front; what was compiled then still has. */
int __xstat(int layout, const char *path, struct stat *st);
int __lxstat(int layout, const char *path, struct stat *st);
int __fxstatat(int layout, int dir, const char *path, struct stat *st, int flags);
int __fxstat(int layout, int fd, struct stat *st);
int __fxstat64(int layout, int fd, struct stat64 *st);
int __xstat64(int layout, const char *path, struct stat64 *st);
int __lxstat64(int layout, const char *path, struct stat64 *st);
int __fxstatat64(int layout, int dir, const char *path, struct stat64 *st, int flags);

#define STAT(name, type, parameters, dir, flags)                                                   \
	EXPORT int name parameters                                                                 \
	{                                                                                          \
		_Static_assert(sizeof(type) == sizeof(struct stat), "the same structure");         \
		return stat_at(dir, path, (struct stat *)st, flags);                               \
	}

STAT(stat, struct stat, (const char *restrict path, struct stat *restrict st), AT_FDCWD, 0)
STAT(lstat, struct stat, (const char *restrict path, struct stat *restrict st), AT_FDCWD, AT_SYMLINK_NOFOLLOW)
STAT(fstatat, struct stat, (int dir, const char *restrict path, struct stat *restrict st, int flags), dir, flags)
STAT(stat64, struct stat64, (const char *restrict path, struct stat64 *restrict st), AT_FDCWD, 0)
STAT(lstat64, struct stat64, (const char *restrict path, struct stat64 *restrict st), AT_FDCWD, AT_SYMLINK_NOFOLLOW)
STAT(fstatat64, struct stat64, (int dir, const char *restrict path, struct stat64 *restrict st, int flags), dir, flags)

#define XSTAT(name, type, parameters, dir, flags)                                                  \
	EXPORT int name parameters                                                                 \
	{                                                                                          \
		(void)layout;                                                                      \
		return stat_at(dir, path, (struct stat *)st, flags);                               \
	}

XSTAT(__xstat, struct stat, (int layout, const char *path, struct stat *st), AT_FDCWD, 0)
XSTAT(__lxstat, struct stat, (int layout, const char *path, struct stat *st), AT_FDCWD, AT_SYMLINK_NOFOLLOW)
XSTAT(__fxstatat, struct stat, (int layout, int dir, const char *path, struct stat *st, int flags), dir, flags)
XSTAT(__xstat64, struct stat64, (int layout, const char *path, struct stat64 *st), AT_FDCWD, 0)
XSTAT(__lxstat64, struct stat64, (int layout, const char *path, struct stat64 *st), AT_FDCWD, AT_SYMLINK_NOFOLLOW)
XSTAT(__fxstatat64, struct stat64, (int layout, int dir, const char *path, struct stat64 *st, int flags), dir, flags)

EXPORT int fstat(int fd, struct stat *st)
{
	return stat_fd(fd, st);
}

EXPORT int fstat64(int fd, struct stat64 *st)
{
	return stat_fd(fd, (struct stat *)st);
}

EXPORT int __fxstat(int layout, int fd, struct stat *st)
{
	(void)layout;
	return stat_fd(fd, st);
}

EXPORT int __fxstat64(int layout, int fd, struct stat64 *st)
{
	(void)layout;
	return stat_fd(fd, (struct stat *)st);
}

static void patch(struct statx *to, const struct stat *st)
{
	to->stx_mode = (uint16_t)st->st_mode;
	to->stx_atime = (struct statx_timestamp){.tv_sec = st->st_atim.tv_sec, .tv_nsec = (uint32_t)st->st_atim.tv_nsec};
	to->stx_mtime = (struct statx_timestamp){.tv_sec = st->st_mtim.tv_sec, .tv_nsec = (uint32_t)st->st_mtim.tv_nsec};
	to->stx_ctime = (struct statx_timestamp){.tv_sec = st->st_ctim.tv_sec, .tv_nsec = (uint32_t)st->st_ctim.tv_nsec};
}

EXPORT int statx(int dir, const char *restrict path, int flags, unsigned mask, struct statx *restrict to)
{
	struct place p;
	int error, rc;
	const char *where = look_at(&p, dir, path, !(flags & AT_SYMLINK_NOFOLLOW), &error);

	if (error)
		return (int)answer(error);
	rc = NEXT(statx)(dir, where ? where : path, flags, mask, to);
	if (rc == 0 && p.known && !p.zone && p.fresh && p.real)
		patch(to, &p.st);
	return rc;
}

static ssize_t readlink_at(int dir, const char *path, char *to, size_t size)
{
	struct place p;
	char text[PATH_MAX];
	int error;
	const char *where = look_at(&p, dir, path, false, &error);
	long n;

	if (error)
		return answer(error);
	if (!p.known)
		return answer(raw(SYS_readlinkat, dir, path, to, size));
	n = raw(SYS_readlinkat, dir, where ? where : path, text, sizeof(text) - 1);
	if (n < 0 || size == 0)
		return answer(n < 0 ? n : -EINVAL);
	text[n] = '\0';
	if (p.zone && strncmp(p.at, "/proc/", 6) == 0)
		n = without_scratch(text, n);
	n = n < (long)size ? n : (long)size;
	memcpy(to, text, (size_t)n);
	return n;
}

EXPORT ssize_t readlink(const char *restrict path, char *restrict to, size_t size)
{
	return readlink_at(AT_FDCWD, path, to, size);
}

EXPORT ssize_t readlinkat(int dir, const char *restrict path, char *restrict to, size_t size)
{
	return readlink_at(dir, path, to, size);
}

ssize_t __readlink_chk(const char *path, char *to, size_t size, size_t room);
EXPORT ssize_t __readlink_chk(const char *path, char *to, size_t size, size_t room)
{
	if (size > room)
		__builtin_trap();
	return readlink_at(AT_FDCWD, path, to, size);
}

ssize_t __readlinkat_chk(int dir, const char *path, char *to, size_t size, size_t room);
EXPORT ssize_t __readlinkat_chk(int dir, const char *path, char *to, size_t size, size_t room)
{
	if (size > room)
		__builtin_trap();
	return readlink_at(dir, path, to, size);
}
