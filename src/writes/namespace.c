/* SPDX-License-Identifier: Apache-2.0
 * Mount and user namespaces.
 */
#include "writes/layer_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"

#define CAPS	  64
#define MAP_BYTES 4096

static uint64_t both(uint32_t low, uint32_t high)
{
	return low | (uint64_t)high << 32;
}

static void rights_read(struct rights *r)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2] = {{0}};

	*r = (struct rights){.uid = geteuid(), .gid = getegid()};
	if (syscall(SYS_capget, &head, data) == 0) {
		r->effective = both(data[0].effective, data[1].effective);
		r->permitted = both(data[0].permitted, data[1].permitted);
		r->inheritable = both(data[0].inheritable, data[1].inheritable);
	}
	for (int i = 0; i < CAPS; i++) {
		r->bounding |= prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1 ? 1ull << i : 0;
		r->ambient |= prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, i, 0, 0) == 1 ? 1ull << i : 0;
	}
}

int namespace_settle(const struct rights *before, struct err *e)
{
	struct __user_cap_header_struct head = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct data[2];

	for (int i = 0; i < 2; i++)
		data[i] = (struct __user_cap_data_struct){(uint32_t)(before->effective >> 32 * i),
							  (uint32_t)(before->permitted >> 32 * i),
							  (uint32_t)(before->inheritable >> 32 * i)};
	for (int i = 0; i < CAPS; i++)
		if (!(before->bounding >> i & 1) && prctl(PR_CAPBSET_READ, i, 0, 0, 0) == 1)
			prctl(PR_CAPBSET_DROP, i, 0, 0, 0);
	if (syscall(SYS_capset, &head, data) != 0)
		return err_set(e, -errno, "cannot give up the rights of the namespace: %s", strerror(errno));
	for (int i = 0; i < CAPS; i++)
		if (before->ambient >> i & 1)
			prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, i, 0, 0);
	return 0;
}

static bool write_text(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);
	bool ok = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);

	if (fd >= 0)
		close(fd);
	return ok;
}

/* Every id that exists here as itself. */
static void map_of_all(const char *path, struct buf *map)
{
	unsigned long inside, outside, count;
	struct buf b;
	int fd = open(path, O_RDONLY | O_CLOEXEC), used;

	buf_init(&b, MAP_BYTES);
	if (fd >= 0) {
		buf_read_fd(&b, fd);
		close(fd);
	}
	for (const char *at = b.len ? b.data : ""; sscanf(at, "%lu %lu %lu%n", &inside, &outside, &count, &used) == 3;
	     at += used)
		buf_printf(map, "%lu %lu %lu\n", inside, inside, count);
	buf_release(&b);
}

/* Maps all ids of process `pid`, in a process that stayed behind: only there it has the right to, if it is root. */
static void map_all(pid_t pid)
{
	static const char *const kinds[] = {"uid", "gid"};
	char path[64], ours[64];
	struct buf map;

	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "/proc/%d/%s_map", (int)pid, kinds[i]);
		snprintf(ours, sizeof(ours), "/proc/self/%s_map", kinds[i]);
		buf_init(&map, MAP_BYTES);
		map_of_all(ours, &map);
		if (map.len)
			write_text(path, map.data);
		buf_release(&map);
	}
}

/* Without a signal at its end: the program would get one of a child that it does not know. */
static pid_t start_helper(int go[2])
{
	pid_t pid, us = getpid();
	char c;

	if (pipe2(go, O_CLOEXEC) != 0)
		return -1;
	pid = (pid_t)syscall(SYS_clone, 0, 0, 0, 0, 0);
	if (pid == 0) {
		close(go[1]);
		if (read(go[0], &c, 1) == 1)
			map_all(us);
		_exit(0);
	}
	close(go[0]);
	return pid;
}

static void end_helper(pid_t pid, int go[2], bool map)
{
	if (pid < 0)
		return;
	if (map && write(go[1], "m", 1) != 1)
		map = false;
	close(go[1]);
	while (waitpid(pid, NULL, __WALL) < 0 && errno == EINTR)
		;
}

static bool is_mapped(const char *path)
{
	struct buf map;
	bool mapped;

	buf_init(&map, MAP_BYTES);
	map_of_all(path, &map);
	mapped = map.len > 0;
	buf_release(&map);
	return mapped;
}

/* An ordinary user may map nobody but itself: others, and its own supplementary groups, are shown as 65534 and work as before. */
static int map_self(const struct rights *r, struct err *e)
{
	char uid[64], gid[64];

	snprintf(uid, sizeof(uid), "%u %u 1\n", r->uid, r->uid);
	snprintf(gid, sizeof(gid), "%u %u 1\n", r->gid, r->gid);
	if (!is_mapped("/proc/self/uid_map") && !write_text("/proc/self/uid_map", uid))
		return err_set(e, -EPERM, "cannot keep the uid in a user namespace: %s", strerror(errno));
	if (!is_mapped("/proc/self/gid_map") &&
	    (!write_text("/proc/self/setgroups", "deny") || !write_text("/proc/self/gid_map", gid)))
		return err_set(e, -EPERM, "cannot keep the gid in a user namespace: %s", strerror(errno));
	return 0;
}

static int enter_user(const struct rights *before, struct err *e)
{
	int go[2] = {-1, -1}, rc;
	pid_t helper = before->uid == 0 ? start_helper(go) : -1;

	rc = unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 ? -errno : 0;
	end_helper(helper, go, rc == 0);
	if (rc != 0)
		return err_set(e, -EPERM, "this system allows no user namespace (%s)", strerror(-rc));
	return map_self(before, e);
}

int namespace_enter(struct rights *before, bool *user, struct err *e)
{
	int rc = 0;

	rights_read(before);
	*user = unshare(CLONE_NEWNS) != 0;
	if (*user)
		rc = enter_user(before, e);
	/* nothing that is mounted from here on is seen outside, and nothing from there comes in */
	if (rc == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0)
		rc = err_set(e, -errno, "cannot make the mounts private: %s", strerror(errno));
	return rc;
}
