/* SPDX-License-Identifier: Apache-2.0
 * Opening files: for reading where they are, for writing in the scratch.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "redirect/raw.h"
#include "redirect/redirect.h"

#define IS_TMPFILE(flags) (((flags)&O_TMPFILE) == O_TMPFILE)

static bool changes(int flags)
{
	if (flags & O_PATH)
		return false;
	return (flags & O_ACCMODE) != O_RDONLY || flags & (O_CREAT | O_TRUNC) || IS_TMPFILE(flags);
}

/* What must be allowed on a file that is there. */
static int wants(int flags)
{
	int mode = flags & O_ACCMODE;

	return (mode == O_WRONLY ? 0 : R_OK) | (mode != O_RDONLY || flags & O_TRUNC ? W_OK : 0);
}

/* The file is there. 1: the kernel may be asked for it where it is. */
static int prepare_old(struct place *p, int flags)
{
	int rc;

	if ((flags & (O_CREAT | O_EXCL)) == (O_CREAT | O_EXCL))
		return -EEXIST;
	if (S_ISLNK(p->st.st_mode))
		return -ELOOP;
	if (S_ISDIR(p->st.st_mode))
		return -EISDIR;
	if (flags & O_DIRECTORY)
		return -ENOTDIR;
	if (p->fresh)
		return 0;
	if (!S_ISFIFO(p->st.st_mode) && !(S_ISREG(p->st.st_mode) && wants(flags) & W_OK))
		return 1;
	rc = raw_may(in_reality(p), wants(flags));
	return rc < 0 ? rc : bring(p, !(flags & O_TRUNC));
}

static int prepare_new(struct place *p, int flags)
{
	if (!(flags & O_CREAT))
		return p->hidden ? -ENOENT : 1;
	return make_way(p);
}

/* A file without a name, in a folder that is there. */
static int prepare_tmpfile(struct place *p)
{
	int rc = 0;

	if (!exists(p))
		return -ENOENT;
	if (!S_ISDIR(p->st.st_mode))
		return -ENOTDIR;
	if (p->real)
		rc = raw_may(in_reality(p), W_OK | X_OK);
	return rc < 0 ? rc : bring(p, false);
}

static int prepare(struct place *p, int flags)
{
	if (p->zone)
		return 1;
	if (flags & O_CREAT && p->slash)
		return -EISDIR;
	if (IS_TMPFILE(flags))
		return prepare_tmpfile(p);
	return exists(p) ? prepare_old(p, flags) : prepare_new(p, flags);
}

/* A folder that is in both trees is opened as the real one, whose mode the run may have set in the other. */
static const char *open_to_read(struct place *p, int dir, const char *path, int flags, int *error)
{
	const char *where = look_at(p, dir, path, !(flags & O_NOFOLLOW), error);

	if (p->known && !*error && !(flags & O_PATH) && p->fresh && p->real && !p->zone)
		*error = raw_may(in_new(p), R_OK) == -EACCES ? -EACCES : 0;
	return where;
}

/* The ends of a named pipe must meet: whoever may only read it opens the one in the scratch, too. */
static bool is_pipe(int dir, const char *path, int flags)
{
	struct stat st;

	return path && *path && is_on() && !(flags & (O_PATH | O_DIRECTORY)) && raw_stat(dir, path, &st, 0) == 0 &&
	       S_ISFIFO(st.st_mode);
}

/* Like look_at, for any flags of open. */
static const char *open_at(struct place *p, int dir, const char *path, int flags, int *error)
{
	bool follow = !(flags & O_NOFOLLOW) && (flags & (O_CREAT | O_EXCL)) != (O_CREAT | O_EXCL);
	int rc;

	if (!changes(flags) && !is_pipe(dir, path, flags))
		return open_to_read(p, dir, path, flags, error);
	*error = 0;
	if (!path || !*path || !is_on())
		return NULL;
	rc = walk(p, dir, path, flags & O_CREAT && path[strlen(path) - 1] == '/' ? NAME : follow ? FOLLOW : LINK);
	if (rc == 0)
		rc = prepare(p, flags);
	if (rc < 0)
		*error = rc;
	if (rc == 1 && p->moved)
		return in_reality(p);
	return rc == 0 ? in_new(p) : NULL;
}

