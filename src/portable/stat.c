/* SPDX-License-Identifier: Apache-2.0
 * stat and related functions as they were before glibc 2.33, with a version number for the structure's layout (see
 * portable.h).
 */
#include <fcntl.h>
#include <sys/stat.h>

#include "portable/portable.h"

int __fxstat(int layout, int fd, struct stat *st);
int __fxstatat(int layout, int dir, const char *path, struct stat *st, int flags);
OLD(__fxstat, GLIBC_FIRST);
OLD(__fxstatat, GLIBC_FXSTATAT);

HERE int fstat(int fd, struct stat *st)
{
	return old___fxstat(STAT_LAYOUT, fd, st);
}

HERE int fstatat(int dir, const char *restrict path, struct stat *restrict st, int flags)
{
	return old___fxstatat(STAT_LAYOUT, dir, path, st, flags);
}

HERE int stat(const char *restrict path, struct stat *restrict st)
{
	return old___fxstatat(STAT_LAYOUT, AT_FDCWD, path, st, 0);
}

HERE int lstat(const char *restrict path, struct stat *restrict st)
{
	return old___fxstatat(STAT_LAYOUT, AT_FDCWD, path, st, AT_SYMLINK_NOFOLLOW);
}
