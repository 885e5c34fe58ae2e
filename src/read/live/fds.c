/* SPDX-License-Identifier: Apache-2.0
 * Descriptors of another process, from /proc (see fds.h).
 */
#include "read/live/fds.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/str.h"

#define COMMAND_MAX	80
#define DESCRIPTORS_MAX	20000	/* of all processes: there may be many */

static ssize_t read_text(const char *path, char *to, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, to, size - 1);
	close(fd);
	to[n > 0 ? n : 0] = '\0';
	return n;
}

const char *process_command(pid_t pid, struct pool *pool)
{
	char path[64], text[COMMAND_MAX + 1];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
	n = read_text(path, text, sizeof(text));
	if (n < 0)
		return NULL;
	for (ssize_t i = 0; i + 1 < n; i++)
		if (!text[i])
			text[i] = ' ';
	str_make_line(text);
	return pool_strdup(pool, text);
}

static bool link_of(pid_t pid, const char *fd, char *to, size_t size)
{
	char path[320];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, fd);
	n = readlink(path, to, size - 1);
	to[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* How many descriptors of the process are this, at most `most`. */
static unsigned count_links(pid_t pid, const char *link, unsigned most, int *left)
{
	char path[64], found[512];
	struct dirent *d;
	unsigned n = 0;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
	dir = opendir(path);
	while (dir && n < most && (*left)-- > 0 && (d = readdir(dir)))
		n += d->d_name[0] != '.' && link_of(pid, d->d_name, found, sizeof(found)) && !strcmp(found, link);
	if (dir)
		closedir(dir);
	return n;
}

static bool has_link(pid_t pid, const char *link, int *left)
{
	return count_links(pid, link, 1, left) > 0;
}

/* Another process that has the same pipe or socket; children first, since their numbers are usually higher. */
static pid_t who_else(pid_t pid, const char *link)
{
	int left = DESCRIPTORS_MAX;
	struct dirent *d;
	uint64_t other;
	pid_t found = 0;
	DIR *dir = opendir("/proc");

	while (dir && (d = readdir(dir)) && left > 0)
		if (str_u64(d->d_name, &other) && (pid_t)other != pid && (pid_t)other != getpid() &&
		    ((pid_t)other > pid || !found) && has_link((pid_t)other, link, &left))
			found = (pid_t)other;
	if (dir)
		closedir(dir);
	return found;
}

static void put_address(char *to, size_t size, const char *hex, unsigned port)
{
	unsigned b[4];
	size_t skip = strlen(hex) > 8 ? strlen(hex) - 8 : 0;	/* of an IPv6 address that stands for an IPv4 one, the end */

	if (skip && (strspn(hex, "0") < 20))
		snprintf(to, size, "[ipv6]:%u", port);
	else if (sscanf(hex + skip, "%2x%2x%2x%2x", &b[3], &b[2], &b[1], &b[0]) == 4)
		snprintf(to, size, "%u.%u.%u.%u:%u", b[0], b[1], b[2], b[3], port);
}

/* As the kernel numbers them. */
enum { TCP_CONNECTING = 2, TCP_PEER_CLOSED = 8, TCP_LISTENING = 10 };

static char *socket_text(bool udp, unsigned state, const char *from, const char *to, bool has_peer, struct pool *pool)
{
	if (udp && !has_peer)
		return pool_printf(pool, "a UDP socket at %s", from);
	if (udp)
		return pool_printf(pool, "a UDP socket, %s to %s", from, to);
	switch (state) {
	case TCP_LISTENING:
		return pool_printf(pool, "a socket that listens on %s", from);
	case TCP_CONNECTING:
		return pool_printf(pool, "a socket that tries to connect to %s", to);
	case TCP_PEER_CLOSED:
		return pool_printf(pool, "a socket whose peer %s has closed its end", to);
	default:
		return pool_printf(pool, "a socket, %s to %s", from, to);
	}
}

static bool find_socket(pid_t pid, const char *table, unsigned long long inode, struct fd_told *told, struct pool *pool)
{
	char path[64], line[512], local[48], remote[48], from[64] = "", to[64] = "";
	unsigned from_port, to_port, state;
	unsigned long long found;
	bool yes = false, udp = str_starts(table, "udp");
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, table);
	f = fopen(path, "re");
	while (f && !yes && fgets(line, sizeof(line), f)) {
		if (sscanf(line, " %*u: %47[0-9A-F]:%x %47[0-9A-F]:%x %x %*x:%*x %*x:%*x %*x %*u %*u %llu", local,
			   &from_port, remote, &to_port, &state, &found) != 6 ||
		    found != inode)
			continue;
		yes = true;
		put_address(from, sizeof(from), local, from_port);
		put_address(to, sizeof(to), remote, to_port);
		told->kind = state == TCP_LISTENING ? FD_LISTENS : FD_SOCKET;
		told->text = socket_text(udp, state, from, to, to_port != 0, pool);
	}
	if (f)
		fclose(f);
	return yes;
}

static void find_other_end(struct fd_told *told, pid_t pid, unsigned long long inode)
{
	int left = DESCRIPTORS_MAX;
	char link[48];

	if (!inode)
		return;
	snprintf(link, sizeof(link), "socket:[%llu]", inode);
	told->peer = who_else(pid, link);
	told->alone = !told->peer && has_link(pid, link, &left);
}

