/* SPDX-License-Identifier: Apache-2.0
 * From a name to a place: one component after the other, as the kernel does it, but in both trees at once.
 */
#include <string.h>

#include "redirect/raw.h"
#include "redirect/redirect.h"

#define MOST_LINKS 40	/* the kernel's limit */

/* What is known about the folder that the walk is in. */
struct walker {
	struct place *p;
	char rest[PATH_MAX];	/* what is still to be walked */
	char link[PATH_MAX];
	bool new_dir;		/* it is in `new` */
	bool gone_dir;		/* there may be marks in it */
	bool covered;		/* it is in `new` alone: what has its name in reality is something else */
	bool slash;		/* the name ends with one: a folder is meant */
	int links;
};

const char *in_new(struct place *p)
{
	return memcpy(p->at - redirect.new_len, redirect.new_root, redirect.new_len);
}

const char *in_gone(struct place *p)
{
	return memcpy(p->at - redirect.gone_len, redirect.gone_root, redirect.gone_len);
}

long without_scratch(char *path, long len)
{
	size_t n = redirect.new_len;

	if (!redirect.on || len < (long)n || memcmp(path, redirect.new_root, n) != 0 ||
	    (path[n] != '/' && path[n] != '\0'))
		return len;
	if (len == (long)n) {
		path[0] = '/';
		path[1] = '\0';
		return 1;
	}
	memmove(path, path + n, (size_t)len - n + 1);
	return len - (long)n;
}

/* Not by way of a number in text: no snprintf in a signal handler. */
static void fd_name(int fd, char *to)
{
	static const char head[] = "/proc/self/fd/";
	char digits[12];
	size_t n = 0;

	do
		digits[n++] = (char)('0' + fd % 10);
	while (fd /= 10);
	memcpy(to, head, sizeof(head) - 1);
	to += sizeof(head) - 1;
	while (n)
		*to++ = digits[--n];
	*to = '\0';
}

static long raw_path_of_fd(int fd, char *to, size_t size)
{
	char name[40];
	long n;

	if (fd < 0)
		return -EBADF;
	fd_name(fd, name);
	n = raw_readlink(name, to, size - 1);
	if (n == -ENOENT)
		return -EBADF;
	if (n >= 0)
		to[n] = '\0';
	return n;
}

long path_of_fd(int fd, char *to, size_t size)
{
	long n = raw_path_of_fd(fd, to, size);

	return n < 0 ? n : without_scratch(to, n);
}

long path_of_cwd(char *to, size_t size)
{
	long n = raw(SYS_getcwd, to, size, 0, 0);

	if (n < 0)
		return n;
	return to[0] == '/' ? without_scratch(to, n - 1) : -ENOENT;
}

static void to_root(struct walker *w)
{
	struct place *p = w->p;

	p->at[p->len = 0] = '\0';
	p->zone = p->hidden = false;
	w->new_dir = w->gone_dir = true;
	w->covered = false;
}

static int append(struct place *p, const char *name, size_t len)
{
	if (len > NAME_MAX || p->len + 1 + len >= sizeof(p->at))
		return -ENAMETOOLONG;
	p->at[p->len] = '/';
	memcpy(p->at + p->len + 1, name, len);
	p->len += 1 + len;
	p->at[p->len] = '\0';
	return 0;
}

/* A mark at the place? Then it and all below is gone; a folder leads to marks. */
static void look_for_marks(struct walker *w)
{
	struct stat st;

	if (w->p->hidden || !w->gone_dir)
		return;
	if (raw_lstat(in_gone(w->p), &st) < 0)
		w->gone_dir = false;
	else if (!S_ISDIR(st.st_mode)) {
		w->p->hidden = true;
		w->gone_dir = false;
	}
}

/* A folder in both trees is the real one, whose names were changed when those in `new` were. Its own mode has been set if it is not the
 * one that it was made with (make_folder). */
static void blend(struct stat *real, const struct stat *fresh)
{
	real->st_atim = fresh->st_atim;
	real->st_mtim = fresh->st_mtim;
	real->st_ctim = fresh->st_ctim;
	if (fresh->st_mode != (real->st_mode | S_IRWXU))
		real->st_mode = fresh->st_mode;
}

