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
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "case/source.h"
#include "cmd/cmd.h"
#include "run/run.h"
#include "read/recording/ram_json.h"
#include "read/recording/recording.h"
#include "read/recording/seal.h"
#include "read/recording/usage_json.h"
#include "read/recording/xid_json.h"

#define COPY_MAX	((off_t)1 << 30)	/* of a core dump, by fs_copy */
#define KEEP_RUNS	10
#define KEEP_BYTES	(2ull << 30)

static bool all_digits(const char *from, const char *to)
{
	return from < to && from + strspn(from, "0123456789") >= to;
}

/* PID-N with one of the suffixes in recording.h. */
static bool is_part_file(const char *name, size_t len)
{
	static const char *const suffixes[] = {PART_SUFFIX,  DUMP_SUFFIX, EVENTS_SUFFIX,
					       USAGE_SUFFIX, RAM_SUFFIX, SOURCES_SUFFIX, JUDGED_SUFFIX};
	const char *dash = memchr(name, '-', len), *dot = memchr(name, '.', len);
	size_t i;

	if (!dash || !dot || !all_digits(name, dash) || !all_digits(dash + 1, dot))
		return false;
	for (i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (len - (size_t)(dot - name) == strlen(suffixes[i]) &&
		    strncmp(dot, suffixes[i], strlen(suffixes[i])) == 0)
			return true;
	return false;
}

static bool is_named(const char *name, size_t len, const char *word)
{
	return len == strlen(word) && strncmp(name, word, len) == 0;
}

static bool is_our_file_of(const char *name, size_t len)
{
	return is_named(name, len, RUN_FILE) || is_named(name, len, VERDICT_FILE) || is_named(name, len, MARK_FILE) ||
	       is_part_file(name, len);
}

/* The remains of a write that was killed: fs_write() puts six characters behind the name. */
static bool is_cut_short(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && strlen(dot) == strlen(".XXXXXX") && is_our_file_of(name, (size_t)(dot - name));
}

static bool is_our_file(const char *name)
{
	return is_our_file_of(name, strlen(name)) || is_cut_short(name);
}

/* Is there a run.json that we wrote? Its beginning says so, however long it is. */
static bool has_our_run(const char *dir)
{
	char *path = fs_join(dir, RUN_FILE), head[4096];

	head[fs_read_head(path, head, sizeof(head) - 1)] = '\0';
	free(path);
	return strstr(head, "\"cuwhy\": \"") != NULL;
}

bool store_has_run(struct store *s)
{
	const char *dir = store_dir(s);

	return dir && has_our_run(dir);
}

/* A recording, and nothing that somebody else put there. */
static bool holds_recording(const char *dir)
{
	DIR *d = opendir(dir);
	struct dirent *ent;
	bool ours = d && has_our_run(dir);

	while (ours && (ent = readdir(d)))
		ours = is_our_file(ent->d_name) || strcmp(ent->d_name, ".") == 0 || strcmp(ent->d_name, "..") == 0;
	if (d)
		closedir(d);
	return ours;
}

/* Empty, or what a run left that was killed before there was a recording. */
static bool holds_nothing(const char *dir)
{
	struct dirent *ent;
	DIR *d = opendir(dir);
	bool nothing = d != NULL;

	while (nothing && (ent = readdir(d)))
		nothing = strcmp(ent->d_name, ".") == 0 || strcmp(ent->d_name, "..") == 0 ||
			  strcmp(ent->d_name, MARK_FILE) == 0 || is_cut_short(ent->d_name);
	if (d)
		closedir(d);
	return nothing;
}

static int out_in_use(const char *out, struct err *e)
{
	err_set(e, -EBUSY, "another 'cuwhy run' is recording into the folder '%s'", out);
	return err_hint(e, "give each its own --out");
}

/* An older recording is replaced; anything else in the folder is not ours to touch. */
static int claim_out(struct store *s, bool force, struct err *e)
{
	bool ours;

	s->made_out = !fs_exists(s->out);
	if (fs_mkdirs(s->out, NULL) != 0)
		return 0;	/* reported at the end: the program runs anyway */
	if (mark_borrow(&s->mark, s->out) == -EBUSY)
		return out_in_use(s->out, e);
	if (holds_nothing(s->out))
		return 0;
	ours = holds_recording(s->out);
	if (ours && force && fs_empty_if(s->out, is_our_file)) {
		mark_release(&s->mark);		/* it was one of the files */
		return mark_borrow(&s->mark, s->out) == -EBUSY ? out_in_use(s->out, e) : 0;
	}
	err_set(e, -EEXIST, "the folder '%s' is not empty", s->out);
	return err_hint(e, ours && !force ? "--force replaces the recording in it"
					  : "--out takes a new folder or an empty one");
}

int store_open(struct store *s, const char *out, bool keep, bool force, char **argv, struct err *e)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	*s = (struct store){.out = out, .keep = keep || out, .argv = argv, .mark = MARK_NONE};
	s->start_realtime_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	return out ? claim_out(s, force, e) : 0;
}

void store_release(struct store *s)
{
	if (s->out)
		mark_return(&s->mark, s->out);
	if (s->made_out && !s->made)
		rmdir(s->out);		/* the program did not start */
	mark_release(&s->mark);
	free(s->base);
	free(s->dir);
}

/* Named after the moment. Machines and containers that share a home have the same moments and the same pids, so the name
 * is taken only if this call creates the folder. */
