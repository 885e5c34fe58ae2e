/* SPDX-License-Identifier: Apache-2.0
 * Dry runs for `cuwhy fit`: each is a `cuwhy run` of its own, into a folder of ours.
 */
#include <dirent.h>
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
#include "fit/fit.h"
#include "run/run.h"
#include "read/recording/recording.h"

#define OUTPUT_MAX   ((size_t)64 << 20)
#define OUTPUT_LINES 12
#define ANSWER_LINES 60	/* of an answer of cuwhy run, at most */
#define FOLDERS_DEEP 3
#define PREFIX	     "cuwhy-fit-"

#define MODULES	     "fit"	/* sitecustomize.py, and what it reads */

/* Daemons keep the names of files in it: a place where another user could make it again is the second choice. */
static char *choose_place(void)
{
	const char *tmp = getenv("TMPDIR");
	char *base = recording_base();

	if (base && base[0] == '/' && place_trust(base) == FS_NOBODY_ELSE && fs_mkdirs(base, NULL) == 0)
		return base;
	free(base);
	return xstrdup(tmp && *tmp ? tmp : "/tmp");
}

/* Of runs that were killed. */
static void remove_stale(const char *place)
{
	DIR *d = opendir(place);
	struct dirent *ent;

	while (d && (ent = readdir(d))) {
		char *folder = str_starts(ent->d_name, PREFIX) ? fs_join(place, ent->d_name) : NULL;

		if (folder && mark_abandoned(folder, MARK_FIT))
			fs_remove_dir(folder, FOLDERS_DEEP);
		free(folder);
	}
	if (d)
		closedir(d);
}

/* The folder of the modules: a path that only this user and root can ever put something else at, or the one that this cuwhy is run from. */
static char *find_modules(struct err *e)
{
	char *part = proc_find_part(MODULES), *folder = part ? place_part(part) : NULL;

	if (!part)
		err_set(e, -ENOENT, "the folder '%s' is missing beside the executable", MODULES);
	else if (!folder)
		err_set(e, -EINVAL, "Python cannot search the folder '%s'", part);
	free(part);
	return folder;
}

int fit_runs_begin(struct fit_runs *r, struct err *e)
{
	char *place;
	int rc = 0;

	r->mark = MARK_NONE;
	r->modules = find_modules(e);
	if (!r->modules)
		return e->code;
	if (r->keep && fs_exists(r->keep) && !fs_dir_empty(r->keep)) {
		err_set(e, -EEXIST, "the folder '%s' is not empty", r->keep);
		return err_hint(e, "--keep-writes takes a new folder or an empty one");
	}
	place = choose_place();
	remove_stale(place);
	r->folder = fs_join(place, PREFIX "XXXXXX");
	if (mkdtemp(r->folder)) {
		mark_make(&r->mark, r->folder, MARK_FIT);
	} else {
		rc = err_set(e, -errno, "cannot create the folder '%s': %s", r->folder, strerror(errno));
		free(r->folder);
		r->folder = NULL;
	}
	free(place);
	return rc;
}

void fit_runs_end(struct fit_runs *r)
{
	char *base = recording_base();

	if (r->folder)
		fs_remove_dir(r->folder, FOLDERS_DEEP);
	if (base)
		rmdir(base);	/* it was made for the folder, perhaps; fails if there is anything else in it */
	mark_release(&r->mark);
	json_decref(r->writes);
	free(base);
	free(r->modules);
	free(r->folder);
	r->folder = r->modules = NULL;
	r->writes = NULL;
}

static void set_or_unset(const char *name, const char *value)
{
	if (value)
		setenv(name, value, 1);
	else
		unsetenv(name);
}

