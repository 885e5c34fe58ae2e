/* SPDX-License-Identifier: Apache-2.0
 * Shows a file in the user's browser (see open_page.h).
 *
 * The browser is on its own: it may stay open for days, and its words are not ours. Whether it could start is known soon.
 */
#include "cmd/open_page.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/children.h"
#include "base/mem.h"
#include "base/proc.h"

#define WORDS_MAX	16
#define WAIT_NS		((uint64_t)2000000000)
#define LOOK_NS		20000000L

/* The words of a command; "%s" is the path, which otherwise comes last. */
static void split_command(char *command, const char *path, const char **word)
{
	bool named = false;
	char *rest = NULL;
	size_t n = 0;

	for (char *w = strtok_r(command, " ", &rest); w && n < WORDS_MAX; w = strtok_r(NULL, " ", &rest)) {
		bool here = !strcmp(w, "%s");

		word[n++] = here ? path : w;
		named = named || here;
	}
	if (n && !named)
		word[n++] = path;
	word[n] = NULL;
}

static void become_browser(const char **word, const struct rlimit *data)
{
	int nothing = open("/dev/null", O_RDWR);

	setsid();
	children_inherit();
	setrlimit(RLIMIT_DATA, data);
	for (int fd = 0; fd < 3 && nothing >= 0; fd++)
		dup2(nothing, fd);
	if (nothing > 2)
		close(nothing);
	execvp(word[0], (char *const *)word);
	_exit(127);
}

/* Did it end well, or is it still there after a while? */
static bool started_well(pid_t pid)
{
	uint64_t until = proc_mono_ns() + WAIT_NS;
	int status = 0;

	while (proc_mono_ns() < until) {
		pid_t ended = waitpid(pid, &status, WNOHANG);

		if (ended)
			return ended == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0;
		nanosleep(&(struct timespec){.tv_nsec = LOOK_NS}, NULL);
	}
	return true;
}

static bool try_browser(char *command, const char *path, const struct rlimit *data)
{
	const char *word[WORDS_MAX + 2];
	pid_t pid;

	split_command(command, path, word);
	if (!word[0])
		return false;
	pid = fork();
	if (pid == 0)
		become_browser(word, data);
	return pid > 0 && started_well(pid);
}

bool open_page(const char *path, const struct rlimit *data)
{
	const char *wish = getenv("BROWSER");
	char *all = xasprintf("%s:xdg-open", wish ? wish : ""), *rest = NULL;
	bool done = false;

	for (char *c = strtok_r(all, ":", &rest); c && !done; c = strtok_r(NULL, ":", &rest))
		done = try_browser(c, path, data);
	free(all);
	return done;
}
