/* SPDX-License-Identifier: Apache-2.0
 * What happens in the scratch when names or files change: folders are made again in `new`, files copied there, marks left in `gone`.
 *
 * Other threads and processes do the same at the same time, and any of them may be killed: what is copied appears at its place when it is
 * whole, and a mark is made before what covers it goes away.
 */
#include <string.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/xattr.h>

#include "redirect/raw.h"
#include "redirect/redirect.h"

#define IN_SCRATCH (ROOM + PATH_MAX)	/* bytes of a path in it */
#define ATTRIBUTES 1024			/* bytes of names, and of each value, that are copied */

static size_t folder_len(const struct place *p)
{
	const char *slash = strrchr(p->at, '/');

	return slash ? (size_t)(slash - p->at) : 0;
}

/* The place becomes one of the folders above it, and back. */
static char cut(struct place *p, size_t len)
{
	char next = p->at[len];

	p->at[len] = '\0';
	return next;
}

static size_t next_part(const struct place *p, size_t len)
{
	return len + 1 + strcspn(p->at + len + 1, "/");
}

static bool is_mine(const struct stat *st)
{
	uid_t me = (uid_t)raw(SYS_geteuid, 0, 0, 0, 0);

	return me == 0 || me == st->st_uid;
}

/* In folders like /tmp only one's own files may be removed. */
static bool sticks(const struct stat *folder, const struct stat *victim)
{
	return victim && (folder->st_mode & S_ISVTX) && !is_mine(victim) && !is_mine(folder);
}

/* May names in the folder at the place be changed? What the kernel would say about the real one; for those that only exist in the scratch,
 * and for those whose mode the run has set, it says so itself. */
static int may_change_names(struct place *p, const struct stat *victim)
{
	struct stat real, fresh;

	if (!p->folder_real || raw_lstat(in_reality(p), &real) < 0)
		return 0;
	if (raw_lstat(in_new(p), &fresh) == 0 && fresh.st_mode != (real.st_mode | S_IRWXU))
		return 0;
	return sticks(&real, victim) ? -EPERM : raw_may(in_reality(p), W_OK | X_OK);
}

static int may_change_folder(struct place *p, const struct stat *victim)
{
	size_t whole = p->len;
	char next;
	int rc;

	p->len = folder_len(p);
	next = cut(p, p->len);
	rc = may_change_names(p, victim);
	p->at[p->len] = next;
	p->len = whole;
	return rc;
}

static void set_times(const char *path, const struct stat *like)
{
	const struct timespec times[2] = {like->st_atim, like->st_mtim};

	raw_utimes(path, times);
}

static void copy_attributes(int from, int to)
{
	char names[ATTRIBUTES], value[ATTRIBUTES];
	long n = raw(SYS_flistxattr, from, names, sizeof(names), 0), len;

	for (const char *name = names; n > 0 && name < names + n; name += strlen(name) + 1) {
		if (strncmp(name, "user.", 5) != 0)
			continue;
		len = raw(SYS_fgetxattr, from, name, value, sizeof(value));
		if (len >= 0)
			raw_passing(SYS_fsetxattr, to, (long)name, (long)value, len, 0);
	}
}

static void copy_folder_attributes(const char *from, const char *to)
{
	int in = raw_open(AT_FDCWD, from, O_RDONLY | O_DIRECTORY, 0), out = -1;

	if (in >= 0)
		out = raw_open(AT_FDCWD, to, O_RDONLY | O_DIRECTORY, 0);
	if (out >= 0) {
		copy_attributes(in, out);
		raw_close(out);
	}
	if (in >= 0)
		raw_close(in);
}

/* Like the real one, but this user may always write there: whether it may change names was asked before. */
static int make_folder(struct place *p)
{
	struct stat real;
	int rc = raw_mkdir(in_new(p), S_IRWXU);

	if (rc < 0)
		return rc;
	if (raw_stat(AT_FDCWD, in_reality(p), &real, 0) == 0) {
		raw_lchown(in_new(p), real.st_uid, real.st_gid);
		raw_chmod(in_new(p), (real.st_mode & 07777) | S_IRWXU);
		copy_folder_attributes(in_reality(p), in_new(p));
	}
	return 0;
}

/* Folders get the times of the real ones, from below, since making one changes those of the folder it is in. */
static void date_folders(struct place *p, size_t from, size_t len)
{
	struct stat real;

	while (len > from) {
		char next = cut(p, len);

		if (raw_stat(AT_FDCWD, p->at, &real, 0) == 0)
			set_times(in_new(p), &real);
		p->at[len] = next;
		while (len && p->at[--len] != '/')
			;
	}
}