static void set_environment(const struct fit_runs *r, const char *stopped)
{
	const char *old = getenv("PYTHONPATH");
	char *path = old && *old ? xasprintf("%s:%s", r->modules, old) : xstrdup(r->modules);
	char *most = r->most ? xasprintf("%u", r->most) : NULL;

	setenv("PYTHONPATH", path, 1);
	setenv("CUWHY_FIT_STEPS", r->steps, 1);
	set_or_unset("CUWHY_FIT_MOST", most);
	setenv(FIT_STOPPED, stopped, 1);
	if (r->edited)
		unsetenv("CUWHY_JOB");	/* what is written into its folder is real: the file that is edited may be there */
	set_or_unset("CUWHY_FIT_CHANGES", r->changes);
	set_or_unset("CUWHY_FIT_CALLS", r->calls);
	set_or_unset("CUWHY_FIT_BATCHES", r->batches);
	free(most);
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

static char **child_words(const struct fit_runs *r, const char *gpu, const char *folder, const char *keep,
			  char *const *words)
{
	const char *first[16] = {"cuwhy", "run", "--gpu", gpu, "--memory-trace", "--out", folder};
	size_t n = 7, more = 0;
	char **argv;

	if (r->how || r->edited) {	/* the file that is edited is the user's, whatever a variable says */
		first[n++] = "--writes";
		first[n++] = r->edited ? "discard" : r->how;
	}
	if (keep) {
		first[n++] = "--keep-writes";
		first[n++] = keep;
	}
	first[n++] = "--";
	while (words[more])
		more++;
	argv = xcalloc(n + more + 1, sizeof(*argv));
	memcpy(argv, first, n * sizeof(*argv));
	memcpy(argv + n, words, more * sizeof(*argv));
	return argv;
}

/* The wait status; -errno. */
static int run_child(const struct fit_runs *r, const char *gpu, const struct fit_run *run, const char *output,
		     const char *stopped, char *const *words)
{
	int fd = open(output, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), status = -1;
	char *keep = r->keep && !r->edited ? xasprintf("%s/%u", r->keep, r->n) : NULL,
	     **argv = child_words(r, gpu, run->folder, keep, words);
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
	free(keep);
	return status;
}

static bool ended_for_memory(const char *folder)
{
	json_t *v = recording_stored(folder);
	const char *cause = json_string_value(json_object_get(v, "cause"));
	bool memory = cause && str_starts(cause, "oom-");

	json_decref(v);
	return memory;
}

/* Every run writes about the same: the one that wrote most is reported at the end. */
static void note_writes(struct fit_runs *r, const char *folder)
{
	json_t *v = recording_stored(folder), *w = json_object_get(json_object_get(v, "dry_run"), "writes");

	if (w && (!r->writes || json_integer_value(json_object_get(w, "files")) >
					json_integer_value(json_object_get(r->writes, "files")))) {
		json_decref(r->writes);
		r->writes = json_incref(w);
	}
	json_decref(v);
}

#define TOLD_MAX ((size_t)16 << 20)

static void read_end(struct fit_run *run, const json_t *end)
{
	const json_t *asked = json_object_get(end, "asked"), *one;
	size_t cap = 0, i;

	run->stopped = (unsigned)json_integer_value(json_object_get(end, "ended"));
	run->settled = json_is_true(json_object_get(end, "settled"));
	json_array_foreach(asked, i, one) {
		run->asked = xgrow(run->asked, run->n_asked, &cap, sizeof(*run->asked));
		run->asked[run->n_asked++] = (uint64_t)json_integer_value(one);
	}
}

/* What the modules in the program have told, a line each: how they have ended it, if they have. */
static void read_told(struct fit_run *run, const char *path)
{
	char *line, *rest;
	struct buf b;

	run->settled = true;
	run->told = json_array();
	buf_init(&b, TOLD_MAX);
	if (fs_read(path, &b, NULL) == 0 && b.len) {
		rest = b.data;
		while ((line = strsep(&rest, "\n")) != NULL) {
			json_t *one = json_loads(line, JSON_REJECT_DUPLICATES, NULL);

			if (json_object_get(one, "ended") && !run->stopped)
				read_end(run, one);
			else if (json_integer_value(json_object_get(one, "took")) > run->took)
				run->took = (unsigned)json_integer_value(json_object_get(one, "took"));
			if (one)
				json_array_append_new(run->told, one);
		}
	}
	buf_release(&b);
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

static int judge_run(struct fit_run *run, int status, const char *output, bool tell, struct err *e)
{
	bool good = status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;

	run->fits = good;
	if (good || (status >= 0 && ended_for_memory(run->folder)))
		return 0;
	if (tell)
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
	rc = fs_write(stopped, "", 0, e);	/* the program's Python writes only to a file that is there */
	if (rc != 0)
		goto out;
	status = run_child(r, gpu, run, output, stopped, words);
	if (!r->edited)
		note_writes(r, run->folder);
	read_told(run, stopped);
	rc = judge_run(run, status, output, !r->changes && !r->edited && !r->other_words, e);
	if (run->fits && !r->most)
		r->most = run->stopped ? run->stopped : run->took;
out:
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
	free(run->asked);
	json_decref(run->told);
	*run = (struct fit_run){.fits = false};
}
