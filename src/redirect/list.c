/* SPDX-License-Identifier: Apache-2.0
 * Folders that are in both trees: first what is in `new`, then what is real and neither covered nor gone.
 *
 * What the program gets is libc's own DIR of the real folder. Beside it, found by its address, is the rest of the list.
 */
#include <dirent.h>
#include <glob.h>
#include <stdlib.h>
#include <string.h>

#include "redirect/raw.h"
#include "redirect/redirect.h"

#define MOST_LISTS 512		/* open at a time; a fixed table needs no lock */

/* The kernel's entry, which is libc's as well. */
_Static_assert(offsetof(struct dirent, d_name) == 19, "as the kernel has it");

struct names { char **name; size_t n, room; };

struct list {
	struct dirent **fresh;	/* in `new`, without "." and ".." */
	size_t n, room, next;
	struct names covered;	/* sorted: real names that the program must not see again, or at all */
};

static struct { DIR *dir; struct list *list; } lists[MOST_LISTS];
static int n_lists;

static bool is_dots(const char *name)
{
	return name[0] == '.' && (!name[1] || (name[1] == '.' && !name[2]));
}

static bool is_part(const char *name)
{
	return strncmp(name, SCRATCH_PART, sizeof(SCRATCH_PART) - 1) == 0;
}

/* Calls `each` for the entries of a folder until it returns something else than 0. A folder that is not there has none. */
static int read_folder(const char *path, int (*each)(const struct dirent *, void *), void *data)
{
	char buffer[2048] __attribute__((aligned(8)));
	int fd = raw_open(AT_FDCWD, path, O_RDONLY | O_DIRECTORY, 0), rc = 0;
	long n = 0;

	if (fd < 0)
		return fd == -ENOENT || fd == -ENOTDIR ? 0 : fd;
	while (rc == 0 && (n = raw(SYS_getdents64, fd, buffer, sizeof(buffer), 0)) > 0)
		for (long at = 0; rc == 0 && at < n; at += ((struct dirent *)(buffer + at))->d_reclen) {
			const struct dirent *entry = (const struct dirent *)(buffer + at);

			if (!is_dots(entry->d_name) && !is_part(entry->d_name))
				rc = each(entry, data);
		}
	raw_close(fd);
	return rc ? rc : n < 0 ? (int)n : 0;
}

static int any(const struct dirent *entry, void *data)
{
	(void)entry;
	(void)data;
	return 1;
}

/* A real entry that has no mark. */
static int any_left(const struct dirent *entry, void *data)
{
	struct place *p = data;
	size_t len = p->len, n = strlen(entry->d_name);
	struct stat st;
	bool gone;

	if (len + 1 + n >= sizeof(p->at))
		return 1;
	p->at[len] = '/';
	memcpy(p->at + len + 1, entry->d_name, n + 1);
	gone = raw_lstat(in_gone(p), &st) == 0 && S_ISREG(st.st_mode);
	p->at[len] = '\0';
	return !gone;
}

int is_empty(struct place *p)
{
	int rc = p->fresh ? read_folder(in_new(p), any, NULL) : 0;

	if (rc == 0 && p->real)
		rc = read_folder(in_reality(p), any_left, p);
	return rc < 0 ? rc : !rc;
}

/* Room for one more element. */
static bool grow(void **array, size_t n, size_t *room, size_t size)
{
	size_t more = *room ? 2 * *room : 32;
	void *larger;

	if (n < *room)
		return true;
	larger = realloc(*array, more * size);
	if (!larger)
		return false;
	*array = larger;
	*room = more;
	return true;
}

static int cover(const struct dirent *entry, void *data)
{
	struct names *names = data;
	char *copy;

	if (!grow((void **)&names->name, names->n, &names->room, sizeof(char *)) || !(copy = strdup(entry->d_name)))
		return -ENOMEM;
	names->name[names->n++] = copy;
	return 0;
}

/* A mark; folders only lead to some. */
static int cover_gone(const struct dirent *entry, void *data)
{
	return entry->d_type == DT_DIR ? 0 : cover(entry, data);
}

static int add_fresh(const struct dirent *entry, void *data)
{
	struct list *list = data;
	struct dirent *copy = NULL;

	if (grow((void **)&list->fresh, list->n, &list->room, sizeof(copy)))
		copy = malloc(sizeof(*copy));
	if (!copy)
		return -ENOMEM;
	memset(copy, 0, sizeof(*copy));
	memcpy(copy, entry, offsetof(struct dirent, d_name) + strlen(entry->d_name) + 1);
	copy->d_reclen = sizeof(*copy);
	list->fresh[list->n++] = copy;
	return cover(entry, &list->covered);
}