/* What is at the place, whose folder is known. */
static int look(struct walker *w)
{
	struct place *p = w->p;
	struct stat fresh;
	int rc;

	p->folder_real = p->real && !w->covered;
	p->folder_plain = p->folder_real && !p->fresh && !p->marks && !p->zone;
	p->fresh = p->real = p->marks = false;
	p->hidden |= w->covered;
	p->zone = is_real(p->at, p->len);
	if (!p->zone) {
		look_for_marks(w);
		rc = w->new_dir ? raw_lstat(in_new(p), &fresh) : -ENOENT;
		if (rc == -EACCES) {	/* the run has set the folder's mode */
			p->moved = true;
			return rc;
		}
		p->fresh = w->new_dir = rc == 0;
	}
	if (p->zone || !p->hidden) {
		rc = raw_lstat(in_reality(p), &p->st);
		if (rc < 0 && rc != -ENOENT && rc != -ENOTDIR)
			return rc;
		p->real = rc == 0;
	}
	if (p->fresh && p->real && S_ISDIR(p->st.st_mode) && S_ISDIR(fresh.st_mode))
		blend(&p->st, &fresh);
	else if (p->fresh) {
		p->real = false;
		w->covered = true;
		p->st = fresh;
	}
	p->marks = p->real && w->gone_dir && !p->zone;
	return 0;
}

/* After "..": what is known about the folder above is looked up from the root. */
static int look_from_root(struct walker *w)
{
	struct place *p = w->p;
	size_t whole = p->len, len = 0;
	int rc;

	to_root(w);
	rc = whole ? 0 : look(w);
	while (rc == 0 && len < whole) {
		char next;

		p->at[len] = '/';	/* to_root ended the string there, or the last turn did */
		len += 1 + strcspn(p->at + len + 1, "/");
		if (len > whole)
			len = whole;
		next = p->at[len];
		p->at[len] = '\0';
		p->len = len;
		rc = look(w);
		if (len < whole)
			p->at[len] = next;
	}
	p->at[p->len] = '\0';
	return rc;
}

static int step_up(struct walker *w)
{
	struct place *p = w->p;

	p->moved |= p->fresh && !p->real;	/* there is no such folder to step up from */
	while (p->len && p->at[--p->len] != '/')
		;
	p->at[p->len] = '\0';
	return look_from_root(w);
}

/* Links in /proc that do not lead to where their text says: pipes, files that have no name anymore. */
static bool is_magic(const struct walker *w, long len)
{
	static const char deleted[] = " (deleted)";
	const size_t n = sizeof(deleted) - 1;

	if (strncmp(w->p->at, "/proc/", 6) != 0)
		return false;
	if (w->link[0] != '/')
		return strchr(w->link, ':') != NULL;
	return len > (long)n && memcmp(w->link + len - n, deleted, n) == 0;
}

/* The link at the place is replaced by what it says. 1: it is none that can be followed by text. */
static int follow_link(struct walker *w)
{
	struct place *p = w->p;
	long n = raw_readlink(p->fresh ? in_new(p) : in_reality(p), w->link, sizeof(w->link) - 1);
	size_t rest = strlen(w->rest);

	if (n < 0)
		return (int)n;
	w->link[n] = '\0';
	if (p->zone && is_magic(w, n))
		return 1;
	p->linked = true;
	if (++w->links > MOST_LINKS)
		return -ELOOP;
	if (p->fresh)
		p->moved = true;
	if (p->zone && without_scratch(w->link, n) != n) {
		p->moved = true;
		n = (long)strlen(w->link);
	}
	if ((size_t)n + 1 + rest >= sizeof(w->rest))
		return -ENAMETOOLONG;
	memmove(w->rest + n + 1, w->rest, rest + 1);
	memcpy(w->rest, w->link, (size_t)n);
	w->rest[n] = '/';
	if (!rest) {	/* the link was last; a slash behind it would say that a folder is meant */
		w->rest[n] = '\0';
	}
	if (w->link[0] == '/') {
		to_root(w);
		return 0;
	}
	while (p->len && p->at[--p->len] != '/')
		;
	p->at[p->len] = '\0';
	return look_from_root(w);
}

static void take(struct walker *w, char *name, size_t *len)
{
	size_t skip = strspn(w->rest, "/"), n = strcspn(w->rest + skip, "/"), behind;

	memcpy(name, w->rest + skip, n < NAME_MAX + 1 ? n : NAME_MAX + 1);
	*len = n;
	behind = skip + n;
	if (w->rest[behind] == '/' && !w->rest[behind + strspn(w->rest + behind, "/")])
		w->slash = true;
	behind += strspn(w->rest + behind, "/");
	memmove(w->rest, w->rest + behind, strlen(w->rest + behind) + 1);
}

/* Something must be walked through: is it a folder that is there? */
static int must_be_folder(const struct place *p)
{
	if (!exists(p))
		return -ENOENT;
	return S_ISDIR(p->st.st_mode) ? 0 : -ENOTDIR;
}

