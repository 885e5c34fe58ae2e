/* SPDX-License-Identifier: Apache-2.0
 * The program's view of the file systems: all that can be written to lies under an overlay.
 *
 * The view is put together below the layer and then becomes the root. As root that is done from nothing: an overlay over "/", and in it
 * every other mount, as an overlay or as it is. What is forgotten is missing, not writable. In a user namespace the kernel refuses an
 * overlay over a folder that has mounts in it (they could hide something). So there all mounts are taken as they are, made read-only, and the
 * folders without mounts in them get overlays. What is forgotten is read-only.
 *
 * A user namespace has one user and one group, and an overlay in it takes over nothing that belongs to others (EOVERFLOW): neither a folder of
 * root's on the way to the user's own, nor a file of a group that is not his first. Such folders are made in the upper side beforehand, where the
 * program is likely to write; files that it could write to are a reason to prefer a fence.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "writes/layer.h"
#include "writes/layer_parts.h"

#define SOURCE	    "cuwhy"	/* of our overlays, as /proc/self/mountinfo shows it */
#define SOCKETS_MAX ((size_t)16 << 20)

#ifndef SYS_mount_setattr
#define SYS_mount_setattr 442
#endif
#ifndef AT_RECURSIVE
#define AT_RECURSIVE 0x8000
#endif
#define ATTR_RDONLY 1	/* MOUNT_ATTR_RDONLY */

struct attr {		/* struct mount_attr */
	uint64_t set, clear, propagation, userns;
};

struct entry {
	const struct layer_view *view;
	struct mounts mounts;
	bool own_xattrs;	/* the overlay keeps its notes as user.*: it may not write trusted.* */
	unsigned n;		/* overlays so far */
	size_t options;		/* the row of `options` that this kernel takes */
	size_t noted;		/* bytes of view->read_only */
	char **likely;		/* folders in which the program will write, probably */
	size_t n_likely, cap_likely, n_searched;	/* the first of them are also searched */
	size_t looked;		/* entries, of LOOK_MAX */
	char foreign[256];	/* what an overlay cannot take over, although the program will need it; "" = nothing was seen */
	char *root;
};

/* Without redirect_dir a folder that was there before cannot be renamed; with metacopy what was only touched would be listed as written;
 * volatile: nobody waits for a disk, since all of it will be discarded. Older kernels do not know all of them. */
static const char *const options[2][4] = {
	{"metacopy=off,index=off,redirect_dir=on,volatile", "metacopy=off,index=off,redirect_dir=on", "redirect_dir=on",
	 ""},
	{"userxattr,volatile", "userxattr", NULL, NULL},
};

static char *in_layer(const struct entry *t, const char *name, unsigned n)
{
	return n == UINT_MAX ? xasprintf("%s/%s", t->view->dir, name) : xasprintf("%s/%s/%u", t->view->dir, name, n);
}

static char *in_root(const struct entry *t, const char *path)
{
	return xasprintf("%s%s", t->root, strcmp(path, "/") == 0 ? "" : path);
}

static void copy_acl(const char *from, const char *to, const char *name)
{
	char value[4096];
	ssize_t n = getxattr(from, name, value, sizeof(value));

	if (n > 0)
		setxattr(to, name, value, (size_t)n, 0);
}

/* The top folder of the overlay's upper side is what the program sees: like the one below it. Where that belongs to somebody else and we
 * cannot give ours away, ours must not allow what that one did not. */
static void look_like(const char *from, const char *to)
{
	struct stat st;
	struct timespec times[2];
	mode_t mode;

	if (stat(from, &st) != 0)
		return;
	mode = st.st_mode & 07777;
	if (chown(to, st.st_uid, st.st_gid) != 0 && st.st_uid != geteuid() && access(from, W_OK) != 0)
		mode &= ~(mode_t)0200;
	copy_acl(from, to, "system.posix_acl_access");
	copy_acl(from, to, "system.posix_acl_default");
	chmod(to, mode);
	times[0] = st.st_atim;
	times[1] = st.st_mtim;
	utimensat(AT_FDCWD, to, times, 0);
}

