/* SPDX-License-Identifier: Apache-2.0
 * What the files of the layer ask of each other: layer*.c, and what mounts.c and namespace.c do for layer_enter.c.
 */
#ifndef CUWHY_WRITES_LAYER_PARTS_H
#define CUWHY_WRITES_LAYER_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/types.h>

#include "writes/layer.h"

#define DEEP 200	/* folders in folders: so many descriptors */

typedef void alive_fn(void *of);

static inline bool is_dots(const char *name)
{
	return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

static inline bool is_whiteout(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(0, 0);
}

struct layer_place {
	char *path;	/* where the program sees it */
	int fd;		/* its upper side */
};

struct layer_walking {
	struct layer_walk *w;
	const char *place;
	const char *written;	/* of a fence */
	int depth;
};

/* What overlayfs noted of a folder. */
ssize_t layer_note(int fd, const char *what, char *value, size_t size);
char *layer_folder_below(int fd, const char *place, const char *above, const char *name);
int layer_open_folder(int parent, const char *name, mode_t mode);
void layer_close_folder(int parent, const char *name, mode_t mode);
bool layer_place_open(struct layer_place *p, const char *dir, unsigned n);
void layer_place_close(struct layer_place *p);
void layer_tell_gone(const struct layer_walking *k, int fd, const char *path);
void layer_walk_gone(struct layer_walking *k, int parent, const char *name, const char *path);

/* What is mounted where, as this process sees it. */

struct err;

struct mount_point {
	int id, parent;
	unsigned long flags;	/* MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_NOATIME */
	char *path, *type, *source;
	bool hidden;		/* another file system is mounted over it */
	bool virtual;		/* the kernel's own, or for this boot only by its nature: /proc, /dev, /dev/shm; writes there are real */
};

struct mounts {
	struct mount_point *list;	/* a mount comes after the one that it is in */
	size_t n, cap;
};

/* 0; -errno with `e` filled. The first is always that of "/". */
int mounts_read(struct mounts *m, struct err *e);
void mounts_release(struct mounts *m);

/* Is anything mounted below this folder, hidden or not? */
bool mounts_below(const struct mounts *m, const char *path);

/* Is `path` that folder, or in it? */
bool path_within(const char *path, const char *folder);

/* A mount namespace of its own for the program, in which it is who it was. */

/* What it may do, before and after: the user namespace that lets an ordinary user mount gives all capabilities in it. */
struct rights {
	uint64_t effective, permitted, inheritable, bounding, ambient;
	uid_t uid;
	gid_t gid;
};

/* In a process with one thread. As root nothing but the mounts is new; otherwise `*user` is set, and the process is in a user namespace
 * in which it has the same uid and gid. `before`: for namespace_settle. -EPERM: this system allows neither; or another -errno. */
int namespace_enter(struct rights *before, bool *user, struct err *e);

/* Drops the privileges that it did not have before. */
int namespace_settle(const struct rights *before, struct err *e);

#endif
