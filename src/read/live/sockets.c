/* SPDX-License-Identifier: Apache-2.0
 * Other ends of sockets (see fds.h): the kernel tells those of local sockets on request (sock_diag(7)); the two ends of a connection on this
 * machine have each other's addresses.
 */
#include "read/live/fds.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/unix_diag.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct question {
	struct nlmsghdr head;
	struct unix_diag_req ask;
};

static unsigned long long peer_in(const char *answer, size_t n)
{
	struct nlmsghdr head;
	size_t at = sizeof(head) + NLMSG_ALIGN(sizeof(struct unix_diag_msg));
	struct rtattr a;
	uint32_t peer;

	if (n < at)
		return 0;
	memcpy(&head, answer, sizeof(head));
	if (head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return 0;
	for (; at + sizeof(a) <= n; at += RTA_ALIGN(a.rta_len)) {
		memcpy(&a, answer + at, sizeof(a));
		if (a.rta_len < sizeof(a) || at + a.rta_len > n)
			return 0;
		if (a.rta_type == UNIX_DIAG_PEER && a.rta_len >= RTA_LENGTH(sizeof(peer))) {
			memcpy(&peer, answer + at + RTA_LENGTH(0), sizeof(peer));
			return peer;
		}
	}
	return 0;
}

unsigned long long socket_local_peer(unsigned long long inode)
{
	struct question q = {
		.head = {.nlmsg_len = sizeof(q), .nlmsg_type = SOCK_DIAG_BY_FAMILY, .nlmsg_flags = NLM_F_REQUEST},
		.ask = {.sdiag_family = AF_UNIX, .udiag_states = UINT32_MAX, .udiag_ino = (uint32_t)inode,
			.udiag_show = UDIAG_SHOW_PEER, .udiag_cookie = {UINT32_MAX, UINT32_MAX}}};
	struct timeval limit = {.tv_usec = 200000};
	char answer[1024];
	ssize_t n = -1;
	int fd;

	if (!inode || inode > UINT32_MAX)
		return 0;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (fd < 0)
		return 0;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	if (send(fd, &q, sizeof(q), 0) == (ssize_t)sizeof(q))
		n = recv(fd, answer, sizeof(answer), 0);
	close(fd);
	return n > 0 ? peer_in(answer, (size_t)n) : 0;
}

struct ends {
	char local[48], remote[48];
	unsigned local_port, remote_port;
	unsigned long long inode;
};

static FILE *table_open(pid_t pid, const char *table)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/net/%s", (int)pid, table);
	return fopen(path, "re");
}

/* The next row; its head, and whatever else is none, is skipped. */
static bool table_next(FILE *f, struct ends *e)
{
	char line[512];

	while (fgets(line, sizeof(line), f))
		if (sscanf(line, " %*u: %47[0-9A-F]:%x %47[0-9A-F]:%x %*x %*x:%*x %*x:%*x %*x %*u %*u %llu", e->local,
			   &e->local_port, e->remote, &e->remote_port, &e->inode) == 5)
			return true;
	return false;
}

unsigned long long socket_tcp_peer(pid_t pid, const char *table, unsigned long long inode)
{
	FILE *f = table_open(pid, table);
	struct ends mine, other;
	unsigned long long found = 0;
	bool known = false;

	while (f && inode && !known && table_next(f, &mine))
		known = mine.inode == inode;
	if (f && known)
		rewind(f);
	while (f && known && !found && table_next(f, &other))
		if (!strcmp(other.local, mine.remote) && !strcmp(other.remote, mine.local) &&
		    other.local_port == mine.remote_port && other.remote_port == mine.local_port)
			found = other.inode;
	if (f)
		fclose(f);
	return found;
}
