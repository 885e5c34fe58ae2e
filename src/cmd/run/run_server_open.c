/* SPDX-License-Identifier: Apache-2.0
 * Opens and closes the socket on which recorders hand over their memory (see run_server.c).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/fs.h"
#include "cmd/run/run.h"
#include "base/banned.h"

static int try_place(struct server *s, const char *place, struct err *e)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char *dir = fs_join(place, "cuwhy-XXXXXX"), *path = NULL;
	int rc = 0, fd = -1;

	if (strlen(dir) + sizeof("/s") > sizeof(a.sun_path))
		rc = -ENAMETOOLONG;
	else if (!mkdtemp(dir))		/* mode 0700 */
		rc = -errno;
	if (rc == 0) {
		path = fs_join(dir, "s");
		memcpy(a.sun_path, path, strlen(path) + 1);
		fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		if (fd < 0 || bind(fd, (struct sockaddr *)&a, sizeof(a)) != 0 ||
		    listen(fd, CLIENTS_MAX) != 0) {
			rc = -errno;
			fs_remove_dir(dir, 0);
		}
	}
	if (rc != 0) {
		err_set(e, rc, "cannot make a private folder in '%s': %s", place, strerror(-rc));
		if (fd >= 0)
			close(fd);
		free(dir);
		free(path);
		return rc;
	}
	s->dir = dir;
	s->path = path;
	s->fd = fd;
	return 0;
}

int server_open(struct server *s, struct err *e)
{
	const char *places[] = {getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), "/tmp", "/dev/shm"};
	struct err later = {0};
	size_t i;
	int rc = -ENOENT;

	*s = (struct server){.fd = -1};
	for (i = 0; rc != 0 && i < sizeof(places) / sizeof(places[0]); i++)
		if (places[i] && places[i][0] == '/')
			rc = try_place(s, places[i], later.code ? NULL : &later);
	if (rc != 0)
		*e = later;	/* the first place is the one that should have worked */
	return rc;
}

void server_close(struct server *s)
{
	size_t i;

	for (i = 0; i < s->n_clients; i++)
		close(s->client[i]);
	for (i = 0; i < s->n_processes; i++)
		process_free(s->process[i]);
	free(s->client);
	free(s->process);
	if (s->fd >= 0)
		close(s->fd);
	free(s->path);
	free(s->dir);
	*s = (struct server){.fd = -1};
}
