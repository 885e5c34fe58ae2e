/* SPDX-License-Identifier: Apache-2.0
 * What a program left in its layer: listed, kept, measured, removed.
 */
#include "writes/layer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "writes/scratch.h"

#define DEEP 200	/* folders in folders: so many descriptors */
#define MOUNTS_MAX ((size_t)64 << 20)

typedef void alive_fn(void *of);

static bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static bool is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

static ssize_t note_of(int fd, const char *what, char *value, size_t size)
{
	char name[64];
	ssize_t n;

	snprintf(name, sizeof(name), "trusted.overlay.%s", what);
	n = fgetxattr(fd, name, value, size - 1);
	if (n < 0) {
		snprintf(name, sizeof(name), "user.overlay.%s", what);
		n = fgetxattr(fd, name, value, size - 1);
	}
	value[n < 0 ? 0 : n] = '\0';
	return n;
}

/* The folder of the user's that shows through the upper folder `fd`, which the program knows as `path` and which lies in one that `above`
 * shows through; NULL if none does. `place`: of the overlay. Owned by the caller. */
static char *folder_below(int fd, const char *place, const char *above, const char *name)
{
	char value[4096];

	if (note_of(fd, "opaque", value, sizeof(value)) > 0 && value[0] == 'y')
		return NULL;
	if (note_of(fd, "redirect", value, sizeof(value)) <= 0)
		return above ? fs_join(above, name) : NULL;
	if (value[0] == '/')
		return strcmp(place, "/") == 0 ? xstrdup(value) : xasprintf("%s%s", place, value);
	return above ? fs_join(above, value) : NULL;
}

