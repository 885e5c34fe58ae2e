/* SPDX-License-Identifier: Apache-2.0
 * Keeps what a program left in its layer: a tree of absolute paths in a folder that the user named, and a list of what was deleted.
 */
#include "writes/layer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "writes/layer_parts.h"

struct keep {
	FILE *deleted;
	const char *place;
	int depth;
	alive_fn *alive;
	void *of;
	struct err *e;
	int rc;
};

static void keep_failed(struct keep *k, int rc, const char *path)
{
	if (k->rc == 0)
		k->rc = err_set(k->e, rc, "cannot keep '%s': %s", path, strerror(-rc));
}

static void copy_looks(int to, const char *name, const struct stat *st)
{
	struct timespec times[2] = {st->st_atim, st->st_mtim};

	if (fchownat(to, name, st->st_uid, st->st_gid, AT_SYMLINK_NOFOLLOW) != 0 && geteuid() == 0)
		return;
	if (!S_ISLNK(st->st_mode))
		fchmodat(to, name, st->st_mode & 07777, 0);
	utimensat(to, name, times, AT_SYMLINK_NOFOLLOW);
}

static int copy_bytes(int from, int to, const char *name, const struct stat *st)
{
	int in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC), out = -1, rc = 0;
	ssize_t n = 1;

	if (in < 0 && errno == EACCES && fchmodat(from, name, 0600, 0) == 0) {
		in = openat(from, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
		fchmodat(from, name, st->st_mode & 07777, 0);
	}
	if (in >= 0)
		out = openat(to, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (out >= 0)
		while ((n = sendfile(out, in, NULL, (size_t)1 << 30)) > 0)
			;
	if (in < 0 || out < 0 || n < 0)
		rc = -errno;
	if (in >= 0)
		close(in);
	if (out >= 0 && close(out) != 0 && rc == 0)
		rc = -errno;
	return rc;
}

static int copy_one(int from, int to, const char *name, const struct stat *st)
{
	char target[4096];
	ssize_t n;
	int rc = 0;

	if (S_ISREG(st->st_mode)) {
		rc = copy_bytes(from, to, name, st);
	} else if (S_ISLNK(st->st_mode)) {
		n = readlinkat(from, name, target, sizeof(target) - 1);
		target[n < 0 ? 0 : n] = '\0';
		rc = n < 0 || symlinkat(target, to, name) != 0 ? -errno : 0;
	} else if (syscall(SYS_mknodat, to, name, st->st_mode, st->st_rdev) != 0) {	/* libc's function needs a newer glibc than we promise */
		rc = S_ISFIFO(st->st_mode) || S_ISSOCK(st->st_mode) ? -errno : 0;
	}
	if (rc == 0)
		copy_looks(to, name, st);
	return rc;
}

static int open_new_folder(int to, const char *name)
{
	int fd;

	if (mkdirat(to, name, 0700) != 0 && errno != EEXIST)
		return -errno;
	fd = openat(to, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* A folder of the user's that the program gave another name: what it did not write in it is copied. `upper`: what it did, -1 = nothing. */
static void copy_below(struct keep *k, const char *below, int upper, int to)
{
	DIR *d = opendir(below);
	struct dirent *ent;
	struct stat st, over;

	while (d && k->rc == 0 && (ent = readdir(d))) {
		const char *name = ent->d_name;
		char *inner;

		if (is_dots(name) || fstatat(dirfd(d), name, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
		    (upper >= 0 && fstatat(upper, name, &over, AT_SYMLINK_NOFOLLOW) == 0))
			continue;
		if (k->alive)
			k->alive(k->of);
		inner = fs_join(below, name);
		if (S_ISDIR(st.st_mode) && k->depth < DEEP) {
			int inside = open_new_folder(to, name);

			k->depth++;
			if (inside >= 0) {
				copy_below(k, inner, -1, inside);
				close(inside);
			}
			k->depth--;
			copy_looks(to, name, &st);
		} else {
			int rc = copy_one(dirfd(d), to, name, &st);

			if (rc != 0)
				keep_failed(k, rc, inner);
		}
		free(inner);
	}
	if (d)
		closedir(d);
}

static void keep_folder(struct keep *k, int from, int to, const char *path, const char *below, bool moved);

static void keep_inner_folder(struct keep *k, int from, int to, const char *name, const struct stat *st,
			      const char *path, const char *above, bool moved)
{
	int fd = k->depth < DEEP ? layer_open_folder(from, name, st->st_mode) : -1,
	    inside = fd < 0 ? fd : open_new_folder(to, name);
	char *below = fd < 0 ? NULL : layer_folder_below(fd, k->place, above, name), value[4096];

	if (inside < 0) {
		keep_failed(k, fd < 0 ? -ELOOP : inside, path);
		if (fd >= 0)
			close(fd);
	} else {
		moved |= layer_note(fd, "redirect", value, sizeof(value)) > 0;
		k->depth++;
		keep_folder(k, fd, inside, path, below, moved);
		k->depth--;
		close(inside);
		/* one that was there, and in which nothing was written */
		if (!fs_is_dir(path) || unlinkat(to, name, AT_REMOVEDIR) != 0)
			copy_looks(to, name, st);
	}
	free(below);
}

static void keep_entry(struct keep *k, int from, int to, const char *name, const char *path, const char *below, bool moved)
{
	struct stat st;
	int rc = 0;

	if (fstatat(from, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	if (S_ISDIR(st.st_mode)) {
		keep_inner_folder(k, from, to, name, &st, path, below, moved);
	} else if (is_whiteout(&st)) {
		if (fs_exists(path))
			fprintf(k->deleted, "%s\n", path);
	} else if (renameat(from, name, to, name) != 0) {
		rc = copy_one(from, to, name, &st);
	}
	if (rc != 0)
		keep_failed(k, rc, path);
}

static void list_gone(void *of, const struct layer_change *c)
{
	struct keep *k = of;

	if (c->what == LAYER_DELETED)
		fprintf(k->deleted, "%s\n", c->path);
}

/* `from` is closed. */
static void keep_folder(struct keep *k, int from, int to, const char *path, const char *below, bool moved)
{
	struct layer_walk w = {.change = list_gone, .of = k};
	struct layer_walking gone = {.w = &w};
	DIR *d = fdopendir(from);
	struct dirent *ent;

	if (!d) {
		close(from);
		keep_failed(k, -errno, path);
		return;
	}
	if (!below && fs_is_dir(path))
		layer_tell_gone(&gone, dirfd(d), path);
	if (moved && below)
		copy_below(k, below, dirfd(d), to);
	while (k->rc == 0 && (ent = readdir(d))) {
		char *inner;

		if (is_dots(ent->d_name))
			continue;
		if (k->alive)
			k->alive(k->of);
		inner = fs_join(path, ent->d_name);
		keep_entry(k, dirfd(d), to, ent->d_name, inner, below, moved);
		free(inner);
	}
	closedir(d);
}

/* The folder for what was written below `path`. */
static int open_kept(const char *whole, struct err *e)
{
	int rc = fs_mkdirs(whole, e), fd = rc ? rc : open(whole, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (rc == 0 && fd < 0)
		fd = err_set(e, -errno, "cannot open '%s': %s", whole, strerror(errno));
	return fd;
}

static void keep_place(struct keep *k, const struct layer_place *p, const char *to)
{
	DIR *d = p->fd < 0 ? NULL : fdopendir(dup(p->fd));
	struct dirent *ent;
	bool any = false;
	char *whole;
	int fd;

	while (d && !any && (ent = readdir(d)))
		any = !is_dots(ent->d_name);
	if (d)
		rewinddir(d);
	if (d)
		closedir(d);
	if (!any)
		return;
	whole = xasprintf("%s%s", to, strcmp(p->path, "/") == 0 ? "" : p->path);
	fd = open_kept(whole, k->e);
	if (fd < 0) {
		k->rc = fd;
	} else {
		k->place = p->path;
		keep_folder(k, dup(p->fd), fd, p->path, p->path, false);
		close(fd);
	}
	rmdir(whole);	/* if nothing was written there */
	free(whole);
}

static void keep_fence(struct keep *k, const char *dir, const char *to)
{
	struct layer_walk w = {.change = list_gone, .of = k};
	char *written = fs_join(dir, "new"), *lost = fs_join(dir, "gone");
	struct layer_walking gone = {.w = &w, .written = written};
	struct layer_place p = {.path = xstrdup("/"), .fd = open(written, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};

	if (fs_is_dir(lost))
		layer_walk_gone(&gone, AT_FDCWD, lost, "/");
	if (p.fd >= 0)
		keep_place(k, &p, to);
	layer_place_close(&p);
	free(lost);
	free(written);
}

int layer_keep(const char *dir, const char *to, alive_fn *alive, void *of, struct err *e)
{
	struct keep k = {.alive = alive, .of = of, .e = e};
	char *list = fs_join(to, LAYER_DELETED_FILE);
	struct layer_place p;

	k.deleted = fopen(list, "we");
	if (!k.deleted)
		k.rc = err_set(e, -errno, "cannot write '%s': %s", list, strerror(errno));
	for (unsigned n = 0; k.rc == 0 && layer_place_open(&p, dir, n); n++) {
		keep_place(&k, &p, to);
		layer_place_close(&p);
	}
	if (k.rc == 0)
		keep_fence(&k, dir, to);
	if (k.deleted && ftell(k.deleted) == 0)
		unlink(list);
	if (k.deleted && fclose(k.deleted) != 0 && k.rc == 0)
		k.rc = err_set(e, -errno, "cannot write '%s': %s", list, strerror(errno));
	free(list);
	return k.rc;
}
