/* SPDX-License-Identifier: Apache-2.0
 * Other processes: pidfds and /proc.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/proc.h"

/* The kernel's struct pidfd_info as of Linux 6.15; Debian 12's headers do not have it yet. */
struct pidfd_info_v0 {
	uint64_t mask, cgroupid;
	uint32_t pid, tgid, ppid;
	uint32_t ids[8];
	int32_t exit_code;
};
#define PIDFD_GET_INFO_V0	_IOWR(0xff, 11, struct pidfd_info_v0)
#define PIDFD_INFO_EXIT_BIT	8u

_Static_assert(sizeof(struct pidfd_info_v0) == 64, "the kernel's layout");

int proc_pidfd(pid_t pid)
{
	long fd = syscall(SYS_pidfd_open, pid, 0);	/* close-on-exec by itself */

	return fd < 0 ? -errno : (int)fd;
}

bool proc_pidfd_ended(int pidfd)
{
	struct pollfd p = {.fd = pidfd, .events = POLLIN};

	return poll(&p, 1, 0) == 1 && (p.revents & (POLLIN | POLLHUP));
}

bool proc_pidfd_status(int pidfd, int *wait_status)
{
	struct pidfd_info_v0 info = {.mask = PIDFD_INFO_EXIT_BIT};

	if (ioctl(pidfd, PIDFD_GET_INFO_V0, &info) != 0 || !(info.mask & PIDFD_INFO_EXIT_BIT))
		return false;
	*wait_status = info.exit_code;
	return true;
}

static bool read_proc(pid_t pid, const char *what, struct buf *b)
{
	char path[64];
	int fd, rc;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, what);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	rc = buf_read_fd(b, fd);
	close(fd);
	return rc == 0 || rc == -EFBIG;
}

/* What is behind the name in /proc/PID/stat, which may itself hold spaces and brackets; NULL if there is nothing. Without allocating: the
 * supervisor asks. */
static const char *read_stat(pid_t pid, char *text, size_t size)
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return NULL;
	n = read(fd, text, size - 1);
	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return strrchr(text, ')');
}

char proc_state(pid_t pid)
{
	char text[1024], state = '\0';
	const char *p = read_stat(pid, text, sizeof(text));

	return p && sscanf(p, ") %c", &state) == 1 ? state : '\0';
}

#define SKIP6 "%*s %*s %*s %*s %*s %*s "	/* fields of /proc/PID/stat */

/* It counts from the machine's start, in ticks, and sleep of the machine included: CLOCK_MONOTONIC does without. */
bool proc_began_after(pid_t pid, uint64_t mono_ns)
{
	unsigned long long ticks = 0;
	uint64_t now = proc_mono_ns(), moment;
	struct timespec up;
	char text[1024];
	const char *p = read_stat(pid, text, sizeof(text));

	if (!p || sscanf(p, ") %*c " SKIP6 SKIP6 SKIP6 "%llu", &ticks) != 1 || clock_gettime(CLOCK_BOOTTIME, &up) != 0)
		return false;
	moment = (uint64_t)up.tv_sec * 1000000000u + (uint64_t)up.tv_nsec - now + mono_ns;
	return ticks * (1000000000u / (unsigned long long)sysconf(_SC_CLK_TCK)) > moment;
}

bool proc_environ_has(pid_t pid, const char *assignment)
{
	struct buf b;
	size_t at;
	bool found = false;

	buf_init(&b, 4u << 20);
	read_proc(pid, "environ", &b);
	for (at = 0; !found && at < b.len; at += strlen(b.data + at) + 1)
		found = strcmp(b.data + at, assignment) == 0;
	buf_release(&b);
	return found;
}

/* Without /proc, the kernel's word for what was started: relative to a folder that we do not leave. */
char *proc_self_exe(void)
{
	char path[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);
	unsigned long given = getauxval(AT_EXECFN);

	if (n > 0)
		return xasprintf("%.*s", (int)n, path);
	return given ? realpath((const char *)given, NULL) : NULL;
}

char *proc_self_dir(void)
{
	char *path = proc_self_exe(), *slash = path ? strrchr(path, '/') : NULL;

	if (slash)
		*(slash == path ? slash + 1 : slash) = '\0';
	return path;
}

char *proc_find_part(const char *name)
{
	/* the last one is for the wheel: `pip install --target` omits a wheel's lib folder */
	static const char *const places[] = {"", "../lib/cuwhy/", "../libexec/cuwhy/"};
	char *self = realpath("/proc/self/exe", NULL), *dir = proc_self_dir(), *path, *real = NULL;
	size_t i;

	for (i = 0; dir && !real && i < sizeof(places) / sizeof(places[0]); i++) {
		path = xasprintf("%s/%s%s", dir, places[i], name);
		real = realpath(path, NULL);
		if (real && self && !fs_no_more_writers(real, self)) {
			free(real);	/* a program that was copied to /tmp, and what another user put beside it */
			real = NULL;
		}
		free(path);
	}
	free(dir);
	free(self);
	return real;
}

uint64_t proc_mono_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* What is there already does not count: a sanitizer reserves terabytes. */
static rlim_t data_bytes(void)
{
	unsigned long long pages = 0;
	FILE *f = fopen("/proc/self/statm", "re");

	if (f && fscanf(f, "%*s %*s %*s %*s %*s %llu", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

void proc_limit_memory(uint64_t more)
{
	rlim_t most = data_bytes() + more;
	struct rlimit l;

	if (getrlimit(RLIMIT_DATA, &l) != 0 || l.rlim_cur <= most)
		return;
	l.rlim_cur = most;
	setrlimit(RLIMIT_DATA, &l);
}
