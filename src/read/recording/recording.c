/* SPDX-License-Identifier: Apache-2.0
 * Finding and reading recordings on disk.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <jansson.h>

#include "base/err.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "read/recording/recording.h"
#include "read/recording/xid_json.h"
#include "read/recording/ram_json.h"
#include "read/recording/usage_json.h"
#include "read/recording/trace.h"

char *recording_base(void)
{
	const char *dir = getenv("CUWHY_DIR"), *state = getenv("XDG_STATE_HOME");
	const char *home = getenv("HOME");

	if (dir && *dir)
		return xstrdup(dir);
	if (state && *state)
		return fs_join(state, "cuwhy");
	return home && *home ? fs_join(home, ".local/state/cuwhy") : NULL;
}

static bool is_recording(const char *base, const char *name)
{
	char *dir = fs_join(base, name), *run = fs_join(dir, RUN_FILE);
	/* Created by us: named after a moment, with a run.json inside. */
	bool yes = name[0] >= '0' && name[0] <= '9' && fs_is_dir(dir) && fs_exists(run);

	free(run);
	free(dir);
	return yes;
}

/* "20261117-063629": what a name begins with; the process's number follows, which says nothing about the order within a second. */
#define STAMP_CHARS 15

struct dated {
	char *name;
	struct timespec written;	/* its run.json */
};

static int recording_by_age(const void *a, const void *b)
{
	const struct dated *x = a, *y = b;
	int order = strncmp(x->name, y->name, STAMP_CHARS);

	if (!order)
		order = (x->written.tv_sec > y->written.tv_sec) - (x->written.tv_sec < y->written.tv_sec);
	if (!order)
		order = (x->written.tv_nsec > y->written.tv_nsec) - (x->written.tv_nsec < y->written.tv_nsec);
	return order ? order : strcmp(x->name, y->name);
}

static struct dated dated_of(const char *base, const char *name)
{
	char *path = xasprintf("%s/%s/%s", base, name, RUN_FILE);
	struct dated d = {.name = xstrdup(name)};
	struct stat st;

	if (!stat(path, &st))
		d.written = st.st_mtim;
	free(path);
	return d;
}

size_t recording_list(const char *base, char ***names)
{
	DIR *d = opendir(base);
	struct dirent *ent;
	size_t n = 0, cap = 0, i;
	struct dated *list = NULL;

	while (d && (ent = readdir(d))) {
		if (!is_recording(base, ent->d_name))
			continue;
		list = xgrow(list, n, &cap, sizeof(*list));
		list[n++] = dated_of(base, ent->d_name);
	}
	if (d)
		closedir(d);
	xsort(list, n, sizeof(*list), recording_by_age);
	*names = n ? xcalloc(n, sizeof(**names)) : NULL;
	for (i = 0; i < n; i++)
		(*names)[i] = list[i].name;
	free(list);
	return n;
}

void recording_list_free(char **names, size_t n)
{
	while (n)
		free(names[--n]);
	free(names);
}

char *recording_newest(struct err *e)
{
	char *base = recording_base(), **names, *path = NULL;
	size_t n = base ? recording_list(base, &names) : 0;

	if (n > 0) {
		path = fs_join(base, names[n - 1]);
		recording_list_free(names, n);
	} else {
		err_set(e, -ENOENT, "there is no recording in '%s'", base ? base : "~");
		err_hint(e, "'cuwhy run PROGRAM' records one when CUDA fails, or always with --keep");
	}
	free(base);
	return path;
}

/* Anybody may have written the files of a recording, so each has its limit, far above what we write. */
#define JSON_BYTES_MAX	((size_t)64 << 20)
#define STATE_BYTES_MAX	((size_t)4 << 20)	/* of the GPUs and the host */
#define PROCESSES_MAX	8192

static json_t *load_beside(const char *part, const char *suffix, size_t max)
{
	char *path = xasprintf("%.*s%s", (int)(strlen(part) - strlen(PART_SUFFIX)), part, suffix);
	json_t *o = json_read(path, max, NULL);

	free(path);
	return o;
}

