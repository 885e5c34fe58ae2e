/* SPDX-License-Identifier: Apache-2.0
 * The layer of a dry run (see run_writes.h).
 */
#include "run/run_writes.h"

#include <errno.h>
#include <dirent.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/children.h"
#include "base/format.h"
#include "base/fs.h"
#include "base/json.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/proc.h"
#include "base/str.h"
#include "run/run.h"
#include "writes/fence.h"
#include "writes/layer.h"

#define PREFIX	      "cuwhy-layer-"
#define LOOK_NS	      500000000ull	/* between two looks at its size; a fast disk takes 1 GB meanwhile */
#define WALK_PAUSES   20		/* between two walks through it, in units of what one takes */
#define GRACE_NS 300000000ull /* for processes that die with the program */
#define KILL_NS	      5000000000ull	/* from SIGTERM to SIGKILL */
#define LIMIT_SHARE   2			/* of the free space, one part in so many: others need some, too */
#define TOLD	      3			/* names in the text */
#define TMPFS	      0x01021994
#define RAMFS	      0x858458f6

/* One page for all: which layer the program got is known only after it was started. */
struct writes_shared {
	char dir[4096];		/* of the layer; "" = there is none */
	char read_only[8192];	/* layer_view */
	struct err why;		/* the program's process could not enter */
	uint64_t free_bytes;	/* where the layer is, at the start */
	bool in_memory, fenced;
	atomic_bool passed;	/* the limit */
};

bool run_writes_active(const struct run_writes *w)
{
	return w->mode != WRITES_REAL;
}

/* There is a layer of our own. */
static bool has_layer(const struct run_writes *w)
{
	return w->shared && w->shared->dir[0];
}

static int refuse(struct err *e, const char *why)
{
	char text[sizeof(e->msg)];

	str_copy(text, sizeof(text), why);
	err_set(e, -EPERM, "a dry run must not change files, and here it cannot be held back: %s", text);
	return err_hint(e, "run it with --writes=real if the program may change files");
}

static int open_keep(struct run_writes *w, const char *keep, struct err *e)
{
	int rc;

	w->made_keep = !fs_exists(keep);
	rc = fs_mkdirs(keep, e);
	if (rc != 0)
		return rc;
	w->keep = realpath(keep, NULL);
	if (w->keep && fs_dir_empty(w->keep))
		return 0;
	err_set(e, -EEXIST, "the folder '%s' is not empty", keep);
	return err_hint(e, "--keep-writes takes a new folder or an empty one");
}

static void read_limit(struct run_writes *w)
{
	const char *text = getenv("CUWHY_WRITES_LIMIT");

	if (!text || !str_bytes(text, &w->limit))
		w->limit = 0;
}

