/* SPDX-License-Identifier: Apache-2.0
 * A process as the dynamic loader would fill it (see loader_session.h): where glibc looks for a name (DT_RPATH,
 * LD_LIBRARY_PATH, DT_RUNPATH, cache, default folders), and loading in its order.
 */
#include "read/machine/pyenv/loader_session.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/tree.h"
#include "formats/elf_file.h"

#define OBJECTS_MAX	2000
#define CACHE_MAX	(16u << 20)
#define ENTRIES_MAX	512	/* folders in one path */

#if defined(__aarch64__)
#define OWN_MACHINE	EM_AARCH64
#else
#define OWN_MACHINE	EM_X86_64
#endif

static bool cpu_has_flag(const char *flags, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = flags; (p = strstr(p, name)); p += n)
		if (p > flags && p[-1] == ' ' && (p[n] == ' ' || p[n] == '\0'))
			return true;
	return false;
}

static bool cpu_has_all(const char *flags, const char *const *names)
{
	for (; *names; names++)
		if (!cpu_has_flag(flags, *names))
			return false;
	return true;
}

static int cpu_level(const char *root)
{
	static const char *const v2[] = {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3", NULL};
	static const char *const v3[] = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave", NULL};
	static const char *const v4[] = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", NULL};
	static const char *const *const needs[] = {v2, v3, v4};
	struct buf b;
	int level = 1;
	char *flags;

	buf_init(&b, 1 << 16);
	if (tree_read(root, "/proc/cpuinfo", &b) == 0 && (flags = strstr(b.data, "\nflags"))) {
		flags[1 + strcspn(flags + 1, "\n")] = '\0';
		while (level < 4 && cpu_has_all(flags, needs[level - 1]))
			level++;
	}
	buf_release(&b);
	return level;
}

/* The machine of the program (or of cuwhy itself), its CPU's level and the default folders. */
static void loader_setup_machine(struct loader_session *s, const char *exe)
{
	static const char *const multi[2][4] = {
		{"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib", "/usr/lib"},
		{"/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib", "/usr/lib"},
	};
	struct elf_file f;
	int arm;

	s->machine = OWN_MACHINE;
	if (exe && elf_open(&f, s->pool, s->root, exe, 0) == 0) {
		if (!f.broken && !f.foreign)
			s->machine = f.machine;
		elf_close(&f);
	}
	s->level = cpu_level(s->root);
	arm = s->machine == EM_AARCH64;
	if (tree_is_dir(s->root, multi[arm][1])) {	/* Debian and the like */
		for (int i = 0; i < 4; i++)
			s->default_dir[i] = multi[arm][i];
		s->lib_token = multi[arm][0] + 1;
	} else {
		s->default_dir[0] = "/lib64";
		s->default_dir[1] = "/usr/lib64";
		s->lib_token = "lib64";
	}
}

static const char *path_folder(struct loader_session *s, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash > path ? pool_copy(s->pool, path, (size_t)(slash - path)) : "/";
}

/* "$ORIGIN/../../nvidia" is shortened to the same folder. The file's own name stays: it may be a link. */
static const char *path_tidy(struct loader_session *s, const char *path)
{
	char real[TREE_PATH_MAX];

	if (!strstr(path, "/../") || tree_resolve(s->root, path_folder(s, path), real) != 0)
		return path;
	return pool_printf(s->pool, "%s%s", strcmp(real, "/") == 0 ? "" : real, strrchr(path, '/'));
}

/* Reads one file as an object. -errno: not there; -ENOEXEC: of another machine; `broken` when the loader would reject it. */
static int loader_load(struct loader_session *s, const char *path, struct loader_object *o)
{
	struct elf_file f;
	int rc = elf_open(&f, s->pool, s->root, path, s->machine);

	if (rc)
		return rc;
	path = path_tidy(s, path);
	elf_close(&f);
	if (f.foreign)
		return -ENOEXEC;
	o->path = path;
	o->broken = f.broken;
	o->soname = f.soname;
	o->origin = path_folder(s, path);
	o->rpath = f.runpath ? NULL : f.rpath;	/* DT_RPATH is ignored when there is a DT_RUNPATH */
	o->runpath = f.runpath;
	o->needed = f.needed;
	o->n_needed = f.broken ? 0 : f.n_needed;
	o->no_default = f.no_default;
	o->dev = f.dev;
	o->ino = f.ino;
	o->size = f.size;
	memcpy(o->build_id, f.build_id, sizeof(o->build_id));
	o->build_id_len = f.build_id_len;
	return 0;
}

/* true: the search ends here, for better or worse. Files of another machine and unreadable ones are passed over. */
static bool try_path(struct loader_session *s, const char *path, struct loader_object *o)
{
	int rc = loader_load(s, path, o);

	if (rc == -ENOEXEC || rc == -EACCES)
		o->skipped = path;
	return rc == 0;
}

static bool try_dir(struct loader_session *s, const char *dir, const char *name, struct loader_object *o)
{
	char hwcaps[TREE_PATH_MAX];

	if (s->machine == EM_X86_64 && snprintf(hwcaps, sizeof(hwcaps), "%s/glibc-hwcaps", dir) < (int)sizeof(hwcaps) &&
	    tree_is_dir(s->root, hwcaps))
		for (int v = s->level; v >= 2; v--)
			if (try_path(s, pool_printf(s->pool, "%s/x86-64-v%d/%s", hwcaps, v, name), o))
				return true;
	return try_path(s, pool_printf(s->pool, "%s/%s", dir, name), o);
}

static size_t token_len(const char *p, const char *name)
{
	size_t n = strlen(name);

	if (p[1] == '{')
		return strncmp(p + 2, name, n) == 0 && p[2 + n] == '}' ? n + 3 : 0;
	return strncmp(p + 1, name, n) == 0 ? n + 1 : 0;
}

/* $ORIGIN, $LIB and $PLATFORM replaced; an empty entry is the current folder. NULL: not known. */
static const char *entry_expand(struct loader_session *s, const char *entry, size_t len, const char *origin)
{
	struct buf b;
	const char *end = entry + len, *text = NULL;

	if (len == 0)
		return s->cwd;
	buf_init(&b, TREE_PATH_MAX);
	for (const char *p = entry; p < end;) {
		size_t n = 0;

		if (*p == '$' && (n = token_len(p, "ORIGIN")))
			buf_adds(&b, origin);
		else if (*p == '$' && (n = token_len(p, "LIB")))
			buf_adds(&b, s->lib_token);
		else if (*p == '$' && (n = token_len(p, "PLATFORM")))
			buf_adds(&b, s->machine == EM_AARCH64 ? "aarch64" : "x86_64");
		else
			buf_add(&b, p, n = 1);
		p += n;
	}
	while (b.len > 1 && b.data[b.len - 1] == '/')
		b.data[--b.len] = '\0';
	if (!b.full && b.data[0] == '/')
		text = pool_strdup(s->pool, b.data);
	else if (!b.full && s->cwd)
		text = pool_printf(s->pool, "%s/%s", s->cwd, b.data);
	buf_release(&b);
	return text;
}

struct search_list {
	const char *list, *separators, *origin;
	enum loader_why why;
	const char *owner;		/* the file that has this list; NULL: none */
};

static bool try_list(struct loader_session *s, const struct search_list *w, const char *name, struct loader_object *o)
{
	const char *p = w->list;

	for (int i = 0; i < ENTRIES_MAX && p; i++) {
		size_t n = strcspn(p, w->separators);
		const char *dir = entry_expand(s, p, n, w->origin);

		if (dir && try_dir(s, dir, name, o)) {
			o->why = w->why;
			o->because = w->owner ? pool_printf(s->pool, "%s: %.*s", w->owner, (int)n, p) : dir;
			return true;
		}
		p = p[n] ? p + n + 1 : NULL;
	}
	return false;
}

static bool try_rpath(struct loader_session *s, int of, const char *name, struct loader_object *o)
{
	const struct loader_object *l = &s->object[of];
	struct search_list w = {l->rpath, ":", l->origin, LOADER_RPATH, l->path};

	return l->rpath && try_list(s, &w, name, o);
}

/* DT_RPATH of the requesting file, of its loader, and so on, and of the program; unless the file has a DT_RUNPATH. */
static bool try_rpaths(struct loader_session *s, int by, const char *name, struct loader_object *o)
{
	bool did_program = false;

	if (s->object[by].runpath)
		return false;
	for (int i = by, steps = 0; i >= 0 && steps < 256; i = s->object[i].by, steps++) {
		if (try_rpath(s, i, name, o))
			return true;
		did_program |= i == 0;
	}
	return !did_program && try_rpath(s, 0, name, o);
}

static bool is_default_dir(const struct loader_session *s, const char *path)
{
	const char *slash = strrchr(path, '/');

	for (int i = 0; i < 6 && s->default_dir[i] && slash; i++)
		if (strlen(s->default_dir[i]) == (size_t)(slash - path) &&
		    memcmp(s->default_dir[i], path, (size_t)(slash - path)) == 0)
			return true;
	return false;
}

static bool try_cache(struct loader_session *s, bool no_default, const char *name, struct loader_object *o)
{
	const char *path = ldcache_find(&s->cache, name, s->machine, s->level);

	if (!path || (no_default && is_default_dir(s, path)) || !try_path(s, pool_strdup(s->pool, path), o))
		return false;
	o->why = LOADER_CACHE;
	o->because = "/etc/ld.so.cache";
	return true;
}

static bool try_defaults(struct loader_session *s, const char *name, struct loader_object *o)
{
	for (int i = 0; i < 6 && s->default_dir[i]; i++)
		if (try_dir(s, s->default_dir[i], name, o)) {
			o->why = LOADER_DEFAULT;
			o->because = s->default_dir[i];
			return true;
		}
	return false;
}

void loader_look(struct loader_session *s, const char *name, int by, struct loader_object *o)
{
	const struct loader_object *l = by >= 0 ? &s->object[by] : &s->object[0];
	struct search_list path = {s->library_path, ":;", s->object[0].origin, LOADER_LIBRARY_PATH, NULL};
	struct search_list run = {l->runpath, ":", l->origin, LOADER_RUNPATH, l->path};

	*o = (struct loader_object){.name = name, .by = by, .why = LOADER_NOT_FOUND};
	if (strchr(name, '/')) {
		const char *full = entry_expand(s, name, strlen(name), l->origin);

		o->why = full && try_path(s, full, o) ? LOADER_PATH : LOADER_NOT_FOUND;
		return;
	}
	if (try_rpaths(s, by >= 0 ? by : 0, name, o) || (path.list && path.list[0] && try_list(s, &path, name, o)) ||
	    (run.list && try_list(s, &run, name, o)) || try_cache(s, l->no_default, name, o))
		return;
	if (!l->no_default)
		try_defaults(s, name, o);
}

int loader_loaded(const struct loader_session *s, const char *name)
{
	for (size_t i = 0; i < s->n_objects; i++) {
		const struct loader_object *o = &s->object[i];

		if (o->path && !o->broken && (strcmp(o->name, name) == 0 || (o->soname && strcmp(o->soname, name) == 0)))
			return (int)i;
	}
	return -1;
}

static int object_same_file(const struct loader_session *s, const struct loader_object *o)
{
	for (size_t i = 0; i < s->n_objects; i++)
		if (s->object[i].path && !s->object[i].again && s->object[i].ino == o->ino && s->object[i].dev == o->dev)
			return (int)i;
	return -1;
}

static int object_add(struct loader_session *s, const struct loader_object *o)
{
	if (s->n_objects >= OBJECTS_MAX) {
		s->cut = true;
		return -1;
	}
	s->object = xgrow(s->object, s->n_objects, &s->cap, sizeof(*s->object));
	s->object[s->n_objects] = *o;
	s->object[s->n_objects].late = s->late;
	return (int)s->n_objects++;
}

/* Loads one name for `by`. Its index; a name that is found nowhere becomes an object without a path. */
static int object_map(struct loader_session *s, const char *name, int by, enum loader_why why)
{
	struct loader_object o;
	int i = loader_loaded(s, name);

	if (i >= 0)
		return i;
	for (size_t k = 0; k < s->n_objects; k++)	/* already known to be missing */
		if ((!s->object[k].path || s->object[k].broken) && strcmp(s->object[k].name, name) == 0)
			return (int)k;
	loader_look(s, name, by, &o);
	if (o.path && (why == LOADER_PRELOAD || strchr(name, '/')))
		o.why = why;
	if (why == LOADER_CTYPES)
		o.because = "torch/__init__.py";
	i = o.path && !o.broken ? object_same_file(s, &o) : -1;
	if (i >= 0) {
		o.again = true;
		o.n_needed = 0;
		return object_add(s, &o) < 0 ? -1 : i;
	}
	return object_add(s, &o);
}

static bool object_is_good(const struct loader_session *s, int i)
{
	return i >= 0 && s->object[i].path && !s->object[i].broken;
}

/* Everything from `first` on: what each needs is appended, so the list itself is the queue. */
static bool object_map_needed(struct loader_session *s, size_t first)
{
	bool whole = true;

	for (size_t i = first; i < s->n_objects; i++)
		for (unsigned k = 0; k < s->object[i].n_needed; k++)
			whole = object_is_good(s, object_map(s, s->object[i].needed[k], (int)i, LOADER_PATH)) && whole;
	return whole;
}

int loader_open(struct loader_session *s, const char *name, int by, enum loader_why why, bool keep)
{
	size_t before = s->n_objects;
	int i = object_map(s, name, by, why);

	if (object_is_good(s, i) && object_map_needed(s, before))
		return i;
	if (!keep)
		s->n_objects = before;
	return -1;
}

/* Both are lists: LD_PRELOAD with spaces or colons, the file with any white space and comments. */
static void loader_open_preloads(struct loader_session *s, const char *list)
{
	while (list && *list) {
		size_t n = strcspn(list, " :\t\n");

		if (*list == '#')
			n = strcspn(list, "\n");
		else if (n)	/* glibc only warns about one that cannot be loaded */
			loader_open(s, pool_copy(s->pool, list, n), 0, LOADER_PRELOAD, false);
		list += n + (list[n] != '\0');
	}
}

static void loader_read_cache(struct loader_session *s)
{
	int rc;

	buf_init(&s->cache_bytes, CACHE_MAX);
	rc = tree_read(s->root, "/etc/ld.so.cache", &s->cache_bytes);
	ldcache_parse(&s->cache, s->cache_bytes.data, rc == 0 ? s->cache_bytes.len : 0);
	if (rc)
		s->cache.reason = pool_printf(s->pool, "/etc/ld.so.cache: %s", strerror(-rc));
}

static void loader_open_system_preloads(struct loader_session *s)
{
	struct buf b;

	buf_init(&b, 1 << 16);
	if (tree_read(s->root, "/etc/ld.so.preload", &b) == 0)
		loader_open_preloads(s, b.data);
	buf_release(&b);
}

static int loader_begin_program(struct loader_session *s, const char *exe)
{
	struct loader_object o = {.name = "", .path = "", .origin = "/", .by = -1, .why = LOADER_PATH};
	char real[TREE_PATH_MAX];
	int rc;

	if (exe) {
		rc = tree_resolve(s->root, exe, real);
		if (rc)
			return rc;
		rc = loader_load(s, pool_strdup(s->pool, real), &o);
		if (rc || o.broken)
			return rc ? rc : -ENOEXEC;
		o.name = o.path;
		o.by = -1;
	}
	object_add(s, &o);
	return 0;
}

int loader_begin(struct loader_session *s, struct pool *pool, const char *root, const char *cwd, const char *exe,
		 const char *library_path, const char *preload)
{
	int rc;

	*s = (struct loader_session){.pool = pool, .root = root, .cwd = cwd, .library_path = library_path};
	loader_setup_machine(s, exe);
	loader_read_cache(s);
	rc = loader_begin_program(s, exe);
	if (rc)
		return rc;
	loader_open_preloads(s, preload);
	loader_open_system_preloads(s);
	object_map_needed(s, 0);
	return 0;
}

void loader_end(struct loader_session *s)
{
	buf_release(&s->cache_bytes);
	free(s->object);
	*s = (struct loader_session){0};
}
