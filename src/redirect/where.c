/* SPDX-License-Identifier: Apache-2.0
 * Whole paths: of the current folder, and of what a name leads to. They never show the scratch.
 */
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "redirect/raw.h"
#include "redirect/redirect.h"

/* The real folder may have been removed meanwhile, as far as the program knows. */
static long current(char *to, size_t size)
{
	struct place p;
	long n = path_of_cwd(to, size);

	if (n < 0)
		return n;
	return walk(&p, AT_FDCWD, to, LINK) == 0 && exists(&p) ? n : -ENOENT;
}

static char *failed(int error)
{
	errno = error;
	return NULL;
}

/* As getcwd gives it: into the caller's buffer, or into one of its own. */
static char *give(const char *path, size_t n, char *to, size_t size)
{
	if (to && !size)
		return failed(EINVAL);
	if (size && n + 1 > size)
		return failed(ERANGE);
	if (!to)
		to = malloc(size ? size : n + 1);
	return to ? memcpy(to, path, n + 1) : NULL;
}

EXPORT char *getcwd(char *to, size_t size)
{
	char path[PATH_MAX];
	long n;

	if (!has_changes())
		return NEXT(getcwd)(to, size);
	n = current(path, sizeof(path));
	return n < 0 ? failed((int)-n) : give(path, (size_t)n, to, size);
}

char *__getcwd_chk(char *to, size_t size, size_t room);
EXPORT char *__getcwd_chk(char *to, size_t size, size_t room)
{
	if (size > room)
		__builtin_trap();
	return getcwd(to, size);
}

EXPORT char *get_current_dir_name(void)
{
	return has_changes() ? getcwd(NULL, 0) : NEXT(get_current_dir_name)();
}

char *getwd(char *to);
EXPORT char *getwd(char *to)
{
	return getcwd(to, PATH_MAX);
}

char *__getwd_chk(char *to, size_t room);
EXPORT char *__getwd_chk(char *to, size_t room)
{
	return getcwd(to, room < PATH_MAX ? room : PATH_MAX);
}

EXPORT char *realpath(const char *restrict path, char *restrict to)
{
	struct place p;
	int rc;

	if (!has_changes() || !*path)
		return NEXT(realpath)(path, to);
	rc = walk(&p, AT_FDCWD, path, FOLLOW);
	if (rc < 0)
		return failed(-rc);
	if (!exists(&p))
		return failed(ENOENT);
	if (p.zone)
		return NEXT(realpath)(in_reality(&p), to);
	return give(in_reality(&p), p.len ? p.len : 1, to, to ? PATH_MAX : 0);
}

char *__realpath_chk(const char *path, char *to, size_t room);
EXPORT char *__realpath_chk(const char *path, char *to, size_t room)
{
	if (room < PATH_MAX)
		__builtin_trap();
	return realpath(path, to);
}

EXPORT char *canonicalize_file_name(const char *path)
{
	return realpath(path, NULL);
}
