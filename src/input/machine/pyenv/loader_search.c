/* SPDX-License-Identifier: Apache-2.0
 * Where the dynamic loader looks for a name: DT_RPATH, LD_LIBRARY_PATH, DT_RUNPATH, cache, default folders.
 */
#include "input/machine/pyenv/loader_search.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/tree.h"
#include "formats/elf_file.h"
#include "base/banned.h"

#define ENTRIES_MAX	512	/* folders in one path */

#if defined(__aarch64__)
#define OWN_MACHINE	EM_AARCH64
#else
#define OWN_MACHINE	EM_X86_64
#endif

/* ---- the machine ---------------------------------------------------------------------------------- */

static bool has_flag(const char *flags, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = flags; (p = strstr(p, name)); p += n)
		if (p > flags && p[-1] == ' ' && (p[n] == ' ' || p[n] == '\0'))
			return true;
	return false;
}

static bool has_all(const char *flags, const char *const *names)
{
	for (; *names; names++)
		if (!has_flag(flags, *names))
			return false;
	return true;
}

static int cpu_level(const char *root)
{
	static const char *const v2[] = {"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3", NULL};
	static const char *const v3[] = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave", NULL};
	static const char *const v4[] = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", NULL};
	struct buf b;
	int level = 1;
	char *flags;

	buf_init(&b, 1 << 16);
	if (tree_read(root, "/proc/cpuinfo", &b) == 0 && (flags = strstr(b.data, "\nflags"))) {
		flags[1 + strcspn(flags + 1, "\n")] = '\0';
		level = !has_all(flags, v2) ? 1 : !has_all(flags, v3) ? 2 : !has_all(flags, v4) ? 3 : 4;
	}
	buf_release(&b);
	return level;
}

void loader_setup_machine(struct loader_session *s, const char *exe)
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
	if (tree_is_dir(s->root, multi[arm][1])) {	/* Debian and its kin */
		for (int i = 0; i < 4; i++)
			s->default_dir[i] = multi[arm][i];
		s->lib_token = multi[arm][0] + 1;
	} else {
		s->default_dir[0] = "/lib64";
		s->default_dir[1] = "/usr/lib64";
		s->lib_token = "lib64";
	}
}

/* ---- one file -------------------------------------------------------------------------------------- */

static const char *folder_of(struct loader_session *s, const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash > path ? pool_copy(s->pool, path, (size_t)(slash - path)) : "/";
}

/* "$ORIGIN/../../nvidia" is the same folder in fewer words. The file's own name stays: it may be a link. */
static const char *tidy(struct loader_session *s, const char *path)
{
	char real[TREE_PATH_MAX];

	if (!strstr(path, "/../") || tree_resolve(s->root, folder_of(s, path), real) != 0)
		return path;
	return pool_printf(s->pool, "%s%s", strcmp(real, "/") == 0 ? "" : real, strrchr(path, '/'));
}

int loader_load(struct loader_session *s, const char *path, struct loader_object *o)
{
	struct elf_file f;
	int rc = elf_open(&f, s->pool, s->root, path, s->machine);

	if (rc)
		return rc;
	path = tidy(s, path);
	elf_close(&f);
	if (f.foreign)
		return -ENOEXEC;
	o->path = path;
	o->broken = f.broken;
	o->soname = f.soname;
	o->origin = folder_of(s, path);
	o->rpath = f.runpath ? NULL : f.rpath;	/* DT_RPATH does not count beside a DT_RUNPATH */
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

/* ---- lists of folders ------------------------------------------------------------------------------ */

static size_t token_len(const char *p, const char *name)
{
	size_t n = strlen(name);

	if (p[1] == '{')
		return strncmp(p + 2, name, n) == 0 && p[2 + n] == '}' ? n + 3 : 0;
	return strncmp(p + 1, name, n) == 0 ? n + 1 : 0;
}

/* $ORIGIN, $LIB and $PLATFORM replaced; an empty entry is the current folder. NULL: cannot be told. */
static const char *expand(struct loader_session *s, const char *entry, size_t len, const char *origin)
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

struct walk {
	const char *list, *separators, *origin;
	enum loader_why why;
	const char *owner;		/* whose list it is; NULL: nobody's */
};

static bool try_list(struct loader_session *s, const struct walk *w, const char *name, struct loader_object *o)
{
	const char *p = w->list;

	for (int i = 0; i < ENTRIES_MAX && p; i++) {
		size_t n = strcspn(p, w->separators);
		const char *dir = expand(s, p, n, w->origin);

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
	struct walk w = {l->rpath, ":", l->origin, LOADER_RPATH, l->path};

	return l->rpath && try_list(s, &w, name, o);
}

/* DT_RPATH of who asks, of who loaded that one, and so on, and of the program; unless who asks has a DT_RUNPATH. */
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
	struct walk path = {s->library_path, ":;", s->object[0].origin, LOADER_LIBRARY_PATH, NULL};
	struct walk run = {l->runpath, ":", l->origin, LOADER_RUNPATH, l->path};

	*o = (struct loader_object){.name = name, .by = by, .why = LOADER_NOT_FOUND};
	if (strchr(name, '/')) {
		const char *full = expand(s, name, strlen(name), l->origin);

		o->why = full && try_path(s, full, o) ? LOADER_PATH : LOADER_NOT_FOUND;
		return;
	}
	if (try_rpaths(s, by >= 0 ? by : 0, name, o) || (path.list && path.list[0] && try_list(s, &path, name, o)) ||
	    (run.list && try_list(s, &run, name, o)) || try_cache(s, l->no_default, name, o))
		return;
	if (!l->no_default)
		try_defaults(s, name, o);
}