/* Opens a folder that its owner may have closed to himself: until close_folder(), it is not. */
static int open_folder(int parent, const char *name, mode_t mode)
{
	if ((mode & 0500) != 0500)
		fchmodat(parent, name, 0700, 0);
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

static void close_folder(int parent, const char *name, mode_t mode)
{
	if ((mode & 0500) != 0500)
		fchmodat(parent, name, mode & 07777, 0);
}

struct place {
	char *path;	/* where the program sees it */
	int fd;		/* its upper side */
};

/* False: there are no more. */
static bool place_open(struct place *p, const char *dir, unsigned n)
{
	char *link = xasprintf("%s/place/%u", dir, n), *up = xasprintf("%s/up/%u", dir, n), path[4096];
	ssize_t len = readlink(link, path, sizeof(path) - 1);
	struct stat st;

	*p = (struct place){.fd = -1};
	if (len > 0 && lstat(up, &st) == 0) {
		path[len] = '\0';
		p->path = xstrdup(path);
		p->fd = open_folder(AT_FDCWD, up, st.st_mode);
	}
	free(up);
	free(link);
	return p->path != NULL;
}

static void place_close(struct place *p)
{
	if (p->fd >= 0)
		close(p->fd);
	free(p->path);
}

struct walk {
	struct layer_walk *w;
	const char *place;
	const char *written;	/* of a fence */
	int depth;
};

static void tell_change(const struct walk *k, const char *path, enum layer_what what, uint64_t bytes)
{
	k->w->change(k->w->of, &(struct layer_change){path, what, bytes});
}

static void walk_folder(struct walk *k, int fd, const char *path, const char *below);

/* A folder of the user's was deleted and made anew: what was in it is gone, unless it was written again. */
static void tell_gone(const struct walk *k, int fd, const char *path)
{
	DIR *d = opendir(path);
	struct dirent *ent;
	struct stat st;

	while (d && (ent = readdir(d))) {
		if (is_dots(ent->d_name) || fstatat(fd, ent->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0)
			continue;
		char *inner = fs_join(path, ent->d_name);

		tell_change(k, inner, LAYER_DELETED, 0);
		free(inner);
	}
	if (d)
		closedir(d);
}

static void walk_into(struct walk *k, int parent, const char *name, const struct stat *st, const char *path,
		      const char *above)
{
	int fd = k->depth < DEEP ? open_folder(parent, name, st->st_mode) : -1;
	bool was = fs_is_dir(path);
	char *below;

	if (!was)
		tell_change(k, path, LAYER_FOLDER, 0);
	if (fd < 0) {
		k->w->unreadable = true;
		return;
	}
	below = folder_below(fd, k->place, above, name);
	if (!below && was)
		tell_gone(k, fd, path);
	k->depth++;
	walk_folder(k, fd, path, below);
	k->depth--;
	close_folder(parent, name, st->st_mode);
	free(below);
}

static void walk_entry(struct walk *k, int fd, const char *name, const char *path, const char *below)
{
	struct stat st, old;
	bool was;

	if (fstatat(fd, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	if (S_ISDIR(st.st_mode)) {
		walk_into(k, fd, name, &st, path, below);
		return;
	}
	was = lstat(path, &old) == 0;
	if (is_whiteout(&st)) {
		if (was)
			tell_change(k, path, LAYER_DELETED, 0);
		return;
	}
	k->w->bytes += S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
	tell_change(k, path, was ? LAYER_REPLACED : LAYER_NEW, S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0);
}

/* `fd` is closed. */
static void walk_folder(struct walk *k, int fd, const char *path, const char *below)
{
	DIR *d = fdopendir(fd);
	struct dirent *ent;

	if (!d) {
		k->w->unreadable = true;
		close(fd);
		return;
	}
	while ((ent = readdir(d))) {
		char *inner;

		if (is_dots(ent->d_name))
			continue;
		if (k->w->alive)
			k->w->alive(k->w->of);
		inner = fs_join(path, ent->d_name);
		walk_entry(k, dirfd(d), ent->d_name, inner, below);
		free(inner);
	}
	closedir(d);
}

/* What was real there is gone, down to what was made anew. */
static void tell_lost(struct walk *k, const char *path)
{
	char *anew = xasprintf("%s%s", k->written, path);
	struct stat st, old;
	bool was = lstat(path, &old) == 0, is = lstat(anew, &st) == 0;
	struct dirent *ent;
	DIR *d = NULL;

	if (was && !is)
		tell_change(k, path, LAYER_DELETED, 0);
	else if (was && k->depth < DEEP && S_ISDIR(old.st_mode) && S_ISDIR(st.st_mode))
		d = opendir(path);
	free(anew);
	k->depth++;
	while (d && (ent = readdir(d))) {
		char *inner = fs_join(path, ent->d_name);

		if (!is_dots(ent->d_name))
			tell_lost(k, inner);
		free(inner);
	}
	k->depth--;
	if (d)
		closedir(d);
}

/* What a fence noted as deleted: the names that are no folders. */
static void walk_gone(struct walk *k, int parent, const char *name, const char *path)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd >= 0 && k->depth < DEEP ? fdopendir(fd) : NULL;
	struct dirent *ent;

	if (fd < 0 && errno == ENOTDIR)
		tell_lost(k, path);
	while (d && (ent = readdir(d))) {
		char *inner;

		if (is_dots(ent->d_name))
			continue;
		inner = fs_join(path, ent->d_name);
		k->depth++;
		walk_gone(k, dirfd(d), ent->d_name, inner);
		k->depth--;
		free(inner);
	}
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
}

static void walk_fence(const char *dir, struct layer_walk *w)
{
	char *written = fs_join(dir, "new"), *gone = fs_join(dir, "gone");
	int fd = open(written, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	struct walk k = {.w = w, .place = "/", .written = written};

	if (fd >= 0)
		walk_folder(&k, fd, "/", "/");
	if (fs_is_dir(gone))
		walk_gone(&k, AT_FDCWD, gone, "/");
	free(gone);
	free(written);
}

void layer_changes(const char *dir, struct layer_walk *w)
{
	struct place p;

	for (unsigned n = 0; place_open(&p, dir, n); n++) {
		struct walk k = {.w = w, .place = p.path};

		if (p.fd >= 0)
			walk_folder(&k, p.fd, p.path, p.path);
		else
			w->unreadable = true;
		p.fd = -1;	/* closed */
		place_close(&p);
	}
	walk_fence(dir, w);
}

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
	int fd = k->depth < DEEP ? open_folder(from, name, st->st_mode) : -1,
	    inside = fd < 0 ? fd : open_new_folder(to, name);
	char *below = fd < 0 ? NULL : folder_below(fd, k->place, above, name), value[4096];

	if (inside < 0) {
		keep_failed(k, fd < 0 ? -ELOOP : inside, path);
		if (fd >= 0)
			close(fd);
	} else {
		moved |= note_of(fd, "redirect", value, sizeof(value)) > 0;
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
	struct walk gone = {.w = &w};
	DIR *d = fdopendir(from);
	struct dirent *ent;

	if (!d) {
		close(from);
		keep_failed(k, -errno, path);
		return;
	}
	if (!below && fs_is_dir(path))
		tell_gone(&gone, dirfd(d), path);
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

static void keep_place(struct keep *k, const struct place *p, const char *to)
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
	struct walk gone = {.w = &w, .written = written};
	struct place p = {.path = xstrdup("/"), .fd = open(written, O_RDONLY | O_DIRECTORY | O_CLOEXEC)};

	if (fs_is_dir(lost))
		walk_gone(&gone, AT_FDCWD, lost, "/");
	if (p.fd >= 0)
		keep_place(k, &p, to);
	place_close(&p);
	free(lost);
	free(written);
}

int layer_keep(const char *dir, const char *to, alive_fn *alive, void *of, struct err *e)
{
	struct keep k = {.alive = alive, .of = of, .e = e};
	char *list = fs_join(to, LAYER_DELETED_FILE);
	struct place p;

	k.deleted = fopen(list, "we");
	if (!k.deleted)
		k.rc = err_set(e, -errno, "cannot write '%s': %s", list, strerror(errno));
	for (unsigned n = 0; k.rc == 0 && place_open(&p, dir, n); n++) {
		keep_place(&k, &p, to);
		place_close(&p);
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

static void add_bytes(int parent, const char *name, int depth, uint64_t enough, uint64_t *sum)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	struct dirent *ent;
	struct stat st;

	while (d && *sum <= enough && (ent = readdir(d))) {
		if (is_dots(ent->d_name) || fstatat(fd, ent->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		*sum += (uint64_t)st.st_blocks * 512;
		if (S_ISDIR(st.st_mode) && depth < DEEP)
			add_bytes(fd, ent->d_name, depth + 1, enough, sum);
	}
	if (d)
		closedir(d);
	else if (fd >= 0)
		close(fd);
}

uint64_t layer_bytes(const char *dir, uint64_t enough)
{
	uint64_t sum = 0;

	add_bytes(AT_FDCWD, dir, 0, enough, &sum);
	return sum;
}

/* Does its view show the layer, which is hidden under its own name? The number of a namespace says nothing: it is used again at once, and the
 * program may make more of them. */
static bool has_mount(int pid, const char *dir)
{
	const char *name = strrchr(dir, '/');
	char path[64];
	struct buf b;
	int fd;
	bool has;

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	buf_init(&b, MOUNTS_MAX);
	buf_read_fd(&b, fd);
	close(fd);
	has = b.len && name && strstr(b.data, name);
	buf_release(&b);
	return has;
}

/* Namespaces that were looked at: there are many processes in a few. */
struct seen {
	char ns[64];
	bool shows;
};

struct views {
	struct seen *list;
	size_t n, cap;
};

static bool sees_layer(struct views *v, int pid, const char *dir)
{
	struct seen one = {"", false};
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	n = readlink(path, one.ns, sizeof(one.ns) - 1);
	if (n <= 0)
		return false;
	for (size_t i = 0; i < v->n; i++)
		if (strcmp(v->list[i].ns, one.ns) == 0)
			return v->list[i].shows;
	one.shows = has_mount(pid, dir);
	v->list = xgrow(v->list, v->n, &v->cap, sizeof(*v->list));
	v->list[v->n++] = one;
	return one.shows;
}

size_t layer_users(const char *dir, void (*found)(int pidfd, void *of), void *of)
{
	char *places = fs_join(dir, "place"), *fenced = xasprintf(SCRATCH_ENV "=%s", dir);
	bool overlays = fs_exists(places), uses;
	struct views views = {0};
	DIR *d = opendir("/proc");
	struct dirent *ent;
	size_t count = 0;
	uint64_t pid;

	while (d && (ent = readdir(d))) {
		int pidfd;

		if (!str_u64(ent->d_name, &pid))
			continue;
		pidfd = found ? proc_pidfd((pid_t)pid) : -1;	/* before it is asked who it is: its number may be another's next */
		uses = overlays ? sees_layer(&views, (int)pid, dir) : proc_environ_has((pid_t)pid, fenced);
		uses = uses && proc_state((pid_t)pid) != 'Z';
		count += uses;
		if (uses && pidfd >= 0)
			found(pidfd, of);
		if (pidfd >= 0)
			close(pidfd);
	}
	if (d)
		closedir(d);
	free(views.list);
	free(fenced);
	free(places);
	return count;
}

struct removal {
	int top;	/* what lies too deep is moved here and removed from here */
	unsigned moved;
	alive_fn *alive;
	void *of;
	bool left;
};

/* chattr +i */
static bool allow_removal(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), none = 0;
	bool ok = fd >= 0 && ioctl(fd, FS_IOC_SETFLAGS, &none) == 0;

	if (fd >= 0)
		close(fd);
	return ok;
}

static bool unlink_one(int parent, const char *name, int flags)
{
	if (unlinkat(parent, name, flags) == 0)
		return true;
	return errno == EPERM && allow_removal(parent, name) && unlinkat(parent, name, flags) == 0;
}

static void empty_folder(struct removal *r, int fd, int depth);

static void remove_one(struct removal *r, int parent, const char *name, int depth)
{
	char other[32];
	struct stat st;
	int fd;

	if (r->alive)
		r->alive(r->of);
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	if (!S_ISDIR(st.st_mode)) {
		r->left |= !unlink_one(parent, name, 0);
		return;
	}
	if ((st.st_mode & 0700) != 0700 && fchmodat(parent, name, 0700, 0) != 0 && allow_removal(parent, name))
		fchmodat(parent, name, 0700, 0);
	snprintf(other, sizeof(other), "deep.%u", r->moved);
	if (depth >= DEEP && renameat(parent, name, r->top, other) == 0) {
		r->moved++;
		return;
	}
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		empty_folder(r, fd, depth + 1);
	r->left |= !unlink_one(parent, name, AT_REMOVEDIR);
}

/* `fd` is closed. Hidden files go last: one says whose folder it is. */
static void empty_folder(struct removal *r, int fd, int depth)
{
	DIR *d = fdopendir(fd);
	struct dirent *ent;

	if (!d) {
		close(fd);
		return;
	}
	for (int hidden = 0; hidden < 2; hidden++, rewinddir(d))
		while ((ent = readdir(d)))
			if (!is_dots(ent->d_name) && (ent->d_name[0] == '.') == hidden)
				remove_one(r, dirfd(d), ent->d_name, depth);
	closedir(d);
}

bool layer_remove(const char *dir, alive_fn *alive, void *of)
{
	struct removal r = {.alive = alive, .of = of};
	unsigned moved;

	do {
		moved = r.moved;
		r.left = false;
		r.top = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (r.top < 0)
			return errno == ENOENT;
		empty_folder(&r, dup(r.top), 0);
		close(r.top);
	} while (r.moved > moved);
	return rmdir(dir) == 0 || errno == ENOENT;
}