/* The folder that the first `len` bytes of the place name is in `new`. */
static int mirror(struct place *p, size_t len)
{
	size_t n = 0, first_made = len;
	char next = cut(p, len);
	struct stat st;
	int rc = raw_lstat(in_new(p), &st);

	p->at[len] = next;
	if (rc == 0)
		return 0;
	rc = 0;
	note_change();
	while (n < len && (rc == 0 || rc == -EEXIST)) {
		size_t before = n;

		n = next_part(p, n);
		next = cut(p, n);
		rc = make_folder(p);
		p->at[n] = next;
		if (rc == 0 && first_made == len)
			first_made = before;
	}
	if (first_made < len) {
		note_folder();
		date_folders(p, first_made, len);
	}
	return rc == -EEXIST ? 0 : rc;
}

int make_way(struct place *p)
{
	int rc = may_change_folder(p, NULL);

	if (rc == 0)
		rc = mirror(p, folder_len(p));
	if (rc == 0)
		note_change();
	return rc;
}

/* The time of a folder whose names changed although nothing in `new` did. */
static void touch_folder(struct place *p)
{
	size_t len = folder_len(p);
	char next;

	if (mirror(p, len) < 0)
		return;
	next = cut(p, len);
	raw_utimes(in_new(p), NULL);
	p->at[len] = next;
}

/* A name beside the path, which no other thread uses. */
static int part_beside(const char *path, char *part)
{
	static const char hex[] = "0123456789abcdef";
	static unsigned long count;
	const char *slash = strrchr(path, '/');
	size_t n = (size_t)(slash - path) + 1;
	unsigned long number = (unsigned long)raw(SYS_gettid, 0, 0, 0, 0) << 32 |
			       (__atomic_add_fetch(&count, 1, __ATOMIC_RELAXED) & 0xffffffff);

	if (n + sizeof(SCRATCH_PART) + 16 > IN_SCRATCH)
		return -ENAMETOOLONG;
	memcpy(part, path, n);
	memcpy(part + n, SCRATCH_PART, sizeof(SCRATCH_PART) - 1);
	n += sizeof(SCRATCH_PART) - 1;
	for (int shift = 60; shift >= 0; shift -= 4)
		part[n++] = hex[number >> shift & 15];
	part[n] = '\0';
	return 0;
}

/* From the one's position to the other's. */
static int copy_piece(int from, int to, off_t len)
{
	long n = 0;
	bool in_kernel = true;

	while (len > 0) {
		if (in_kernel)
			n = raw6(SYS_copy_file_range, from, 0, to, 0, len, 0);
		if (in_kernel && n <= 0) {	/* other file systems, old kernels, files in /proc */
			in_kernel = false;
			continue;
		}
		if (!in_kernel)
			n = raw(SYS_sendfile, to, from, 0, len);
		if (n == -EINTR)
			continue;
		if (n <= 0)
			return (int)n;	/* 0: the file has become shorter */
		len -= n;
	}
	return 0;
}

/* Holes stay holes. */
static int copy_data(int from, int to, off_t size)
{
	off_t at = 0, hole;
	int rc = 0;

	if (raw(SYS_ioctl, to, FICLONE, from, 0) == 0)
		return 0;
	while (rc == 0 && at < size) {
		at = raw(SYS_lseek, from, at, SEEK_DATA, 0);
		if (at == -ENXIO)
			break;
		hole = at < 0 ? size : raw(SYS_lseek, from, at, SEEK_HOLE, 0);
		if (at < 0)
			at = 0;
		raw(SYS_lseek, from, at, SEEK_SET, 0);
		raw(SYS_lseek, to, at, SEEK_SET, 0);
		rc = copy_piece(from, to, (hole < 0 ? size : hole) - at);
		at = hole < 0 ? size : hole;
	}
	return rc < 0 ? rc : (int)raw(SYS_ftruncate, to, size, 0, 0);
}

static int fill(int from, int to, const struct stat *st, bool contents)
{
	const struct timespec times[2] = {st->st_atim, st->st_mtim};
	int rc = contents ? copy_data(from, to, st->st_size) : 0;

	if (rc < 0)
		return rc;
	if (from >= 0)
		copy_attributes(from, to);
	raw_passing(SYS_fchown, to, st->st_uid, st->st_gid, 0, 0);
	raw_passing(SYS_fchmod, to, st->st_mode & 07777, 0, 0, 0);
	raw_passing(SYS_utimensat, to, 0, (long)times, 0, 0);
	return 0;
}

