/* SPDX-License-Identifier: Apache-2.0
 * Files and folders of our own.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"

#define BLOCK 4096

char *fs_join(const char *dir, const char *name)
{
	size_t n = strlen(dir);

	return xasprintf("%s%s%s", dir, n && dir[n - 1] == '/' ? "" : "/", name);
}

/* A group with the same number as its owner is that user's private one. */
static enum fs_trust trust_one(const struct stat *st)
{
	bool by_others = (st->st_mode & S_IWOTH) || ((st->st_mode & S_IWGRP) && st->st_gid != st->st_uid);

	if ((st->st_uid != 0 && st->st_uid != geteuid()) || S_ISLNK(st->st_mode))
		return FS_OTHERS;
	if (!by_others)
		return FS_NOBODY_ELSE;
	return S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) ? FS_NOT_NOW : FS_OTHERS;
}

enum fs_trust fs_trust(const char *path)
{
	char *parent = xstrdup(path), *slash = strrchr(parent, '/');
	enum fs_trust trust = FS_OTHERS, above;
	struct stat st;

	if (slash && lstat(path, &st) == 0)
		trust = trust_one(&st);
	if (trust != FS_OTHERS && strcmp(path, "/") != 0) {
		slash[slash == parent] = '\0';
		above = fs_trust(parent);
		trust = above > trust ? above : trust;
	}
	free(parent);
	return trust;
}

/* Calls `is` for a file and every folder above it, until it says yes. What cannot be looked at counts as `unknown`. */
static bool any_above(const char *path, bool (*is)(const struct stat *st, const void *of), const void *of, bool unknown)
{
	char *at = xstrdup(path);
	bool yes = path[0] != '/' && unknown;
	struct stat st;

	for (size_t n = strlen(at); !yes && n; n--) {
		if (n > 1 && at[n] != '/' && at[n])
			continue;	/* in the middle of a name */
		at[n] = '\0';
		yes = lstat(at, &st) == 0 ? is(&st, of) : unknown;
	}
	free(at);
	return yes;
}

/* In a folder like /tmp, what is there stays what it is. */
static mode_t open_to(const struct stat *st)
{
	return S_ISDIR(st->st_mode) && (st->st_mode & S_ISVTX) ? 0 : st->st_mode;
}

static bool is_open(const struct stat *st, const void *unused)
{
	(void)unused;
	return open_to(st) & S_IWOTH;
}

static bool is_of_user(const struct stat *st, const void *uid)
{
	return st->st_uid == *(const uid_t *)uid;
}

static bool is_of_group(const struct stat *st, const void *gid)
{
	return (open_to(st) & S_IWGRP) && st->st_gid == *(const gid_t *)gid;
}

static bool has_more_writers(const struct stat *st, const void *than)
{
	bool private = st->st_gid == st->st_uid;

	if (st->st_uid != 0 && st->st_uid != geteuid() && !any_above(than, is_of_user, &st->st_uid, false))
		return true;
	return (open_to(st) & S_IWOTH) ||
	       ((open_to(st) & S_IWGRP) && !private && !any_above(than, is_of_group, &st->st_gid, false));
}

bool fs_no_more_writers(const char *path, const char *than)
{
	return any_above(than, is_open, NULL, false) || !any_above(path, has_more_writers, than, true);
}

static int make_one(const char *path, struct err *e)
{
	int code;

	if (mkdir(path, 0700) == 0 || (errno == EEXIST && fs_is_dir(path)))
		return 0;
	code = errno == EEXIST ? ENOTDIR : errno;
	return err_set(e, -code, "cannot create the folder '%s': %s", path, strerror(code));
}

int fs_mkdirs(const char *path, struct err *e)
{
	char *copy = xstrdup(path), *p;
	int rc = 0;

	for (p = copy + 1; rc == 0 && *copy && *p; p++) {
		if (*p != '/')
			continue;
		*p = '\0';
		/* An existing folder may be read-only and still let us through. */
		if (!fs_is_dir(copy))
			rc = make_one(copy, e);
		*p = '/';
	}
	if (rc == 0)
		rc = make_one(path, e);
	free(copy);
	return rc;
}