static bool is_writable_mount(const char *path)
{
	struct statvfs v;

	return statvfs(path, &v) == 0 && !(v.f_flag & ST_RDONLY);
}

/* The paths of the three folders are given as descriptors: a comma or a colon in them would end an option. */
static int mount_with(const struct entry *t, int lower, int up, int work, const char *target, unsigned long flags,
		      const char *more)
{
	char *data = xasprintf("lowerdir=/proc/self/fd/%d,upperdir=/proc/self/fd/%d,workdir=/proc/self/fd/%d%s%s",
			       lower, up, work, *more ? "," : "", more);
	int rc = mount(SOURCE, target, "overlay", flags & ~(unsigned long)MS_RDONLY, data) != 0 ? -errno : 0;

	/* if the upper side cannot do what it must, the kernel mounts it read-only */
	if (rc == 0 && !is_writable_mount(target)) {
		umount2(target, MNT_DETACH);
		rc = -EINVAL;
	}
	log_line("writes", 2, "overlay %u on %s (%s): %d", t->n, target, more, rc);
	free(data);
	return rc;
}

#define LOOK_MAX  4000	/* entries, a few milliseconds */
#define LOOK_DEEP 4

static bool is_foreign(const struct stat *st)
{
	return st->st_uid != geteuid() || st->st_gid != getegid();
}

/* The folders from `lower` to `path`, in the upper side, which is `up`. */
static void make_way(const char *lower, const char *up, const char *path)
{
	size_t skip = strcmp(lower, "/") == 0 ? 0 : strlen(lower);
	char *from = xstrdup(path), *to = xasprintf("%s%s", up, path + skip);
	size_t n_from = strlen(from), n_to = strlen(to);

	for (size_t i = skip + 1; i <= n_from; i++) {
		if (from[i] != '/' && from[i] != '\0')
			continue;
		to[n_to - (n_from - i)] = from[i] = '\0';
		if (fs_is_dir(from) && (mkdir(to, 0700) == 0 || errno == EEXIST))
			look_like(from, to);
		if (i < n_from)
			to[n_to - (n_from - i)] = from[i] = '/';
	}
	free(to);
	free(from);
}