static char *default_dir(struct store *s)
{
	time_t at = (time_t)(s->start_realtime_ns / 1000000000u);
	struct tm tm;
	char stamp[32], *dir;
	int i, code;

	gmtime_r(&at, &tm);
	strftime(stamp, sizeof(stamp), "%Y%m%d-%H%M%S", &tm);
	for (i = 1;; i++) {
		dir = i == 1 ? xasprintf("%s/%s-%d", s->base, stamp, (int)getpid())
			     : xasprintf("%s/%s-%d-%d", s->base, stamp, (int)getpid(), i);
		if (mkdir(dir, 0700) == 0)
			break;
		code = errno;
		if (code != EEXIST)
			err_set(&s->failed, -code, "cannot create the folder '%s': %s", dir, strerror(code));
		free(dir);
		if (code != EEXIST)
			return NULL;
	}
	mark_make(&s->mark, dir, MARK_RECORDING);	/* unmarked, it is never deleted */
	return dir;
}

const char *store_dir(struct store *s)
{
	if (s->failed.code)
		return NULL;
	if (s->made)
		return s->dir;
	s->base = s->out ? NULL : recording_base();
	if (!s->out && !s->base) {
		err_set(&s->failed, -ENOENT, "HOME is not set");
		err_hint(&s->failed, "use --out DIR or set CUWHY_DIR");
		return NULL;
	}
	if (fs_mkdirs(s->out ? s->out : s->base, &s->failed) != 0)
		return NULL;
	s->dir = s->out ? xstrdup(s->out) : default_dir(s);
	s->made = s->dir != NULL;
	return s->dir;
}

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

void store_part(struct store *s, struct process *p, void *bytes, size_t len)
{
	char *name = xasprintf("%d-%u" PART_SUFFIX, (int)p->pid, ++s->n_parts);

	seal_put(bytes, len);
	store_file(s, name, bytes, len);
	if (!s->failed.code)
		p->part = name;		/* ownership moved */
	else
		free(name);
}

void store_dump(struct store *s, const struct process *p, const char *path)
{
	struct stat st;
	char *name, *to;

	if (!p->part || s->failed.code)
		return;
	name = xasprintf("%.*s" DUMP_SUFFIX, (int)(strlen(p->part) - strlen(PART_SUFFIX)), p->part);
	to = fs_join(s->dir, name);
	/* one with the GPU's memory may be too large to copy: it stays where it was written, or is left out */
	if (stat(path, &st) == 0 && st.st_size >= COPY_MAX)
		(void)!link(path, to);
	else
		fs_copy(path, to, &s->failed);
	free(to);
	free(name);
}

/* A separate file next to the part. Takes ownership of `o`. */
static void store_beside(struct store *s, const struct process *p, const char *suffix, json_t *o)
{
	char *text = json_string_of(o, JSON_COMPACT);
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

void store_sources(struct store *s, const struct process *p, const struct source_book *b)
{
	if (p->part && b->kept && !s->failed.code)
		store_beside(s, p, SOURCES_SUFFIX, JSON_OF(J_INT("schema", 1), J_SHARED("files", b->kept)));
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
	text = json_string_of(run, JSON_INDENT(1));
	if (text)
		store_json(s, RUN_FILE, text);
	free(text);
	free(cwd);
	json_decref(run);
}

void store_discard(struct store *s)
{
	if (!s->made || s->out)
		return;
	if (fs_empty_if(s->dir, is_our_file))
		rmdir(s->dir);
	s->made = false;
}

struct old_recording {
	char *dir;
	struct timespec at;	/* when it was last written to: a run of days is newer than those that began and ended meanwhile */
};

static int older_first(const void *a, const void *b)
{
	const struct old_recording *x = a, *y = b;

	if (x->at.tv_sec != y->at.tv_sec)
		return x->at.tv_sec < y->at.tv_sec ? -1 : 1;
	if (x->at.tv_nsec != y->at.tv_nsec)
		return x->at.tv_nsec < y->at.tv_nsec ? -1 : 1;
	return strcmp(x->dir, y->dir);
}

/* The recordings that newer ones replace, ours among them, oldest first. */
static size_t list_recordings(const struct store *s, struct old_recording **list)
{
	DIR *d = opendir(s->base);
	struct dirent *ent;
	struct stat st;
	size_t n = 0, cap = 0;
	char *dir;

	*list = NULL;
	while (d && (ent = readdir(d))) {
		if (ent->d_name[0] < '0' || ent->d_name[0] > '9')
			continue;
		dir = fs_join(s->base, ent->d_name);
		if (!mark_is(dir, MARK_RECORDING) || lstat(dir, &st) != 0) {
			free(dir);
			continue;
		}
		*list = xgrow(*list, n, &cap, sizeof(**list));
		(*list)[n++] = (struct old_recording){dir, st.st_mtim};
	}
	if (d)
		closedir(d);
	xsort(*list, n, sizeof(**list), older_first);
	return n;
}

void store_prune(struct store *s)
{
	struct old_recording *list;
	unsigned long long bytes = 0;
	size_t i, n, newer = 0;

	if (!s->base || !s->made)
		return;
	mark_end(&s->mark);
	n = list_recordings(s, &list);
	for (i = n; i-- > 0; free(list[i].dir)) {
		bytes += fs_dir_bytes(list[i].dir);
		/* Ours stays, and so does the newest, whatever their size. */
		if (newer++ && (newer > KEEP_RUNS || bytes > KEEP_BYTES) && strcmp(list[i].dir, s->dir) != 0 &&
		    mark_abandoned(list[i].dir, MARK_RECORDING)) {
			log_line("store", 1, "removing the old recording %s", list[i].dir);
			if (fs_empty_if(list[i].dir, is_our_file))
				rmdir(list[i].dir);
		}
	}
	free(list);
}
