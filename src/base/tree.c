/* SPDX-License-Identifier: Apache-2.0
 * Files of a machine below a root (see tree.h).
 */
#include "base/tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/pool.h"

#define LINKS_MAX 40		/* as the kernel */

static bool tree_put(char to[TREE_PATH_MAX], const char *a, const char *b, const char *c)
{
	int n = snprintf(to, TREE_PATH_MAX, "%s%s%s", a, b, c);

	return n >= 0 && n < TREE_PATH_MAX;
}

static void strip_last(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = '\0';
}

/* `out` ends with a new component. If it is a link, the component is removed and its target is put before `rest`. */
static int follow(const char *root, char out[TREE_PATH_MAX], char rest[TREE_PATH_MAX], int *links)
{
	char full[TREE_PATH_MAX], target[TREE_PATH_MAX], joined[TREE_PATH_MAX];
	ssize_t n;

	if (!tree_put(full, root, out, ""))
		return -ENAMETOOLONG;
	n = readlink(full, target, sizeof(target) - 1);
	if (n < 0)
		return errno == EINVAL ? 0 : -errno;
	if (++*links > LINKS_MAX)
		return -ELOOP;
	target[n] = '\0';
	if (!tree_put(joined, target, "/", rest))
		return -ENAMETOOLONG;
	memcpy(rest, joined, strlen(joined) + 1);
	if (target[0] == '/')
		out[0] = '\0';
	else
		strip_last(out);
	return 0;
}

int tree_resolve(const char *root, const char *path, char out[TREE_PATH_MAX])
{
	char rest[TREE_PATH_MAX], name[TREE_PATH_MAX];
	size_t len, used;
	int links = 0, rc;

	if (path[0] != '/')
		return -EINVAL;
	if (!tree_put(rest, path, "", ""))
		return -ENAMETOOLONG;
	for (out[0] = '\0'; rest[0];) {
		len = strcspn(rest, "/");
		memcpy(name, rest, len);
		name[len] = '\0';
		memmove(rest, rest + len + (rest[len] == '/'), strlen(rest + len + (rest[len] == '/')) + 1);
		if (len == 0 || strcmp(name, ".") == 0)
			continue;
		if (strcmp(name, "..") == 0) {
			strip_last(out);
			continue;
		}
		used = strlen(out);
		if (used + len + 2 > TREE_PATH_MAX)
			return -ENAMETOOLONG;
		out[used] = '/';
		memcpy(out + used + 1, name, len + 1);
		rc = follow(root, out, rest, &links);
		if (rc)
			return rc;
	}
	if (!out[0])
		memcpy(out, "/", 2);
	return 0;
}

/* The path to give to the kernel. On the live machine the kernel follows links itself, and faster. */
static int real_path(const char *root, const char *path, char out[TREE_PATH_MAX])
{
	char inside[TREE_PATH_MAX];
	int rc;

	if (!root[0])
		return tree_put(out, path, "", "") ? 0 : -ENAMETOOLONG;
	rc = tree_resolve(root, path, inside);
	if (rc)
		return rc;
	return tree_put(out, root, inside, "") ? 0 : -ENAMETOOLONG;
}

int tree_stat(const char *root, const char *path, struct stat *st)
{
	char full[TREE_PATH_MAX];
	int rc = real_path(root, path, full);

	if (rc)
		return rc;
	return stat(full, st) == 0 ? 0 : -errno;
}

bool tree_is_file(const char *root, const char *path)
{
	struct stat st;

	return tree_stat(root, path, &st) == 0 && S_ISREG(st.st_mode);
}

bool tree_is_dir(const char *root, const char *path)
{
	struct stat st;

	return tree_stat(root, path, &st) == 0 && S_ISDIR(st.st_mode);
}

int tree_open(const char *root, const char *path)
{
	char full[TREE_PATH_MAX];
	int rc = real_path(root, path, full);

	return rc ? rc : fs_open_foreign(full, UINT64_MAX, NULL);
}

int tree_read(const char *root, const char *path, struct buf *b)
{
	int rc, fd = tree_open(root, path);

	if (fd < 0)
		return fd;
	rc = buf_read_fd(b, fd);
	close(fd);
	return rc == -EFBIG ? 0 : rc;
}

static int tree_by_bytes(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int tree_list(const char *root, const char *path, struct pool *pool, size_t max, char ***names, bool *cut)
{
	char full[TREE_PATH_MAX], **list = NULL;
	size_t n = 0, cap = 0;
	struct dirent *d;
	DIR *dir;
	int rc = real_path(root, path, full);

	*names = NULL;
	if (rc)
		return rc;
	dir = opendir(full);
	if (!dir)
		return -errno;
	while ((d = readdir(dir))) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		if (n >= max) {
			*cut = true;
			break;
		}
		list = xgrow(list, n, &cap, sizeof(*list));
		list[n++] = pool_strdup(pool, d->d_name);
	}
	closedir(dir);
	if (n) {
		xsort(list, n, sizeof(*list), tree_by_bytes);
		*names = pool_alloc(pool, n * sizeof(*list));
		memcpy(*names, list, n * sizeof(*list));
	}
	free(list);
	return (int)n;
}
