/* SPDX-License-Identifier: Apache-2.0
 * Who is still in the view of a layer, and how it is removed, with all that a program may have made in it.
 */
#include "writes/layer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "writes/layer_parts.h"
#include "writes/scratch.h"

#define MOUNTS_MAX ((size_t)64 << 20)

/* Does its view show the layer, which is hidden under its own name? The number of a namespace says nothing: it is used again at once, and the
 * program may make more of them. */
static bool has_mount(int pid, const char *dir)
{
	const char *name = strrchr(dir, '/');
	char path[64];
	struct buf b;
	int fd;
	bool has;

	snprintf(path, sizeof(path), "/proc/%d/mountinfo", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	buf_init(&b, MOUNTS_MAX);
	buf_read_fd(&b, fd);
	close(fd);
	has = b.len && name && strstr(b.data, name);
	buf_release(&b);
	return has;
}

/* Namespaces that were looked at: there are many processes in a few. */
struct seen {
	char ns[64];
	bool shows;
};

struct views {
	struct seen *list;
	size_t n, cap;
};

static bool sees_layer(struct views *v, int pid, const char *dir)
{
	struct seen one = {"", false};
	char path[64];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	n = readlink(path, one.ns, sizeof(one.ns) - 1);
	if (n <= 0)
		return false;
	for (size_t i = 0; i < v->n; i++)
		if (strcmp(v->list[i].ns, one.ns) == 0)
			return v->list[i].shows;
	one.shows = has_mount(pid, dir);
	v->list = xgrow(v->list, v->n, &v->cap, sizeof(*v->list));
	v->list[v->n++] = one;
	return one.shows;
}

size_t layer_users(const char *dir, void (*found)(int pidfd, void *of), void *of)
{
	char *places = fs_join(dir, "place"), *fenced = xasprintf(SCRATCH_ENV "=%s", dir);
	bool overlays = fs_exists(places), uses;
	struct views views = {0};
	DIR *d = opendir("/proc");
	struct dirent *ent;
	size_t count = 0;
	uint64_t pid;

	while (d && (ent = readdir(d))) {
		int pidfd;

		if (!str_u64(ent->d_name, &pid))
			continue;
		pidfd = found ? proc_pidfd((pid_t)pid) : -1;	/* before it is asked who it is: its number may be another's next */
		uses = overlays ? sees_layer(&views, (int)pid, dir) : proc_environ_has((pid_t)pid, fenced);
		uses = uses && proc_state((pid_t)pid) != 'Z';
		count += uses;
		if (uses && pidfd >= 0)
			found(pidfd, of);
		if (pidfd >= 0)
			close(pidfd);
	}
	if (d)
		closedir(d);
	free(views.list);
	free(fenced);
	free(places);
	return count;
}

struct removal {
	int top;	/* what lies too deep is moved here and removed from here */
	unsigned moved;
	alive_fn *alive;
	void *of;
	bool left;
};

/* chattr +i */
static bool allow_removal(int parent, const char *name)
{
	int fd = openat(parent, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC), none = 0;
	bool ok = fd >= 0 && ioctl(fd, FS_IOC_SETFLAGS, &none) == 0;

	if (fd >= 0)
		close(fd);
	return ok;
}

static bool unlink_one(int parent, const char *name, int flags)
{
	if (unlinkat(parent, name, flags) == 0)
		return true;
	return errno == EPERM && allow_removal(parent, name) && unlinkat(parent, name, flags) == 0;
}

static void empty_folder(struct removal *r, int fd, int depth);

static void remove_one(struct removal *r, int parent, const char *name, int depth)
{
	char other[32];
	struct stat st;
	int fd;

	if (r->alive)
		r->alive(r->of);
	if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) != 0)
		return;
	if (!S_ISDIR(st.st_mode)) {
		r->left |= !unlink_one(parent, name, 0);
		return;
	}
	if ((st.st_mode & 0700) != 0700 && fchmodat(parent, name, 0700, 0) != 0 && allow_removal(parent, name))
		fchmodat(parent, name, 0700, 0);
	snprintf(other, sizeof(other), "deep.%u", r->moved);
	if (depth >= DEEP && renameat(parent, name, r->top, other) == 0) {
		r->moved++;
		return;
	}
	fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd >= 0)
		empty_folder(r, fd, depth + 1);
	r->left |= !unlink_one(parent, name, AT_REMOVEDIR);
}

/* `fd` is closed. Hidden files go last: one says whose folder it is. */
static void empty_folder(struct removal *r, int fd, int depth)
{
	DIR *d = fdopendir(fd);
	struct dirent *ent;

	if (!d) {
		close(fd);
		return;
	}
	for (int hidden = 0; hidden < 2; hidden++, rewinddir(d))
		while ((ent = readdir(d)))
			if (!is_dots(ent->d_name) && (ent->d_name[0] == '.') == hidden)
				remove_one(r, dirfd(d), ent->d_name, depth);
	closedir(d);
}

bool layer_remove(const char *dir, alive_fn *alive, void *of)
{
	struct removal r = {.alive = alive, .of = of};
	unsigned moved;

	do {
		moved = r.moved;
		r.left = false;
		r.top = open(dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (r.top < 0)
			return errno == ENOENT;
		empty_folder(&r, dup(r.top), 0);
		close(r.top);
	} while (r.moved > moved);
	return rmdir(dir) == 0 || errno == ENOENT;
}
