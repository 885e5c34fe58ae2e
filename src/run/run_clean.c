/* SPDX-License-Identifier: Apache-2.0
 * Leaves no private folder behind.
 *
 * A recorded process that outlives us may still have its core dump written into our folder: the folder stays, or the
 * driver could not write the dump, and in a place like /tmp another user could create the folder anew. A later run
 * removes such folders, and those of a cuwhy that was killed: only folders that bear our mark, and only our own files.
 */
#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "run/run.h"

#define PREFIX		"cuwhy-"

/* Does a process of ours still have this folder in its environment? Yes, if that cannot be known: without /proc. */
static bool in_use(const char *dir)
{
	char *mine = xasprintf("CUWHY_SOCK=%s/s", dir);
	DIR *d = opendir("/proc");
	struct dirent *ent;
	uint64_t pid;
	bool found = !d;

	while (d && !found && (ent = readdir(d)))
		if (str_u64(ent->d_name, &pid) && (pid_t)pid != getpid())
			found = proc_environ_has((pid_t)pid, mine);
	if (d)
		closedir(d);
	free(mine);
	return found;
}

static bool is_run_file(const char *name)
{
	return strcmp(name, "s") == 0 || strcmp(name, CW_NOTICES_FILE) == 0 || strcmp(name, MARK_FILE) == 0 ||
	       strcmp(name, CARDS_FILE) == 0 ||
	       str_starts(name, "core-") || str_starts(name, "pipe-");
}

/* A program that outlives us may put a file into the folder while we empty it: then it stays, and without its mark no later
 * run would know that it is ours. */
static void mark_if_left(const char *dir)
{
	struct mark again;

	if (fs_exists(dir) && mark_make(&again, dir, MARK_RUN_FOLDER) == 0)
		mark_release(&again);
}

static bool is_any_file(const char *name)
{
	(void)name;
	return true;
}

/* The mark goes last: if we are killed before, a later run removes the rest. */
static void remove_own(const char *dir)
{
	if (!fs_empty_if(dir, is_any_file))
		fs_remove_dir(dir, 0);
	else if (rmdir(dir) != 0)
		mark_if_left(dir);
}

static void clean_place(const char *place, const char *own)
{
	DIR *d = opendir(place);
	struct dirent *ent;
	char *dir;

	while (d && (ent = readdir(d))) {
		if (!str_starts(ent->d_name, PREFIX))
			continue;
		dir = fs_join(place, ent->d_name);
		if (strcmp(dir, own) != 0 && mark_abandoned(dir, MARK_RUN_FOLDER) && !in_use(dir)) {
			log_line("env", 1, "removing the stale folder %s", dir);
			if (fs_empty_if(dir, is_run_file) && rmdir(dir) != 0)
				mark_if_left(dir);
		}
		free(dir);
	}
	if (d)
		closedir(d);
}

/* Wherever this user's runs make their folders: the next one need not have the environment of the last. */
static void clean_stale(const char *own)
{
	const char *slash = strrchr(own, '/');
	char *here = xasprintf("%.*s", (int)(slash - own), own), *state = place_state();
	const char *places[] = {here, getenv("XDG_RUNTIME_DIR"), getenv("TMPDIR"), state, "/tmp", "/dev/shm"};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		bool again = false;

		for (size_t k = 0; k < i && places[i]; k++)
			again |= places[k] && strcmp(places[k], places[i]) == 0;
		if (places[i] && places[i][0] == '/' && !again)
			clean_place(places[i], own);
	}
	free(state);
	free(here);
}

/* The state folder was created for the socket, perhaps. Fails if there is anything else in it. */
static void remove_empty_state(const char *own)
{
	char *state = place_state();

	if (state && str_starts(own, state))
		rmdir(state);
	free(state);
}

void env_clean(const struct server *s)
{
	size_t i;

	if (!s->dir)
		return;
	for (i = 0; i < s->n_processes && s->process[i]->ended; i++)
		;
	if (i < s->n_processes)
		unlink(s->path);
	else
		remove_own(s->dir);
	clean_stale(s->dir);
	remove_empty_state(s->dir);
}