int run_writes_open(struct run_writes *w, const char *writes, const char *keep, struct err *e)
{
	const char *mode = writes ? writes : getenv("CUWHY_WRITES_MODE");

	*w = (struct run_writes){.mark = MARK_NONE, .home = getenv("HOME"), .cwd = getcwd(NULL, 0)};
	if (writes && strcmp(writes, "real") != 0 && strcmp(writes, "discard") != 0)
		return err_set(e, -EINVAL, "--writes takes discard or real, not '%s'", writes);
	if (keep && writes && strcmp(writes, "real") == 0)
		return err_set(e, -EINVAL,
			       "--writes=real leaves nothing to keep: --keep-writes needs the writes to be held back");
	if (!keep && mode && strcmp(mode, "real") == 0)
		return 0;
	w->mode = keep ? WRITES_KEPT : WRITES_DISCARDED;
	if (layer_inside() || fence_inside()) {
		w->mode = WRITES_OUTER;
		return keep ? err_set(e, -EINVAL, "--keep-writes does not work inside another dry run") : 0;
	}
	w->shared = mmap(NULL, sizeof(*w->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (w->shared == MAP_FAILED) {
		w->shared = NULL;
		return err_set(e, -ENOMEM, "cuwhy has no memory");
	}
	w->strict = true;
	read_limit(w);
	/* what a dry run would upload is not worth having */
	setenv("WANDB_MODE", "offline", 0);
	return keep ? open_keep(w, keep, e) : 0;
}

int run_writes_real(struct run_writes *w, const char *path, struct err *e)
{
	char *real;

	if (!w->shared || !path || !*path)
		return 0;
	fs_mkdirs(path, NULL);
	real = realpath(path, NULL);
	if (!real)
		return 0;	/* whoever needs it reports that */
	for (size_t i = 0; i < w->n_real; i++) {
		if (strcmp(w->real[i], real) == 0) {
			free(real);
			return 0;
		}
	}
	if (w->n_real == WRITES_REAL_MAX)
		return err_set(e, -E2BIG, "too many folders");
	w->real[w->n_real++] = real;
	return 0;
}

/* A folder that the user gave to cuwhy for a job may be anything; what is in it is then changed for real. */
static int check_real(const struct run_writes *w, struct err *e)
{
	char *home = w->home ? realpath(w->home, NULL) : NULL;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < w->n_real; i++) {
		const char *in = NULL;
		size_t n = strlen(w->real[i]);

		if (home && strncmp(home, w->real[i], n) == 0 && (home[n] == '/' || !home[n]))
			in = "your home";
		else if (w->cwd && !fs_dir_empty(w->real[i]) && strncmp(w->cwd, w->real[i], n) == 0 &&
			 (w->cwd[n] == '/' || !w->cwd[n]))
			in = "the current folder";
		if (!in)
			continue;
		rc = err_set(e, -EINVAL, "'%s' is written to for real, and %s is in it", w->real[i], in);
		err_hint(e, "give a folder that is only for cuwhy, or run it with --writes=real if the program may change files");
	}
	free(home);
	return rc;
}

static bool is_memory(const char *path)
{
	struct statfs s;

	return statfs(path, &s) == 0 && (s.f_type == TMPFS || s.f_type == RAMFS);
}

static void add_place(struct run_writes *w, const char *path, bool memory)
{
	char *real = path && *path ? realpath(path, NULL) : NULL;

	for (size_t i = 0; real && i < w->n_places; i++)
		if (strcmp(w->place[i], real) == 0)
			path = NULL;
	if (real && path && w->n_places < sizeof(w->place) / sizeof(w->place[0]) && access(real, W_OK) == 0 &&
	    is_memory(real) == memory)
		w->place[w->n_places++] = real;
	else
		free(real);
}

/* Beside the recordings; where that cannot be, on another disk; at last in memory. */
static void list_places(struct run_writes *w, const char *out)
{
	char *base = recording_base(),
	     *home = getenv("HOME") && fs_is_dir(getenv("HOME")) ? xstrdup(getenv("HOME")) : NULL,
	     *beside = out ? fs_join(out, "..") : NULL;

	w->made_base = base && !fs_exists(base);
	if (base && (home || !strstr(base, ".local/state")))
		fs_mkdirs(base, NULL);
	if (w->keep)
		w->place[w->n_places++] = xstrdup(w->keep);
	for (int memory = 0; memory < 2; memory++) {
		add_place(w, base, memory);
		add_place(w, beside, memory);
		add_place(w, getenv("TMPDIR"), memory);
		add_place(w, "/var/tmp", memory);
		add_place(w, "/tmp", memory);
		add_place(w, "/dev/shm", memory);
	}
	free(beside);
	free(home);
	free(base);
}

static uint64_t free_bytes(const char *path)
{
	struct statvfs v;

	return statvfs(path, &v) == 0 ? (uint64_t)v.f_bavail * v.f_frsize : 0;
}

static int make_in(struct run_writes *w, const char *place, struct err *e)
{
	char *dir = fs_join(place, PREFIX "XXXXXX");
	int rc = 0;

	if (strlen(dir) >= sizeof(w->shared->dir) || !mkdtemp(dir)) {
		rc = err_set(e, -errno, "cannot create a folder in '%s': %s", place, strerror(errno));
		free(dir);
		return rc;
	}
	mark_release(&w->mark);
	mark_make(&w->mark, dir, MARK_LAYER);	/* unmarked, it is not found by a later run */
	str_copy(w->shared->dir, sizeof(w->shared->dir), dir);
	w->shared->in_memory = is_memory(dir);
	w->shared->free_bytes = free_bytes(dir);
	free(dir);
	return 0;
}

static void drop_layer(struct run_writes *w)
{
	if (has_layer(w))
		layer_remove(w->shared->dir, NULL, NULL);
	mark_release(&w->mark);
	w->shared->dir[0] = '\0';
}

static int make_fence(struct run_writes *w, struct err *e)
{
	struct err why = {0};
	int rc = w->shared->fenced ? -EPERM : fence_possible(&why);

	for (size_t i = 0; rc == 0 && i < w->n_places; i++)
		if (make_in(w, w->place[i], &why) == 0) {
			w->shared->fenced = true;
			return env_fence(w->shared->dir, e);
		}
	log_line("writes", 1, "no fence: %s", why.msg);
	return refuse(e, w->shared->why.msg[0] ? w->shared->why.msg : why.msg);
}

int run_writes_make(struct run_writes *w, const char *out, struct err *e)
{
	struct err why = {0};
	int rc = 0;

	if (!w->shared)
		return 0;
	if (!w->n_places) {
		rc = check_real(w, e);
		list_places(w, out);
	}
	if (rc != 0)
		return rc;
	drop_layer(w);
	/* an overlay that cannot take over all files is still better than none */
	if (w->shared->why.code == -EXDEV) {
		w->strict = false;
		w->next--;
		if (fence_possible(NULL) == 0)
			return make_fence(w, e);
	}
	/* where there is no namespace, another place does not help */
	while (w->shared->why.code != -EPERM && w->next < w->n_places)
		if (make_in(w, w->place[w->next++], &why) == 0)
			return 0;
	if (!w->shared->why.code)
		w->shared->why = why;
	return make_fence(w, e);
}

int run_writes_enter(struct run_writes *w, char *const *argv)
{
	struct layer_view view;

	if (!w || !has_layer(w))
		return 0;
	w->shared->why = (struct err){0};
	memset(w->shared->read_only, 0, sizeof(w->shared->read_only));
	if (w->shared->fenced)
		return fence_enter(w->shared->dir, (const char *const *)w->real, &w->shared->why);
	view = (struct layer_view){w->shared->dir, (const char *const *)w->real, argv, w->strict, w->shared->read_only,
				   sizeof(w->shared->read_only)};
	return layer_enter(&view, &w->shared->why);
}

static uint64_t limit_of(const struct run_writes *w)
{
	return w->limit ? w->limit : w->shared->free_bytes / LIMIT_SHARE;
}

static void end_process(int pidfd, void *of)
{
	pidfd_signal(pidfd, *(const int *)of);
}

/* While the disk has lost less than the limit, it cannot have been passed: only then it is worth a walk. */
static bool limit_passed(struct run_writes *w)
{
	uint64_t now = free_bytes(w->shared->dir), limit = limit_of(w), began = proc_mono_ns();
	bool passed;

	w->next_ns = began + LOOK_NS;
	if (now + limit > w->shared->free_bytes)
		return false;
	passed = layer_bytes(w->shared->dir, limit) > limit;
	w->next_ns = proc_mono_ns() + LOOK_NS + WALK_PAUSES * (proc_mono_ns() - began);
	return passed;
}

void run_writes_step(struct run_writes *w)
{
	int sig = SIGTERM;

	if (!has_layer(w) || proc_mono_ns() < w->next_ns)
		return;
	if (w->ending_ns) {
		sig = SIGKILL;
		w->next_ns = proc_mono_ns() + KILL_NS;
	} else if (limit_passed(w)) {
		w->ending_ns = proc_mono_ns();
		w->next_ns = w->ending_ns + KILL_NS;
		atomic_store(&w->shared->passed, true);
	} else {
		return;
	}
	layer_users(w->shared->dir, end_process, &sig);
}

int run_writes_wait_ms(const struct run_writes *w)
{
	uint64_t now = proc_mono_ns();

	if (!w || !has_layer(w))
		return -1;
	return w->next_ns > now ? (int)((w->next_ns - now) / 1000000) + 1 : 0;
}

static void still_alive(void *of)
{
	const struct run_writes *w = of;

	if (w->self)
		keeper_works(w->self);
}

static bool is_under(const char *path, const char *folder)
{
	size_t n = folder ? strlen(folder) : 0;

	while (n > 1 && folder[n - 1] == '/')
		n--;
	return n > 1 && strncmp(path, folder, n) == 0 && path[n] == '/';
}

/* What will be made again anyway is reported last. */
static bool is_cache(const char *path)
{
	return strstr(path, "/.") || strstr(path, "/__pycache__/") || is_under(path, "/tmp") ||
	       is_under(path, "/var/tmp") || is_under(path, getenv("TMPDIR"));
}

static int rank_of(const struct run_writes *w, const struct layer_change *c)
{
	const char *below = w->cwd && is_under(c->path, w->cwd) ? c->path + strlen(w->cwd) : c->path;

	if (is_cache(below))
		return 2;
	return c->what == LAYER_NEW;
}

static bool comes_before(const struct writes_name *a, const struct writes_name *b)
{
	if (a->rank != b->rank)
		return a->rank < b->rank;
	return a->bytes != b->bytes ? a->bytes > b->bytes : strcmp(a->path, b->path) < 0;
}

/* Python keeps what it compiled of our own module beside that. */
static bool is_ours(const char *path)
{
	const char *module = getenv(FIT_STOPPED) ? strstr(path, "/fit/__pycache__") : NULL, *old = getenv("PYTHONPATH");
	size_t n = module ? (size_t)(module - path) + strlen("/fit") : 0;

	return module && old && strncmp(old, path, n) == 0;
}

static void note_change(void *of, const struct layer_change *c)
{
	struct run_writes *w = of;
	struct writes_sum *s = &w->sum;
	struct writes_name one = {(char *)c->path, (int)c->what, rank_of(w, c), c->bytes};
	size_t at = s->n;

	if (is_ours(c->path))
		return;
	if (c->what == LAYER_FOLDER) {
		s->folders++;
		return;
	}
	s->files++;
	s->replaced += c->what == LAYER_REPLACED;
	s->deleted += c->what == LAYER_DELETED;
	while (at > 0 && comes_before(&one, &s->name[at - 1]))
		at--;
	if (at == WRITES_NAMES)
		return;
	if (s->n == WRITES_NAMES)
		free(s->name[--s->n].path);
	memmove(&s->name[at + 1], &s->name[at], (s->n - at) * sizeof(s->name[0]));
	one.path = xstrdup(c->path);
	s->name[at] = one;
	s->n++;
}

/* Processes that end with the program, or because of us, may not have ended yet. */
static bool wait_for_users(struct run_writes *w)
{
	uint64_t until = proc_mono_ns() + (w->ending_ns ? KILL_NS : GRACE_NS);
	const struct timespec pause = {0, 5000000};
	int sig = SIGKILL;
	bool used;

	while ((used = layer_users(w->shared->dir, NULL, NULL) > 0) && proc_mono_ns() < until) {
		still_alive(w);
		nanosleep(&pause, NULL);
	}
	if (used && w->ending_ns)
		layer_users(w->shared->dir, end_process, &sig);
	return used;
}

void run_writes_finish(struct run_writes *w, const struct keeper *self)
{
	struct layer_walk walk = {.change = note_change, .alive = still_alive, .of = w};

	w->self = self;
	if (!has_layer(w))
		return;
	w->in_use = wait_for_users(w);
	layer_changes(w->shared->dir, &walk);
	w->sum.bytes = walk.bytes;
	w->sum.unreadable = walk.unreadable;
	if (w->keep)
		layer_keep(w->shared->dir, w->keep, still_alive, w, &w->failed);
}

/* Those of runs that were killed, or whose processes outlived them. */
static void clean_stale(struct run_writes *w, const char *place)
{
	DIR *d = opendir(place);
	struct dirent *ent;

	while (d && (ent = readdir(d))) {
		char *dir;

		if (!str_starts(ent->d_name, PREFIX))
			continue;
		dir = fs_join(place, ent->d_name);
		if (mark_abandoned(dir, MARK_LAYER) && layer_users(dir, NULL, NULL) == 0) {
			log_line("writes", 1, "removing the stale layer %s", dir);
			layer_remove(dir, still_alive, w);
		}
		free(dir);
	}
	if (d)
		closedir(d);
}

/* Who has the layer's lock at the moment the place is cleaned is asked by mark_abandoned(): ours is taken by ourselves. */
void run_writes_clean(struct run_writes *w)
{
	if (has_layer(w) && layer_users(w->shared->dir, NULL, NULL) == 0) {
		layer_remove(w->shared->dir, still_alive, w);
		w->shared->dir[0] = '\0';
	}
	for (size_t i = 0; i < w->n_places; i++)
		clean_stale(w, w->place[i]);
	for (size_t i = 0; i < w->n_places; i++) {
		char *base = recording_base();

		if (w->made_base && base && strcmp(base, w->place[i]) == 0)
			rmdir(base);	/* fails if there is anything else in it by now */
		free(base);
	}
}

void run_writes_release(struct run_writes *w)
{
	if (w->made_keep && w->keep)
		rmdir(w->keep);		/* nothing was written */
	for (size_t i = 0; i < w->n_real; i++)
		free(w->real[i]);
	for (size_t i = 0; i < w->n_places; i++)
		free(w->place[i]);
	while (w->sum.n)
		free(w->sum.name[--w->sum.n].path);
	mark_release(&w->mark);
	free(w->keep);
	free(w->cwd);
	if (w->shared)
		munmap(w->shared, sizeof(*w->shared));
	*w = (struct run_writes){.mark = MARK_NONE};
}

static const char *const mode_words[] = {
	[WRITES_REAL] = "real", [WRITES_DISCARDED] = "discarded", [WRITES_KEPT] = "kept", [WRITES_OUTER] = "outer",
};
static const char *const what_words[] = {[LAYER_NEW] = "new", [LAYER_REPLACED] = "replaced", [LAYER_DELETED] = "deleted"};

static json_t *names_json(const struct writes_sum *s)
{
	json_t *list = json_array();

	for (size_t i = 0; i < s->n; i++)
		json_array_append_new(list, JSON_OF(J_TEXT("path", s->name[i].path),
						    J_TEXT("what", what_words[s->name[i].what]),
						    J_BYTES("bytes", s->name[i].bytes)));
	return list;
}

static json_t *read_only_json(const struct run_writes *w)
{
	json_t *list = json_array();

	for (const char *p = w->shared->read_only; *p; p += strlen(p) + 1)
		json_array_append_new(list, json_text(p));
	return list;
}

json_t *run_writes_json(const struct run_writes *w)
{
	json_t *o = JSON_OF(J_TEXT("mode", mode_words[w->mode]));

	if (has_layer(w))
		JSON_ADD(o, J_INT("files", w->sum.files), J_INT("replaced", w->sum.replaced),
			 J_INT("deleted", w->sum.deleted), J_INT("folders", w->sum.folders),
			 J_BYTES("bytes", w->sum.bytes), J_VALUE("names", names_json(&w->sum)), J_TEXT("dir", w->keep),
			 J_TEXT("how", w->shared->fenced ? "fence" : "overlay"),
			 J_BOOL("in_memory", w->shared->in_memory), J_BYTES("limit", limit_of(w)),
			 J_BOOL("limit_passed", atomic_load(&w->shared->passed)), J_BOOL("in_use", w->in_use),
			 J_VALUE("read_only", read_only_json(w)), J_IF(w->failed.code, J_TEXT("warning", w->failed.msg)));
	return o;
}

/* As the user would name it. */
static void print_name(const char *path, const char *what, const char *cwd, FILE *out)
{
	const char *home = getenv("HOME");
	char *name = is_under(path, cwd)    ? xstrdup(path + strlen(cwd) + (cwd[1] != '\0'))
		     : is_under(path, home) ? xasprintf("~%s", path + strlen(home))
					    : xstrdup(path);

	str_make_line(name);
	fprintf(out, "%s", name);
	if (strcmp(what, what_words[LAYER_NEW]) != 0)
		fprintf(out, " (%s)", what);
	free(name);
}

static uint64_t number_of(json_t *o, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(o, key));
}

