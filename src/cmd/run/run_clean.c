/* SPDX-License-Identifier: Apache-2.0
 * Leaves no private folder behind.
 *
 * A daemon that outlives us starts its children with our LD_PRELOAD. If that path goes through our
 * folder, the links must stay: without them the loader would print an error in each of those children.
 * A later run removes such folders, and those of a cuwhy that was killed.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "cmd/run/run.h"

#define PREFIX		"cuwhy-"
#define STALE_SECONDS	60	/* a folder this young may belong to a run that is just starting */

/* Does a process of ours still have this folder in its environment? */
static bool in_use(const char *dir)
{
	char *mine = xasprintf("CUWHY_SOCK=%s/s", dir);
	DIR *d = opendir("/proc");
	struct dirent *ent;
	uint64_t pid;
	bool found = false;

	while (d && !found && (ent = readdir(d)))
		if (str_u64(ent->d_name, &pid) && (pid_t)pid != getpid())
			found = proc_environ_has((pid_t)pid, mine);
	if (d)
		closedir(d);
	free(mine);
	return found;
}

/* Is a cuwhy listening on the socket in this folder? */
static bool somebody_answers(const char *dir)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	char *path = fs_join(dir, "s");
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool yes = true;

	if (fd >= 0 && str_copy(a.sun_path, sizeof(a.sun_path), path))
		yes = connect(fd, (struct sockaddr *)&a, sizeof(a)) == 0 ||
		      (errno != ECONNREFUSED && errno != ENOENT);
	if (fd >= 0)
		close(fd);
	free(path);
	return yes;
}

static bool is_stale(const char *dir)
{
	struct stat st;

	return lstat(dir, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
	       (st.st_mode & 077) == 0 && time(NULL) - st.st_mtime > STALE_SECONDS &&
	       !somebody_answers(dir) && !in_use(dir);
}

static void clean_stale(const char *own)
{
	const char *slash = strrchr(own, '/');
	char *place = xasprintf("%.*s", (int)(slash - own), own), *dir;
	DIR *d = opendir(place);
	struct dirent *ent;

	while (d && (ent = readdir(d))) {
		if (!str_starts(ent->d_name, PREFIX) || strlen(ent->d_name) != sizeof(PREFIX) + 5)
			continue;
		dir = fs_join(place, ent->d_name);
		if (strcmp(dir, own) != 0 && is_stale(dir)) {
			log_line("env", 1, "removing the stale folder %s", dir);
			fs_remove_dir(dir, 4);
		}
		free(dir);
	}
	if (d)
		closedir(d);
	free(place);
}

void env_clean(const struct server *s)
{
	const char *value = getenv("LD_PRELOAD");

	if (!s->dir)
		return;
	if (value && str_starts(value, s->dir) && in_use(s->dir))
		unlink(s->path);
	else
		fs_remove_dir(s->dir, 4);
	clean_stale(s->dir);
}
