/* SPDX-License-Identifier: Apache-2.0
 * Calls that make names, remove them or give them to something else.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "redirect/raw.h"
#include "redirect/redirect.h"

#define LEAVE_IT 1	/* the kernel does what was asked, with the caller's arguments */

/* Does it end with "." (1) or ".." (2)? */
static size_t dots_behind(const char *path)
{
	size_t n = strlen(path), dots = 0;

	while (n && path[n - 1] == '/')
		n--;
	while (dots < n && path[n - 1 - dots] == '.')
		dots++;
	return dots <= 2 && (n == dots || path[n - 1 - dots] == '/') ? dots : 0;
}

/* 0: the place of the name in the scratch. */
static int find(struct place *p, int dir, const char *path)
{
	int rc;

	if (!path || !is_on())
		return LEAVE_IT;
	rc = walk(p, dir, path, NAME);	/* an empty one is not there, which the kernel says before anything else */
	return rc < 0 ? rc : p->zone ? LEAVE_IT : 0;
}

/* The path that a call which is left to the kernel has. */
static const char *same_or_moved(const struct place *p, const char *path)
{
	return path && *path && is_on() && p->moved ? in_reality(p) : path;
}

/* 0: something new may be made in the scratch. */
static int find_new(struct place *p, int dir, const char *path, bool folder)
{
	int rc = find(p, dir, path);

	if (rc)
		return rc;
	if (exists(p))
		return -EEXIST;
	return p->slash && !folder ? -ENOENT : make_way(p);
}

static int mkdir_at(int dir, const char *path, mode_t mode)
{
	struct place p;
	int rc = find_new(&p, dir, path, true);

	if (rc == LEAVE_IT)
		return NEXT(mkdirat)(dir, same_or_moved(&p, path), mode);
	return (int)answer(rc < 0 ? rc : raw_mkdir(in_new(&p), mode));
}

static int mknod_at(int dir, const char *path, mode_t mode, dev_t device)
{
	struct place p;
	int rc = find_new(&p, dir, path, false);

	if (rc == LEAVE_IT)
		return (int)answer(raw(SYS_mknodat, dir, same_or_moved(&p, path), mode, device));
	return (int)answer(rc < 0 ? rc : (int)raw(SYS_mknodat, AT_FDCWD, in_new(&p), mode, device));
}

static int symlink_at(const char *text, int dir, const char *path)
{
	struct place p;
	int rc = find_new(&p, dir, path, false);

	if (rc == LEAVE_IT)
		return NEXT(symlinkat)(text, dir, same_or_moved(&p, path));
	return (int)answer(rc < 0 ? rc : (int)raw(SYS_symlinkat, text, AT_FDCWD, in_new(&p), 0));
}

EXPORT int mkdir(const char *path, mode_t mode)
{
	return mkdir_at(AT_FDCWD, path, mode);
}

EXPORT int mkdirat(int dir, const char *path, mode_t mode)
{
	return mkdir_at(dir, path, mode);
}

EXPORT int mkfifo(const char *path, mode_t mode)
{
	return mknod_at(AT_FDCWD, path, (mode & ~S_IFMT) | S_IFIFO, 0);
}

EXPORT int mkfifoat(int dir, const char *path, mode_t mode)
{
	return mknod_at(dir, path, (mode & ~S_IFMT) | S_IFIFO, 0);
}

EXPORT int mknod(const char *path, mode_t mode, dev_t device)
{
	return mknod_at(AT_FDCWD, path, mode, device);
}

EXPORT int mknodat(int dir, const char *path, mode_t mode, dev_t device)
{
	return mknod_at(dir, path, mode, device);
}

int __xmknod(int layout, const char *path, mode_t mode, dev_t *device);
EXPORT int __xmknod(int layout, const char *path, mode_t mode, dev_t *device)
{
	(void)layout;
	return mknod_at(AT_FDCWD, path, mode, *device);
}

int __xmknodat(int layout, int dir, const char *path, mode_t mode, dev_t *device);
EXPORT int __xmknodat(int layout, int dir, const char *path, mode_t mode, dev_t *device)
{
	(void)layout;
	return mknod_at(dir, path, mode, *device);
}

EXPORT int symlink(const char *text, const char *path)
{
	return symlink_at(text, AT_FDCWD, path);
}

EXPORT int symlinkat(const char *text, int dir, const char *path)
{
	return symlink_at(text, dir, path);
}

