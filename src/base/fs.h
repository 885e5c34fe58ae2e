/* SPDX-License-Identifier: Apache-2.0
 * Files and folders of our own: folders are made with mode 0700, files with 0600.
 */
#ifndef CUWHY_FS_H
#define CUWHY_FS_H

#include <stdbool.h>
#include <stddef.h>

struct buf;
struct err;

char *fs_join(const char *dir, const char *name);	/* owned by the caller */

/* Makes a folder and what is missing above it. 0 when it is there already. */
int fs_mkdirs(const char *path, struct err *e);

/* A device, a pipe or a link: renaming over it would destroy it, /dev/null for example. Opened to be written as it is;
 * -errno. */
bool fs_is_special(const char *path);
int fs_open_special(const char *path);

/* Whole or not at all: written beside the target, flushed, then renamed over it. Blocks of zeros
 * become holes, since recordings are mostly empty. What is no file (a device, a pipe, a link) is written to as it is. */
int fs_write(const char *path, const void *data, size_t len, struct err *e);

/* Reads a whole regular file into `b` (whose ceiling applies). */
int fs_read(const char *path, struct buf *b, struct err *e);

int fs_copy(const char *from, const char *to, struct err *e);

bool fs_is_dir(const char *path);
bool fs_exists(const char *path);
bool fs_dir_empty(const char *path);

/* Bytes on disk of the files directly inside; 0 when unreadable. */
unsigned long long fs_dir_bytes(const char *path);

/* Removes a folder of ours: its files and symbolic links, and folders `depth` levels down.
 * Never follows a link. */
void fs_remove_dir(const char *path, int depth);

#endif