static int in_order(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_covered(const struct list *list, const char *name)
{
	return is_part(name) ||
	       (list->covered.n && bsearch(&name, list->covered.name, list->covered.n, sizeof(name), in_order));
}

static void clear(struct list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->fresh[i]);
	for (size_t i = 0; i < list->covered.n; i++)
		free(list->covered.name[i]);
	list->n = list->covered.n = list->next = 0;
}

static int load(struct list *list, struct place *p)
{
	int rc = read_folder(in_new(p), add_fresh, list);

	if (rc == 0)
		rc = read_folder(in_gone(p), cover_gone, &list->covered);
	if (list->covered.n)
		qsort(list->covered.name, list->covered.n, sizeof(char *), in_order);
	return rc;
}

static void drop(struct list *list)
{
	clear(list);
	free(list->fresh);
	free(list->covered.name);
	free(list);
}

static int find(const DIR *dir)
{
	if (!dir || !__atomic_load_n(&n_lists, __ATOMIC_ACQUIRE))
		return -1;
	for (int i = 0; i < MOST_LISTS; i++)
		if (__atomic_load_n(&lists[i].dir, __ATOMIC_ACQUIRE) == dir)
			return i;
	return -1;
}

static bool keep(DIR *dir, struct list *list)
{
	for (int i = 0; i < MOST_LISTS; i++) {
		struct list *none = NULL;

		if (!__atomic_compare_exchange_n(&lists[i].list, &none, list, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
			continue;
		__atomic_store_n(&lists[i].dir, dir, __ATOMIC_RELEASE);
		__atomic_add_fetch(&n_lists, 1, __ATOMIC_RELEASE);
		return true;
	}
	return false;
}

/* The real folder was opened: the rest is added to it. */
static DIR *with_list(DIR *dir, struct place *p)
{
	struct list *list = dir ? calloc(1, sizeof(*list)) : NULL;
	int rc = list ? load(list, p) : -ENOMEM;

	if (rc == 0 && keep(dir, list))
		return dir;
	if (list)
		drop(list);
	if (dir) {
		NEXT(closedir)(dir);
		errno = rc < 0 ? -rc : ENFILE;
	}
	return NULL;
}

EXPORT DIR *opendir(const char *path)
{
	struct place p;
	int error;
	const char *where = look_at(&p, AT_FDCWD, path, true, &error);

	if (error) {
		errno = -error;
		return NULL;
	}
	if (p.known && !p.zone && is_merged(&p))
		return with_list(NEXT(opendir)(in_reality(&p)), &p);
	return NEXT(opendir)(where ? where : path);
}

/* The place of a folder that is open. */
static bool place_of_fd(int fd, struct place *p)
{
	char path[PATH_MAX];
	long n = path_of_fd(fd, path, sizeof(path));

	return n > 0 && path[0] == '/' && walk(p, AT_FDCWD, path, LINK) == 0 && !p->zone;
}

EXPORT DIR *fdopendir(int fd)
{
	struct place p;
	struct stat st;

	if (has_changes() && place_of_fd(fd, &p) && is_merged(&p) && raw_fstat(fd, &st) == 0 &&
	    st.st_ino == p.st.st_ino && st.st_dev == p.st.st_dev) {
		DIR *dir = NEXT(fdopendir)(fd);

		return dir ? with_list(dir, &p) : NULL;
	}
	return NEXT(fdopendir)(fd);
}

EXPORT int closedir(DIR *dir)
{
	int i = find(dir);

	if (i >= 0) {
		struct list *list = lists[i].list;

		__atomic_store_n(&lists[i].dir, NULL, __ATOMIC_RELEASE);
		__atomic_store_n(&lists[i].list, NULL, __ATOMIC_RELEASE);
		__atomic_sub_fetch(&n_lists, 1, __ATOMIC_RELEASE);
		drop(list);
	}
	return NEXT(closedir)(dir);
}

EXPORT void rewinddir(DIR *dir)
{
	int i = find(dir);
	struct place p;

	if (i >= 0) {
		clear(lists[i].list);
		if (place_of_fd(dirfd(dir), &p))
			load(lists[i].list, &p);
	}
	NEXT(rewinddir)(dir);
}

EXPORT struct dirent *readdir(DIR *dir)
{
	int i = find(dir);
	struct list *list = i < 0 ? NULL : lists[i].list;
	struct dirent *entry;

	if (list && list->next < list->n)
		return list->fresh[list->next++];
	do
		entry = NEXT(readdir)(dir);
	while (entry && list && is_covered(list, entry->d_name));
	return entry;
}

EXPORT struct dirent64 *readdir64(DIR *dir)
{
	return (struct dirent64 *)readdir(dir);
}

/* Nobody may share a DIR between threads without a lock of their own, so this is readdir with a copy. */
static int read_into(DIR *dir, struct dirent *entry, struct dirent **result)
{
	int before = errno, error;
	struct dirent *next;

	errno = 0;
	next = readdir(dir);
	error = errno;
	errno = before;
	if (next)
		memcpy(entry, next, offsetof(struct dirent, d_name) + strlen(next->d_name) + 1);
	*result = next ? entry : NULL;
	return next ? 0 : error;
}

int readdir_r(DIR *dir, struct dirent *entry, struct dirent **result);
EXPORT int readdir_r(DIR *dir, struct dirent *entry, struct dirent **result)
{
	return read_into(dir, entry, result);
}

int readdir64_r(DIR *dir, struct dirent64 *entry, struct dirent64 **result);
EXPORT int readdir64_r(DIR *dir, struct dirent64 *entry, struct dirent64 **result)
{
	return read_into(dir, (struct dirent *)entry, (struct dirent **)result);
}

typedef int chooses(const struct dirent *);
typedef int compares(const struct dirent **, const struct dirent **);

static int collect(DIR *dir, struct dirent ***result, chooses *choose)
{
	struct dirent **list = NULL, *entry, *copy;
	size_t n = 0, room = 0;

	while ((entry = readdir(dir))) {
		if (choose && !choose(entry))
			continue;
		copy = grow((void **)&list, n, &room, sizeof(copy)) ? malloc(sizeof(*copy)) : NULL;
		if (!copy)
			break;
		list[n++] = memcpy(copy, entry, offsetof(struct dirent, d_name) + strlen(entry->d_name) + 1);
	}
	if (entry) {
		while (n)
			free(list[--n]);
		free(list);
		errno = ENOMEM;
		return -1;
	}
	*result = list;
	return (int)n;
}

static int scan(DIR *dir, struct dirent ***result, chooses *choose, compares *compare)
{
	int n = dir ? collect(dir, result, choose) : -1, error = errno;

	if (dir)
		closedir(dir);
	errno = error;
	if (n > 0 && compare)
		qsort(*result, (size_t)n, sizeof(**result), (int (*)(const void *, const void *))compare);
	return n;
}

EXPORT int scandir(const char *path, struct dirent ***result, chooses *choose, compares *compare)
{
	return scan(opendir(path), result, choose, compare);
}

int scandir64(const char *path, struct dirent64 ***result, int (*choose)(const struct dirent64 *),
	      int (*compare)(const struct dirent64 **, const struct dirent64 **));
EXPORT int scandir64(const char *path, struct dirent64 ***result, int (*choose)(const struct dirent64 *),
		     int (*compare)(const struct dirent64 **, const struct dirent64 **))
{
	return scan(opendir(path), (struct dirent ***)result, (chooses *)choose, (compares *)compare);
}

static struct dirent *next_entry(void *dir)
{
	return readdir(dir);
}

static void close_dir(void *dir)
{
	closedir(dir);
}

static void *open_dir(const char *path)
{
	return opendir(path);
}

typedef int reports(const char *, int);
static int glob_with_ours(const char *pattern, int flags, reports *report, glob_t *found)
{
	int rc;

	if (flags & GLOB_ALTDIRFUNC || !has_changes())
		return NEXT(glob)(pattern, flags, report, found);
	found->gl_opendir = open_dir;
	found->gl_closedir = close_dir;
	found->gl_readdir = next_entry;
	found->gl_stat = stat;
	found->gl_lstat = lstat;
	rc = NEXT(glob)(pattern, flags | GLOB_ALTDIRFUNC, report, found);
	found->gl_flags &= ~GLOB_ALTDIRFUNC;
	return rc;
}

EXPORT int glob(const char *restrict pattern, int flags, reports *report, glob_t *restrict found)
{
	return glob_with_ours(pattern, flags, report, found);
}

int glob64(const char *restrict pattern, int flags, reports *report, glob64_t *restrict found);
EXPORT int glob64(const char *restrict pattern, int flags, reports *report, glob64_t *restrict found)
{
	return glob_with_ours(pattern, flags, report, (glob_t *)found);
}
