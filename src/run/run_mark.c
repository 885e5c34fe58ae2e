/* SPDX-License-Identifier: Apache-2.0
 * Marks on folders of our own: made, locked, recognized.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/mem.h"
#include "base/str.h"
#include "run/run_mark.h"
#include "writes/fence.h"
#include "writes/layer.h"

#define ENDED		"ended\n"
#define DAY_SECONDS	86400
#define DOUBT_DAYS	30	/* nothing known about its maker: after this long it is gone */

static const char *const first_line[] = {
	[MARK_RUN_FOLDER] = "cuwhy run: socket and core dumps of one run",
	[MARK_RECORDING] = "cuwhy run: a recording that newer ones replace; delete this file to keep it",
	[MARK_FIT] = "cuwhy fit: its dry runs",
	[MARK_LAYER] = "cuwhy run: what a dry run wrote",
};

/* Names this boot of this machine: locks taken by any of its processes are visible, in whatever container. */
static void boot_name(char *to, size_t size)
{
	int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, to, size - 1);

	if (fd >= 0)
		close(fd);
	to[n < 0 ? 0 : n] = '\0';
	to[strcspn(to, "\n")] = '\0';
}

/* The mark as it is written. The name is in it because a folder that the user has renamed is the user's to keep. */
static char *mark_text(const char *dir, enum mark_kind kind, const char *boot)
{
	size_t end = strlen(dir), start;

	while (end > 0 && dir[end - 1] == '/')
		end--;
	for (start = end; start > 0 && dir[start - 1] != '/'; start--)
		;
	return xasprintf("%s\nfolder %.*s\nboot %s\n", first_line[kind], (int)(end - start), dir + start, boot);
}

/* systemd-tmpfiles leaves locked folders alone, however old they are. */
static void lock_folder(struct mark *m, const char *dir)
{
	m->dir = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (m->dir >= 0)
		flock(m->dir, LOCK_EX | LOCK_NB);
}

/* For reading and writing: over NFS, an exclusive lock needs both. */
#define MARK_OPEN	(O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)

int mark_make(struct mark *m, const char *dir, enum mark_kind kind)
{
	char *path = fs_join(dir, MARK_FILE), *text = NULL, boot[64];
	int rc = 0;

	*m = MARK_NONE;
	m->file = open(path, MARK_OPEN | O_CREAT | O_EXCL, 0600);
	if (m->file < 0) {
		rc = -errno;
		goto out;
	}
	/* Locked before it says anything, and no other process locks an empty one. Without locks (some network file systems), the
	 * mark still says whose folder it is. */
	flock(m->file, LOCK_EX | LOCK_NB);
	boot_name(boot, sizeof(boot));
	text = mark_text(dir, kind, boot);
	if (write(m->file, text, strlen(text)) != (ssize_t)strlen(text)) {
		rc = -EIO;
		unlink(path);
		mark_release(m);
		goto out;
	}
	lock_folder(m, dir);
out:
	free(text);
	free(path);
	return rc;
}

void mark_end(struct mark *m)
{
	/* if this fails, the recording is kept for longer than necessary */
	if (m->file >= 0 && write(m->file, ENDED, strlen(ENDED)) < 0)
		return;
}

void mark_release(struct mark *m)
{
	if (m->file >= 0)
		close(m->file);
	if (m->dir >= 0)
		close(m->dir);
	*m = MARK_NONE;
}

enum lock { LOCK_FREE, LOCK_HELD, LOCK_UNKNOWN };

static enum lock try_lock(int fd)
{
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return LOCK_FREE;	/* released when fd is closed */
	return errno == EWOULDBLOCK ? LOCK_HELD : LOCK_UNKNOWN;
}

#define WAIT_TRIES	200	/* 2 s: a run that was killed holds its lock until its last process is gone */
#define WAIT_NS		10000000

static enum lock wait_for_lock(int fd)
{
	struct timespec pause = {0, WAIT_NS};
	enum lock lock = try_lock(fd);

	for (int i = 0; i < WAIT_TRIES && lock == LOCK_HELD; i++) {
		nanosleep(&pause, NULL);
		lock = try_lock(fd);
	}
	return lock;
}

/* The mark of a folder, if both are this user's own; -1 otherwise. */
static int open_mark(const char *dir)
{
	char *path = fs_join(dir, MARK_FILE);
	struct stat st;
	int fd = -1;

	/* lstat: a link to a folder is not one that we made */
	if (lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid())
		fd = open(path, MARK_OPEN);
	if (fd >= 0 && (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())) {
		close(fd);
		fd = -1;
	}
	free(path);
	return fd;
}

int mark_borrow(struct mark *m, const char *dir)
{
	char *path = fs_join(dir, MARK_FILE);
	struct stat st;
	int rc = 0;

	*m = MARK_NONE;
	m->file = open(path, MARK_OPEN | O_CREAT, 0600);
	if (m->file < 0)
		rc = -errno;
	/* without a name, it has just been returned: the next process locks another one */
	else if (wait_for_lock(m->file) == LOCK_HELD || fstat(m->file, &st) != 0 || st.st_nlink == 0)
		rc = -EBUSY;
	if (rc != 0)
		mark_release(m);
	else
		lock_folder(m, dir);
	free(path);
	return rc;
}

void mark_return(struct mark *m, const char *dir)
{
	char *path = fs_join(dir, MARK_FILE);
	struct stat st;

	/* one with something in it is not borrowed */
	if (m->file >= 0 && fstat(m->file, &st) == 0 && st.st_size == 0)
		unlink(path);
	mark_release(m);
	free(path);
}

static bool is_old(const char *dir)
{
	struct stat st;

	return lstat(dir, &st) == 0 && time(NULL) - st.st_mtime > DOUBT_DAYS * DAY_SECONDS;
}

/* Reads the mark, if it is of this kind and for a folder of this name. */
static bool read_mark(int fd, const char *dir, enum mark_kind kind, char *text, size_t size)
{
	char *start = mark_text(dir, kind, "");
	ssize_t n = fd < 0 ? -1 : pread(fd, text, size - 1, 0);
	bool ours;

	text[n < 0 ? 0 : n] = '\0';
	start[strlen(start) - 1] = '\0';	/* up to the name of the boot */
	ours = str_starts(text, start);
	free(start);
	return ours;
}

bool mark_is(const char *dir, enum mark_kind kind)
{
	char text[1024];
	int fd = open_mark(dir);
	bool ours = read_mark(fd, dir, kind, text, sizeof(text));

	if (fd >= 0)
		close(fd);
	return ours;
}

/* There, the mark that is opened to be locked is a copy, whose maker holds no lock on it. */
static bool in_dry_run(void)
{
	static int inside = -1;

	if (inside < 0)
		inside = layer_inside() || fence_inside();
	return inside;
}

bool mark_abandoned(const char *dir, enum mark_kind kind)
{
	char text[1024], boot[64], *here;
	int fd = in_dry_run() ? -1 : open_mark(dir);
	/* read before it is locked: its maker may be about to lock it */
	bool gone = read_mark(fd, dir, kind, text, sizeof(text)), known;
	enum lock lock = gone ? try_lock(fd) : LOCK_HELD;

	if (lock == LOCK_HELD)
		gone = false;
	if (gone) {
		boot_name(boot, sizeof(boot));
		here = mark_text(dir, kind, boot);
		/* A lock of another machine is visible only if the file system passes locks on. */
		known = lock == LOCK_FREE && boot[0] && str_starts(text, here);
		gone = known || str_ends(text, "\n" ENDED) || is_old(dir);
		free(here);
	}
	if (fd >= 0)
		close(fd);
	return gone;
}
