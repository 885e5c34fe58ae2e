/* SPDX-License-Identifier: Apache-2.0
 * What the parts of the environment scan share; not for others.
 */
#ifndef CUWHY_PYENV_PRIV_H
#define CUWHY_PYENV_PRIV_H

#include "input/machine/pyenv/pyenv.h"

#define PY_NAME_MAX	128
#define LIST_MAX	20000	/* names in one folder */
#define RECORD_MAX	(16u << 20)
#define METADATA_MAX	(1u << 20)

struct scan {
	struct pool *pool;
	const char *root;
	const struct pyenv_input *in;
};

/* The RECORD of a package, read once. */
struct record { char *text; size_t len; bool read; };

/* One environment while it is scanned. */
struct env_work {
	struct scan *s;
	struct pyenv *e;
	struct record *record;		/* one per package */
	size_t record_bytes;
};

/* scan.c */
const char *scan_variable(const struct scan *s, const char *name);	/* NULL: unset or empty */
char *scan_text(const struct scan *s, const char *path, size_t max, size_t *len);	/* in the pool; NULL: unreadable */
const char *scan_join(const struct scan *s, const char *dir, const char *name);
const char *scan_parent(const struct scan *s, const char *path);
const char *scan_absolute(const struct scan *s, const char *path);	/* against cwd; NULL: cannot be told */
const char *scan_version_of_name(const struct scan *s, const char *file);	/* "libcuda.so.570.124.06" -> "570.124.06" */

/* find.c */
void env_find(struct scan *s, struct pyenvs *out);

/* interpreter.c */
bool env_of_interpreter(struct scan *s, const char *path, struct pyenv *e);
bool env_of_prefix(struct scan *s, const char *prefix, struct pyenv *e);

/* site.c */
void env_folders(struct scan *s, struct pyenv *e);

/* package_scan.c, package_record.c, requirement.c */
void env_packages(struct env_work *w);
void env_check_records(struct env_work *w);
void env_requirements(struct env_work *w);
const struct record *env_record(struct env_work *w, size_t package);
int env_owner(struct env_work *w, const char *path);	/* index of the package that a file belongs to; -1 unknown */

/* torch_build.c */
void env_torch(struct env_work *w);

/* extension.c */
void env_extensions(struct env_work *w);

/* loader_torch.c */
void env_loader(struct env_work *w, struct pyenvs *out);
void env_driver_libraries(struct scan *s, struct pyenvs *out);

#endif
