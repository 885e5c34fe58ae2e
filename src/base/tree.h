/* SPDX-License-Identifier: Apache-2.0
 * Files of a machine below a root: "" is the live machine, else the folder of a captured tree.
 *
 * Paths are those that a program inside sees ("/etc/os-release"). Symbolic links never lead out of the root, whether
 * absolute or with "..". Nothing that could block is opened: pipes, sockets and devices are refused.
 */
#ifndef CUWHY_TREE_H
#define CUWHY_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/stat.h>

struct buf;
struct pool;

#define TREE_PATH_MAX	4096

/* Follows every link of an absolute path. 0, or -errno (-ENOENT, -ELOOP, -EACCES ...). */
int tree_resolve(const char *root, const char *path, char out[TREE_PATH_MAX]);

int tree_stat(const char *root, const char *path, struct stat *st);	/* of a link's target; 0 or -errno */
bool tree_is_file(const char *root, const char *path);
bool tree_is_dir(const char *root, const char *path);

/* A descriptor of a regular file, or -errno (-EINVAL: not a regular file). */
int tree_open(const char *root, const char *path);

/* A regular file, at most the ceiling of `b` of it (then b->full). 0 or -errno. For files of /proc and /sys too. */
int tree_read(const char *root, const char *path, struct buf *b);

/* Names in a folder, sorted by their bytes, without "." and ".."; at most `max` (*cut is set when there are more).
 * The number of them, or -errno. */
int tree_list(const char *root, const char *path, struct pool *pool, size_t max, char ***names, bool *cut);

#endif
