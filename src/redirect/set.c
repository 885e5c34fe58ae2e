/* SPDX-License-Identifier: Apache-2.0
 * Modes, owners, times, attributes and lengths: set on the copy in the scratch. The kernel lets nobody else set them (fence_calls.def), so
 * these calls carry the pass, on files of the run alone.
 *
 * A descriptor of a user's file that is open for reading stays what it is; what is set through it is set on the copy, which the name leads to.
 */
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/xattr.h>
#include <unistd.h>
#include <utime.h>

#include "redirect/raw.h"
#include "redirect/redirect.h"

/* What the call is made on; no path: on the descriptor. */
struct target { int dir; const char *path; bool nothing; };

static int may_set_real(const struct place *p)
{
	return may_be_set(p->at, p->len) ? 0 : -EPERM;
}

static int by_path(struct target *t, struct place *p, int dir, const char *path, bool follow)
{
	int rc;

	*t = (struct target){dir, path, false};
	if (!path || !*path || !is_on())
		return 0;
	rc = walk(p, dir, path, follow ? FOLLOW : LINK);
	if (rc < 0)
		return rc;
	t->dir = AT_FDCWD;
	t->path = in_reality(p);
	if (p->zone)
		return may_set_real(p);
	rc = set_place(p);
	t->path = in_new(p);
	return rc;
}

/* Without a name, only processes that have it open can see it: memory, pipes, files that are deleted. */
static bool is_nameless(int fd, const char *path)
{
	struct stat st;

	return path[0] != '/' || (raw_fstat(fd, &st) == 0 && st.st_nlink == 0);
}

static int by_fd(struct target *t, struct place *p, int fd)
{
	char path[PATH_MAX];
	long n = is_on() ? path_of_fd(fd, path, sizeof(path)) : -EBADF;
	struct stat mine;
	int rc;

	*t = (struct target){fd, NULL, false};
	if (n < 0 || is_nameless(fd, path))
		return 0;
	rc = walk(p, AT_FDCWD, path, LINK);
	if (rc == 0 && p->zone)
		return may_set_real(p);
	if (rc < 0 || !exists(p)) {	/* the user's, and the program has deleted it */
		t->nothing = true;
		return 0;
	}
	if (p->fresh && raw_fstat(fd, &mine) == 0 && mine.st_ino == p->st.st_ino && mine.st_dev == p->st.st_dev &&
	    !p->real)
		return 0;
	rc = set_place(p);
	*t = (struct target){AT_FDCWD, in_new(p), false};
	return rc;
}

static int chmod_at(int dir, const char *path, mode_t mode, int flags)
{
	struct place p;
	struct target t;
	bool follow = !(flags & AT_SYMLINK_NOFOLLOW);
	int rc;

	if (flags & ~AT_SYMLINK_NOFOLLOW)
		return (int)answer(-EINVAL);
	rc = by_path(&t, &p, dir, path, follow);
	if (rc == 0 && !follow && is_on() && S_ISLNK(p.st.st_mode))
		rc = -EOPNOTSUPP;
	return (int)answer(rc < 0 ? rc : raw_passing(SYS_fchmodat, t.dir, (long)t.path, mode, 0, 0));
}

EXPORT int chmod(const char *path, mode_t mode)
{
	return chmod_at(AT_FDCWD, path, mode, 0);
}

EXPORT int lchmod(const char *path, mode_t mode)
{
	return chmod_at(AT_FDCWD, path, mode, AT_SYMLINK_NOFOLLOW);
}

EXPORT int fchmodat(int dir, const char *path, mode_t mode, int flags)
{
	return chmod_at(dir, path, mode, flags);
}

EXPORT int fchmod(int fd, mode_t mode)
{
	struct place p;
	struct target t;
	int rc = by_fd(&t, &p, fd);

	if (rc < 0 || t.nothing)
		return (int)answer(rc);
	return (int)answer(t.path ? raw_chmod(t.path, mode) : raw_passing(SYS_fchmod, t.dir, mode, 0, 0, 0));
}

static int chown_at(int dir, const char *path, uid_t uid, gid_t gid, int flags)
{
	struct place p;
	struct target t;
	int rc = path && !*path && flags & AT_EMPTY_PATH ? by_fd(&t, &p, dir)
							 : by_path(&t, &p, dir, path, !(flags & AT_SYMLINK_NOFOLLOW));

	if (rc < 0 || t.nothing)
		return (int)answer(rc);
	return (int)answer(raw_passing(SYS_fchownat, t.dir, (long)(t.path ? t.path : ""), uid, gid, flags));
}

EXPORT int chown(const char *path, uid_t uid, gid_t gid)
{
	return chown_at(AT_FDCWD, path, uid, gid, 0);
}

EXPORT int lchown(const char *path, uid_t uid, gid_t gid)
{
	return chown_at(AT_FDCWD, path, uid, gid, AT_SYMLINK_NOFOLLOW);
}

EXPORT int fchownat(int dir, const char *path, uid_t uid, gid_t gid, int flags)
{
	return chown_at(dir, path, uid, gid, flags);
}

EXPORT int fchown(int fd, uid_t uid, gid_t gid)
{
	struct place p;
	struct target t;
	int rc = by_fd(&t, &p, fd);

	if (rc < 0 || t.nothing)
		return (int)answer(rc);
	return (int)answer(t.path ? raw_lchown(t.path, uid, gid) : raw_passing(SYS_fchown, t.dir, uid, gid, 0, 0));
}