static struct gpu_usage *usage_of(const char *part)
{
	json_t *o = load_beside(part, USAGE_SUFFIX, STATE_BYTES_MAX);
	struct gpu_usage *u = usage_from_json(o);

	json_decref(o);
	return u;
}

static struct ram_state *ram_of(const char *part)
{
	json_t *o = load_beside(part, RAM_SUFFIX, STATE_BYTES_MAX);
	struct ram_state *r = xmalloc(sizeof(*r));

	if (!ram_from_json(r, o)) {
		free(r);
		r = NULL;
	}
	json_decref(o);
	return r;
}

static void process_add(struct recording *r, struct recorded_process *p)
{
	if (p->part && str_ends(p->part, PART_SUFFIX)) {
		p->end.usage = p->usage = usage_of(p->part);
		p->end.ram = p->ram = ram_of(p->part);
	}
	r->process = xgrow(r->process, r->n, &r->cap, sizeof(*r->process));
	r->process[r->n++] = *p;
}

static int int_of(const json_t *o, const char *key, int otherwise)
{
	const json_t *v = json_object_get(o, key);

	return json_is_integer(v) ? (int)json_integer_value(v) : otherwise;
}

/* Each part once: what lies beside it is read for every process that names it. */
static bool is_new_part(json_t *seen, const char *part)
{
	bool is_new = !json_object_get(seen, part);

	json_object_set_new(seen, part, json_true());
	return is_new;
}

static void add_json(struct recording *r, const char *dir, const json_t *o, json_t *seen)
{
	const char *part = json_string_value(json_object_get(o, "part"));
	const char *command = json_string_value(json_object_get(o, "command"));
	struct recorded_process p = {.end_known = true};

	p.end.pid = (uint32_t)int_of(o, "pid", 0);
	p.end.ppid = (uint32_t)int_of(o, "ppid", 0);
	p.end.exit = int_of(o, "exit", -1);
	p.end.signal = int_of(o, "signal", 0);
	p.end.ended_ns = (uint64_t)json_integer_value(json_object_get(o, "end_mono_ns"));
	p.end.fault_real_ns = (uint64_t)json_integer_value(json_object_get(o, "dump_real_ns"));
	p.end.fault_mark = (uint64_t)json_integer_value(json_object_get(o, "dump_mark"));
	p.end.status_known = json_is_true(json_object_get(o, "status_known"));
	/* The name comes from a file that anyone may have written: it stays inside the folder. */
	if (part && *part && !strchr(part, '/') && part[0] != '.' && is_new_part(seen, part))
		p.part = fs_join(dir, part);
	p.command = command ? xstrdup(command) : NULL;
	p.end.command = p.command;
	process_add(r, &p);
}

static json_t *load(const char *dir, struct err *e)
{
	char *path = fs_join(dir, RUN_FILE);
	json_t *run = json_read(path, JSON_BYTES_MAX, e);

	free(path);
	return run;
}

static void processes_from_json(struct recording *r, const char *dir, const json_t *list, json_t *seen)
{
	for (size_t i = 0; i < json_array_size(list) && r->n < PROCESSES_MAX; i++)
		if (json_is_object(json_array_get(list, i)))
			add_json(r, dir, json_array_get(list, i), seen);
}

static void add_file(struct recording *r, const char *path)
{
	struct recorded_process p = {.part = xstrdup(path)};

	p.end.exit = -1;
	process_add(r, &p);
}

/* Without a run.json (a copy cut short), or with one that was not finished: the parts that it does not list. */
static void add_files(struct recording *r, const char *dir, json_t *seen)
{
	DIR *d = opendir(dir);
	struct dirent *ent;
	char *path;

	while (d && (ent = readdir(d)) && r->n < PROCESSES_MAX) {
		if (!str_ends(ent->d_name, PART_SUFFIX) || !is_new_part(seen, ent->d_name))
			continue;
		path = fs_join(dir, ent->d_name);
		add_file(r, path);
		free(path);
	}
	if (d)
		closedir(d);
}

