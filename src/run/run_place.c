/* SPDX-License-Identifier: Apache-2.0
 * Where the libraries are that the environment of the program names.
 *
 * Every program that is started under us, and everything that a daemon starts long after we ended, loads what
 * LD_PRELOAD and LD_LIBRARY_PATH name. If another user could put a file there, now or when a cleaner has removed ours, that
 * user would run code in these programs. So, in this order:
 *  1. the installed file itself, if only root and this user can ever replace it;
 *  2. a copy in the user's own state folder, under the same condition. It is named after its contents and never
 *     deleted: nobody can know which daemon, on which machine that shares the home, still needs it;
 *  3. the installed file after all: the user runs this very cuwhy from there, and so trusts the place;
 *  4. a copy in a home that is itself in a folder like /tmp: whoever makes that home anew controls more than a library.
 * If the loader cannot use the path (a space or a colon in it), only copies will do. Never a new folder in /tmp.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "run/run.h"

#define PART_MAX	(16u << 20)
#define DEPTH		3		/* preload/TREE/lib/x86_64-linux-gnu */

static bool loader_safe(const char *path)
{
	return strpbrk(path, " :;$\t\n") == NULL;
}

char *place_state(void)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");

	if (state && *state == '/')
		return fs_join(state, "cuwhy");
	/* many accounts of services and containers name a home that is not there: it is not ours to create */
	return home && *home == '/' && fs_is_dir(home) ? fs_join(home, ".local/state/cuwhy") : NULL;
}

/* How far can a folder be trusted that may not exist yet? */
enum fs_trust place_trust(const char *path)
{
	char *copy = xstrdup(path), *real = NULL, *slash;
	enum fs_trust trust = FS_OTHERS;

	while (!(real = realpath(copy, NULL)) && errno == ENOENT && (slash = strrchr(copy, '/')) && slash > copy)
		*slash = '\0';
	if (real)
		trust = fs_trust(real);
	free(real);
	free(copy);
	return trust;
}

/* Does `work` for every file at or below `path`; `name` is its path from there. Links are followed: what they lead to
 * is copied. False as soon as `work` is. */
static bool each_file(const char *path, const char *name, int depth, bool (*work)(void *, const char *, const char *),
		      void *data)
{
	struct dirent **list;
	char *inner, *inner_name;
	bool ok = true;
	int i, n;

	if (!fs_is_dir(path))
		return work(data, path, name);
	n = depth > 0 ? scandir(path, &list, NULL, alphasort) : -1;
	for (i = 0; i < n; i++) {
		if (ok && list[i]->d_name[0] != '.') {
			inner = fs_join(path, list[i]->d_name);
			inner_name = *name ? fs_join(name, list[i]->d_name) : xstrdup(list[i]->d_name);
			ok = each_file(inner, inner_name, depth - 1, work, data);
			free(inner_name);
			free(inner);
		}
		free(list[i]);
	}
	if (n >= 0)
		free(list);
	return ok && n >= 0;
}

/* The folder that a file or a link is in, and the file itself. */
static bool file_trusted(void *data, const char *path, const char *name)
{
	char *real = realpath(path, NULL), *folder = xasprintf("%.*s", (int)(strrchr(path, '/') - path), path);
	bool ok = real && fs_trust(real) == FS_NOBODY_ELSE && fs_trust(folder) == FS_NOBODY_ELSE;

	(void)data;
	(void)name;
	free(folder);
	free(real);
	return ok;
}

static bool file_hash(void *data, const char *path, const char *name)
{
	uint64_t *hash = data;
	struct buf b;
	bool ok;

	buf_init(&b, PART_MAX);
	ok = fs_read(path, &b, NULL) == 0;
	*hash = map_hash_bytes(*hash, name, strlen(name));
	if (ok)
		*hash = map_hash_bytes(*hash, b.data, b.len);
	buf_release(&b);
	return ok;
}

static bool same_size(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && lstat(b, &y) == 0 && S_ISREG(y.st_mode) && x.st_size == y.st_size;
}

/* Written next to it and renamed: another run, on another machine, may be doing the same. */
static bool file_copy(void *data, const char *path, const char *name)
{
	char *to = *name ? fs_join(data, name) : xstrdup(data), *slash = strrchr(to, '/');
	bool ok = true;

	if (!same_size(path, to)) {
		*slash = '\0';
		ok = fs_mkdirs(to, NULL) == 0;
		*slash = '/';
		ok = ok && fs_copy(path, to, NULL) == 0;
	}
	free(to);
	return ok;
}

static bool may_execute(const char *dir)
{
	struct statvfs v;

	return statvfs(dir, &v) == 0 && !(v.f_flag & ST_NOEXEC);
}

/* A copy of a file or a folder in the state folder; NULL if that is not to be trusted, or not possible. */
static char *place_copy(const char *part, enum fs_trust enough)
{
	const char *last = strrchr(part, '/');
	char *state = place_state(), *folder = NULL, *real = NULL, *copy = NULL;
	uint64_t hash = 0;

	if (!last || !state || place_trust(state) > enough || !each_file(part, "", DEPTH, file_hash, &hash))
		goto out;
	folder = xasprintf("%s/parts/%016llx", state, (unsigned long long)hash);
	if (fs_mkdirs(folder, NULL) != 0 || !(real = realpath(folder, NULL)) || fs_trust(real) > enough ||
	    !loader_safe(real) || !may_execute(real))
		goto out;
	copy = fs_join(real, last + 1);
	if (!each_file(part, "", DEPTH, file_copy, copy)) {
		free(copy);
		copy = NULL;
	}
out:
	free(real);
	free(folder);
	free(state);
	return copy;
}

char *place_part(const char *part)
{
	bool safe = loader_safe(part);
	char *copy;

	if (safe && each_file(part, "", DEPTH, file_trusted, NULL))
		return xstrdup(part);
	copy = place_copy(part, FS_NOBODY_ELSE);
	if (!copy && !safe)
		copy = place_copy(part, FS_NOT_NOW);
	if (copy)
		log_line("env", 1, "'%s' is used as '%s'", part, copy);
	return copy ? copy : safe ? xstrdup(part) : NULL;
}
