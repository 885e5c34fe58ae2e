/* SPDX-License-Identifier: Apache-2.0
 * The layer: a private folder that takes what a dry run writes, in place of the user's files.
 *
 *   up/N, work/N   what was written below the folder that the link place/N names
 *   root           where the program's view of the file systems is put together
 *   hidden         an empty folder: what the program sees in place of the layer
 *   new, gone      instead of all that, behind a fence (fence.h)
 */
#ifndef CUWHY_WRITES_LAYER_H
#define CUWHY_WRITES_LAYER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct layer_view {
	const char *dir;		/* the layer: an absolute path without links; it is there and empty */
	const char *const *real;	/* folders, likewise, in which writes stay real; NULL-ended */
	char *const *words;		/* of the program: some are paths in which it will write */
	bool strict;			/* fail if it will meet files that an overlay cannot take over (-EXDEV) */
	char *read_only;		/* filled: places that could be written to and cannot now, each with a NUL; an empty one is the end */
	size_t read_only_size;
};

/* Moves this process into a view of the file systems in which all writes go to the layer. -EPERM: the system allows no mount namespace;
 * any other -errno: not with this layer. `e` has the reason. Whatever fails: the process must not go on to be the program. */
int layer_enter(const struct layer_view *v, struct err *e);

/* Is this process in such a view already, of a dry run that it is part of? */
bool layer_inside(void);

enum layer_what { LAYER_NEW, LAYER_REPLACED, LAYER_DELETED, LAYER_FOLDER /* a new one */ };

struct layer_change {
	const char *path;	/* absolute, as the program knew it */
	enum layer_what what;
	uint64_t bytes;
};

struct layer_walk {
	void (*change)(void *of, const struct layer_change *c);
	void (*alive)(void *of);	/* called often: there may be millions */
	void *of;
	uint64_t bytes;		/* on disk, of all files */
	bool unreadable;	/* some of it could not be read */
};

void layer_changes(const char *dir, struct layer_walk *w);

/* Moves what is in the layer to `to`, an empty folder, as a tree of absolute paths; what was deleted is listed in a file of it. */
#define LAYER_DELETED_FILE "deleted.txt"
int layer_keep(const char *dir, const char *to, void (*alive)(void *of), void *of, struct err *e);

/* Bytes on disk; stops when there are more than `enough`. */
uint64_t layer_bytes(const char *dir, uint64_t enough);

/* Calls `found`, if there is one, for every process that is in the view of this layer, the caller and its children before exec
 * included; how many. */
size_t layer_users(const char *dir, void (*found)(int pidfd, void *of), void *of);

/* Removes the whole folder: whatever modes, flags and depths the program left in it. */
bool layer_remove(const char *dir, void (*alive)(void *of), void *of);

#endif