/* It becomes part of a sentence on a terminal, and the file may come from anywhere. */
static char *unrecorded_from_json(const json_t *o)
{
	char *text = json_is_string(o) ? xasprintf("%.300s", json_string_value(o)) : NULL;

	for (char *c = text; c && *c; c++)
		if ((unsigned char)*c < ' ' || *c == 127)
			*c = '?';
	return text;
}

static bool is_marked(const char *folder)
{
	char *mark = fs_join(folder, MARK_FILE);
	bool marked = fs_exists(mark);

	free(mark);
	return marked;
}

/* run.json is written as soon as the program runs, and again as long as it does. */
static bool is_finished(const json_t *run)
{
	return json_is_object(run) && !json_is_null(json_object_get(run, "end"));
}

int recording_read(struct recording *r, const char *path, struct err *e)
{
	struct err damaged = {0};
	json_t *run, *seen;
	size_t i;
	int rc = 0;

	*r = (struct recording){0};
	if (!fs_is_dir(path)) {
		add_file(r, path);
		return 0;
	}
	run = load(path, &damaged);
	seen = json_object();
	processes_from_json(r, path, json_object_get(run, "processes"), seen);
	if (!is_finished(run))
		add_files(r, path, seen);
	if (xid_from_json(&r->xids, json_object_get(run, "kernel_log")))
		for (i = 0; i < r->n; i++)
			r->process[i].end.xids = &r->xids;
	r->ended_well = json_is_object(run) && int_of(run, "exit", -1) == 0;
	r->unrecorded = unrecorded_from_json(json_object_get(run, "unrecorded"));
	if ((json_is_object(run) ? !is_finished(run) : damaged.code == -ENOENT && is_marked(path)) && !r->unrecorded)
		r->unrecorded = xstrdup("'cuwhy run' was killed, or is still running");
	if (r->n == 0 && !json_is_object(run) && !r->unrecorded) {
		rc = err_set(e, -EINVAL, "no recording in '%s'", path);
		if (damaged.code && damaged.code != -ENOENT)
			rc = err_hint(e, "%s", damaged.msg);
	}
	json_decref(seen);
	json_decref(run);
	return rc;
}

void recording_release(struct recording *r)
{
	size_t i;

	for (i = 0; i < r->n; i++) {
		free(r->process[i].part);
		free(r->process[i].command);
		usage_free(r->process[i].usage);
		free(r->process[i].ram);
	}
	free(r->process);
	free(r->unrecorded);
	*r = (struct recording){0};
}

static json_t *verdict_or_null(json_t *o)
{
	if (json_is_object(o) && json_is_string(json_object_get(o, "cause")))
		return o;
	json_decref(o);
	return NULL;
}

json_t *recording_stored(const char *dir)
{
	char *file = fs_join(dir, VERDICT_FILE);
	json_t *o = fs_is_dir(dir) ? json_read(file, JSON_BYTES_MAX, NULL) : NULL;

	free(file);
	return verdict_or_null(o);
}

json_t *recording_verdict(const struct recorded_process *p)
{
	const char *slash = p->part ? strrchr(p->part, '/') : NULL;
	char *dir;
	json_t *o;

	if (!p->part || !str_ends(p->part, PART_SUFFIX))
		return NULL;
	o = verdict_or_null(load_beside(p->part, JUDGED_SUFFIX, JSON_BYTES_MAX));
	if (json_is_array(json_object_get(o, "checks")))
		return o;
	json_decref(o);
	dir = slash ? xasprintf("%.*s", (int)(slash - p->part), p->part) : xstrdup(".");
	o = recording_stored(dir);
	free(dir);
	return o;
}

void end_from_header(struct process_end *end, const struct cw_header *h)
{
	end->pid = h->pid;
	end->ppid = h->ppid;
	end->status_known = h->exit_known != 0;
	end->exit = h->exit_known ? (int)(h->exit_status & 0xff) : -1;
	end->command = h->cmdline[0] ? h->cmdline : NULL;
}
