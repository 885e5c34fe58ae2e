/* SPDX-License-Identifier: Apache-2.0
 * What a program left in its layer: listed and measured.
 */
#include "writes/layer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "writes/layer_parts.h"

ssize_t layer_note(int fd, const char *what, char *value, size_t size)
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
char *layer_folder_below(int fd, const char *place, const char *above, const char *name)
{
	char value[4096];

	if (layer_note(fd, "opaque", value, sizeof(value)) > 0 && value[0] == 'y')
		return NULL;
	if (layer_note(fd, "redirect", value, sizeof(value)) <= 0)
		return above ? fs_join(above, name) : NULL;
	if (value[0] == '/')
		return strcmp(place, "/") == 0 ? xstrdup(value) : xasprintf("%s%s", place, value);
	return above ? fs_join(above, value) : NULL;
}

/* Opens a folder that its owner may have closed to himself: until layer_close_folder(), it is not. */
int layer_open_folder(int parent, const char *name, mode_t mode)
{
	if ((mode & 0500) != 0500)
		fchmodat(parent, name, 0700, 0);
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

void layer_close_folder(int parent, const char *name, mode_t mode)
{
	if ((mode & 0500) != 0500)
		fchmodat(parent, name, mode & 07777, 0);
}

/* False: there are no more. */
bool layer_place_open(struct layer_place *p, const char *dir, unsigned n)
{
	char *link = xasprintf("%s/place/%u", dir, n), *up = xasprintf("%s/up/%u", dir, n), path[4096];
	ssize_t len = readlink(link, path, sizeof(path) - 1);
	struct stat st;

	*p = (struct layer_place){.fd = -1};
	if (len > 0 && lstat(up, &st) == 0) {
		path[len] = '\0';
		p->path = xstrdup(path);
		p->fd = layer_open_folder(AT_FDCWD, up, st.st_mode);
	}
	free(up);
	free(link);
	return p->path != NULL;
}

void layer_place_close(struct layer_place *p)
{
	if (p->fd >= 0)
		close(p->fd);
	free(p->path);
}

static void tell_change(const struct layer_walking *k, const char *path, enum layer_what what, uint64_t bytes)
{
	k->w->change(k->w->of, &(struct layer_change){path, what, bytes});
}

static void walk_folder(struct layer_walking *k, int fd, const char *path, const char *below);

/* A folder of the user's was deleted and made anew: what was in it is gone, unless it was written again. */
void layer_tell_gone(const struct layer_walking *k, int fd, const char *path)
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

static void walk_into(struct layer_walking *k, int parent, const char *name, const struct stat *st, const char *path,
		      const char *above)
{
	int fd = k->depth < DEEP ? layer_open_folder(parent, name, st->st_mode) : -1;
	bool was = fs_is_dir(path);
	char *below;

	if (!was)
		tell_change(k, path, LAYER_FOLDER, 0);
	if (fd < 0) {
		k->w->unreadable = true;
		return;
	}
	below = layer_folder_below(fd, k->place, above, name);
	if (!below && was)
		layer_tell_gone(k, fd, path);
	k->depth++;
	walk_folder(k, fd, path, below);
	k->depth--;
	layer_close_folder(parent, name, st->st_mode);
	free(below);
}

static void walk_entry(struct layer_walking *k, int fd, const char *name, const char *path, const char *below)
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
static void walk_folder(struct layer_walking *k, int fd, const char *path, const char *below)
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
static void tell_lost(struct layer_walking *k, const char *path)
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
void layer_walk_gone(struct layer_walking *k, int parent, const char *name, const char *path)
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
		layer_walk_gone(k, dirfd(d), ent->d_name, inner);
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
	struct layer_walking k = {.w = w, .place = "/", .written = written};

	if (fd >= 0)
		walk_folder(&k, fd, "/", "/");
	if (fs_is_dir(gone))
		layer_walk_gone(&k, AT_FDCWD, gone, "/");
	free(gone);
	free(written);
}

void layer_changes(const char *dir, struct layer_walk *w)
{
	struct layer_place p;

	for (unsigned n = 0; layer_place_open(&p, dir, n); n++) {
		struct layer_walking k = {.w = w, .place = p.path};

		if (p.fd >= 0)
			walk_folder(&k, p.fd, p.path, p.path);
		else
			w->unreadable = true;
		p.fd = -1;	/* closed */
		layer_place_close(&p);
	}
	walk_fence(dir, w);
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
