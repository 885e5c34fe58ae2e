/* SPDX-License-Identifier: Apache-2.0
 * Dry runs for `cuwhy fit`: each is a `cuwhy run` of its own, into a folder of ours.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/children.h"
#include "base/fs.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "cmd/fit/fit.h"
#include "input/recording/recording.h"

#define OUTPUT_MAX   ((size_t)64 << 20)
#define OUTPUT_LINES 12
#define ANSWER_LINES 60	/* of an answer of cuwhy run, at most */
#define FOLDERS_DEEP 3

extern const char cuwhy_fit_stop[];	/* sitecustomize.py */

int fit_runs_begin(struct fit_runs *r, struct err *e)
{
	const char *tmp = getenv("TMPDIR");
	char *path;
	int rc;

	r->folder = xasprintf("%s/cuwhy-fit-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (!mkdtemp(r->folder)) {
		rc = err_set(e, -errno, "cannot create the folder '%s': %s", r->folder, strerror(errno));
		free(r->folder);
		r->folder = NULL;
		return rc;
	}
	path = fs_join(r->folder, "sitecustomize.py");
	rc = fs_write(path, cuwhy_fit_stop, strlen(cuwhy_fit_stop), e);
	free(path);
	return rc;
}

void fit_runs_end(struct fit_runs *r)
{
	if (r->folder)
		fs_remove_dir(r->folder, FOLDERS_DEEP);
	free(r->folder);
	r->folder = NULL;
}

/* --- the child -------------------------------------------------------------------------------------- */

static void set_environment(const struct fit_runs *r, const char *stopped)
{
	const char *old = getenv("PYTHONPATH");
	char *path = old && *old ? xasprintf("%s:%s", r->folder, old) : xstrdup(r->folder);

	setenv("PYTHONPATH", path, 1);
	setenv("CUWHY_FIT_STEPS", r->steps, 1);
	setenv("CUWHY_FIT_STOPPED", stopped, 1);
	free(path);
}

static void start_child(char *const *argv, int output)
{
	char *self = proc_self_exe();

	if (!self || dup2(output, STDOUT_FILENO) < 0 || dup2(output, STDERR_FILENO) < 0)
		_exit(125);
	execv(self, argv);
	_exit(125);
}

static char **child_words(const char *gpu, const char *folder, char *const *words)
{
	char *const first[] = {"cuwhy", "run", "--gpu", (char *)gpu, "--memory-trace", "--out", (char *)folder, "--"};
	size_t n = sizeof(first) / sizeof(first[0]), more = 0;
	char **argv;

	while (words[more])
		more++;
	argv = xcalloc(n + more + 1, sizeof(*argv));
	memcpy(argv, first, sizeof(first));
	memcpy(argv + n, words, more * sizeof(*argv));
	return argv;
}

/* The wait status; -errno. */
static int run_child(const struct fit_runs *r, const char *gpu, const struct fit_run *run, const char *output,
		     const char *stopped, char *const *words)
{
	int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), status = -1;
	char **argv = child_words(gpu, run->folder, words);
	void (*interrupted)(int) = signal(SIGINT, SIG_IGN);	/* a Ctrl-C is for the program: we clean up after it */
	pid_t pid = fd < 0 ? -1 : fork();

	if (pid == 0) {
		signal(SIGINT, interrupted == SIG_IGN ? SIG_IGN : SIG_DFL);
		children_inherit();
		set_environment(r, stopped);
		start_child(argv, fd);
	}
	status = pid < 0 ? -errno : 0;
	while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	signal(SIGINT, interrupted);
	if (fd >= 0)
		close(fd);
	free(argv);
	return status;
}

/* --- how it ended ------------------------------------------------------------------------------------ */

static bool ended_for_memory(const char *folder)
{
	json_t *v = recording_stored(folder);
	const char *cause = json_string_value(json_object_get(v, "cause"));
	bool memory = cause && str_starts(cause, "oom-");

	json_decref(v);
	return memory;
}

static unsigned steps_done(const char *path)
{
	char text[32] = "";
	uint64_t n;

	fs_read_head(path, text, sizeof(text) - 1);
	text[strcspn(text, "\n")] = '\0';
	return str_u64(text, &n) ? (unsigned)n : 0;
}

/* Where the last lines begin, or the answer of `cuwhy run` that ends with them. */
static char *last_lines(const struct buf *b)
{
	size_t lines = 0, last = 0;

	for (size_t at = b->len; at > 0 && lines < ANSWER_LINES; at--) {
		if (at == b->len || b->data[at - 1] != '\n')
			continue;
		lines++;
		if (lines <= OUTPUT_LINES || str_starts(b->data + at, "cuwhy: "))
			last = at;
	}
	if (lines < OUTPUT_LINES || (lines < ANSWER_LINES && str_starts(b->data, "cuwhy: ")))
		last = 0;
	return b->data + last;
}

/* The last lines that the program printed, for people. Its recording is gone when they read of it. */
static void show_output(const char *path, const char *folder)
{
	struct buf b;
	char *line, *rest;

	buf_init(&b, OUTPUT_MAX);
	if (fs_read(path, &b, NULL) == 0 || b.len) {
		rest = last_lines(&b);
		while ((line = strsep(&rest, "\n")) != NULL)
			if (!strstr(line, folder) && (*line || rest))
				fprintf(stderr, "%s\n", line);
	}
	buf_release(&b);
}

static int judge_run(struct fit_run *run, int status, const char *output, struct err *e)
{
	bool good = status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;

	run->fits = good;
	if (good || (status >= 0 && ended_for_memory(run->folder)))
		return 0;
	show_output(output, run->folder);
	if (status < 0)
		return err_set(e, status, "cannot start the dry run: %s", strerror(-status));
	if (WIFSIGNALED(status))
		return err_set(e, -EIO, "signal %d ended the dry run, not a lack of memory", WTERMSIG(status));
	return err_set(e, -EIO, "the program ended with status %d in the dry run, and memory had not run out",
		       WEXITSTATUS(status));
}

int fit_run(struct fit_runs *r, struct fit_run *run, const struct card_model *card, const char *memory,
	    char *const *words, struct err *e)
{
	char *output = xasprintf("%s/%u.txt", r->folder, ++r->n), *stopped = xasprintf("%s/%u.steps", r->folder, r->n);
	char *gpu = xasprintf("sim:%s,devices=%u%s%s", card->id, r->devices, memory ? ",memory=" : "", memory ? memory : "");
	int status, rc;

	*run = (struct fit_run){.folder = xasprintf("%s/%u", r->folder, r->n)};
	status = run_child(r, gpu, run, output, stopped, words);
	run->stopped = steps_done(stopped);
	rc = judge_run(run, status, output, e);
	free(output);
	free(stopped);
	free(gpu);
	return rc;
}

void fit_run_release(struct fit_run *run)
{
	if (run->folder)
		fs_remove_dir(run->folder, FOLDERS_DEEP);
	free(run->folder);
	*run = (struct fit_run){.fits = false};
}