void run_writes_tell_json(json_t *writes, const char *keep, const char *who, FILE *out)
{
	uint64_t files = number_of(writes, "files"), folders = number_of(writes, "folders");
	json_t *names = json_object_get(writes, "names"), *one;
	char bytes[32], *cwd = getcwd(NULL, 0);
	size_t i;

	if (!files && !folders)
		return;
	format_bytes(bytes, sizeof(bytes), (double)number_of(writes, "bytes"));
	if (keep)
		fprintf(out, "cuwhy: no file of yours was changed; kept in '%s' what %s wrote: ", keep, who);
	else
		fprintf(out, "cuwhy: no file of yours was changed; discarded what %s wrote: ", who);
	if (files)
		fprintf(out, "%" PRIu64 " file%s, %s: ", files, files == 1 ? "" : "s", bytes);
	else
		fprintf(out, "%" PRIu64 " folder%s", folders, folders == 1 ? "" : "s");
	json_array_foreach(names, i, one) {
		if (i == TOLD)
			break;
		fputs(i ? ", " : "", out);
		print_name(json_string_value(json_object_get(one, "path")),
			   json_string_value(json_object_get(one, "what")), cwd, out);
	}
	if (files > TOLD)
		fprintf(out, ", and %" PRIu64 " more", files - TOLD);
	fprintf(out, ". What it did over the network (uploads, databases) was real\n");
	free(cwd);
}

void run_writes_tell(const struct run_writes *w, bool failed, FILE *out)
{
	char bytes[32];
	json_t *json;

	if (!has_layer(w))
		return;
	format_bytes(bytes, sizeof(bytes), (double)limit_of(w));
	if (w->failed.code)
		fprintf(out, "cuwhy: %s\n", w->failed.msg);
	if (atomic_load(&w->shared->passed))
		fprintf(out,
			"cuwhy: ended the program: what it wrote passed the limit of %s; CUWHY_WRITES_LIMIT=SIZE changes it\n",
			bytes);
	for (const char *p = w->shared->read_only; failed && *p; p += strlen(p) + 1)
		fprintf(out, "cuwhy: '%s' could not be written to in this dry run\n", p);
	if (w->sum.files && w->shared->in_memory)
		fprintf(out, "cuwhy: what the program wrote was kept in memory: no disk here can hold a layer\n");
	if (w->in_use)
		fprintf(out, "cuwhy: a process of the program still runs; what it wrote is removed by a later dry run\n");
	json = run_writes_json(w);
	run_writes_tell_json(json, w->keep, "the program", out);
	json_decref(json);
}