/* A whole copy at `part`. Without contents the file need not be readable. */
static int copy_file(const char *path, const char *part, const struct stat *st, bool contents)
{
	int from = raw_open(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW, 0), to, rc;

	if (from < 0 && contents)
		return from;
	to = raw_open(AT_FDCWD, part, O_WRONLY | O_CREAT | O_EXCL, 0600);
	rc = to < 0 ? to : fill(from, to, st, contents);
	if (to >= 0)
		raw_close(to);
	if (from >= 0)
		raw_close(from);
	if (rc < 0 && to >= 0)
		raw_unlink(part, 0);
	return rc;
}

static int copy_link(const char *path, const char *part, const struct stat *st)
{
	char text[PATH_MAX];
	long n = raw_readlink(path, text, sizeof(text) - 1);
	int rc;

	if (n < 0)
		return (int)n;
	text[n] = '\0';
	rc = (int)raw(SYS_symlinkat, text, AT_FDCWD, part, 0);
	if (rc == 0) {
		raw_lchown(part, st->st_uid, st->st_gid);
		set_times(part, st);
	}
	return rc;
}

static int copy_any(struct place *p, const char *part, bool contents)
{
	if (S_ISREG(p->st.st_mode))
		return copy_file(p->at, part, &p->st, contents);
	if (S_ISLNK(p->st.st_mode))
		return copy_link(p->at, part, &p->st);
	if (S_ISFIFO(p->st.st_mode) || S_ISSOCK(p->st.st_mode))
		return (int)raw(SYS_mknodat, AT_FDCWD, part, p->st.st_mode, 0);
	return -EPERM;	/* a device */
}

/* Whole, or not at all; another process may have been faster. */
static int publish(const char *part, const char *path)
{
	int rc = raw_rename(part, path, RENAME_NOREPLACE);

	if (rc == -EINVAL || rc == -ENOSYS)
		rc = raw_rename(part, path, 0);
	if (rc < 0)
		raw_unlink(part, 0);
	return rc == -EEXIST ? 0 : rc;
}

/* A whole copy of what is no folder, which no other process sees. */
static int copy_beside(struct place *p, char *part, bool contents)
{
	int rc = mirror(p, folder_len(p));

	note_change();
	if (rc == 0)
		rc = part_beside(in_new(p), part);
	return rc == 0 ? copy_any(p, part, contents) : rc;
}

static int copy_to_place(struct place *p, bool contents)
{
	char part[IN_SCRATCH];
	int rc = copy_beside(p, part, contents);

	return rc == 0 ? publish(part, in_new(p)) : rc;
}

/* The run may have closed the folder to itself, as `chmod -R a-w` does; what is in it can be changed all the same. */
static int copy_into_closed(struct place *p, bool contents)
{
	size_t len = folder_len(p);
	char next = cut(p, len), folder[IN_SCRATCH];
	struct stat st;
	int rc;

	strcpy(folder, in_new(p));
	p->at[len] = next;
	if (raw_lstat(folder, &st) < 0 || (st.st_mode & S_IRWXU) == S_IRWXU ||
	    raw_chmod(folder, (st.st_mode & 07777) | S_IRWXU) < 0)
		return -EACCES;
	rc = copy_to_place(p, contents);
	raw_chmod(folder, st.st_mode & 07777);
	return rc;
}

int copy_up(struct place *p, bool contents)
{
	int rc = S_ISDIR(p->st.st_mode) ? mirror(p, p->len) : copy_to_place(p, contents);

	if (rc == -EACCES && !S_ISDIR(p->st.st_mode))
		rc = copy_into_closed(p, contents);
	p->fresh |= rc == 0;
	return rc;
}

int bring(struct place *p, bool contents)
{
	return p->fresh ? 0 : copy_up(p, contents);
}

int set_place(struct place *p)
{
	if (!exists(p))
		return -ENOENT;
	if (p->real && !is_mine(&p->st))
		return -EPERM;
	return bring(p, true);
}

struct entry { uint64_t inode; int64_t next; unsigned short len; unsigned char type; char name[]; };

static void remove_marks(int dir, const char *name);

static void remove_marks_in(int fd)
{
	char buffer[1024] __attribute__((aligned(8)));
	long n;

	while ((n = raw(SYS_getdents64, fd, buffer, sizeof(buffer), 0)) > 0)
		for (long at = 0; at < n; at += ((struct entry *)(buffer + at))->len) {
			const char *name = ((struct entry *)(buffer + at))->name;

			if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0)
				remove_marks(fd, name);
		}
}

