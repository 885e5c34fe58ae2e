/* SPDX-License-Identifier: Apache-2.0
 * A process as the dynamic loader would fill it (see loader_session.h): loading, in glibc's order.
 */
#include "input/machine/pyenv/loader_session.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/tree.h"
#include "formats/elf_file.h"
#include "input/machine/pyenv/loader_search.h"
#include "base/banned.h"

#define OBJECTS_MAX	2000
#define CACHE_MAX	(16u << 20)

int loader_loaded(const struct loader_session *s, const char *name)
{
	for (size_t i = 0; i < s->n_objects; i++) {
		const struct loader_object *o = &s->object[i];

		if (o->path && !o->broken && (strcmp(o->name, name) == 0 || (o->soname && strcmp(o->soname, name) == 0)))
			return (int)i;
	}
	return -1;
}

static int same_file(const struct loader_session *s, const struct loader_object *o)
{
	for (size_t i = 0; i < s->n_objects; i++)
		if (s->object[i].path && !s->object[i].again && s->object[i].ino == o->ino && s->object[i].dev == o->dev)
			return (int)i;
	return -1;
}

static int add(struct loader_session *s, const struct loader_object *o)
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
static int map_one(struct loader_session *s, const char *name, int by, enum loader_why why)
{
	struct loader_object o;
	int i = loader_loaded(s, name);

	if (i >= 0)
		return i;
	for (size_t k = 0; k < s->n_objects; k++)	/* looked for in vain before */
		if ((!s->object[k].path || s->object[k].broken) && strcmp(s->object[k].name, name) == 0)
			return (int)k;
	loader_look(s, name, by, &o);
	if (o.path && (why == LOADER_PRELOAD || strchr(name, '/')))
		o.why = why;
	if (why == LOADER_CTYPES)
		o.because = "torch/__init__.py";
	i = o.path && !o.broken ? same_file(s, &o) : -1;
	if (i >= 0) {
		o.again = true;
		o.n_needed = 0;
		return add(s, &o) < 0 ? -1 : i;
	}
	return add(s, &o);
}

static bool is_good(const struct loader_session *s, int i)
{
	return i >= 0 && s->object[i].path && !s->object[i].broken;
}

/* Everything from `first` on: what each needs is appended, so the list itself is the queue. */
static bool map_needed(struct loader_session *s, size_t first)
{
	bool whole = true;

	for (size_t i = first; i < s->n_objects; i++)
		for (unsigned k = 0; k < s->object[i].n_needed; k++)
			whole = is_good(s, map_one(s, s->object[i].needed[k], (int)i, LOADER_PATH)) && whole;
	return whole;
}

int loader_open(struct loader_session *s, const char *name, int by, enum loader_why why, bool keep)
{
	size_t before = s->n_objects;
	int i = map_one(s, name, by, why);

	if (is_good(s, i) && map_needed(s, before))
		return i;
	if (!keep)
		s->n_objects = before;
	return -1;
}

/* Both are lists: LD_PRELOAD with spaces or colons, the file with any white space and comments. */
static void open_preloads(struct loader_session *s, const char *list)
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

static void read_cache(struct loader_session *s)
{
	int rc;

	buf_init(&s->cache_bytes, CACHE_MAX);
	rc = tree_read(s->root, "/etc/ld.so.cache", &s->cache_bytes);
	ldcache_parse(&s->cache, s->cache_bytes.data, rc == 0 ? s->cache_bytes.len : 0);
	if (rc)
		s->cache.reason = pool_printf(s->pool, "/etc/ld.so.cache: %s", strerror(-rc));
}

static void open_system_preloads(struct loader_session *s)
{
	struct buf b;

	buf_init(&b, 1 << 16);
	if (tree_read(s->root, "/etc/ld.so.preload", &b) == 0)
		open_preloads(s, b.data);
	buf_release(&b);
}

static int begin_program(struct loader_session *s, const char *exe)
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
	add(s, &o);
	return 0;
}

int loader_begin(struct loader_session *s, struct pool *pool, const char *root, const char *cwd, const char *exe,
		 const char *library_path, const char *preload)
{
	int rc;

	*s = (struct loader_session){.pool = pool, .root = root, .cwd = cwd, .library_path = library_path};
	loader_setup_machine(s, exe);
	read_cache(s);
	rc = begin_program(s, exe);
	if (rc)
		return rc;
	open_preloads(s, preload);
	open_system_preloads(s);
	map_needed(s, 0);
	return 0;
}

void loader_end(struct loader_session *s)
{
	buf_release(&s->cache_bytes);
	free(s->object);
	*s = (struct loader_session){0};
}