#define NEEDS_MODE(flags) ((flags)&O_CREAT || IS_TMPFILE(flags))

#define OPEN(name, dir, parameters, last, ...)                                                     \
	EXPORT int name parameters                                                                 \
	{                                                                                          \
		struct place p;                                                                    \
		mode_t mode = 0;                                                                   \
		int error;                                                                         \
		const char *where;                                                                 \
\
		if (NEEDS_MODE(last)) {                                                            \
			va_list more;                                                              \
\
			va_start(more, last);                                                      \
			mode = va_arg(more, mode_t);                                               \
			va_end(more);                                                              \
		}                                                                                  \
		where = open_at(&p, dir, path, last, &error);                                      \
		if (error)                                                                         \
			return (int)answer(error);                                                 \
		path = where ? where : path;                                                       \
		return NEXT(name)(__VA_ARGS__, last, mode);                                        \
	}

OPEN(open, AT_FDCWD, (const char *path, int flags, ...), flags, path)
OPEN(open64, AT_FDCWD, (const char *path, int flags, ...), flags, path)
OPEN(openat, dir, (int dir, const char *path, int flags, ...), flags, dir, path)
OPEN(openat64, dir, (int dir, const char *path, int flags, ...), flags, dir, path)

/* What programs call that were compiled with checks. */
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);

EXPORT int __open_2(const char *path, int flags)
{
	return open(path, flags);
}

EXPORT int __open64_2(const char *path, int flags)
{
	return open64(path, flags);
}

EXPORT int __openat_2(int dir, const char *path, int flags)
{
	return openat(dir, path, flags);
}

EXPORT int __openat64_2(int dir, const char *path, int flags)
{
	return openat64(dir, path, flags);
}

EXPORT int creat(const char *path, mode_t mode)
{
	return open(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

EXPORT int creat64(const char *path, mode_t mode)
{
	return open64(path, O_WRONLY | O_CREAT | O_TRUNC, mode);
}

static int flags_of(const char *mode)
{
	int flags = mode[0] == 'r' ? 0 : mode[0] == 'w' ? O_CREAT | O_TRUNC : O_CREAT;
	int access = mode[0] == 'r' ? O_RDONLY : O_WRONLY;

	for (; *mode && *mode != ','; mode++) {
		if (*mode == '+')
			access = O_RDWR;
		if (*mode == 'x')
			flags |= O_EXCL;
	}
	return flags | access;
}

#define FOPEN(name, parameters, ...)                                                               \
	EXPORT FILE *name parameters                                                               \
	{                                                                                          \
		struct place p;                                                                    \
		int error;                                                                         \
		const char *where = open_at(&p, AT_FDCWD, path, flags_of(mode), &error);           \
\
		if (error) {                                                                       \
			errno = -error;                                                            \
			return NULL;                                                               \
		}                                                                                  \
		path = where ? where : path;                                                       \
		return NEXT(name)(__VA_ARGS__);                                                    \
	}

FOPEN(fopen, (const char *restrict path, const char *restrict mode), path, mode)
FOPEN(fopen64, (const char *restrict path, const char *restrict mode), path, mode)
FOPEN(freopen, (const char *restrict path, const char *restrict mode, FILE *restrict stream), path, mode, stream)
FOPEN(freopen64, (const char *restrict path, const char *restrict mode, FILE *restrict stream), path, mode, stream)

EXPORT FILE *tmpfile(void)
{
	int fd = is_on() ? open(P_tmpdir, O_RDWR | O_TMPFILE | O_EXCL, 0600) : -1;

	return fd < 0 ? NEXT(tmpfile)() : fdopen(fd, "w+");
}

EXPORT FILE *tmpfile64(void)
{
	return tmpfile();
}