static bool all_zero(const char *p, size_t n)
{
	return n == 0 || (p[0] == 0 && memcmp(p, p + 1, n - 1) == 0);
}

static int write_at(int fd, const char *p, size_t n, off_t at)
{
	ssize_t done;

	while (n) {
		done = pwrite(fd, p, n, at);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return done < 0 ? -errno : -EIO;
		p += done;
		n -= (size_t)done;
		at += done;
	}
	return 0;
}

/* Writes only runs of blocks that are not all zeros; the rest stay holes. */
static int write_sparse(int fd, const char *data, size_t len)
{
	size_t at = 0, end, n;
	int rc = 0;

	if (ftruncate(fd, (off_t)len) != 0)
		return -errno;
	while (rc == 0 && at < len) {
		n = len - at < BLOCK ? len - at : BLOCK;
		if (all_zero(data + at, n)) {
			at += n;
			continue;
		}
		for (end = at + n; end < len && end - at < (1 << 20); end += n) {
			n = len - end < BLOCK ? len - end : BLOCK;
			if (all_zero(data + end, n))
				break;
		}
		rc = write_at(fd, data + at, end - at, (off_t)at);
		at = end;
	}
	return rc;
}

bool fs_is_special(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

int fs_open_special(const char *path)
{
	/* O_NONBLOCK: fail instead of hanging on a pipe that nobody reads */
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0600), rc;

	if (fd < 0 || fcntl(fd, F_SETFL, 0) == 0)
		return fd < 0 ? -errno : fd;
	rc = -errno;
	close(fd);
	return rc;
}

static int write_through(const char *path, const char *data, size_t len)
{
	int fd = fs_open_special(path), rc = fd < 0 ? fd : 0;
	ssize_t done;

	while (rc == 0 && len) {
		done = write(fd, data, len);
		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			rc = done < 0 ? -errno : -EIO;
		data += done > 0 ? done : 0;
		len -= done > 0 ? (size_t)done : 0;
	}
	if (fd >= 0 && close(fd) != 0 && rc == 0)
		rc = -errno;
	return rc;
}

static int write_beside(const char *path, const char *data, size_t len)
{
	char *tmp = xasprintf("%s.XXXXXX", path);
	int fd, rc;

	fd = mkostemp(tmp, O_CLOEXEC);	/* mode 0600 */
	rc = fd < 0 ? -errno : write_sparse(fd, data, len);
	if (fd >= 0 && close(fd) != 0 && rc == 0)
		rc = -errno;
	if (rc == 0 && rename(tmp, path) != 0)
		rc = -errno;
	if (rc != 0 && fd >= 0)
		unlink(tmp);
	free(tmp);
	return rc;
}

int fs_write(const char *path, const void *data, size_t len, struct err *e)
{
	int rc = fs_is_special(path) ? write_through(path, data, len) : write_beside(path, data, len);

	return rc ? err_set(e, rc, "cannot write '%s': %s", path, strerror(-rc)) : 0;
}

int fs_open_foreign(const char *path, uint64_t max, uint64_t *size)
{
	struct stat st;
	int fd;

	/* Opening a device can have side effects, so check first. A pipe put there since cannot block us: O_NONBLOCK. */
	if (stat(path, &st) != 0)
		return -errno;
	if (!S_ISREG(st.st_mode))
		return S_ISDIR(st.st_mode) ? -EISDIR : -EINVAL;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && (uint64_t)st.st_size <= max) {
		if (size)
			*size = (uint64_t)st.st_size;
		return fd;
	}
	close(fd);
	return S_ISREG(st.st_mode) ? -EFBIG : -EINVAL;
}