static int unlink_at(int dir, const char *path, int flags)
{
	bool folder = flags & AT_REMOVEDIR;
	struct place p;
	int rc = find(&p, dir, path);

	if (rc == LEAVE_IT)
		return NEXT(unlinkat)(dir, same_or_moved(&p, path), flags);
	if (rc == 0 && folder && dots_behind(path))
		rc = dots_behind(path) == 1 ? -EINVAL : -ENOTEMPTY;
	return (int)answer(rc < 0 ? rc : remove_place(&p, folder));
}

EXPORT int unlink(const char *path)
{
	return unlink_at(AT_FDCWD, path, 0);
}

EXPORT int unlinkat(int dir, const char *path, int flags)
{
	return unlink_at(dir, path, flags);
}

EXPORT int rmdir(const char *path)
{
	return unlink_at(AT_FDCWD, path, AT_REMOVEDIR);
}

EXPORT int remove(const char *path)
{
	int before = errno;

	if (unlink(path) == 0)
		return 0;
	if (errno != EISDIR && errno != EPERM)
		return -1;
	errno = before;
	return rmdir(path);
}

/* Two names at once: both in the scratch (0), both left to the kernel, or one of each. */
static int find_two(struct place *from, int from_dir, const char *old, struct place *to, int to_dir, const char *new)
{
	int rc = find(from, from_dir, old), other;

	if (rc < 0)
		return rc;
	other = find(to, to_dir, new);
	if (other < 0)
		return other;
	return rc == other ? rc : -EXDEV;
}

static int rename_at(int from_dir, const char *old, int to_dir, const char *new, unsigned flags)
{
	struct place from, to;
	int rc = find_two(&from, from_dir, old, &to, to_dir, new);

	if (rc == LEAVE_IT)
		return (int)answer(raw6(SYS_renameat2, from_dir, (long)same_or_moved(&from, old), to_dir,
					(long)same_or_moved(&to, new), flags, 0));
	if (rc == 0 && (dots_behind(old) || dots_behind(new)))
		rc = -EBUSY;
	if (rc == 0 &&
	    (flags & ~(unsigned)(RENAME_NOREPLACE | RENAME_EXCHANGE) || flags == (RENAME_NOREPLACE | RENAME_EXCHANGE)))
		rc = -EINVAL;
	return (int)answer(rc < 0 ? rc : rename_place(&from, &to, flags));
}

EXPORT int rename(const char *old, const char *new)
{
	return rename_at(AT_FDCWD, old, AT_FDCWD, new, 0);
}

EXPORT int renameat(int from_dir, const char *old, int to_dir, const char *new)
{
	return rename_at(from_dir, old, to_dir, new, 0);
}

EXPORT int renameat2(int from_dir, const char *old, int to_dir, const char *new, unsigned flags)
{
	return rename_at(from_dir, old, to_dir, new, flags);
}

/* What has no name there (a descriptor's file) can have one in the scratch. */
static int link_foreign(int from_dir, const char *old, int to_dir, const char *new, int flags)
{
	struct place to;
	int rc = find_new(&to, to_dir, new, false);

	if (rc == LEAVE_IT)
		return NEXT(linkat)(from_dir, old, to_dir, same_or_moved(&to, new), flags);
	return (int)answer(rc < 0 ? rc : raw6(SYS_linkat, from_dir, (long)old, AT_FDCWD, (long)in_new(&to), flags, 0));
}

static int link_at(int from_dir, const char *old, int to_dir, const char *new, int flags)
{
	struct place from, to;
	int rc;

	if (!old || !*old || !is_on())
		return link_foreign(from_dir, old, to_dir, new, flags);
	rc = walk(&from, from_dir, old, flags & AT_SYMLINK_FOLLOW ? FOLLOW : LINK);
	if (rc < 0)
		return (int)answer(rc);
	if (from.zone)
		return link_foreign(from_dir, same_or_moved(&from, old), to_dir, new, flags);
	if (!exists(&from))
		return (int)answer(-ENOENT);
	rc = find(&to, to_dir, new);
	if (rc == LEAVE_IT)
		rc = -EXDEV;
	return (int)answer(rc < 0 ? rc : link_place(&from, &to));
}

EXPORT int link(const char *old, const char *new)
{
	return link_at(AT_FDCWD, old, AT_FDCWD, new, 0);
}

EXPORT int linkat(int from_dir, const char *old, int to_dir, const char *new, int flags)
{
	return link_at(from_dir, old, to_dir, new, flags);
}
