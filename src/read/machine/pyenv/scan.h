/* SPDX-License-Identifier: Apache-2.0
 * A scan for Python environments in progress (see pyenv.h): where it looks, and its steps.
 */
#ifndef CUWHY_PYENV_SCAN_H
#define CUWHY_PYENV_SCAN_H

#include "read/machine/pyenv/pyenv.h"

#define LIST_MAX	20000	/* names in one folder */

struct scan {
	struct pool *pool;
	const char *root;
	const struct pyenv_input *in;
};

const char *scan_variable(const struct scan *s, const char *name);	/* NULL: unset or empty */
char *scan_text(const struct scan *s, const char *path, size_t max, size_t *len);	/* in the pool; NULL: unreadable */
const char *scan_join(const struct scan *s, const char *dir, const char *name);
const char *scan_parent(const struct scan *s, const char *path);
const char *scan_absolute(const struct scan *s, const char *path);	/* against cwd; NULL: not known */

/* Of a shared library, by its name: is it one ("x.so", "libx.so.12"), and of which version ("libcuda.so.570.124.06")? */
bool library_is_one(const char *name, size_t len);
const char *library_version(struct pool *pool, const char *path);	/* NULL: the name does not say */

/* The RECORD of a package, read once. */
struct record { char *text; size_t len; bool read; };

/* One environment while it is scanned. */
struct env_work {
	struct scan *s;
	struct pyenv *e;
	struct record *record;		/* one per package */
	size_t record_bytes;
};

const struct record *env_record(struct env_work *w, size_t package);
int env_owner(struct env_work *w, const char *path);	/* index of the package that a file belongs to; -1 unknown */

/* The steps, in their order: each fills its part of the environment. */
void env_folders(struct scan *s, struct pyenv *e);
void env_packages(struct env_work *w);
void env_torch(struct env_work *w);
void env_extensions(struct env_work *w);
void env_loader(struct env_work *w, struct pyenvs *out);

/* And what a program outside any environment would get. */
void env_driver_libraries(struct scan *s, struct pyenvs *out);

#endif
