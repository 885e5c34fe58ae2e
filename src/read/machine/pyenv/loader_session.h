/* SPDX-License-Identifier: Apache-2.0
 * A process as the dynamic loader would fill it: which objects are in, and where the next one would be found.
 */
#ifndef CUWHY_LOADER_SESSION_H
#define CUWHY_LOADER_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/pool.h"
#include "read/machine/pyenv/loader.h"

/* /etc/ld.so.cache: where the loader looks before it looks in folders. */

struct ldcache {
	const char *data;		/* not owned */
	size_t size;
	size_t texts_end;		/* after the last NUL: texts that start before it end inside the file */
	size_t base;			/* string offsets count from here */
	size_t entries, n_entries, entry_size;
	size_t hwcaps, n_hwcaps;	/* offset and number of the names of glibc-hwcaps folders */
	const char *reason;		/* why there is nothing to look in; NULL: fine */
};

/* Any bytes. `machine` is an ELF machine number, `level` the x86-64 level of the CPU (1 to 4): which glibc-hwcaps
 * folders it may use. */
void ldcache_parse(struct ldcache *c, const void *data, size_t size);
const char *ldcache_find(const struct ldcache *c, const char *soname, uint16_t machine, int level);

struct loader_object {
	const char *name;		/* as requested */
	const char *path;		/* NULL: not found */
	const char *soname, *origin, *rpath, *runpath;
	const char **needed;
	unsigned n_needed;
	int by;				/* the requester; -1: the start of the process */
	enum loader_why why;
	const char *because, *broken, *skipped;
	uint64_t dev, ino, size;
	uint8_t build_id[32];
	unsigned build_id_len;
	bool no_default, late;
	bool again;			/* found to be the same file as an earlier object: kept only for its name */
};

struct loader_session {
	struct pool *pool;
	const char *root, *cwd;
	uint16_t machine;
	int level;			/* x86-64 level of the CPU */
	const char *library_path;	/* LD_LIBRARY_PATH; NULL: not set */
	const char *lib_token;		/* $LIB */
	const char *default_dir[6];
	struct buf cache_bytes;
	struct ldcache cache;
	struct loader_object *object;
	size_t n_objects, cap;
	bool late, cut;
};

/* The program itself with what it needs and LD_PRELOAD. `exe` may be NULL: a plain program. -errno when the
 * executable exists but cannot be read as one. */
int loader_begin(struct loader_session *s, struct pool *pool, const char *root, const char *cwd, const char *exe,
		 const char *library_path, const char *preload);
void loader_end(struct loader_session *s);

/* dlopen by the object `by`, with everything that it needs, breadth first. Its index, or -1 when it or a part of it
 * is not found; then nothing stays loaded, as with glibc, unless `keep`. `why` and `because` are for names with a slash. */
int loader_open(struct loader_session *s, const char *name, int by, enum loader_why why, bool keep);

/* Where a name would be found, without loading it: path, why, because, broken of `out`. */
void loader_look(struct loader_session *s, const char *name, int by, struct loader_object *out);

int loader_loaded(const struct loader_session *s, const char *name);	/* index; -1 */

#endif
