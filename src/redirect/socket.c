/* SPDX-License-Identifier: Apache-2.0
 * Sockets that have a path: a new one is made in the scratch, and found there.
 *
 * A socket's address has room for 107 bytes. Where the scratch's name makes it too long, the folder is opened, and the address goes by its
 * descriptor.
 */
#include <stddef.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "redirect/raw.h"
#include "redirect/redirect.h"

#define OF_PATH offsetof(struct sockaddr_un, sun_path)

struct address {
	struct sockaddr_un un;
	socklen_t len;
	int folder;	/* its descriptor, -1: none */
};

/* The path of an address, if it has one. */
static bool path_in(const struct sockaddr *sa, socklen_t len, char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1])
{
	const struct sockaddr_un *un = (const struct sockaddr_un *)sa;

	if (!sa || len <= OF_PATH || len > sizeof(*un) || sa->sa_family != AF_UNIX || !un->sun_path[0])
		return false;
	memcpy(path, un->sun_path, len - OF_PATH);
	path[len - OF_PATH] = '\0';
	return true;
}

static int set_path(struct address *a, const char *path)
{
	size_t n = strlen(path);

	if (n >= sizeof(a->un.sun_path))
		return -ENAMETOOLONG;
	memset(&a->un, 0, sizeof(a->un));
	a->un.sun_family = AF_UNIX;
	memcpy(a->un.sun_path, path, n);
	a->len = (socklen_t)(OF_PATH + n + 1);
	return 0;
}

static void number(char *to, int n)
{
	char digits[12];
	size_t len = 0;

	do
		digits[len++] = (char)('0' + n % 10);
	while (n /= 10);
	while (len)
		*to++ = digits[--len];
	*to = '\0';
}

/* By way of the folder's descriptor. */
static int shorten(struct address *a, char *path)
{
	char text[sizeof(a->un.sun_path) + 40] = "/proc/self/fd/";
	char *name = strrchr(path, '/');
	size_t n;

	*name++ = '\0';
	a->folder = raw_open(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
	if (a->folder < 0)
		return a->folder;
	number(text + strlen(text), a->folder);
	n = strlen(text);
	if (n + 1 + strlen(name) >= sizeof(a->un.sun_path))
		return -ENAMETOOLONG;
	text[n] = '/';
	memcpy(text + n + 1, name, strlen(name) + 1);
	return set_path(a, text);
}

static int use(struct address *a, const char *path)
{
	return strlen(path) < sizeof(a->un.sun_path) ? set_path(a, path) : shorten(a, (char *)path);
}

static void done_with(struct address *a)
{
	if (a->folder >= 0)
		raw_close(a->folder);
}

EXPORT int bind(int fd, const struct sockaddr *sa, socklen_t len)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
	struct address a = {.folder = -1};
	struct place p;
	int rc;

	if (!path_in(sa, len, path) || !is_on())
		return NEXT(bind)(fd, sa, len);
	rc = walk(&p, AT_FDCWD, path, NAME);
	if (rc == 0 && p.zone)
		return NEXT(bind)(fd, sa, len);
	if (rc == 0)
		rc = exists(&p) ? -EADDRINUSE : make_way(&p);
	if (rc == 0)
		rc = use(&a, in_new(&p));
	rc = rc < 0 ? (int)answer(rc) : NEXT(bind)(fd, (struct sockaddr *)&a.un, a.len);
	done_with(&a);
	return rc;
}

/* Where a socket is that the program knows by that address. 1: where the address says. */
static int find(struct address *a, struct place *p, const struct sockaddr *sa, socklen_t len)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
	const char *where;
	int error;

	if (!path_in(sa, len, path))
		return 1;
	where = look_at(p, AT_FDCWD, path, true, &error);
	return error ? error : where ? use(a, where) : 1;
}

EXPORT int connect(int fd, const struct sockaddr *sa, socklen_t len)
{
	struct address a = {.folder = -1};
	struct place p;
	int rc = find(&a, &p, sa, len);

	if (rc == 0)
		rc = NEXT(connect)(fd, (struct sockaddr *)&a.un, a.len);
	else
		rc = rc == 1 ? NEXT(connect)(fd, sa, len) : (int)answer(rc);
	done_with(&a);
	return rc;
}

EXPORT ssize_t sendto(int fd, const void *data, size_t n, int flags, const struct sockaddr *sa, socklen_t len)
{
	struct address a = {.folder = -1};
	struct place p;
	ssize_t rc = sa ? find(&a, &p, sa, len) : 1;

	if (rc == 0)
		rc = NEXT(sendto)(fd, data, n, flags, (struct sockaddr *)&a.un, a.len);
	else
		rc = rc == 1 ? NEXT(sendto)(fd, data, n, flags, sa, len) : answer(rc);
	done_with(&a);
	return rc;
}

/* The address as the program gave it. */
static int without(int rc, struct sockaddr *sa, socklen_t *len, socklen_t room)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1];
	long n;

	if (rc != 0 || *len > room || !path_in(sa, *len, path))
		return rc;
	n = without_scratch(path, (long)strlen(path));
	memcpy(((struct sockaddr_un *)sa)->sun_path, path, (size_t)n + 1);
	*len = (socklen_t)(OF_PATH + (size_t)n + 1);
	return rc;
}

EXPORT int getsockname(int fd, struct sockaddr *restrict sa, socklen_t *restrict len)
{
	socklen_t room = len ? *len : 0;

	return without(NEXT(getsockname)(fd, sa, len), sa, len, room);
}

EXPORT int getpeername(int fd, struct sockaddr *restrict sa, socklen_t *restrict len)
{
	socklen_t room = len ? *len : 0;

	return without(NEXT(getpeername)(fd, sa, len), sa, len, room);
}