static int set_times(const struct target *t, const struct timespec times[2], int flags)
{
	return (int)answer(raw_passing(SYS_utimensat, t->dir, (long)t->path, (long)times, flags, 0));
}

static int utime_at(int dir, const char *path, const struct timespec times[2], int flags)
{
	struct place p;
	struct target t;
	int rc = by_path(&t, &p, dir, path, !(flags & AT_SYMLINK_NOFOLLOW));

	return rc < 0 ? (int)answer(rc) : set_times(&t, times, flags);
}

static int utime_fd(int fd, const struct timespec times[2])
{
	struct place p;
	struct target t;
	int rc = by_fd(&t, &p, fd);

	return rc < 0 || t.nothing ? (int)answer(rc) : set_times(&t, times, 0);
}

/* In the units of older functions; NULL stays NULL: now. */
static const struct timespec *from_micro(const struct timeval tv[2], struct timespec ts[2])
{
	for (int i = 0; tv && i < 2; i++)
		ts[i] = (struct timespec){tv[i].tv_sec, tv[i].tv_usec * 1000};
	return tv ? ts : NULL;
}

EXPORT int utimensat(int dir, const char *path, const struct timespec times[2], int flags)
{
	return maybe_null(path) ? utime_at(dir, path, times, flags) : utime_fd(dir, times);
}

EXPORT int futimens(int fd, const struct timespec times[2])
{
	return utime_fd(fd, times);
}

EXPORT int utimes(const char *path, const struct timeval tv[2])
{
	struct timespec ts[2];

	return utime_at(AT_FDCWD, path, from_micro(tv, ts), 0);
}

EXPORT int lutimes(const char *path, const struct timeval tv[2])
{
	struct timespec ts[2];

	return utime_at(AT_FDCWD, path, from_micro(tv, ts), AT_SYMLINK_NOFOLLOW);
}

EXPORT int futimes(int fd, const struct timeval tv[2])
{
	struct timespec ts[2];

	return utime_fd(fd, from_micro(tv, ts));
}

EXPORT int futimesat(int dir, const char *path, const struct timeval tv[2])
{
	struct timespec ts[2];

	return path ? utime_at(dir, path, from_micro(tv, ts), 0) : utime_fd(dir, from_micro(tv, ts));
}

EXPORT int utime(const char *path, const struct utimbuf *times)
{
	struct timespec ts[2] = {{times ? times->actime : 0, 0}, {times ? times->modtime : 0, 0}};

	return utime_at(AT_FDCWD, path, times ? ts : NULL, 0);
}

static int setxattr_at(const char *path, const char *name, const void *value, size_t size, int flags, bool follow)
{
	struct place p;
	struct target t;
	int rc = by_path(&t, &p, AT_FDCWD, path, follow);

	return (int)answer(rc < 0 ? rc
				  : raw_passing(follow ? SYS_setxattr : SYS_lsetxattr, (long)t.path, (long)name,
						(long)value, (long)size, flags));
}

static int removexattr_at(const char *path, const char *name, bool follow)
{
	struct place p;
	struct target t;
	int rc = by_path(&t, &p, AT_FDCWD, path, follow);

	return (int)answer(
		rc < 0 ? rc
		       : raw_passing(follow ? SYS_removexattr : SYS_lremovexattr, (long)t.path, (long)name, 0, 0, 0));
}

EXPORT int setxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
	return setxattr_at(path, name, value, size, flags, true);
}

EXPORT int lsetxattr(const char *path, const char *name, const void *value, size_t size, int flags)
{
	return setxattr_at(path, name, value, size, flags, false);
}

EXPORT int removexattr(const char *path, const char *name)
{
	return removexattr_at(path, name, true);
}

EXPORT int lremovexattr(const char *path, const char *name)
{
	return removexattr_at(path, name, false);
}

EXPORT int fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
	struct place p;
	struct target t;
	int rc = by_fd(&t, &p, fd);

	if (rc < 0 || t.nothing)
		return (int)answer(rc);
	return (int)answer(raw_passing(t.path ? SYS_lsetxattr : SYS_fsetxattr, t.path ? (long)t.path : t.dir,
				       (long)name, (long)value, (long)size, flags));
}

EXPORT int fremovexattr(int fd, const char *name)
{
	struct place p;
	struct target t;
	int rc = by_fd(&t, &p, fd);

	if (rc < 0 || t.nothing)
		return (int)answer(rc);
	return (int)answer(raw_passing(t.path ? SYS_lremovexattr : SYS_fremovexattr, t.path ? (long)t.path : t.dir,
				       (long)name, 0, 0, 0));
}

static int may_truncate(struct place *p)
{
	int rc;

	if (!exists(p))
		return -ENOENT;
	if (!S_ISREG(p->st.st_mode))
		return S_ISDIR(p->st.st_mode) ? -EISDIR : -EINVAL;
	rc = p->real ? raw_may(in_reality(p), W_OK) : 0;
	return rc < 0 ? rc : bring(p, true);
}

EXPORT int truncate(const char *path, off_t size)
{
	struct place p;
	int rc = maybe_null(path) && *path && is_on() ? walk(&p, AT_FDCWD, path, FOLLOW) : 1;

	if (rc == 0 && !p.zone) {
		rc = may_truncate(&p);
		path = in_new(&p);
	} else if (rc == 0 && p.moved)
		path = in_reality(&p);
	return (int)answer(rc < 0 ? rc : raw_passing(SYS_truncate, (long)path, size, 0, 0, 0));
}

EXPORT int truncate64(const char *path, off64_t size)
{
	return truncate(path, size);
}
