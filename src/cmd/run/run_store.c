/* SPDX-License-Identifier: Apache-2.0
 * The recording on disk: created when there is something to keep; old ones are pruned so that they do not pile up.
 *
 * Errors here are reported once, at the end; the program and the verdict do not depend on it.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "cmd/cmd.h"
#include "cmd/run/run.h"
#include "input/recording/ram_json.h"
#include "input/recording/recording.h"
#include "input/recording/usage_json.h"
#include "input/recording/xid_json.h"

#define KEEP_RUNS	10
#define KEEP_BYTES	(2ull << 30)

/* --- the folder ------------------------------------------------------------------------------- */

static bool holds_recording(const char *dir)
{
	char *run = fs_join(dir, RUN_FILE);
	bool ours = fs_exists(run);

	free(run);
	return ours;
}

/* run.json, verdict.json, and files named PID-N with one of the suffixes in recording.h. */
static bool is_our_file(const char *name)
{
	int pid, part, end = 0;

	if (strcmp(name, RUN_FILE) == 0 || strcmp(name, VERDICT_FILE) == 0)
		return true;
	if (sscanf(name, "%d-%d%n", &pid, &part, &end) != 2)
		return false;
	return strcmp(name + end, PART_SUFFIX) == 0 || strcmp(name + end, DUMP_SUFFIX) == 0 ||
	       strcmp(name + end, EVENTS_SUFFIX) == 0 || strcmp(name + end, USAGE_SUFFIX) == 0 ||
	       strcmp(name + end, RAM_SUFFIX) == 0 || strcmp(name + end, ".json") == 0;
}

static void remove_our_files(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *ent;

	while (d && (ent = readdir(d)))
		if (is_our_file(ent->d_name))
			unlinkat(dirfd(d), ent->d_name, 0);
	if (d)
		closedir(d);
}

/* An older recording is replaced; anything else in the folder is not ours to touch. */
static int claim_out(const char *out, bool force, struct err *e)
{
	bool ours = holds_recording(out);

	if (!fs_is_dir(out) || fs_dir_empty(out))
		return 0;
	if (ours && force)
		remove_our_files(out);
	if (fs_dir_empty(out))
		return 0;
	err_set(e, -EEXIST, "the folder '%s' is not empty", out);
	return err_hint(e, ours && !force ? "--force replaces the recording in it"
					  : "--out takes a new folder or an empty one");
}

int store_open(struct store *s, const char *out, bool keep, bool force, char **argv, struct err *e)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	*s = (struct store){.out = out, .keep = keep || out, .argv = argv};
	s->start_realtime_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	return out ? claim_out(out, force, e) : 0;
}

void store_release(struct store *s)
{
	free(s->base);
	free(s->dir);
}

static char *default_dir(struct store *s)
{
	time_t at = (time_t)(s->start_realtime_ns / 1000000000u);
	struct tm tm;
	char stamp[32];

	s->base = recording_base();
	if (!s->base)
		return NULL;
	gmtime_r(&at, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
	return xasprintf("%s/%s-%d", s->base, stamp, (int)getpid());
}

const char *store_dir(struct store *s)
{
	if (s->failed.code)
		return NULL;
	if (s->made)
		return s->dir;
	s->dir = s->out ? xstrdup(s->out) : default_dir(s);
	if (!s->dir) {
		err_set(&s->failed, -ENOENT, "HOME is not set");
		err_hint(&s->failed, "use --out DIR or set CUWHY_DIR");
		return NULL;
	}
	if (fs_mkdirs(s->dir, &s->failed) != 0)
		return NULL;
	s->made = true;
	return s->dir;
}

/* --- files ------------------------------------------------------------------------------------ */

static void store_file(struct store *s, const char *name, const void *data, size_t len)
{
	const char *dir = store_dir(s);
	char *path;

	if (!dir)
		return;
	path = fs_join(dir, name);
	fs_write(path, data, len, &s->failed);
	free(path);
}

void store_part(struct store *s, struct process *p, const void *bytes, size_t len)
{
	char *name = xasprintf("%d-%u" PART_SUFFIX, (int)p->pid, ++s->n_parts);

	store_file(s, name, bytes, len);
	if (!s->failed.code)
		p->part = name;		/* ownership moved */
	else
		free(name);
}

void store_dump(struct store *s, const struct process *p, const char *path)
{
	char *name, *to;

	if (!p->part || s->failed.code)
		return;
	name = xasprintf("%.*s" DUMP_SUFFIX, (int)(strlen(p->part) - strlen(PART_SUFFIX)), p->part);
	to = fs_join(s->dir, name);
	fs_copy(path, to, &s->failed);
	free(to);
	free(name);
}

/* A separate file next to the part. Takes ownership of `o`. */
static void store_beside(struct store *s, const struct process *p, const char *suffix, json_t *o)
{
	char *text = json_dumps(o, JSON_COMPACT);
	char *name = xasprintf("%.*s%s", (int)(strlen(p->part) - strlen(PART_SUFFIX)), p->part, suffix);

	if (text)
		store_json(s, name, text);
	free(name);
	free(text);
	json_decref(o);
}

void store_usage(struct store *s, const struct process *p)
{
	if (p->part && p->end.usage && !s->failed.code)
		store_beside(s, p, USAGE_SUFFIX, usage_to_json(p->end.usage));
}

void store_ram(struct store *s, const struct process *p)
{
	if (p->part && p->end.ram && !s->failed.code)
		store_beside(s, p, RAM_SUFFIX, ram_to_json(p->end.ram));
}

void store_json(struct store *s, const char *name, const char *json)
{
	char *line = xasprintf("%s\n", json);

	store_file(s, name, line, strlen(line));
	free(line);
}

/* --- run.json --------------------------------------------------------------------------------- */

static json_t *moment_json(time_t at)
{
	struct tm tm;
	char text[40];

	gmtime_r(&at, &tm);
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &tm);
	return json_string(text);
}