void fs_read_data(int fd, void *to, size_t len)
{
	off_t at = 0, end;
	ssize_t n;

	while ((at = lseek(fd, at, SEEK_DATA)) >= 0 && (size_t)at < len) {
		end = lseek(fd, at, SEEK_HOLE);
		end = end < at || (size_t)end > len ? (off_t)len : end;
		while (at < end) {
			n = pread(fd, (char *)to + at, (size_t)(end - at), at);
			if (n < 0 && errno == EINTR)
				continue;
			if (n <= 0)
				return;
			at += n;
		}
	}
}

size_t fs_read_head(const char *path, void *to, size_t n)
{
	int fd = fs_open_foreign(path, UINT64_MAX, NULL);
	ssize_t got = fd < 0 ? 0 : pread(fd, to, n, 0);

	if (fd >= 0)
		close(fd);
	return got > 0 ? (size_t)got : 0;
}

const char *fs_reason(int rc)
{
	return rc == -EINVAL ? "not a regular file" : strerror(-rc);
}

int fs_read(const char *path, struct buf *b, struct err *e)
{
	int rc, fd = fs_open_foreign(path, b->max - b->len, NULL);

	if (fd < 0)
		return err_set(e, fd, "cannot open '%s': %s", path, fs_reason(fd));
	rc = buf_read_fd(b, fd);
	close(fd);
	return rc ? err_set(e, rc, "cannot read '%s': %s", path, strerror(-rc)) : 0;
}

int fs_copy(const char *from, const char *to, struct err *e)
{
	struct buf b;
	int rc;

	buf_init(&b, 1u << 30);
	rc = fs_read(from, &b, e);
	if (rc == 0)
		rc = fs_write(to, b.data, b.len, e);
	buf_release(&b);
	return rc;
}

bool fs_is_dir(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

uint64_t fs_written_ns(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec : 0;
}

bool fs_exists(const char *path)
{
	struct stat st;

	return lstat(path, &st) == 0;
}

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

bool fs_dir_empty(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *ent;
	bool empty = d != NULL;

	while (empty && (ent = readdir(d)))
		empty = is_dots(ent->d_name);
	if (d)
		closedir(d);
	return empty;
}

unsigned long long fs_dir_bytes(const char *path)
{
	unsigned long long sum = 0;
	DIR *d = opendir(path);
	struct dirent *ent;
	struct stat st;

	while (d && (ent = readdir(d)))
		if (fstatat(dirfd(d), ent->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(st.st_mode))
			sum += (unsigned long long)st.st_blocks * 512;
	if (d)
		closedir(d);
	return sum;
}

static void remove_at(int parent, const char *name, int depth)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *ent;

	if (!d) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (int hidden = 0; hidden < 2; hidden++, rewinddir(d)) {
		while ((ent = readdir(d))) {
			if (is_dots(ent->d_name) || (ent->d_name[0] == '.') != hidden)
				continue;
			if (unlinkat(dirfd(d), ent->d_name, 0) != 0 && depth > 0)
				remove_at(dirfd(d), ent->d_name, depth - 1);
		}
	}
	closedir(d);
	unlinkat(parent, name, AT_REMOVEDIR);
}

void fs_remove_dir(const char *path, int depth)
{
	remove_at(AT_FDCWD, path, depth);
}

bool fs_empty_if(const char *path, bool (*is_ours)(const char *name))
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *ent;
	struct stat st;
	bool ours = d != NULL;

	while (ours && (ent = readdir(d)))
		ours = is_dots(ent->d_name) ||
		       (is_ours(ent->d_name) && fstatat(fd, ent->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			!S_ISDIR(st.st_mode) && !S_ISLNK(st.st_mode));
	for (int hidden = 0; ours && hidden < 2; hidden++) {
		rewinddir(d);
		while (ours && (ent = readdir(d)))
			ours = is_dots(ent->d_name) || (ent->d_name[0] == '.') != hidden ||
			       unlinkat(fd, ent->d_name, 0) == 0;
	}
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
	return ours;
}