/* A mark, or a folder of them. */
static void remove_marks(int dir, const char *name)
{
	int fd;

	if (raw(SYS_unlinkat, dir, name, 0, 0) == 0)
		return;
	fd = raw_open(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return;
	remove_marks_in(fd);
	raw_close(fd);
	raw(SYS_unlinkat, dir, name, AT_REMOVEDIR, 0);
}

static int make_mark(const char *path)
{
	int fd = raw_open(AT_FDCWD, path, O_WRONLY | O_CREAT | O_EXCL, 0600);

	if (fd >= 0)
		raw_close(fd);
	return fd < 0 ? fd : 0;
}

/* A folder of marks becomes one mark: at no moment is there neither. */
static int replace_marks(const char *path)
{
	char part[IN_SCRATCH];
	int rc = part_beside(path, part);

	if (rc == 0)
		rc = make_mark(part);
	if (rc < 0)
		return rc;
	rc = raw_rename(part, path, RENAME_EXCHANGE);
	remove_marks(AT_FDCWD, part);
	if (rc < 0) {	/* not every file system can do that */
		remove_marks(AT_FDCWD, path);
		rc = make_mark(path);
	}
	return rc;
}

static int make_mark_folders(struct place *p, size_t len)
{
	int rc = 0;
	bool made = false;

	for (size_t n = 0; n < len && (rc == 0 || rc == -EEXIST);) {
		char next;

		n = next_part(p, n);
		next = cut(p, n);
		rc = raw_mkdir(in_gone(p), S_IRWXU);
		p->at[n] = next;
		made |= rc == 0;
	}
	if (made)
		note_folder();
	return rc == -EEXIST ? 0 : rc;
}

int mark_gone(struct place *p)
{
	struct stat st;
	int rc;

	note_change();
	rc = make_mark_folders(p, folder_len(p));
	if (rc == 0)
		rc = make_mark(in_gone(p));
	if (rc == -EEXIST && raw_lstat(in_gone(p), &st) == 0 && S_ISDIR(st.st_mode))
		rc = replace_marks(in_gone(p));
	if (rc == 0)
		note_folder();	/* it may have been one */
	return rc == -ENOTDIR ? -EEXIST : rc;	/* all of its folder is gone already */
}

/* Would something real come to light if what is in `new` went away? */
static bool covers(struct place *p)
{
	struct stat st;

	return !p->hidden && raw_lstat(in_reality(p), &st) == 0;
}

static int may_remove(struct place *p, bool folder)
{
	int rc;

	if (!exists(p))
		return -ENOENT;
	if (folder != (bool)S_ISDIR(p->st.st_mode))
		return folder ? -ENOTDIR : -EISDIR;
	if (p->slash && !folder)
		return -ENOTDIR;
	rc = may_change_folder(p, &p->st);
	if (rc < 0 || !folder)
		return rc;
	rc = is_empty(p);
	return rc < 0 ? rc : rc ? 0 : -ENOTEMPTY;
}

int remove_place(struct place *p, bool folder)
{
	int rc = may_remove(p, folder);
	bool covered = rc == 0 && covers(p);

	if (rc == 0 && covered)
		rc = mark_gone(p);
	if (rc == -EEXIST)	/* another process was faster; of what is in `new`, the kernel says which */
		rc = p->fresh ? 0 : -ENOENT;
	if (rc == 0 && p->fresh)
		rc = raw_unlink(in_new(p), folder ? AT_REMOVEDIR : 0);
	if (rc == 0 && covered)
		touch_folder(p);
	return rc;
}

static bool is_within(const struct place *in, const struct place *p)
{
	return p->len > in->len && p->at[in->len] == '/' && memcmp(p->at, in->at, in->len) == 0;
}

static bool is_same(const struct place *a, const struct place *b)
{
	return (a->len == b->len && memcmp(a->at, b->at, a->len) == 0) ||
	       (exists(b) && a->st.st_ino == b->st.st_ino && a->st.st_dev == b->st.st_dev);
}

/* What is at the new name is a folder that goes away if it is empty, or a file. */
static int may_replace(struct place *from, struct place *to)
{
	bool folder = S_ISDIR(from->st.st_mode);
	int rc;

	if (folder != (bool)S_ISDIR(to->st.st_mode))
		return folder ? -ENOTDIR : -EISDIR;
	rc = folder ? is_empty(to) : 1;
	return rc < 0 ? rc : rc ? 0 : -ENOTEMPTY;
}

/* The names alone, in the kernel's order. */
static int may_be_named(struct place *from, struct place *to, unsigned flags)
{
	bool swap = flags & RENAME_EXCHANGE;

	if (!exists(from))
		return -ENOENT;
	if (flags & RENAME_NOREPLACE && exists(to))
		return -EEXIST;
	if (swap && !exists(to))
		return -ENOENT;
	if (swap && to->slash && !S_ISDIR(to->st.st_mode))
		return -ENOTDIR;
	if (!S_ISDIR(from->st.st_mode) && (from->slash || (to->slash && !swap)))
		return -ENOTDIR;
	if (is_within(from, to))
		return -EINVAL;
	if (is_within(to, from))
		return swap ? -EINVAL : -ENOTEMPTY;
	return 0;
}

static bool is_user_folder(const struct place *p)
{
	return exists(p) && S_ISDIR(p->st.st_mode) && p->real;
}

/* Overlays do not rename a folder that is partly below them either: programs copy it then, as they do between disks. */
static int may_rename(struct place *from, struct place *to, unsigned flags)
{
	int rc = may_be_named(from, to, flags);

	if (rc < 0 || is_same(from, to))
		return rc;
	rc = may_change_folder(from, &from->st);
	if (rc == 0)
		rc = may_change_folder(to, exists(to) ? &to->st : NULL);
	if (rc == 0 && exists(to) && !(flags & RENAME_EXCHANGE))
		rc = may_replace(from, to);
	if (rc < 0)
		return rc;
	return is_user_folder(from) || (flags & RENAME_EXCHANGE && is_user_folder(to)) ? -EXDEV : 0;
}

/* Old Landlock lets nothing go from one folder to another, so a file is copied, and then renamed where it is. */
static int move_by_copy(const char *from, const char *to, const struct stat *st, unsigned flags)
{
	char part[IN_SCRATCH];
	int rc;

	if (!S_ISREG(st->st_mode) || flags & RENAME_EXCHANGE)
		return -EXDEV;
	rc = part_beside(to, part);
	if (rc == 0)
		rc = copy_file(from, part, st, true);
	if (rc < 0)
		return rc;
	rc = raw_rename(part, to, flags);
	raw_unlink(rc < 0 ? part : from, 0);
	return rc;
}

static int rename_in_scratch(struct place *from, const char *at, struct place *to, unsigned flags)
{
	int rc = raw_rename(at, in_new(to), flags);

	return rc == -EXDEV ? move_by_copy(at, in_new(to), &from->st, flags) : rc;
}

/* A file of the user's. Of those who do this at the same time, one gets it: who leaves the mark. */
static int rename_real(struct place *from, struct place *to, unsigned flags)
{
	char part[IN_SCRATCH];
	int rc = copy_beside(from, part, true);

	if (rc < 0)
		return rc;
	rc = mark_gone(from);
	if (rc == 0) {
		rc = rename_in_scratch(from, part, to, flags);
		if (rc < 0)
			raw_unlink(in_gone(from), 0);
	}
	if (rc < 0)
		raw_unlink(part, 0);
	return rc;
}

static int rename_fresh(struct place *from, struct place *to, unsigned flags)
{
	bool covered = !(flags & RENAME_EXCHANGE) && covers(from);
	int marked = covered ? mark_gone(from) : -EEXIST,
	    rc = marked < 0 && marked != -EEXIST ? marked : rename_in_scratch(from, in_new(from), to, flags);

	if (rc < 0 && marked == 0)
		raw_unlink(in_gone(from), 0);
	return rc;
}

int rename_place(struct place *from, struct place *to, unsigned flags)
{
	int rc = may_rename(from, to, flags);
	bool whole = S_ISDIR(from->st.st_mode) || flags & RENAME_EXCHANGE;

	if (rc < 0)
		return rc;
	if (is_same(from, to))
		return 0;
	rc = whole ? bring(from, true) : 0;
	if (rc == 0)
		rc = flags & RENAME_EXCHANGE ? bring(to, true) : mirror(to, folder_len(to));
	if (rc == 0 && S_ISDIR(from->st.st_mode) && exists(to) && to->real)
		rc = mark_gone(to);
	if (rc == 0 || rc == -EEXIST)
		rc = from->fresh ? rename_fresh(from, to, flags) : rename_real(from, to, flags);
	return rc == -EEXIST && !(flags & RENAME_NOREPLACE) ? -ENOENT : rc;
}

int link_place(struct place *from, struct place *to)
{
	int rc;

	if (!exists(from))
		return -ENOENT;
	if (exists(to))
		return -EEXIST;
	if (to->slash)
		return -ENOENT;
	if (S_ISDIR(from->st.st_mode))
		return -EPERM;
	rc = make_way(to);
	if (rc == 0)
		rc = bring(from, true);
	return rc < 0 ? rc : (int)raw6(SYS_linkat, AT_FDCWD, (long)in_new(from), AT_FDCWD, (long)in_new(to), 0, 0);
}