static const struct field process_field[] = {
	F_ALWAYS(NUMBER, "pid", struct process, pid),
	F_ALWAYS(NUMBER, "ppid", struct process, end.ppid),
	F_ALWAYS(NUMBER, "start_mono_ns", struct process, start_ns),
	F_ALWAYS(NUMBER, "end_mono_ns", struct process, end.ended_ns),
	F_ALWAYS(BOOL, "status_known", struct process, end.status_known),
	F_ALWAYS(BOOL, "alive", struct process, alive),
	F_ALWAYS(BOOL, "replaced", struct process, replaced),
	F_ALWAYS(CHARS, "cause", struct process, cause),
	F_OR_NULL(NUMBER, "exit", struct process, end.exit, -1),
	F_OR_NULL(NUMBER, "signal", struct process, end.signal, 0),
	F_IF_KNOWN(NUMBER, "dump_real_ns", struct process, end.fault_real_ns, 0),
	F_IF_KNOWN(NUMBER, "dump_mark", struct process, end.fault_mark, 0),
	F_OR_NULL(TEXT, "command", struct process, command),
	F_OR_NULL(TEXT, "part", struct process, part),
	F_END,
};
static const struct fields process_fields = {process_field, sizeof(struct process), NULL};

void store_run(struct store *s, const struct server *srv, const struct child *c, bool ended)
{
	json_t *run, *argv = json_array(), *list = json_array();
	bool by_signal = WIFSIGNALED(c->status);
	char *cwd = getcwd(NULL, 0), *text;
	size_t i;

	for (i = 0; s->argv[i]; i++)
		json_array_append_new(argv, json_text(s->argv[i]));
	for (i = 0; i < srv->n_processes; i++)
		if (srv->process[i]->judged)
			json_array_append_new(list, fields_write(&process_fields, srv->process[i]));
	run = JSON_OF(J_INT("schema", 1), J_TEXT("cuwhy", CUWHY_VERSION), J_VALUE("argv", argv), J_TEXT("cwd", cwd),
		      J_INT("supervisor", getpid()),
		      J_VALUE("start", moment_json((time_t)(s->start_realtime_ns / 1000000000u))),
		      J_VALUE("end", ended ? moment_json(time(NULL)) : json_null()),
		      J_INT_OR_NULL("exit", ended && !by_signal, WEXITSTATUS(c->status)),
		      J_INT_OR_NULL("signal", ended && by_signal, WTERMSIG(c->status)),
		      J_INT("lost_segments", srv->lost_segments), J_VALUE("processes", list),
		      J_IF(s->unrecorded, J_TEXT("unrecorded", s->unrecorded)),
		      J_IF(s->xids, J_VALUE("kernel_log", xid_to_json(s->xids))));
	text = json_dumps(run, JSON_INDENT(1));
	if (text)
		store_json(s, RUN_FILE, text);
	free(text);
	free(cwd);
	json_decref(run);
}

/* --- the end ---------------------------------------------------------------------------------- */

void store_discard(struct store *s)
{
	if (!s->made || s->out)
		return;
	fs_remove_dir(s->dir, 0);
	s->made = false;
}

void store_prune(const struct store *s)
{
	unsigned long long bytes = 0;
	char **names, *dir;
	size_t i, n;

	if (!s->base || s->out)
		return;
	n = recording_list(s->base, &names);
	for (i = n; i-- > 0;) {
		dir = fs_join(s->base, names[i]);
		bytes += fs_dir_bytes(dir);
		/* The newest stays, whatever its size. */
		if (i + 1 < n && (n - i > KEEP_RUNS || bytes > KEEP_BYTES) &&
		    !recording_in_progress(dir)) {
			log_line("store", 1, "removing the old recording %s", dir);
			fs_remove_dir(dir, 0);
		}
		free(dir);
	}
	recording_list_free(names, n);
}
