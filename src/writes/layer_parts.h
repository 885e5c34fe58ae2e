/* SPDX-License-Identifier: Apache-2.0
 * What the files layer*.c ask of each other.
 */
#ifndef CUWHY_WRITES_LAYER_PARTS_H
#define CUWHY_WRITES_LAYER_PARTS_H

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

#endif
