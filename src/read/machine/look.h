/* SPDX-License-Identifier: Apache-2.0
 * How a machine's files are examined (see host.h): where, with which readers, and the subjects.
 */
#ifndef CUWHY_LOOK_H
#define CUWHY_LOOK_H

#include "read/machine/host.h"

struct looking {
	struct host *h;
	struct pool *pool;
	const char *root;
	const char *const *env;
	const char *cwd;
	bool live;			/* it is the machine that we run on */
	char *mounts;			/* /proc/self/mountinfo; NULL: not readable */
};

const char *look_env(const struct looking *l, const char *name);	/* NULL: not set or empty */
char *look_file(const struct looking *l, const char *path, size_t max, size_t *len);	/* at most `max` bytes of it, ends with a NUL */
const char *look_line(const struct looking *l, const char *path);	/* its first line, cleaned; NULL also when it is empty */
int64_t look_number(const struct looking *l, const char *path);	/* decimal or 0x */
bool look_exists(const struct looking *l, const char *path);
int look_list(const struct looking *l, const char *path, size_t max, char ***names);	/* notes a gap when truncated; -errno */

/* Where a link in this folder points to, without following it: the last part of it. */
const char *look_link_name(const struct looking *l, const char *dir, const char *link);

/* Text without control bytes, valid UTF-8, no spaces at its ends, at most FIELD_LINE_MAX bytes. */
const char *look_clean(const struct looking *l, const char *text, size_t len);

void look_gap(const struct looking *l, const char *what, const char *why);

/* After "NAME:" at the beginning of a line; NULL when there is none. */
const char *look_field(const struct looking *l, const char *text, const char *name);

/* The first version ("580.65.06") at or after this place of the line; NULL when there is none. */
const char *look_version(const struct looking *l, const char *text);

/* Would opening it for reading and writing work? 0 or an errno. */
int look_open_error(const struct looking *l, const char *path);

struct mount {
	char root[256], point[256], type[32], source[256], options[256];
};

/* One after the other: `*at` starts as l->mounts. */
bool look_mount(const char **at, struct mount *m);

/* What is mounted at exactly this path: its path in the file system that it is from. NULL: nothing. */
const char *look_mounted(const struct looking *l, const char *path);

/* The path of this process in a control group hierarchy ("" = the unified one); NULL when it is not there. */
const char *look_cgroup(const struct looking *l, const char *controller);

void host_look_os(const struct looking *l);		/* and Windows around it */
void host_look_modules(const struct looking *l);
void host_look_container(const struct looking *l);
void host_look_pci(const struct looking *l);		/* and IOMMUs */
void host_look_nodes(const struct looking *l);		/* and MIG */
void host_look_libraries(const struct looking *l);
void host_look_daemons(const struct looking *l);
void host_look_memory(const struct looking *l);
void host_look_tools(const struct looking *l);
void host_look_log(const struct looking *l);

#endif