/* Are there folders and files in `path` that an overlay over `lower` cannot take over? */
static void look_in(struct entry *t, const char *lower, const char *up, const char *path, int depth)
{
	DIR *d = depth > 0 ? opendir(path) : NULL;
	struct dirent *ent;
	struct stat st;

	while (d && t->looked < LOOK_MAX && (ent = readdir(d))) {
		char *inner;

		if (strcmp(ent->d_name, ".") == 0 || strcmp(ent->d_name, "..") == 0)
			continue;
		t->looked++;
		if (fstatat(dirfd(d), ent->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0)
			continue;
		inner = fs_join(path, ent->d_name);
		if (S_ISDIR(st.st_mode) && strcmp(inner, t->view->dir) != 0) {
			if (is_foreign(&st) && access(inner, X_OK) == 0)
				make_way(lower, up, inner);
			look_in(t, lower, up, inner, depth - 1);
		} else if (S_ISREG(st.st_mode) && is_foreign(&st) && faccessat(dirfd(d), ent->d_name, W_OK, 0) == 0) {
			str_copy(t->foreign, sizeof(t->foreign), inner);
		}
		free(inner);
	}
	if (d)
		closedir(d);
}

static void prepare_upper(struct entry *t, const char *lower, const char *up)
{
	for (size_t i = 0; i < t->n_likely; i++) {
		if (!path_within(t->likely[i], lower))
			continue;
		make_way(lower, up, t->likely[i]);
		if (i < t->n_searched)
			look_in(t, lower, up, t->likely[i], LOOK_DEEP);
	}
}

static void add_likely(struct entry *t, const char *path)
{
	char *real = realpath(path, NULL), *slash = real ? strrchr(real, '/') : NULL;

	if (slash && slash > real && !fs_is_dir(real))
		*slash = '\0';
	for (size_t i = 0; real && i < t->n_likely; i++) {
		if (strcmp(t->likely[i], real) == 0) {
			free(real);
			return;
		}
	}
	if (!real || strcmp(real, "/") == 0 || access(real, W_OK) != 0) {
		free(real);
		return;
	}
	t->likely = xgrow(t->likely, t->n_likely, &t->cap_likely, sizeof(*t->likely));
	t->likely[t->n_likely++] = real;
}

/* What the program was told to write to is among its words and variables, or will be made in a folder that is. */
static void add_likely_of(struct entry *t, const char *word)
{
	const char *equals = strchr(word, '=');
	char *copy = xstrdup(equals ? equals + 1 : word), *rest = NULL, *slash;

	for (char *p = strtok_r(copy, ":,", &rest); p; p = strtok_r(NULL, ":,", &rest)) {
		if (!strchr(p, '/'))
			continue;
		if (!fs_exists(p) && (slash = strrchr(p, '/')) != p)
			*slash = '\0';
		add_likely(t, p);
	}
	free(copy);
}

extern char **environ;

static void find_likely(struct entry *t)
{
	add_likely(t, ".");
	for (char *const *w = t->view->words; w && *w; w++)
		add_likely_of(t, *w);
	t->n_searched = t->n_likely;
	for (char **v = environ; *v; v++)
		add_likely_of(t, *v);
	add_likely(t, "/tmp");
	add_likely(t, "/var/tmp");
}

/* An overlay over the folder `lower`, seen at `target`. */
static int overlay(struct entry *t, const char *lower, const char *target, unsigned long flags)
{
	char *up = in_layer(t, "up", t->n), *work = in_layer(t, "work", t->n), *place = in_layer(t, "place", t->n);
	int fd[3] = {-1, -1, -1}, rc = -EIO;

	if (mkdir(up, 0700) == 0 && mkdir(work, 0700) == 0 && symlink(lower, place) == 0) {
		look_like(lower, up);
		prepare_upper(t, lower, up);
		fd[0] = open(lower, O_PATH | O_DIRECTORY | O_CLOEXEC);
		fd[1] = open(up, O_PATH | O_DIRECTORY | O_CLOEXEC);
		fd[2] = open(work, O_PATH | O_DIRECTORY | O_CLOEXEC);
	}
	if (fd[0] >= 0 && fd[1] >= 0 && fd[2] >= 0)
		rc = mount_with(t, fd[0], fd[1], fd[2], target, flags, options[t->own_xattrs][t->options]);
	while (rc == -EINVAL && t->n == 0 && t->options + 1 < 4 && options[t->own_xattrs][t->options + 1])
		rc = mount_with(t, fd[0], fd[1], fd[2], target, flags, options[t->own_xattrs][++t->options]);
	for (int i = 0; i < 3; i++)
		if (fd[i] >= 0)
			close(fd[i]);
	if (rc == 0) {
		t->n++;
	} else {
		if (t->n == 0)
			t->options = 0;
		unlink(place);
		layer_remove(work, NULL, NULL);
		layer_remove(up, NULL, NULL);
	}
	free(place);
	free(work);
	free(up);
	return rc;
}

/* What the overlay notes as extended attributes needs a file system that has them. */
static int check_layer(struct entry *t, struct err *e)
{
	const char *dir = t->view->dir;

	if (setxattr(dir, "trusted.overlay.cuwhy", "y", 1, 0) == 0) {
		removexattr(dir, "trusted.overlay.cuwhy");
		return 0;
	}
	t->own_xattrs = true;
	if (setxattr(dir, "user.overlay.cuwhy", "y", 1, 0) != 0)
		return err_set(e, -EOPNOTSUPP, "the file system of '%s' has no extended attributes", dir);
	removexattr(dir, "user.overlay.cuwhy");
	return 0;
}

static int read_only(const char *path, bool below, unsigned long flags)
{
	struct attr set = {.set = ATTR_RDONLY};

	if (syscall(SYS_mount_setattr, AT_FDCWD, path, below ? AT_RECURSIVE : 0, &set, sizeof(set)) == 0)
		return 0;
	if (below || errno != ENOSYS)
		return -errno;
	return mount(NULL, path, NULL, MS_REMOUNT | MS_BIND | MS_RDONLY | flags, NULL) != 0 ? -errno : 0;
}

static int writable_again(const char *path)
{
	struct attr clear = {.clear = ATTR_RDONLY};

	return syscall(SYS_mount_setattr, AT_FDCWD, path, 0, &clear, sizeof(clear)) != 0 ? -errno : 0;
}

/* A place where the user could write. That it is one in which the program will probably write is a reason to prefer a fence. */
static void note_read_only(struct entry *t, const char *path)
{
	size_t n = strlen(path) + 1, room = t->view->read_only_size;

	if (access(path, W_OK) != 0)
		return;
	for (size_t i = 0; i < t->n_searched; i++)
		if (strcmp(t->likely[i], path) == 0)
			str_copy(t->foreign, sizeof(t->foreign), path);
	if (t->noted + n + 1 > room)
		return;
	log_line("writes", 1, "%s is read-only", path);
	memcpy(t->view->read_only + t->noted, path, n);
	t->noted += n;
	t->view->read_only[t->noted] = '\0';
}

static int bind(struct entry *t, const char *path, unsigned long more)
{
	char *target = in_root(t, path);
	int rc = mount(path, target, NULL, MS_BIND | more, NULL) != 0 ? -errno : 0;

	free(target);
	return rc;
}

/* A mount that cannot be seen by us (of another user, by FUSE) or was taken away meanwhile is left out. */
static int add_mount(struct entry *t, const struct mount_point *p, struct err *e)
{
	char *target = in_root(t, p->path);
	bool as_it_is = p->virtual || p->flags & MS_RDONLY;
	struct stat st;
	int rc = 0;

	if (!as_it_is && stat(p->path, &st) == 0 && S_ISDIR(st.st_mode) && overlay(t, p->path, target, p->flags) == 0)
		goto out;
	if (bind(t, p->path, 0) != 0)
		goto out;
	if (!as_it_is) {
		note_read_only(t, p->path);
		rc = read_only(target, false, p->flags);
	}
	if (rc != 0)
		err_set(e, rc, "cannot make '%s' read-only: %s", p->path, strerror(-rc));
out:
	free(target);
	return rc;
}

/* -EINVAL: not here. */
static int build_anew(struct entry *t, struct err *e)
{
	unsigned long flags = 0;
	int rc;

	for (size_t i = 0; i < t->mounts.n; i++)
		if (!t->mounts.list[i].hidden && strcmp(t->mounts.list[i].path, "/") == 0)
			flags = t->mounts.list[i].flags;
	rc = overlay(t, "/", t->root, flags);
	for (size_t i = 0; rc == 0 && i < t->mounts.n; i++)
		if (!t->mounts.list[i].hidden && strcmp(t->mounts.list[i].path, "/") != 0)
			rc = add_mount(t, &t->mounts.list[i], e);
	return rc;
}

static void cover(struct entry *t, const char *path, unsigned long flags);

static bool is_mount(const struct entry *t, const char *path)
{
	for (size_t i = 0; i < t->mounts.n; i++)
		if (strcmp(t->mounts.list[i].path, path) == 0)
			return true;
	return false;
}

static void cover_inner(struct entry *t, const char *path, unsigned long flags)
{
	DIR *d = opendir(path);
	struct dirent *ent;
	struct stat st;

	while (d && (ent = readdir(d))) {
		char *inner;

		if (strcmp(ent->d_name, ".") == 0 || strcmp(ent->d_name, "..") == 0)
			continue;
		inner = fs_join(path, ent->d_name);
		/* those that are mounts are covered by themselves */
		if (fstatat(dirfd(d), ent->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
		    !is_mount(t, inner))
			cover(t, inner, flags);
		free(inner);
	}
	if (d)
		closedir(d);
	note_read_only(t, path);
}

static void cover(struct entry *t, const char *path, unsigned long flags)
{
	char *target;

	if (mounts_below(&t->mounts, path)) {
		cover_inner(t, path, flags);
		return;
	}
	target = in_root(t, path);
	/* nobody who cannot enter it can change anything in it */
	if (access(path, X_OK) == 0 && overlay(t, path, target, flags) != 0)
		note_read_only(t, path);
	free(target);
}

/* Below a mount, other mounts are covered by themselves. */
static int cover_mount(struct entry *t, const struct mount_point *p)
{
	char *target;
	struct stat st;
	int rc = 0;

	if (p->flags & MS_RDONLY || stat(p->path, &st) != 0)
		return 0;
	if (p->virtual) {
		target = in_root(t, p->path);
		rc = writable_again(target);
		free(target);
	} else if (S_ISDIR(st.st_mode)) {
		cover(t, p->path, p->flags);
	} else {
		note_read_only(t, p->path);
	}
	return rc;
}

static int build_on_top(struct entry *t, struct err *e)
{
	int rc = mount("/", t->root, NULL, MS_BIND | MS_REC, NULL) != 0 ? -errno : read_only(t->root, true, 0);

	if (rc != 0)
		return err_set(e, rc, "cannot make a read-only view of the file systems: %s", strerror(-rc));
	for (size_t i = 0; rc == 0 && i < t->mounts.n; i++)
		if (!t->mounts.list[i].hidden)
			rc = cover_mount(t, &t->mounts.list[i]);
	if (rc == 0 && t->view->strict && t->foreign[0])
		return err_set(e, -EXDEV, "in a user namespace, an overlay cannot take over '%s'",
			       t->foreign);
	return rc ? err_set(e, rc, "cannot open /dev and /proc in the view: %s", strerror(-rc)) : 0;
}

static int add_real(struct entry *t, struct err *e)
{
	for (const char *const *real = t->view->real; *real; real++) {
		int rc = bind(t, *real, MS_REC);

		if (rc != 0)
			return err_set(e, rc, "cannot keep '%s' as it is: %s", *real, strerror(-rc));
	}
	return 0;
}

/* Sockets of daemons (an agent, a display, a database) are connected to by their file, and an overlay's file is another one. */
static void add_socket(struct entry *t, const char *path)
{
	char *slash = strrchr(path, '/'), *folder, *real, *name, *target;
	struct stat st, seen;

	if (lstat(path, &st) != 0 || !S_ISSOCK(st.st_mode))
		return;
	folder = slash == path ? xstrdup("/") : xasprintf("%.*s", (int)(slash - path), path);
	real = realpath(folder, NULL);
	if (real && !path_within(real, "/dev")) {
		name = fs_join(real, slash + 1);
		target = in_root(t, name);
		if (stat(target, &seen) != 0 || seen.st_dev != st.st_dev || seen.st_ino != st.st_ino)	/* each connection is listed */
			bind(t, name, 0);
		free(target);
		free(name);
	}
	free(real);
	free(folder);
}

static void add_sockets(struct entry *t)
{
	int fd = open("/proc/net/unix", O_RDONLY | O_CLOEXEC);
	char *rest, *line, *path;
	struct buf b;

	if (fd < 0)
		return;
	buf_init(&b, SOCKETS_MAX);
	buf_read_fd(&b, fd);
	close(fd);
	rest = b.data;
	while (b.len && (line = strsep(&rest, "\n")) != NULL)
		if ((path = strstr(line, " /")) != NULL)
			add_socket(t, path + 1);
	buf_release(&b);
}

/* A program that walks the home folder would find what it has written twice. */
static int hide_layer(struct entry *t, struct err *e)
{
	char *target = in_root(t, t->view->dir), *hidden = in_layer(t, "hidden", UINT_MAX);
	int rc = mount(hidden, target, NULL, MS_BIND, NULL) != 0 ? -errno : read_only(target, false, 0);

	free(hidden);
	free(target);
	return rc ? err_set(e, rc, "cannot hide the layer: %s", strerror(-rc)) : 0;
}

static int change_root(const struct entry *t)
{
	if (chdir(t->root) != 0)
		return -errno;
	if (syscall(SYS_pivot_root, ".", ".") == 0)
		return umount2(".", MNT_DETACH) != 0 || chdir("/") != 0 ? -errno : 0;
	/* in a chroot that is no mount point */
	return errno == EINVAL && chroot(".") == 0 && chdir("/") == 0 ? 0 : -errno;
}

/* The folder that it was started in may be gone: then it stays in that one, in which nothing can be written. ".." leads from there to the
 * user's files, hence read-only. */
static int enter_root(const struct entry *t, const char *cwd, struct err *e)
{
	int here = -1, rc = 0;

	if (!cwd) {
		here = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
		rc = here < 0 ? -errno : read_only("/", true, 0);
	}
	if (rc == 0)
		rc = change_root(t);
	if (rc == 0 && (cwd ? chdir(cwd) : fchdir(here)) != 0)
		rc = -errno;
	if (here >= 0)
		close(here);
	return rc ? err_set(e, rc, "cannot enter the view in '%s': %s", cwd ? cwd : "a folder that is gone", strerror(-rc)) : 0;
}

static int make_folders(struct entry *t, struct err *e)
{
	static const char *const names[] = {"up", "work", "place", "root", "hidden"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char *path = in_layer(t, names[i], UINT_MAX);
		int rc = mkdir(path, 0700) != 0 && errno != EEXIST ? -errno : 0;

		free(path);
		if (rc != 0)
			return err_set(e, rc, "cannot create a folder in '%s': %s", t->view->dir, strerror(-rc));
	}
	return 0;
}

static int build(struct entry *t, bool user, struct err *e)
{
	int rc = check_layer(t, e);

	if (rc == 0 && !user) {
		rc = build_anew(t, e);
		/* also as root, in a container that is itself a user namespace */
		user = rc == -EINVAL && t->n == 0;
	}
	if (user && (rc == 0 || rc == -EINVAL)) {
		find_likely(t);
		rc = build_on_top(t, e);
	}
	if (rc == 0 && t->n == 0)
		rc = -EINVAL;
	if (rc == 0)
		rc = add_real(t, e);
	if (rc == 0)
		add_sockets(t);
	return rc == 0 ? hide_layer(t, e)
	       : e && e->code
		       ? rc
		       : err_set(e, rc, "the kernel mounts no overlay with '%s': %s", t->view->dir, strerror(-rc));
}

int layer_enter(const struct layer_view *v, struct err *e)
{
	struct entry t = {.view = v};
	struct rights before;
	char *cwd = getcwd(NULL, 0);
	bool user = false;
	mode_t mask = umask(0);
	int rc = make_folders(&t, e);

	if (cwd && cwd[0] != '/') {	/* "(unreachable)/..." */
		free(cwd);
		cwd = NULL;
	}
	t.root = in_layer(&t, "root", UINT_MAX);
	if (rc == 0)
		rc = namespace_enter(&before, &user, e);
	if (rc == 0)
		rc = mounts_read(&t.mounts, e);
	if (rc == 0)
		rc = build(&t, user, e);
	if (rc == 0)
		rc = enter_root(&t, cwd, e);
	if (rc == 0 && user)
		rc = namespace_settle(&before, e);
	umask(mask);
	while (t.n_likely)
		free(t.likely[--t.n_likely]);
	free(t.likely);
	mounts_release(&t.mounts);
	free(t.root);
	free(cwd);
	return rc;
}

bool layer_inside(void)
{
	struct mounts m;
	bool inside = false;

	if (mounts_read(&m, NULL) == 0)
		for (size_t i = 0; i < m.n; i++)
			inside |= !m.list[i].hidden && strcmp(m.list[i].type, "overlay") == 0 &&
				  strcmp(m.list[i].source, SOURCE) == 0;
	mounts_release(&m);
	return inside;
}
