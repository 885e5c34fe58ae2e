/* SPDX-License-Identifier: Apache-2.0
 * What is mounted where, as this process sees it.
 */
#ifndef CUWHY_WRITES_MOUNTS_H
#define CUWHY_WRITES_MOUNTS_H

#include <stdbool.h>
#include <stddef.h>

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

#endif