static int step(struct walker *w, enum how how)
{
	struct place *p = w->p;
	char name[NAME_MAX + 1];
	size_t len;
	bool last;
	int rc;

	take(w, name, &len);
	last = !w->rest[0];
	if (len == 0 || (len == 1 && name[0] == '.'))
		return 0;
	if (len == 2 && name[0] == '.' && name[1] == '.')
		return step_up(w);
	rc = append(p, name, len);
	if (rc == 0)
		rc = look(w);
	if (rc < 0)
		return rc;
	if (exists(p) && S_ISLNK(p->st.st_mode) && (!last || how == FOLLOW || (how == LINK && w->slash))) {
		rc = follow_link(w);
		if (rc == 1)
			return last ? 0 : -ENOTDIR;
		return rc;
	}
	return last ? 0 : must_be_folder(p);
}

/* The folder from which a relative name counts. */
static int base(struct walker *w, int dir)
{
	long n = dir == AT_FDCWD ? raw(SYS_getcwd, w->link, sizeof(w->link), 0, 0) - 1
				 : raw_path_of_fd(dir, w->link, sizeof(w->link));
	size_t rest = strlen(w->rest);

	if (n < 0)
		return (int)n - (dir == AT_FDCWD ? -1 : 0);
	if (w->link[0] != '/')
		return -ENOTDIR;
	if (without_scratch(w->link, n) != n)
		w->p->moved = true;
	n = (long)strlen(w->link);
	if ((size_t)n + 1 + rest >= sizeof(w->rest))
		return -ENAMETOOLONG;
	memmove(w->rest + n + 1, w->rest, rest + 1);
	memcpy(w->rest, w->link, (size_t)n);
	w->rest[n] = '/';
	return 0;
}

int walk(struct place *p, int dir, const char *path, enum how how)
{
	struct walker w;
	size_t len = strlen(path);
	int rc = 0;

	p->moved = p->linked = p->fresh = p->real = p->marks = p->slash = false;
	if (len >= sizeof(w.rest))
		return -ENAMETOOLONG;
	w.p = p;
	w.links = 0;
	w.slash = false;
	to_root(&w);
	if (!len)
		return -ENOENT;
	memcpy(w.rest, path, len + 1);
	if (path[0] != '/')
		rc = base(&w, dir);
	if (rc == 0)
		rc = look(&w);	/* the root itself */
	while (rc == 0 && w.rest[0])
		rc = step(&w, how);
	p->slash = w.slash;
	if (rc == 0 && how != NAME && w.slash && exists(p) && !S_ISDIR(p->st.st_mode))
		rc = -ENOTDIR;
	return rc;
}

/* Names whose folder was found plain, as a hash of the folder's text and of the number of changes at that time. One word each, so threads and
 * signal handlers need no lock. Nothing else is kept of them: a link in the folder is looked for each time. */
#define PLAIN 4096
static uint64_t plain[PLAIN];

/* Of an absolute path whose last name is one; 0: of any other. */
static uint64_t hash_folder(const char *path, uint32_t changes)
{
	const char *slash = strrchr(path, '/');
	uint64_t hash = 0xcbf29ce484222325ull ^ changes;

	if (path[0] != '/' || !slash[1] || (slash[1] == '.' && (!slash[2] || (slash[2] == '.' && !slash[3]))))
		return 0;
	for (; path < slash; path++)
		hash = (hash ^ (unsigned char)*path) * 0x100000001b3ull;
	hash = (hash ^ hash >> 32) * 0x9e3779b97f4a7c15ull;
	return hash ? hash : 1;
}

static bool is_plain(const char *path, uint64_t hash, bool follow)
{
	char one;

	if (!hash || __atomic_load_n(&plain[hash % PLAIN], __ATOMIC_RELAXED) != hash)
		return false;
	return !follow || raw_readlink(path, &one, 1) < 0;
}

const char *look_at(struct place *p, int dir, const char *path, bool follow, int *error)
{
	uint64_t hash;
	int rc;

	*error = 0;
	p->known = false;
	if (!path || !*path || !has_changes())
		return NULL;
	hash = redirect.state ? hash_folder(path, __atomic_load_n(&redirect.state->changes, __ATOMIC_ACQUIRE)) : 0;
	if (is_plain(path, hash, follow))
		return NULL;
	rc = walk(p, dir, path, follow ? FOLLOW : LINK);
	p->known = rc == 0;
	if (hash && rc == 0 && p->folder_plain && !p->moved && !p->hidden && !p->zone && !p->linked)
		__atomic_store_n(&plain[hash % PLAIN], hash, __ATOMIC_RELAXED);
	if (rc < 0) {
		if (p->hidden || p->fresh || p->moved)
			*error = rc;
		return NULL;
	}
	if (!p->zone && p->fresh && !p->real)
		return in_new(p);
	if (!p->zone && !exists(p) && p->hidden) {
		*error = -ENOENT;
		return NULL;
	}
	return p->moved ? in_reality(p) : NULL;
}