static bool is_local(pid_t pid, unsigned long long inode)
{
	char path[64], line[512];
	unsigned long long found;
	bool yes = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/net/unix", (int)pid);
	f = fopen(path, "re");
	while (f && !yes && fgets(line, sizeof(line), f))
		yes = sscanf(line, "%*x: %*x %*x %*x %*x %*x %llu", &found) == 1 && found == inode;
	if (f)
		fclose(f);
	return yes;
}

static void tell_socket(struct fd_told *told, pid_t pid, const char *link, struct pool *pool)
{
	unsigned long long inode = strtoull(link + 8, NULL, 10);

	told->kind = FD_SOCKET;
	if (find_socket(pid, "tcp", inode, told, pool)) {
		find_other_end(told, pid, socket_tcp_peer(pid, "tcp", inode));
	} else if (find_socket(pid, "tcp6", inode, told, pool)) {
		find_other_end(told, pid, socket_tcp_peer(pid, "tcp6", inode));
	} else if (is_local(pid, inode)) {
		told->text = LOCAL_SOCKET;
		find_other_end(told, pid, socket_local_peer(inode));
	} else if (!find_socket(pid, "udp", inode, told, pool) && !find_socket(pid, "udp6", inode, told, pool)) {
		told->text = "a socket";	/* netlink, raw packets */
	}
}

/* By what the kernel knows already: a file system that does not answer the program would not answer us. */
static mode_t type_of(pid_t pid, const char *fd)
{
	struct statx st;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/fd/%s", (int)pid, fd);
	return statx(AT_FDCWD, path, AT_STATX_DONT_SYNC, STATX_TYPE, &st) == 0 ? st.stx_mode : 0;
}

static struct fd_told tell_named(pid_t pid, const char *fd, const char *link, struct pool *pool)
{
	mode_t type = type_of(pid, fd);

	if (S_ISFIFO(type))
		return (struct fd_told){FD_PIPE, pool_printf(pool, "the named pipe %s", link), who_else(pid, link),
					false, true};
	if (!strcmp(link, "/dev/ptmx") || !strcmp(link, "/dev/pts/ptmx"))
		return (struct fd_told){FD_DEVICE, "the outer end of a pseudo-terminal", 0, false, false};
	if (S_ISCHR(type))
		return (struct fd_told){FD_DEVICE, pool_printf(pool, "the device %s", link), 0, false, false};
	return (struct fd_told){FD_FILE, pool_strdup(pool, link), 0, false, false};
}

struct fd_told fd_tell(pid_t pid, int fd, struct pool *pool)
{
	struct fd_told told = {.text = NULL};
	char name[16], link[512];

	snprintf(name, sizeof(name), "%d", fd);
	if (fd < 0 || !link_of(pid, name, link, sizeof(link)))
		return told;
	str_make_line(link);
	if (str_starts(link, "pipe:")) {
		told = (struct fd_told){FD_PIPE, "a pipe", who_else(pid, link), false, false};
		told.alone = !told.peer;
	} else if (str_starts(link, "socket:[")) {
		tell_socket(&told, pid, link, pool);
	} else if ((str_starts(link, "/dev/pts/") && strcmp(link, "/dev/pts/ptmx") != 0) ||
		   str_starts(link, "/dev/tty") || !strcmp(link, "/dev/console")) {
		told = (struct fd_told){FD_TERMINAL, "a terminal", 0, false, false};
	} else if (str_starts(link, "/dev/nvidia")) {
		told = (struct fd_told){FD_GPU, pool_strdup(pool, link), 0, false, false};
	} else if (link[0] == '/') {
		told = tell_named(pid, name, link, pool);
	} else {
		told = (struct fd_told){FD_OTHER, pool_strdup(pool, link), 0, false, false};
	}
	return told;
}

/* A lock that was taken by `flock` belongs to an open file, which a child may have inherited: the process that took it holds it only if it has the
 * file open once more. */
static bool holds_itself(pid_t pid, int fd)
{
	char name[16], link[512];
	int left = DESCRIPTORS_MAX;

	snprintf(name, sizeof(name), "%d", fd);
	return link_of(pid, name, link, sizeof(link)) && count_links(pid, link, 2, &left) == 2;
}

pid_t fd_lock_holder(pid_t pid, int fd)
{
	char path[64], line[256];
	struct stat st;
	pid_t holder = 0;
	bool own = false;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/fd/%d", (int)pid, fd);
	if (stat(path, &st) != 0 || !(f = fopen("/proc/locks", "re")))
		return 0;
	while (!holder && fgets(line, sizeof(line), f)) {
		unsigned major, minor;
		unsigned long long inode;
		int owner;

		/* "1: FLOCK  ADVISORY  WRITE 1234 08:01:5678 0 EOF"; those who wait begin with "1: ->" */
		if (strstr(line, "->") ||
		    sscanf(line, "%*u: %*s %*s %*s %d %x:%x:%llu", &owner, &major, &minor, &inode) != 4 ||
		    inode != st.st_ino || major != major(st.st_dev) || minor != minor(st.st_dev))
			continue;
		if (owner != pid)
			holder = owner;
		else
			own = true;
	}
	fclose(f);
	return holder ? holder : own && holds_itself(pid, fd) ? pid : 0;
}
