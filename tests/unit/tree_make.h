/* SPDX-License-Identifier: Apache-2.0
 * Makes a captured machine: a folder with the files that a collector reads.
 */
#ifndef CUWHY_TREE_MAKE_H
#define CUWHY_TREE_MAKE_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fs.h"

static char tree_root[64];

static inline const char *tree_begin(void)
{
	snprintf(tree_root, sizeof(tree_root), "/tmp/cuwhy-tree-XXXXXX");
	assert_non_null(mkdtemp(tree_root));
	return tree_root;
}

static inline void tree_end(void)
{
	fs_remove_dir(tree_root, 16);
	assert_false(fs_exists(tree_root));
}

static inline char *tree_place(const char *path)
{
	static char place[4096];
	char *slash;

	assert_true(snprintf(place, sizeof(place), "%s%s", tree_root, path) < (int)sizeof(place));
	slash = strrchr(place, '/');
	*slash = '\0';
	assert_int_equal(fs_mkdirs(place, NULL), 0);
	*slash = '/';
	return place;
}

static inline void tree_bytes(const char *path, const void *bytes, size_t len)
{
	char *place = tree_place(path);

	assert_int_equal(fs_write(place, bytes, len, NULL), 0);
	assert_int_equal(chmod(place, 0644), 0);
}

static inline void tree_file(const char *path, const char *text)
{
	tree_bytes(path, text, strlen(text));
}

static inline void tree_link(const char *path, const char *target)
{
	assert_int_equal(symlink(target, tree_place(path)), 0);
}

static inline void tree_dir(const char *path)
{
	char below[512];

	snprintf(below, sizeof(below), "%s/x", path);
	tree_place(below);
}

#endif
